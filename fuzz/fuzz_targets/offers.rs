//! Feeds [`offers`](quorate_fuzz::offers).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::offers::feed(data));
