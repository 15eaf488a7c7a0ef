//! Feeds [`play`](quorate_fuzz::play).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::play::feed(data));
