//! Feeds [`packet`](quorate_fuzz::packet).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::packet::feed(data));
