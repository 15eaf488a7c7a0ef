//! Feeds [`tree`](quorate_fuzz::tree).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::tree::feed(data));
