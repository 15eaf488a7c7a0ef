//! Feeds [`jaas`](quorate_fuzz::jaas).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::jaas::feed(data));
