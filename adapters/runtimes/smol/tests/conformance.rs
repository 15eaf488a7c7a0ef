//! The scenarios of every runtime, on smol.

quorate_driver::suite!([quorate_smol::Smol], smol::block_on);
quorate_driver::tls_suite!([quorate_smol::Smol], smol::block_on);
