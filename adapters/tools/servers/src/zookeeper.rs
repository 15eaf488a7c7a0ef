//! The ZooKeeper server of `quorate serve`.

use std::future::Future;
use std::pin::Pin;

use quorate_service::ZooKeeper;
use quorate_tokio::{Server, ServerConfig, StartError};

/// As [`quorate_tokio::start_with`]; a boxed future, since an unboxed one is compiled by whoever awaits it.
///
/// # Errors
///
/// As [`quorate_driver::Server::start`].
pub fn start(
    config: ServerConfig,
    zookeeper: ZooKeeper,
) -> Pin<Box<dyn Future<Output = Result<Server<ZooKeeper>, StartError>> + Send>> {
    Box::pin(quorate_tokio::start_with(config, zookeeper))
}
