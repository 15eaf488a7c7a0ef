//! The table of commands: names, who may see what they tell, and when they are answered.

use crate::admin::answers::{self, Outcome};
use crate::admin::scene::{Scene, Wants};

/// One command.
pub(super) struct Command {
    /// The first is what it is called, the others are as good.
    names: &'static [&'static str],
    /// It is answered only by a server that serves.
    pub(super) serving: bool,
    /// It changes something.
    pub(super) changes: bool,
    pub(super) shown: Shown,
    /// What of the service it tells.
    pub(super) wants: Wants,
    pub(super) run: fn(&Scene<'_>) -> Outcome,
}

/// Who may see what a command tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    ToAll,
    ToWhoHasAllRights,
}

impl Command {
    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.names.contains(&name))
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }
}

/// The list of all commands, as ZooKeeper writes it.
pub(super) fn page(url: &str) -> String {
    let line = |command: &Command| {
        let name = command.name();
        format!("<a href=\"{url}/{name}\">{name}</a>\n<br/>\n")
    };
    COMMANDS.iter().map(line).collect()
}

const fn told(
    names: &'static [&'static str],
    wants: Wants,
    run: fn(&Scene<'_>) -> Outcome,
) -> Command {
    Command { names, serving: true, changes: false, shown: Shown::ToAll, wants, run }
}

const fn always(
    names: &'static [&'static str],
    wants: Wants,
    run: fn(&Scene<'_>) -> Outcome,
) -> Command {
    Command { serving: false, ..told(names, wants, run) }
}

const fn private(
    names: &'static [&'static str],
    wants: Wants,
    run: fn(&Scene<'_>) -> Outcome,
) -> Command {
    Command { shown: Shown::ToWhoHasAllRights, ..told(names, wants, run) }
}

const fn changing(
    names: &'static [&'static str],
    wants: Wants,
    run: fn(&Scene<'_>) -> Outcome,
) -> Command {
    Command { changes: true, ..told(names, wants, run) }
}

/// All of ZooKeeper 3.9, sorted by name.
const COMMANDS: &[Command] = &[
    told(&["configuration", "conf", "config"], Wants::Nothing, answers::configuration),
    changing(&["connection_stat_reset", "crst"], Wants::ResetConnections, answers::nothing),
    private(&["connections", "cons"], Wants::Connections, answers::connections),
    told(&["dirs"], Wants::Nothing, answers::dirs),
    private(&["dump"], Wants::Sessions, answers::dump),
    always(&["environment", "env", "envi"], Wants::Nothing, answers::environment),
    always(&["get_trace_mask", "gtmk"], Wants::Nothing, answers::get_trace_mask),
    told(&["hash"], Wants::Digests, answers::hash),
    told(&["initial_configuration", "icfg"], Wants::Nothing, answers::initial_configuration),
    told(&["is_read_only", "isro"], Wants::Nothing, answers::is_read_only),
    told(&["last_snapshot", "lsnp"], Wants::Nothing, answers::last_snapshot),
    told(&["leader", "lead"], Wants::Nothing, answers::leader),
    always(&["monitor", "mntr"], Wants::Figures, answers::monitor),
    changing(&["observer_connection_stat_reset", "orst"], Wants::Nothing, answers::nothing),
    told(&["observers", "obsr"], Wants::Nothing, answers::observers),
    Command { serving: false, ..told(&["restore", "rest"], Wants::Nothing, answers::restore) },
    told(&["ruok"], Wants::Nothing, answers::nothing),
    told(&["server_stats", "srvr"], Wants::Figures, answers::server_stats),
    always(&["set_trace_mask", "stmk"], Wants::Nothing, answers::set_trace_mask),
    private(&["snapshot", "snap"], Wants::Nothing, answers::snapshot),
    changing(&["stat_reset", "srst"], Wants::ResetFigures, answers::nothing),
    told(&["stats", "stat"], Wants::Figures, answers::stats),
    always(&["system_properties", "sysp"], Wants::Nothing, answers::system_properties),
    told(&["voting_view"], Wants::Nothing, answers::voting_view),
    told(&["watch_summary", "wchs"], Wants::WatchSummary, answers::watch_summary),
    private(&["watches", "wchc"], Wants::Watches, answers::watches),
    private(&["watches_by_path", "wchp"], Wants::Watches, answers::watches_by_path),
    always(&["zabstate"], Wants::Nothing, answers::zabstate),
];
