//! What the service and the ports for clients are told of a `zoo.cfg`: at the start, and what of it may change later.

use std::sync::Arc;

use quorate_service::{
    Adjustment, Audit, AuditFormat, Beneath, DigestAlgorithm, Options, Sasl, Words,
};
use quorate_tokio::zoo_cfg::{AuditSettings, JavaVersion, ZooCfg};

/// The settings of the service.
pub(crate) fn options(cfg: &ZooCfg, sasl: Option<Arc<Sasl>>, beneath: Arc<dyn Beneath>) -> Options {
    let clients = &cfg.clients;
    let Adjustment {
        words,
        session_timeout_min,
        session_timeout_max,
        watches_per_client_max,
        watches_max,
    } = adjustment(cfg);
    Options {
        session_timeout_min,
        session_timeout_max,
        outstanding_max: clients.outstanding_max,
        event_zxids: clients.oldest_java.is_some_and(JavaVersion::has_event_zxids),
        create2_in_multi: clients.oldest_java.is_some_and(JavaVersion::knows_create2_in_multi),
        leader_serves: clients.leader_serves,
        watches_per_client_max,
        watches_max,
        super_digest: clients.super_digest.clone(),
        x509_super: clients.x509_super.clone(),
        sasl,
        required_schemes: clients.required_schemes.clone(),
        skip_acl: clients.skip_acl,
        eager_acl_check: clients.eager_acl,
        throttled_requests_max: clients.throttled_requests_max,
        drop_stale: clients.drop_stale,
        digest_algorithm: DigestAlgorithm::named(&clients.digest_algorithm).unwrap_or_default(),
        tree_digests: clients.tree_digests,
        containers_per_minute: clients.containers_per_minute,
        container_unused_max: clients.container_unused_max,
        extended_types: clients.extended_types,
        words,
        container_interval: clients.container_interval,
        audit: cfg.audit.as_ref().map(audit),
        beneath: Some(beneath),
    }
}

/// What is told of changes, and in whose name of what the server does by itself.
fn audit(settings: &AuditSettings) -> Audit {
    let format = if settings.json { AuditFormat::Json } else { AuditFormat::Java };
    let named = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let server_user = named.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    Audit { format, server_user }
}

/// Those that may change while it runs.
pub(crate) fn adjustment(cfg: &ZooCfg) -> Adjustment {
    let clients = &cfg.clients;
    Adjustment {
        words: match cfg.four_letter_words.iter().any(|word| word == "*") {
            true => Words::All,
            false => Words::Some(cfg.four_letter_words.clone()),
        },
        session_timeout_min: clients.session_timeout_min,
        session_timeout_max: clients.session_timeout_max,
        watches_per_client_max: any_for_none(clients.watches_per_client_max),
        watches_max: any_for_none(clients.watches_max),
    }
}

/// A limit, of which 0 is none.
const fn any_for_none(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}
