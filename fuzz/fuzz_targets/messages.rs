//! Feeds [`messages`](quorate_fuzz::messages).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::messages::feed(data));
