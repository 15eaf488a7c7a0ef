//! Feeds [`client_frames`](quorate_fuzz::client_frames).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::client_frames::feed(data));
