//! What one file says of a replacement: the reader's refusals and warnings, and what has to be the same everywhere.

use quorate_doctor::ConfigFile;
use quorate_tokio::core::config::Election;
use quorate_tokio::zoo_cfg::{Caution, Warning, ZooCfg};

use super::finding::{Finding, Level};
use super::remedies::{of_danger, of_refusal};

/// What is found in a file.
pub(super) fn findings(file: &ConfigFile) -> Vec<Finding> {
    let mut found = Vec::new();
    for (setting, what) in &file.survey.not_supported {
        let what = format!("{} is not there", what.trim_end_matches(','));
        let name = setting.key.strip_prefix("zookeeper.").unwrap_or(&setting.key);
        found.push(Finding::new(Level::Forbids, what, of_refusal(name)).set_by(setting));
    }
    match &file.survey.rest {
        Ok(cfg) => {
            found.extend(cfg.warnings.iter().filter_map(|warning| of_warning(file, warning)));
            found.extend(of_values(file, cfg));
        }
        Err(error) => {
            let what = format!("the file would be refused: {error}");
            let remedy = "correct the file; `quorate serve` reads it in the same way";
            found.push(Finding::new(Level::Forbids, what, remedy).in_file(&file.path));
        }
    }
    if file.id.is_none() && file.cfg().is_some_and(|cfg| !cfg.alone) {
        let what = "whose file it is cannot be known: its dataDir with myid is not on this machine";
        let remedy = format!("say it: `quorate migrate check N={}`", file.path.display());
        found.push(Finding::new(Level::Notice, what, remedy).in_file(&file.path));
    }
    found.into_iter().map(|finding| finding.of(file.id)).collect()
}

/// A warning of the reader, if it matters before a replacement. Notices that a setting has no effect do not, unless the
/// table has them.
fn of_warning(file: &ConfigFile, warning: &Warning) -> Option<Finding> {
    let (level, remedy) = match &warning.caution {
        // Told by the table, or worth nothing.
        Caution::NotUsed { .. } | Caution::KeepAliveStays | Caution::OneParticipant => return None,
        Caution::OtherRole { .. } if file.id.is_none() => return None,
        Caution::UnknownKey { .. } | Caution::Misspelt { .. } => (
            Level::Endangers,
            "correct or remove the line; if a program of Java's reads it, ours does not",
        ),
        Caution::Repeated { .. } => (Level::Notice, "remove the line that does not count"),
        Caution::OtherRole { .. } => (Level::Endangers, "let both say the same"),
        Caution::SeveralAddresses { .. } => {
            (Level::Endangers, "set multiAddress.enabled=true on all servers, or leave one address")
        }
        Caution::Weakens { .. } => {
            (Level::Notice, "look whether it is still needed when all is done")
        }
        Caution::TwoParticipants => (
            Level::Endangers,
            "while one of the two is replaced nothing is served: add a third first",
        ),
        Caution::Alone => (
            Level::Endangers,
            "nothing is served while it is replaced: make an ensemble of it first, or stop it",
        ),
        Caution::MyIdUnused { .. } => (Level::Notice, "remove the file, or write an id there"),
        Caution::EvenParticipants { .. } => (Level::Notice, "an odd number is enough"),
    };
    Some(Finding::new(level, warning.caution.to_string(), remedy).at(&warning.at))
}

/// Values that work, and that have to be looked at.
fn of_values(file: &ConfigFile, cfg: &ZooCfg) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, setting) in &file.survey.settings {
        let is_off = ["", "false", "no", "-1", "CHECKED"].contains(&setting.value.as_str());
        let means_off = ["leaderServes", "digest.enabled"].contains(&&**name);
        let is_refused = file.survey.not_supported.iter().any(|(refused, _)| refused == setting);
        if let Some((why, remedy)) = of_danger(name).filter(|_| is_off == means_off && !is_refused)
        {
            found.push(Finding::new(Level::Endangers, why, remedy).set_by(setting));
        }
    }
    match file.setting("jute.maxbuffer") {
        Some(setting) if cfg.request_bytes != BUFFER => found.push(
            Finding::new(
                Level::Endangers,
                "longer or shorter requests than usual: a server with a smaller one cannot read what others wrote",
                "set it alike on all servers; to a Java server as a flag of its JVM (its zoo.cfg does not count), to \
                 ours in zoo.cfg or in SERVER_JVMFLAGS",
            )
            .set_by(setting),
        ),
        Some(_) => {}
        None => found.push(
            Finding::new(
                Level::Notice,
                "jute.maxbuffer, readonlymode.enabled and znode.container.* are flags of Java's JVM, and other settings \
                 may be: they do not stand in this file",
                "give `migrate check` and `serve` the same SERVER_JVMFLAGS and JVMFLAGS as Java has",
            )
            .in_file(&file.path),
        ),
    }
    if matches!(cfg.election, Election::Generation(_)) {
        let finding = Finding::new(
            Level::Forbids,
            "no Java server takes part in elections by generation",
            "leave it out until no Java server is a member any more",
        );
        found.extend(file.setting("quorate.election").map(|setting| finding.set_by(setting)));
    }
    if let Some(setting) = file.setting("quorate.lease") {
        let finding = Finding::new(
            Level::Forbids,
            "leases hold only if every voter keeps them; no Java server does",
            "leave it out until no Java server is a member any more",
        );
        found.push(finding.set_by(setting));
    }
    found
}

/// `jute.maxbuffer` where nothing is said.
const BUFFER: usize = 0xf_ffff;
