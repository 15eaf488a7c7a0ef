//! Feeds [`log_files`](quorate_fuzz::log_files).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::log_files::feed(data));
