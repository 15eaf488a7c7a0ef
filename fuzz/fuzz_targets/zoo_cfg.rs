//! Feeds [`zoo_cfg`](quorate_fuzz::zoo_cfg).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::zoo_cfg::feed(data));
