//! Feeds [`garbage`](quorate_fuzz::garbage).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::garbage::feed(data));
