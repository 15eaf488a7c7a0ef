//! Feeds [`snapshot`](quorate_fuzz::snapshot).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::snapshot::feed(data));
