//! The scenarios of every runtime, on tokio: on both of its kinds.

use std::future::Future;

use quorate_tokio::Tokio;
use tokio::runtime::Builder;

mod current_thread {
    use super::*;

    fn block_on(work: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
    }

    quorate_driver::suite!([Tokio], block_on);
}

mod multi_thread {
    use super::*;

    fn block_on(work: impl Future<Output = ()>) {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build().expect("a runtime").block_on(work);
    }

    quorate_driver::suite!([Tokio], block_on);
    quorate_driver::tls_suite!([Tokio], block_on);
}
