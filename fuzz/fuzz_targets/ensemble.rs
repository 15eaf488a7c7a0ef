//! Feeds [`ensemble`](quorate_fuzz::ensemble).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::ensemble::feed(data));
