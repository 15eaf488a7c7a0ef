//! The same scenarios with servers on every runtime in each ensemble.

use std::future::Future;

use quorate_async_std::AsyncStd;
use quorate_driver::testing::AnyRuntime;
use quorate_smol::Smol;
use quorate_tokio::Tokio;
use tokio::runtime::Builder;

fn runtimes() -> [AnyRuntime; 3] {
    // Server 1, 2, 3, and again.
    [AnyRuntime::new(Tokio), AnyRuntime::new(Smol), AnyRuntime::new(AsyncStd)]
}

fn block_on(work: impl Future<Output = ()>) {
    // tokio's servers have to be started on tokio; the others do not mind.
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("a runtime").block_on(work);
}

quorate_driver::suite!(runtimes(), block_on);
