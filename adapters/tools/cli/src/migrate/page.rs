//! The findings and the order, for people.

use super::Report;
use super::finding::{Finding, Level};
use super::order::Replacement;
use crate::paint::Paint;

/// All of it: what was found, the order, a sentence.
pub(super) fn text(report: &Report<'_>, paint: Paint) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text += &shown(finding, paint);
    }
    if !report.findings.is_empty() {
        text.push('\n');
    }
    if !report.order.is_empty() {
        text += &order(&report.order, paint);
    }
    text + &verdict(report, paint)
}

fn shown(finding: &Finding, paint: Paint) -> String {
    let word = match finding.level {
        Level::Forbids => paint.alarm("forbids  "),
        Level::Endangers => paint.strong("endangers"),
        Level::Notice => paint.faint("notice   "),
    };
    let mut place = match (&finding.file, finding.server) {
        (Some(file), _) => file.display().to_string(),
        (None, Some(server)) => format!("server {server}"),
        (None, None) => String::new(),
    };
    if let Some(line) = finding.line {
        place += &format!(":{line}");
    }
    if let (Some(setting), Some(value)) = (&finding.setting, &finding.value) {
        place += &format!(": {setting}={value}");
    }
    if !place.is_empty() {
        place += ": ";
    }
    format!("{word}  {place}{}\n           do: {}\n", finding.finding, finding.remedy)
}

fn order(order: &[Replacement], paint: Paint) -> String {
    let mut text = format!("{}\n", paint.strong("the order, one server at a time"));
    for (number, one) in order.iter().enumerate() {
        let is_last = number + 1 == order.len();
        let what = match (one.role, one.leads) {
            ("observer", _) => "observer",
            (_, Some(true)) => "leads: last",
            (_, Some(false)) => "follower",
            (_, None) if is_last => "leads, probably: of equally new servers the largest id does",
            (_, None) => "participant",
        };
        let (server, host) = (one.server, &one.host);
        text += &format!("  {}. server {server} on {host} ({what})\n", number + 1);
        let file = one.file.as_ref().map_or("zoo.cfg".to_owned(), |f| f.display().to_string());
        let dir = one.data_dir.as_ref().map_or("DATADIR".to_owned(), |d| d.display().to_string());
        text += &format!(
            "     stop Java; `quorate log check {dir}`; `quorate serve {file}` as the same user\n"
        );
    }
    if order.iter().all(|one| one.leads.is_none()) {
        text += "  the server that leads (srvr says Mode: leader; --ask asks) is the last, whatever its id\n";
    }
    text + "  go on only when srvr of the new server says Mode: follower, and `mntr` of the leader that all others are \
           synced (zk_synced_followers)\n\
           \x20 back, at any time: the same order; stop quorate (SIGTERM), start Java on the same directory\n\n"
}

fn verdict(report: &Report<'_>, paint: Paint) -> String {
    let count = |level| report.findings.iter().filter(|finding| finding.level == level).count();
    let (forbid, endanger) = (count(Level::Forbids), count(Level::Endangers));
    let text = match (forbid, endanger) {
        (0, 0) => paint.well("nothing forbids or endangers it"),
        (0, endanger) => {
            paint.strong(&format!("nothing forbids it; {endanger} to be looked at first"))
        }
        (forbid, endanger) => {
            paint.alarm(&format!("do not begin: {forbid} forbid it, {endanger} to be looked at"))
        }
    };
    format!("{text}\n")
}
