//! Looks up where the members are.

use std::convert::Infallible;
use std::time::Duration;

use futures_lite::future::or;

use crate::net::member_addresses::MemberAddresses;
use crate::net::resolve::Resolver;
use crate::runtime::Runtime;

/// Looks all names up, as far as that goes in this time. What cannot be found stays as it was.
pub(crate) async fn look_up<R: Runtime>(
    members: &MemberAddresses,
    (runtime, resolver): (&R, &Resolver),
    time: Duration,
) {
    let work = async {
        for host in members.hosts() {
            if let Ok(addresses) = resolver.resolve(&host).await {
                members.found(&host, &addresses);
            }
        }
    };
    or(work, runtime.sleep(time)).await;
}

/// Looks again every minute, and when there are other members.
pub(crate) async fn watch<R: Runtime>(
    members: &MemberAddresses,
    runtime: &R,
    resolver: &Resolver,
) -> Infallible {
    loop {
        or(members.changed(), runtime.sleep(EVERY)).await;
        look_up(members, (runtime, resolver), EVERY).await;
    }
}

/// How often names are looked up.
const EVERY: Duration = Duration::from_secs(60);
