//! ZooKeeper's settings that do nothing here.
//!
//! None is passed over in silence. One that turns on what an attacker, a client or a Java member would miss refuses
//! the file, until it can be done; each other one is named, and why it has no effect.
//!
//! The keys are those of `QuorumPeerConfig` and the system properties of a server, of ZooKeeper 3.8 to 3.9.5, which
//! may be written with or without `zookeeper.` before them.

/// What turns a setting on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// `true`.
    True,
    /// Anything but nothing, 0 and -1.
    Set,
}

impl When {
    /// Whether `value` turns it on.
    pub(super) fn holds(self, value: &str) -> bool {
        match self {
            Self::True => value.eq_ignore_ascii_case("true"),
            Self::Set => !["", "0", "-1"].contains(&value),
        }
    }
}

/// A key that turns on what we cannot do; its beginning, if it ends in a dot.
pub(super) const NOT_SUPPORTED: &[(&str, When, &str)] = &[
    #[cfg(not(feature = "tls"))]
    ("sslQuorum", When::True, "TLS between servers"),
    #[cfg(not(feature = "tls"))]
    ("portUnification", When::True, "TLS between servers"),
    (
        "ssl.quorum.crl",
        When::True,
        "looking for revoked certificates where they say, in place of the lists that quorate.ssl.crlFile names,",
    ),
    (
        "ssl.quorum.ocsp",
        When::True,
        "asking an authority whether a certificate is revoked, in place of the lists that quorate.ssl.crlFile names,",
    ),
    ("ssl.quorum.context.supplier.class", When::Set, "a supplier of TLS contexts of its own"),
    #[cfg(not(feature = "tls"))]
    ("quorate.ssl.crlFile", When::Set, "TLS between servers"),
    #[cfg(not(feature = "tls"))]
    ("quorate.ssl.client.crlFile", When::Set, "TLS for clients"),
    #[cfg(not(feature = "tls"))]
    ("secureClientPort", When::Set, "TLS for clients"),
    #[cfg(not(feature = "tls"))]
    ("client.portUnification", When::True, "TLS for clients"),
    ("IPAuthenticationProvider.usexforwardedfor", When::True, "believing X-Forwarded-For"),
    ("authProvider.", When::Set, "an authentication provider of its own"),
    ("enforceQuota", When::True, "enforcing quotas"),
    ("localSessionsEnabled", When::True, "keeping sessions at one server"),
    ("observerMasterPort", When::Set, "serving observers as a follower"),
    #[cfg(not(feature = "tls"))]
    ("admin.portUnification", When::True, "TLS for the admin server"),
    #[cfg(not(feature = "tls"))]
    ("admin.forceHttps", When::True, "TLS for the admin server"),
    #[cfg(not(feature = "tls"))]
    ("admin.needClientAuth", When::True, "TLS for the admin server"),
    #[cfg(not(feature = "tls"))]
    ("metricsProvider.httpsPort", When::Set, "TLS for metrics"),
    #[cfg(not(feature = "tls"))]
    ("metricsProvider.ssl.", When::Set, "TLS for metrics"),
    // Its owners of TTL nodes mean sessions to everybody else.
    ("emulate353TTLNodes", When::True, "TTL nodes as ZooKeeper 3.5.3 wrote them"),
];

/// Why ZooKeeper's setting `name` has no effect here; none if it is no setting of ZooKeeper that we know.
pub(super) fn why_not_used(name: &str) -> Option<&'static str> {
    let is = |key: &str| match key.strip_suffix('*') {
        Some(family) => name.starts_with(family),
        None => name == key,
    };
    NOT_USED.iter().find(|(_, keys)| keys.iter().any(|key| is(key))).map(|(why, _)| *why)
}

/// The keys of [`NOT_USED`] that are whole.
pub(super) fn not_used() -> impl Iterator<Item = &'static str> {
    NOT_USED.iter().flat_map(|(_, keys)| *keys).copied().filter(|key| !key.ends_with('*'))
}

