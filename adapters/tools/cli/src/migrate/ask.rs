//! What running servers say of themselves (`srvr`, at their client ports): who leads, and which version each is.

use std::time::Duration;

use quorate_doctor::{ConfigFile, Version, client_ports, faults_of};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use serde::Serialize;

use super::finding::{Finding, Level};
use crate::word;

/// What one server has said.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Answer {
    pub(super) server: i64,
    pub(super) address: String,
    /// `leader`, `follower`, `observer`, `standalone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<String>,
    /// As `srvr` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zxid: Option<String>,
    /// Why it has said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Answer {
    pub(super) fn leads(&self) -> bool {
        self.mode.as_deref() == Some("leader")
    }
}

/// Asks all whose client ports the files tell, at once.
pub(super) async fn ask_all(files: &[ConfigFile], patience: Duration) -> Vec<Answer> {
    let asked: Vec<_> = client_ports(files)
        .into_iter()
        .map(|(id, at)| (id, at.clone(), tokio::spawn(ask(at, patience))))
        .collect();
    let mut answers = Vec::new();
    for (id, at, answer) in asked {
        let text = match answer.await {
            Ok(text) => text,
            Err(error) => Err(error.to_string()),
        };
        answers.push(read(id, &at, text));
    }
    answers
}

async fn ask(at: HostPort, patience: Duration) -> Result<String, String> {
    let answer = word::ask(&at, "srvr", patience).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn read(id: ServerId, at: &HostPort, text: Result<String, String>) -> Answer {
    let mut answer = Answer {
        server: id.0,
        address: at.to_string(),
        mode: None,
        version: None,
        zxid: None,
        error: None,
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return Answer { error: Some(error), ..answer },
    };
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    answer.version = field("Zookeeper version:");
    answer.mode = field("Mode:");
    answer.zxid = field("Zxid:");
    if answer.mode.is_none() {
        let line: String = text.lines().next().unwrap_or("nothing").chars().take(100).collect();
        answer.error = Some(format!("it says {line:?}"));
    }
    answer
}

/// What is found in the answers.
pub(super) fn findings(answers: &[Answer]) -> Vec<Finding> {
    let mut found = Vec::new();
    for answer in answers {
        let server = Some(ServerId(answer.server));
        let mut find = |level, what: String, remedy: &str| {
            found.push(Finding::new(level, what, remedy).of(server));
        };
        if let Some(error) = &answer.error {
            let what = format!("{} has not said what it is: {error}", answer.address);
            let remedy = "start it, or put srvr into its 4lw.commands.whitelist: replace a server only while all serve";
            find(Level::Endangers, what, remedy);
        }
        let is_java = !answer.version.as_deref().unwrap_or_default().contains("quorate");
        let version = answer.version.as_deref().and_then(Version::read).filter(|_| is_java);
        let Some(version) = version else { continue };
        for fault in faults_of(version).filter(|fault| fault.endangers_replacement) {
            let (what, issues) = (fault.what, fault.issues.join(", "));
            find(Level::Endangers, format!("ZooKeeper {version} {what} ({issues})"), UPGRADE);
        }
        if version < OLDEST_TRIED {
            find(
                Level::Endangers,
                format!("ZooKeeper {version} was not tried beside ours"),
                UPGRADE,
            );
        }
    }
    if !answers.is_empty() && answers.iter().filter(|answer| answer.leads()).count() != 1 {
        let what = "not exactly one server says that it leads";
        let remedy = "replace none before there is a leader that all others follow";
        found.push(Finding::new(Level::Forbids, what, remedy));
    }
    found
}

const UPGRADE: &str =
    "upgrade it to 3.8.5, 3.9.4 or newer first; no other server can make up for it";
/// Before it, none was tried beside ours.
const OLDEST_TRIED: Version = Version(3, 5, 0);

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        let at = HostPort { host: "zk1".to_owned(), port: 2181 };
        read(ServerId(1), &at, Ok(text.to_owned()))
    }

    #[test]
    fn srvr_is_read_and_old_versions_are_named() {
        let old = answer(
            "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25 08:49 UTC\n\
             Latency min/avg/max: 0/0.0/0\nZxid: 0x100000000\nMode: leader\nNode count: 5\n",
        );
        assert!(old.leads());
        assert_eq!(old.zxid.as_deref(), Some("0x100000000"));
        let found = findings(&[old]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].finding.starts_with("ZooKeeper 3.8.0 acknowledges"));
        let new = answer("Zookeeper version: 3.9.4-abc, built on x\nMode: leader\n");
        assert_eq!(findings(&[new]), []);
        let ours =
            answer("Zookeeper version: 3.8.0-quorate-0.2.0--release, built on x\nMode: leader\n");
        assert_eq!(findings(&[ours]), []);
    }

    #[test]
    fn nothing_is_begun_without_a_leader() {
        let silent = answer("This ZooKeeper instance is not currently serving requests\n");
        let levels: Vec<_> = findings(&[silent]).iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Endangers, Level::Forbids]);
    }
}
