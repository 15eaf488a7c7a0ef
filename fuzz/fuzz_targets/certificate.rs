//! Feeds [`certificate`](quorate_fuzz::certificate).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::certificate::feed(data));
