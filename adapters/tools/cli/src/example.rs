//! `quorate example`: files to begin with, from `share/`; so the binary alone is enough.

use std::io::{self, Write};

use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// Print a file to begin with.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which.
    name: Example,
}

/// What can be printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Example {
    /// A configuration of one of three servers.
    #[value(name = "zoo.cfg")]
    ZooCfg,
    /// A systemd unit, for /etc/quorate/zoo.cfg.
    Unit,
    /// The same for several servers on one host: quorate@NAME is that of /etc/quorate/NAME.cfg.
    UnitTemplate,
    /// A file that builds a container image.
    Containerfile,
    /// Three servers for Kubernetes: services, a stateful set, a budget of disruptions.
    K8s,
    /// Rules of alerts for Prometheus, ZooKeeper's samples among them.
    Alerts,
    /// A dashboard for Grafana.
    Dashboard,
}

/// `quorate example`.
#[allow(clippy::unnecessary_wraps, reason = "as every command")]
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let unit = include_str!("../share/quorate.service");
    let text = match arguments.name {
        Example::ZooCfg => include_str!("../share/zoo.cfg").to_owned(),
        Example::Unit => unit.to_owned(),
        Example::UnitTemplate => {
            unit.replace("zoo.cfg", "%i.cfg").replace("ZooKeeper server", "ZooKeeper server %i")
        }
        Example::Containerfile => include_str!("../share/Containerfile").to_owned(),
        Example::K8s => include_str!("../share/kubernetes.yaml").to_owned(),
        Example::Alerts => include_str!("../share/alerts.yaml").to_owned(),
        Example::Dashboard => include_str!("../share/dashboard.json").to_owned(),
    };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use quorate_tokio::zoo_cfg::ZooCfg;

    #[test]
    fn the_configuration_is_one_that_is_served_without_a_warning() {
        let text = include_str!("../share/zoo.cfg");
        let cfg =
            ZooCfg::parse("zoo.cfg", text, |_: &Path| Ok::<_, io::Error>("2".to_owned())).unwrap();
        assert_eq!(cfg.my_id.0, 2);
        assert!(cfg.warnings.iter().all(|warning| warning.is_notice()), "{:?}", cfg.warnings);
    }
}
