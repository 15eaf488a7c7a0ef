//! Feeds [`key_store`](quorate_fuzz::key_store).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::key_store::feed(data));
