//! Feeds [`timeline`](quorate_fuzz::timeline).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::timeline::feed(data));
