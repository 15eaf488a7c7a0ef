//! Feeds [`handshake`](quorate_fuzz::handshake).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::handshake::feed(data));
