//! Feeds [`synchronisation`](quorate_fuzz::synchronisation).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::synchronisation::feed(data));
