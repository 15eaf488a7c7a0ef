//! The stores of TLS, looked at now and then, and read again when they have changed; and what becomes of links that are up.
//!
//! ZooKeeper watches the folder of a store for its name, and so misses the secrets of Kubernetes, whose files are links into a
//! folder that is swapped. Here each path is followed every time.
//!
//! ```text
//!   every so often, or an operator asks ─► changed? ─► all good together? ─► for links to come
//!                                                                       └─► links that would not be trusted now are closed
//!                                      └─► certificates that have ended, lists that are overdue: told once a day
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorate_core::id::LinkId;
use quorate_tls::{CloseOnReload, Marks, Reason, Tls, TlsError};

use crate::net::events::Shared;
use crate::net::secure_links::SecureLink;
use crate::net::tls::Secure;
use crate::runtime::Runtime;
use crate::threads::offload;

/// What looks.
struct Watch<R> {
    runtime: R,
    shared: Arc<Shared>,
    secure: Arc<Secure>,
    seen: Marks,
    failed: bool,
    /// What was told, and when.
    told: BTreeMap<String, Instant>,
}

/// Looks for as long as the server runs: at the stores every so often, or only when it is asked to. Links to come have what
/// is there then.
pub(crate) async fn watch<R: Runtime>(
    runtime: R,
    shared: Arc<Shared>,
    secure: Arc<Secure>,
    every: Option<Duration>,
) -> Infallible {
    let (seen, told) = (secure.marks(), BTreeMap::new());
    let mut watch = Watch { runtime, shared, secure, seen, failed: false, told };
    let mut stores_at = every.map(|every| watch.runtime.now() + every);
    loop {
        let asked = watch.wait(stores_at).await;
        let now = watch.runtime.now();
        if asked || stores_at.is_some_and(|at| at <= now) {
            stores_at = every.map(|every| now + every);
            watch.look(asked).await;
        }
        watch.look_at_ends();
        watch.look_at_lists();
    }
}

impl<R: Runtime> Watch<R> {
    /// Waits until it is time; whether an operator has asked.
    async fn wait(&self, until: Option<Instant>) -> bool {
        let most = until.map_or(ENDS_EVERY, |at| {
            at.saturating_duration_since(self.runtime.now()).min(ENDS_EVERY)
        });
        self.shared.looks.links.wait(&self.runtime, Some(most)).await
    }

    /// Reads the stores again if they have changed.
    async fn look(&mut self, asked: bool) {
        let sid = self.shared.id.0;
        let (settings, before) = (self.secure.settings(), self.seen.clone());
        let looked = offload("quorate-stores", move || {
            let now = Marks::of(&settings);
            // All are good together, or the old ones stay.
            (now != before).then(|| (now, Tls::open(settings)))
        });
        let Ok(Some((now, opened))) = looked.await else { return };
        match opened {
            Ok(tls) => {
                for notice in tls.notices() {
                    tracing::warn!(event = "tls.notice", sid, "{notice}");
                }
                let own = tls.own();
                tracing::info!(event = "tls.reloaded", sid, "new stores, for links to come: {own}");
                let which = tls.settings().close_on_reload;
                self.secure.replace(tls);
                self.shared.secure_links.own_ends(self.secure.ends());
                self.shared.store_reloads.fetch_add(1, Ordering::Relaxed);
                (self.seen, self.failed) = (now, false);
                self.close_untrusted(which).await;
            }
            // Half written, perhaps: it is tried again at the next look, and said once.
            Err(error) => {
                if !self.failed || asked {
                    tell(sid, &error);
                }
                self.failed = true;
            }
        }
    }

    /// Has links closed whose other side would not be let in now.
    async fn close_untrusted(&self, which: CloseOnReload) {
        let links = self.shared.secure_links.all();
        let secure = Arc::clone(&self.secure);
        // Each is a path of certificates to build.
        let looked = offload("quorate-stores", move || {
            let refused = |(id, link): (LinkId, SecureLink)| {
                let failure = secure.still_trusts(&link).err()?;
                let counts = match which {
                    CloseOnReload::None => false,
                    CloseOnReload::Expired => failure.reason == Reason::Expired,
                    CloseOnReload::Untrusted => true,
                };
                counts.then(|| (id, failure.to_string()))
            };
            links.into_iter().filter_map(refused).collect::<Vec<_>>()
        });
        for (id, why) in looked.await.unwrap_or_default() {
            self.shared.secure_links.is_unwanted(id, &why, self.runtime.now());
        }
    }

    /// Tells of certificates that have ended on links that are up, and closes these if that is wanted.
    fn look_at_ends(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let closes = self.secure.settings().close_expired;
        for (id, link) in self.shared.secure_links.all() {
            if link.ends >= now {
                continue;
            }
            if self.is_new(format!("{:?} {:?} {}", link.plane, link.peer, link.remote.ip())) {
                let (sid, peer, plane) =
                    (self.shared.id.0, link.peer.map(|peer| peer.0), link.plane);
                tracing::warn!(
                    event = "tls.peer_expired", sid, ?plane, peer, remote = %link.remote,
                    "the certificate of the other side of a link has ended: it cannot be made again when it breaks"
                );
            }
            if closes {
                let why = "its certificate has ended";
                self.shared.secure_links.is_unwanted(id, why, self.runtime.now());
            }
        }
    }

    fn look_at_lists(&mut self) {
        for overdue in self.secure.overdue() {
            if self.is_new(overdue.clone()) {
                tracing::warn!(event = "tls.notice", sid = self.shared.id.0, "{overdue}");
            }
        }
    }

    /// Whether something was not told in the last day.
    fn is_new(&mut self, what: String) -> bool {
        let now = self.runtime.now();
        self.told.retain(|_, at| now.saturating_duration_since(*at) < DAY);
        let is_new = !self.told.contains_key(&what) && self.told.len() < TOLD_MAX;
        if is_new {
            self.told.insert(what, now);
        }
        is_new
    }
}

fn tell(sid: i64, error: &TlsError) {
    tracing::warn!(event = "tls.reload_failed", sid, %error, "the stores have changed, and the old ones stay");
}

/// How often it is looked, at least, whether certificates have ended.
const ENDS_EVERY: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(86_400);
/// How much of a day is remembered.
const TOLD_MAX: usize = 1024;
