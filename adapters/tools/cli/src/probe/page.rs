//! The table of a probe, for people.

use std::collections::BTreeSet;

use super::compare::{Belief, Certified, Finding, View, number, word};
use crate::event::State;
use crate::paint::Paint;

/// A line per server, the disagreements, and a sentence.
pub(super) fn table(views: &[View], findings: &[Finding], paint: Paint) -> String {
    const HEADS: [&str; 8] =
        ["address", "id", "state", "leader", "epoch", "zxid", "round", "configuration"];
    let rows: Vec<_> = views.iter().map(|view| (view, cells(view))).collect();
    let mut widths = HEADS.map(str::len);
    for (_, cells) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let format = |cells: [&str; 8]| {
        let padded: Vec<_> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut text = format!("{}\n", paint.strong(&format(HEADS)));
    for (view, cells) in &rows {
        let line = format(cells.each_ref().map(String::as_str));
        let line = match &view.answer {
            Some(belief) if belief.state == State::Leading => paint.strong(&line),
            Some(_) => line,
            None => paint.faint(&line),
        };
        text += &line;
        text.push('\n');
    }
    for view in views {
        if let Some(Certified { subject, ends }) = &view.certificate {
            text += &paint.faint(&format!("{} shows {subject}, until {ends}", view.address));
            text.push('\n');
        }
    }
    text.push('\n');
    text += &verdict(views, findings, paint);
    text
}

fn cells(view: &View) -> [String; 8] {
    match &view.answer {
        Some(belief) => [
            view.address.clone(),
            number(belief.id),
            word(belief.state).to_owned(),
            number(belief.leader),
            number(belief.peer_epoch),
            belief.zxid.clone().unwrap_or_else(|| "-".to_owned()),
            number(belief.round),
            configuration(belief),
        ],
        None => {
            let mut cells = [const { String::new() }; 8];
            cells[0].clone_from(&view.address);
            cells[2] = "unreachable".to_owned();
            cells[7] = view.error.clone().unwrap_or_default();
            cells
        }
    }
}

fn verdict(views: &[View], findings: &[Finding], paint: Paint) -> String {
    let answered: Vec<_> = views.iter().filter_map(|view| view.answer.as_ref()).collect();
    let mut text = String::new();
    for finding in findings {
        // Where there is no leader they may well agree.
        let kind = if finding.kind == "no_quorum" { "no quorum:" } else { "disagreement:" };
        text += &format!("{} {}\n", paint.alarm(kind), finding.text);
    }
    let silent = views.len() - answered.len();
    if silent > 0 {
        text += &format!("{silent} of {} could not be reached\n", views.len());
    }
    let leaders: BTreeSet<_> = answered.iter().map(|belief| belief.leader).collect();
    if let (true, [Some(leader)]) =
        (findings.is_empty(), leaders.into_iter().collect::<Vec<_>>().as_slice())
    {
        let epoch = answered.iter().find_map(|belief| belief.peer_epoch);
        let sentence = match answered.len() {
            1 => format!("the one that answered has leader {leader} in epoch {}", number(epoch)),
            many => format!(
                "all {many} that answered agree: server {leader} leads epoch {}",
                number(epoch)
            ),
        };
        text += &format!("{}\n", paint.well(&sentence));
    }
    text
}

fn configuration(belief: &Belief) -> String {
    match (&belief.config_version, belief.voters, belief.observers) {
        (Some(version), Some(voters), Some(0)) => format!("version {version}, {voters} voters"),
        (Some(version), Some(voters), Some(observers)) => {
            format!("version {version}, {voters} voters, {observers} observers")
        }
        _ if belief.config.is_empty() => "none sent".to_owned(),
        _ => "cannot be read".to_owned(),
    }
}
