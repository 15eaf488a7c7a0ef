//! In which order servers are replaced, one at a time: observers, then followers, the leader last.

use std::path::PathBuf;

use quorate_doctor::ConfigFile;
use quorate_tokio::core::membership::Role;
use serde::Serialize;

use super::ask::Answer;

/// One server's turn.
#[derive(Debug, Serialize)]
pub(super) struct Replacement {
    pub(super) server: i64,
    /// As its line has it.
    pub(super) role: &'static str,
    /// Whether it leads now, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leads: Option<bool>,
    /// Its host, as its line has it.
    pub(super) host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data_dir: Option<PathBuf>,
}

/// The order. Without answers the server with the largest id is last: of equally new ones it leads.
pub(super) fn order(files: &[ConfigFile], answers: &[Answer]) -> Vec<Replacement> {
    let Some(cfg) = files.iter().find_map(ConfigFile::cfg) else { return Vec::new() };
    let mut all: Vec<_> = cfg
        .membership
        .members()
        .iter()
        .map(|member| {
            let file = files.iter().find(|file| file.id == Some(member.id));
            let answer = answers.iter().find(|answer| answer.server == member.id.0);
            Replacement {
                server: member.id.0,
                role: match member.role {
                    Role::Participant => "participant",
                    Role::Observer => "observer",
                },
                leads: answer.filter(|answer| answer.mode.is_some()).map(Answer::leads),
                host: member
                    .addresses
                    .first()
                    .map_or_else(String::new, |at| at.quorum.host.clone()),
                file: file.map(|file| file.path.clone()),
                data_dir: file.and_then(ConfigFile::cfg).map(|cfg| cfg.data_dir.clone()),
            }
        })
        .collect();
    all.sort_by_key(|one| (one.leads == Some(true), one.role == "participant", one.server));
    all
}
