//! The measurements of a demo: a row for each change of leader, and the summary.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::audit::Verdict;
use super::load::{Account, LoadConfig};
use super::sessions::SessionsSummary;
use super::spread::Spread;
use crate::event::millis;
use crate::paint::Paint;

/// One change of leader.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The leader that was killed, or asked for a transfer.
    pub(super) killed: i64,
    /// In which epoch it led.
    pub(super) from_epoch: i64,
    /// The leader since.
    pub(super) leader: i64,
    /// In which epoch.
    pub(super) epoch: i64,
    /// When the kill or the transfer began.
    pub(super) at: Instant,
    /// From the kill until the first survivor looks for a leader.
    pub(super) detection: Duration,
    /// From then until the next leader knows that it is elected.
    pub(super) election: Duration,
    /// From then until it serves with a synchronised quorum.
    pub(super) activation: Duration,
    /// All three.
    pub(super) total: Duration,
    /// From the restart of the dead server until it serves again.
    pub(super) rejoin: Option<Duration>,
}

/// The last line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) servers: usize,
    pub(super) kills: usize,
    /// Under the name that programs know.
    #[serde(rename = "transfers")]
    pub(super) transfers: usize,
    pub(super) elections: usize,
    pub(super) failover_ms: Spread,
    pub(super) detection_ms: Spread,
    pub(super) election_ms: Spread,
    pub(super) activation_ms: Spread,
    pub(super) rejoin_ms: Spread,
    pub(super) cold_start_ms: Option<f64>,
    pub(super) two_leaders_in_one_epoch: usize,
    /// Whether there was TLS around the links between servers.
    pub(super) tls: bool,
    /// With TLS, how long failovers took without it, in the same demo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) plain_failover_ms: Option<Spread>,
    /// Under load.
    #[serde(flatten)]
    pub(super) load: Option<LoadSummary>,
    /// With clients.
    #[serde(flatten)]
    pub(super) sessions: Option<SessionsSummary>,
}

/// What came of the writes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LoadSummary {
    pub(super) clients: usize,
    pub(super) payload_bytes: usize,
    /// How many were acknowledged.
    pub(super) writes: usize,
    pub(super) writes_per_s: f64,
    /// How many have an unknown outcome: their servers were killed.
    pub(super) doubtful: usize,
    /// How often a write was refused, and made again.
    pub(super) retries: usize,
    /// The longest time without an acknowledgement.
    pub(super) longest_gap_ms: f64,
    /// From a kill until the first write under another leader is acknowledged.
    pub(super) write_again_ms: Spread,
    /// None if the demo failed before this could be found out; so for those below.
    pub(super) lost: Option<usize>,
    pub(super) duplicated: Option<usize>,
    pub(super) diverged: Option<usize>,
}

impl LoadSummary {
    pub(super) fn new(
        config: LoadConfig,
        account: &Account,
        rows: &[Row],
        verdict: Option<Verdict>,
    ) -> Self {
        let writes = account.acknowledged.len();
        let seconds = account.duration().as_secs_f64();
        let verdict = verdict.as_ref();
        let again = |row: &Row| {
            let first = account.first_since(row.epoch);
            first.map(|first| first.saturating_duration_since(row.at))
        };
        Self {
            clients: config.clients,
            payload_bytes: config.payload,
            writes,
            writes_per_s: rate(writes, seconds),
            doubtful: account.doubtful,
            retries: account.again,
            longest_gap_ms: millis(account.longest_gap()),
            write_again_ms: Spread::of(rows.iter().filter_map(again)),
            lost: verdict.map(|verdict| verdict.lost),
            duplicated: verdict.map(|verdict| verdict.duplicated),
            diverged: verdict.map(|verdict| verdict.diverged),
        }
    }

    /// The lines under the table.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} writes of {} bytes acknowledged by {} clients, {:.0} per second; {} of unknown outcome",
            self.writes, self.payload_bytes, self.clients, self.writes_per_s, self.doubtful,
        )];
        let mut gap =
            format!("longest time without an acknowledgement: {:.3} ms", self.longest_gap_ms);
        if let Spread { median: Some(median), max: Some(max), .. } = self.write_again_ms {
            gap += &format!(
                "; after each change of leader the next one came within {median:.3} ms (median), \
                 {max:.3} ms at worst"
            );
        }
        lines.push(gap);
        if let (Some(lost), Some(duplicated), Some(diverged)) =
            (self.lost, self.duplicated, self.diverged)
        {
            lines.push(format!(
                "all servers' logs compared: {lost} lost, {duplicated} duplicated, {diverged} diverged"
            ));
        }
        lines
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
fn rate(count: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { (count as f64 / seconds).round() } else { 0.0 }
}

