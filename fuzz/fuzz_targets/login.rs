//! Feeds [`login`](quorate_fuzz::login).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::login::feed(data));
