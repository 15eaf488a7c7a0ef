//! Feeds [`notification`](quorate_fuzz::notification).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::notification::feed(data));
