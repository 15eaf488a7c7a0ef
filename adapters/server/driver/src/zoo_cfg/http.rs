//! What a `zoo.cfg` says of HTTP: the admin server, metrics and probes.

use std::time::Duration;

use quorate_core::address::HostPort;

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::ConfigError;
#[cfg(feature = "tls")]
use crate::zoo_cfg::http_tls::{self, AdminTls, SecureMetrics};

/// Where HTTP is spoken. Nowhere, unless the file says so; and on loopback, unless it names another address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// The admin server (`admin.enableServer`, false; ZooKeeper up to 3.9: true).
    pub admin: Option<AdminSettings>,
    /// Where Prometheus scrapes (`metricsProvider.className`, `metricsProvider.httpHost`, 127.0.0.1 where ZooKeeper has
    /// 0.0.0.0, and `metricsProvider.httpPort`, 7000, or none where `metricsProvider.httpsPort` alone is set).
    pub metrics: Option<HostPort>,
    /// Where it scrapes with TLS.
    #[cfg(feature = "tls")]
    pub secure_metrics: Option<SecureMetrics>,
    /// Where probes alone are answered (`quorate.probe.address`).
    pub probes: Option<HostPort>,
}

/// The admin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Where it listens (`admin.serverAddress`, 127.0.0.1 where ZooKeeper has 0.0.0.0, and `admin.serverPort`, 8080).
    pub address: HostPort,
    /// How long a connection may be without a request (`admin.idleTimeout`, 30 s).
    pub idle: Duration,
    /// The path that the commands stand below (`admin.commandURL`, `/commands`).
    pub command_url: String,
    /// TLS around it; without, requests come as they are.
    #[cfg(feature = "tls")]
    pub tls: Option<AdminTls>,
}

impl HttpSettings {
    /// `of_servers`: TLS of links between servers, whose stores are the admin server's.
    pub(super) fn read(
        entries: &mut Entries<'_>,
        #[cfg(feature = "tls")] of_servers: Option<&quorate_tls::Settings>,
    ) -> Result<Self, ConfigError> {
        #[cfg(feature = "tls")]
        let has_plain = entries.peek("metricsProvider.httpPort").is_some();
        let (admin, metrics) = (admin(entries)?, metrics(entries)?);
        let probes = entries.host_port("quorate.probe.address")?;
        #[cfg(feature = "tls")]
        {
            let tls = http_tls::admin(entries, admin.is_some(), of_servers)?;
            let admin = admin.map(|admin| AdminSettings { tls, ..admin });
            let secure_metrics = match &metrics {
                Some(plain) => http_tls::metrics(entries, &plain.host)?,
                None => None,
            };
            let metrics = metrics.filter(|_| has_plain || secure_metrics.is_none());
            Ok(Self { admin, metrics, secure_metrics, probes })
        }
        #[cfg(not(feature = "tls"))]
        Ok(Self { admin, metrics, probes })
    }
}

fn admin(entries: &mut Entries<'_>) -> Result<Option<AdminSettings>, ConfigError> {
    let enabled = entries.boolean("admin.enableServer", false)?;
    let address = entries.address("admin.serverAddress", "admin.serverPort", 8080)?;
    let idle = entries.millis("admin.idleTimeout", 1)?.unwrap_or(Duration::from_secs(30));
    let command_url = match entries.take("admin.commandURL") {
        None => "/commands".to_owned(),
        Some(entry) if entry.value.starts_with('/') && !entry.value.contains(['?', '*', ' ']) => {
            entry.value.trim_end_matches('/').to_owned()
        }
        Some(entry) => return Err(entry.value_error("a path, such as /commands".to_owned())),
    };
    // Where they are true, the file is refused.
    #[cfg(not(feature = "tls"))]
    for key in ["admin.portUnification", "admin.forceHttps", "admin.needClientAuth"] {
        entries.boolean(key, false)?;
    }
    for key in ["admin.rateLimiterIntervalInMS", "admin.snapshot.enabled", "admin.restore.enabled"]
    {
        entries.without_effect(key, NO_SNAPSHOTS);
        entries.take(key);
    }
    Ok(enabled.then_some(AdminSettings {
        address,
        idle,
        command_url,
        #[cfg(feature = "tls")]
        tls: None,
    }))
}

fn metrics(entries: &mut Entries<'_>) -> Result<Option<HostPort>, ConfigError> {
    let provider = entries.take("metricsProvider.className");
    let address = entries.address("metricsProvider.httpHost", "metricsProvider.httpPort", 7000)?;
    for key in [
        "metricsProvider.exportJvmInfo",
        "metricsProvider.numWorkerThreads",
        "metricsProvider.maxQueueSize",
        "metricsProvider.workerShutdownTimeoutMs",
    ] {
        entries.without_effect(key, NO_JVM);
        entries.take(key);
    }
    let Some(provider) = provider else { return Ok(None) };
    match &*provider.value {
        PROMETHEUS => Ok(Some(address)),
        DEFAULT | NULL => Ok(None),
        _ => Err(provider.value_error(format!("{PROMETHEUS}, or {DEFAULT}"))),
    }
}

const PROMETHEUS: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
const DEFAULT: &str = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider";
const NULL: &str = "org.apache.zookeeper.metrics.impl.NullMetricsProvider";
const NO_SNAPSHOTS: &str = "snapshots are not taken or restored over HTTP";
const NO_JVM: &str = "there is no JVM, and no queue of metrics";