impl Summary {
    pub(super) fn new(
        servers: usize,
        rows: &[Row],
        cold_start: Option<Duration>,
        transferred: bool,
        elections: usize,
        two_leaders_in_one_epoch: usize,
        load: Option<LoadSummary>,
    ) -> Self {
        Self {
            servers,
            kills: if transferred { 0 } else { rows.len() },
            transfers: if transferred { rows.len() } else { 0 },
            elections,
            failover_ms: Spread::of(rows.iter().map(|row| row.total)),
            detection_ms: Spread::of(rows.iter().map(|row| row.detection)),
            election_ms: Spread::of(rows.iter().map(|row| row.election)),
            activation_ms: Spread::of(rows.iter().map(|row| row.activation)),
            rejoin_ms: Spread::of(rows.iter().filter_map(|row| row.rejoin)),
            cold_start_ms: cold_start.map(millis),
            two_leaders_in_one_epoch,
            tls: false,
            plain_failover_ms: None,
            load,
            sessions: None,
        }
    }

    /// The table, one line each.
    pub(super) fn table(&self, rows: &[Row], paint: Paint) -> Vec<String> {
        let columns = |cells: [String; 5]| {
            let cells = cells.map(|cell| format!("{cell:>11}"));
            cells.join("")
        };
        let mut lines = Vec::new();
        if let Some(cold) = self.cold_start_ms {
            lines.push(format!("from nothing to a serving leader: {cold:.3} ms"));
            lines.push(String::new());
        }
        let load = self.load.iter().flat_map(LoadSummary::lines);
        let load = load.chain(self.sessions.iter().flat_map(SessionsSummary::lines));
        if rows.is_empty() {
            lines.extend(load);
            return lines;
        }
        let heads = ["detection", "election", "activation", "total", "rejoin"].map(str::to_owned);
        let head = format!("{:>5}  {:<12}{:<9}{}  ms", "kill", "leader", "epoch", columns(heads));
        lines.push(paint.strong(&head));
        for (number, row) in rows.iter().enumerate() {
            let times = [row.detection, row.election, row.activation, row.total];
            let [detection, election, activation, total] =
                times.map(|time| format!("{:.3}", millis(time)));
            let rejoin = row.rejoin.map_or("-".to_owned(), |time| format!("{:.3}", millis(time)));
            let width = row.killed.to_string().len() + row.leader.to_string().len() + 3;
            let leader = format!(
                "{} → {}{:pad$}",
                paint.server(row.killed, &row.killed.to_string()),
                paint.server(row.leader, &row.leader.to_string()),
                "",
                pad = 12_usize.saturating_sub(width),
            );
            let epoch = format!("{} → {}", row.from_epoch, row.epoch);
            lines.push(format!(
                "{:>5}  {leader}{epoch:<9}{}",
                number + 1,
                columns([detection, election, activation, total, rejoin]),
            ));
        }
        let parts = [
            &self.detection_ms,
            &self.election_ms,
            &self.activation_ms,
            &self.failover_ms,
            &self.rejoin_ms,
        ];
        for (name, pick) in ["min", "median", "max"].into_iter().zip(0..) {
            let cells = parts.map(|spread| {
                let time = [spread.min, spread.median, spread.max][pick];
                time.map_or("-".to_owned(), |time| format!("{time:.3}"))
            });
            lines.push(paint.strong(&format!("{name:>6} {:<21}{}", "", columns(cells))));
        }
        if self.load.is_some() || self.sessions.is_some() {
            lines.push(String::new());
        }
        lines.extend(load);
        lines
    }

    /// The sentence under it, if all went well.
    pub(super) fn sentence(&self) -> String {
        let Spread { median: Some(median), max: Some(max), .. } = self.failover_ms else {
            return format!(
                "{} servers have a leader; no server was killed; no epoch had two leaders.",
                self.servers
            );
        };
        if self.transfers > 0 {
            return format!(
                "{} servers, {} transfers of leadership, {} epochs with one leader each: the next leader served \
                 {median:.3} ms after the last was asked (median), {max:.3} ms at worst.",
                self.servers, self.transfers, self.elections
            );
        }
        let took = match self.kills {
            1 => format!("after {max:.3} ms"),
            _ => format!("after {median:.3} ms (median), {max:.3} ms at worst"),
        };
        let times = if self.kills == 1 { "1 kill" } else { &format!("{} kills", self.kills) };
        format!(
            "{} servers, {times}, {} epochs with one leader each: the survivors were led again {took}, \
             and every dead leader came back.",
            self.servers, self.elections
        )
    }

    /// The sentence under that: with TLS, how long the same took without it.
    pub(super) fn comparison(&self) -> Option<String> {
        let plain = self.plain_failover_ms?;
        let (Some(with), Some(without)) = (self.failover_ms.median, plain.median) else {
            return Some("All links between servers had TLS around them.".to_owned());
        };
        Some(format!(
            "All links between servers had TLS around them, each certificate is for one server: led again after \
             {with:.3} ms (median), and {without:.3} ms without TLS."
        ))
    }
}
