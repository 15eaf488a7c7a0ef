//! Feeds [`step`](quorate_fuzz::step).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::step::feed(data));
