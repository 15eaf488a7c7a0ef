//! Feeds [`leases`](quorate_fuzz::leases).
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::leases::feed(data));