/// Keys of ZooKeeper that have no effect here, by the reason. What ends in `*` is a beginning.
const NOT_USED: [(&str, &[&str]); 13] = [
    (
        "a leader gives up at once for a voter that it needs and that looks for a leader again",
        &["leader.maxTimeToWaitForEpoch"],
    ),
    ("whatever is acknowledged was synced", &["forceSync", "syncEnabled", "observer.syncEnabled"]),
    ("the admin server and its metrics have no such part", &["admin.*", "metricsProvider.*"]),
    (
        "--log and RUST_LOG say what is logged",
        &["console.threshold", "log.*", "root.logger", "tracelog.*"],
    ),
    ("the longest packet is that of ZooKeeper's defaults", &["jute.*"]),
    (
        "snapshots are written as they are; compressed ones are read",
        &["snapshot.compression.method"],
    ),
    (
        "there is no TLS for clients unless secureClientPort or client.portUnification is set",
        &["quorate.ssl.client.*"],
    ),
    (
        "there is no TLS between servers unless sslQuorum or portUnification is true",
        &["ssl.quorum.*", "sslQuorumReloadCertFiles", "fips-mode", "quorate.ssl.*"],
    ),
    (
        "there is no TLS for clients unless secureClientPort or client.portUnification is set",
        &["ssl.*", "client.certReload", "ocsp.enable"],
    ),
    (
        "of SASL there is DIGEST-MD5 alone, where quorate.jaas.file and for servers quorum.auth.enableSasl say so",
        &[
            "allowSaslFailedClients",
            "quorum.auth.*",
            "quorum.cnxn.threads.size",
            "kerberos.*",
            "quorate.jaas.reloadInterval",
            "requireKerberosConfig",
            "sasl*",
            "security.auth_to_local",
            "superUser*",
        ],
    ),
    (
        "the service for clients has no such part",
        &[
            "advancedFlowControlEnabled",
            "client.*",
            "closeSessionTxn.enabled",
            "commitProcessor.*",
            "connection*",
            "DigestAuthenticationProvider.enabled",
            "enforce.auth.*",
            "ensembleAuthName",
            "intBufferStartingSizeBytes",
            "IPAuthenticationProvider.*",
            "largeRequestMaxBytes",
            "largeRequestThreshold",
            "letAnySaslUserDoX",
            "localSessionsUpgradingEnabled",
            "maxGetChildrenResponseCacheSize",
            "maxResponseCacheSize",
            "netty.*",
            "nio*",
            "outstandingHandshake.limit",
            "requestStale*",
            "requestThrottle*",
            "request_throttler*",
            "requireClientAuthScheme*",
            "SASLAuthenticationProvider.*",
            "secureClientPortAddress",
            "serverCnxnFactory",
            "throttledOpWaitTime",
            "watch*",
            "X509AuthenticationProvider.*",
        ],
    ),
    (
        "no such part is here",
        &[
            "bitHashCacheSize",
            "datadir.autocreate",
            "emulate353TTLNodes",
            "flushDelay",
            "follower.nodelay",
            "follower.skipLearnerRequestToNextProcessor",
            "forward_learner_requests_to_commit_processor_disabled",
            "jmx.log4j.disable",
            "leader.ackLoggingFrequency",
            "leader.closeSocketAsync",
            "leader.maxConcurrentDiffSyncs",
            "leader.nodelay",
            "leaderConnectDelayDuringRetryMs",
            "learner.asyncSending",
            "learner.closeSocketAsync",
            "maxBatchSize",
            "maxInProcessingDeadWatchers",
            "maxWriteQueuePollTime",
            "messageTracker.*",
            "multiAddress.reachabilityCheckEnabled",
            "multiAddress.reachabilityCheckTimeoutMs",
            "observer.reconnectDelayMs",
            "observerMaster.*",
            "observerMasterPort",
            "pathStats.*",
            "readonlymode.enabled",
            "request_throttler.shutdownTimeout",
            "serializeLastProcessedZxid.enabled",
            "snapshot.*",
        ],
    ),
    ("it is for ZooKeeper's own tests", &["forceSnapshotSync", "test.*", "testingonly.*"]),
];
