//! Sets what accepts and makes connections between servers going.

use std::sync::Arc;

#[cfg(feature = "tls")]
use quorate_tls::{Verdict, judge};

use crate::config::ServerConfig;
use crate::error::StartError;
use crate::net::acceptor::Acceptor;
use crate::net::address_limit::AddressLimit;
use crate::net::dial::{Dialler, UnderWay};
use crate::net::events::Shared;
use crate::net::handshakes::Handshakes;
use crate::net::listen::{Bound, Listeners};
use crate::net::login_reload;
use crate::net::member_names;
use crate::net::oracle;
#[cfg(feature = "tls")]
use crate::net::reload;
use crate::net::resolve::Resolver;
use crate::net::sasl::Logins;
use crate::net::tls::Secure;
use crate::runtime::Runtime;
use crate::task_group::TaskGroup;
#[cfg(feature = "tls")]
use crate::threads::offload;

/// What connections between servers go through, and what finds the members.
pub(super) struct Around<'a> {
    pub(super) secure: &'a Option<Arc<Secure>>,
    pub(super) logins: &'a Option<Arc<Logins>>,
    pub(super) resolver: Resolver,
}

/// What accepts and makes connections, and the oracle's watch.
pub(super) fn network<R: Runtime>(
    config: &ServerConfig,
    shared: &Arc<Shared>,
    Around { secure, logins, resolver }: Around<'_>,
    (acceptors, links): (TaskGroup<R>, TaskGroup<R>),
    bound: Vec<Bound<R>>,
) -> (Listeners<R>, Dialler<R>) {
    if let Some(path) = config.oracle_path.clone() {
        let (tick, runtime) = (config.core.timing.tick, acceptors.runtime.clone());
        acceptors.spawn(oracle::watch(path, tick, Arc::clone(shared), runtime));
    }
    if looks_for_members(config) {
        let (shared, resolver) = (Arc::clone(shared), resolver.clone());
        let runtime = acceptors.runtime.clone();
        acceptors.spawn(async move {
            match member_names::watch(&shared.members, &runtime, &resolver).await {}
        });
    }
    #[cfg(feature = "tls")]
    if let (Some(secure), Some(tls)) = (secure, &config.tls) {
        shared.secure_links.own_ends(secure.ends());
        let (runtime, shared) = (acceptors.runtime.clone(), Arc::clone(shared));
        let watching = reload::watch(runtime, shared, Arc::clone(secure), tls.reload);
        acceptors.spawn(async move { match watching.await {} });
    }
    if let (Some(logins), Some(settings)) = (logins, &config.sasl) {
        let (runtime, shared) = (acceptors.runtime.clone(), Arc::clone(shared));
        let watching = login_reload::watch(runtime, shared, Arc::clone(logins), settings.reload);
        acceptors.spawn(async move { match watching.await {} });
    }
    let acceptor = Acceptor {
        shared: Arc::clone(shared),
        secure: secure.clone(),
        logins: logins.clone(),
        tasks: acceptors.clone(),
        links: links.clone(),
        handshakes: Arc::new(Handshakes::new(secure.is_some())),
        connections: Arc::new(AddressLimit::new(config.max_peer_connections)),
        allowed: config.allowed_hosts.clone().map(Arc::new),
        introduction_time: config.introduction_time(),
    };
    let dialler = Dialler {
        shared: Arc::clone(shared),
        secure: secure.clone(),
        logins: logins.clone(),
        tasks: acceptors,
        links,
        timeout: config.connect_timeout,
        resolver,
        under_way: UnderWay::default(),
    };
    (Listeners::new(acceptor, config.listen_on_all_ips, bound), dialler)
}

/// Whether it matters where the members are: for whom places are kept, or who is let in.
pub(super) fn looks_for_members(config: &ServerConfig) -> bool {
    #[cfg(feature = "tls")]
    let secure = config.tls.is_some();
    #[cfg(not(feature = "tls"))]
    let secure = false;
    !config.alone && (secure || config.allowed_hosts.as_ref().is_some_and(|hosts| hosts.members))
}

/// TLS between servers, where it is wanted: its stores are read, and good.
#[cfg(feature = "tls")]
pub(super) async fn secure(config: &ServerConfig) -> Result<Option<Arc<Secure>>, StartError> {
    let Some(settings) = config.tls.clone().filter(|_| !config.alone) else { return Ok(None) };
    let tls = offload("quorate-stores", || quorate_tls::Tls::open(settings)).await;
    let tls = tls.map_err(StartError::Thread)??;
    for notice in tls.notices() {
        tracing::warn!(event = "tls.notice", sid = config.core.id.0, "{notice}");
    }
    let core = &config.core;
    let known = [Some(&core.membership), core.next_membership.as_ref()];
    let known: Vec<_> = known.into_iter().flatten().cloned().collect();
    let mode = tls.settings().dialled_mode();
    if let Verdict::Refused(mismatch) | Verdict::Told(mismatch) =
        judge(Some(core.id), &tls.own_names(), &known, mode)
    {
        let (sid, seen) = (core.id.0, mismatch.certificate());
        tracing::warn!(
            event = "tls.notice",
            sid,
            "the others will not take this server's certificate for its own: {seen}"
        );
    }
    Ok(Some(Arc::new(Secure::new(tls, known))))
}

#[cfg(not(feature = "tls"))]
pub(super) async fn secure(_: &ServerConfig) -> Result<Option<Arc<Secure>>, StartError> {
    Ok(None)
}
