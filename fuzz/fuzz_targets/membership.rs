//! Feeds [`membership`](quorate_fuzz::membership).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::membership::feed(data));
