//! Feeds [`generation`](quorate_fuzz::generation).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::generation::feed(data));
