//! What programs name, whatever their runtime.
//!
//! One macro, so that the crates of the runtimes cannot come to differ: each is its [`Runtime`](crate::Runtime)
//! and one line.

/// Gives the crate of a runtime what programs that embed a server name, the same in each: the types of
/// this crate, `Server` on that runtime, `start` and `start_with`. Stands at the root of that crate.
///
/// ```
/// # use std::{future::Future, io, net::SocketAddr, time::Duration};
/// # #[derive(Clone)]
/// pub struct MyRuntime;
///
/// impl Runtime for MyRuntime {
///     // …
/// #    type Stream = futures_lite::io::Cursor<Vec<u8>>;
/// #    type Listener = ();
/// #    fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {}
/// #    async fn sleep(&self, _: Duration) {}
/// #    async fn listen(&self, _: SocketAddr) -> io::Result<()> { Ok(()) }
/// #    async fn accept(&self, _: &()) -> io::Result<(Self::Stream, SocketAddr)> { unreachable!() }
/// #    fn local_addr(&self, _: &()) -> io::Result<SocketAddr> { unreachable!() }
/// #    async fn dial(&self, _: SocketAddr) -> io::Result<Self::Stream> { unreachable!() }
/// }
///
/// quorate_driver::embed!(MyRuntime);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! embed {
    ($runtime:ident) => {
        pub use $crate::{
            Application, BuildError, Changes, FencingToken, Leader, Leaders, LeadershipError, Lost,
            Metrics, NoApplication, Observed, Prepared, Proposal, ProposeError, Proposed,
            ReadError, ReconfigureError, Rejected, Replicated, Restore, RestoreError, Runtime,
            SaslError, ServerConfig, ServerConfigBuilder, ServerError, Setback, Snapshot,
            SnapshotError, StartError, StateMachine, Status, TakeSnapshotError, TransferError,
            UnknownOutcome, clients, core, zoo_cfg,
        };

        /// The right to do what only the leader may.
        pub type Leadership = $crate::Leadership<$runtime>;

        /// A server on this runtime, and what it replicates.
        pub type Server<A = NoApplication> = $crate::Server<$runtime, A>;

        /// Starts a server that only elects. What comes from a
        /// [`zoo.cfg`](zoo_cfg::ZooCfg::read) will do as configuration, as well as what was built.
        ///
        /// # Errors
        ///
        /// As [`Server::start`](quorate_driver::Server::start).
        pub async fn start(config: impl Into<ServerConfig>) -> Result<Server, StartError> {
            start_with(config, NoApplication).await
        }

        /// Starts a server that replicates `application`, which is in its first state.
        ///
        /// # Errors
        ///
        /// As [`Server::start`](quorate_driver::Server::start).
        pub async fn start_with<A: Application>(
            config: impl Into<ServerConfig>,
            application: A,
        ) -> Result<Server<A>, StartError> {
            Server::start($runtime, config.into(), application).await
        }
    };
}
