//! The same scenarios with servers on tokio and on smol in each ensemble.

use std::future::Future;

use quorate_driver::testing::AnyRuntime;
use quorate_smol::Smol;
use quorate_tokio::Tokio;
use tokio::runtime::Builder;

fn runtimes() -> [AnyRuntime; 2] {
    // Server 1, 2, and again.
    [AnyRuntime::new(Tokio), AnyRuntime::new(Smol)]
}

fn block_on(work: impl Future<Output = ()>) {
    // tokio's servers have to be started on tokio; smol's do not mind.
    let mut runtime = Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("a runtime").block_on(work);
}

quorate_driver::suite!(runtimes(), block_on);
