//! The scenarios of every runtime, on async-std.

quorate_driver::suite!([quorate_async_std::AsyncStd], async_std::task::block_on);
quorate_driver::tls_suite!([quorate_async_std::AsyncStd], async_std::task::block_on);
