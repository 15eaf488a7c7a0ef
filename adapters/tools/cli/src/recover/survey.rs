//! `quorate recover survey`: what is left of an ensemble, and who has the newest history.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use quorate_rescue::survivor::Survivor;
use quorate_storage::record::TXN_BYTES_MAX;
use serde::Serialize;

use super::shown::{Shown, read};
use crate::event::State;
use crate::failure::Failure;
use crate::paint::Paint;
use crate::probe::{Belief, View, ask_all};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The dataDir of a survivor (behind a comma its dataLogDir) or its zoo.cfg, a file with what this printed elsewhere with
    /// --json, or the election port of a server.
    #[arg(required = true, value_name = "DIR|FILE|HOST:ELECTION")]
    survivors: Vec<String>,
    /// One JSON object per line; what `recover run --survivor` reads on another machine.
    #[arg(long)]
    json: bool,
    /// The longest transaction: jute.maxbuffer and its extrasize, where an ensemble has raised them.
    #[arg(long, value_name = "BYTES", default_value_t = TXN_BYTES_MAX)]
    longest: usize,
    /// How long to wait for each answer of a port.
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout: u64,
}

/// A line of JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    Survivor(&'a Survivor),
    Answer(&'a View),
}

/// Reads, asks, and prints it.
pub(super) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let (mut survivors, mut ports, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for text in &arguments.survivors {
        match Shown::parse(text, arguments.longest)? {
            Shown::Directory(source) => match Survivor::look(&source) {
                Ok(survivor) => survivors.push(survivor),
                Err(error) => unread.push(error.to_string()),
            },
            Shown::File(file) => survivors.extend(read(&file)?),
            Shown::Port(at) => ports.push(at),
        }
    }
    let views = ask_all(ports, None, Duration::from_millis(arguments.timeout), None).await;
    let text = if arguments.json {
        lines(&survivors, &views).map_err(|error| Failure::failed(error.to_string()))?
    } else {
        page(&survivors, &views, Paint::stdout())
    };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    if !unread.is_empty() {
        return Err(Failure::failed(unread.join("\n")));
    }
    match survivors.iter().all(|survivor| survivor.problems.is_empty()) {
        true => Ok(()),
        false => Err(Failure::failed("")),
    }
}

fn lines(survivors: &[Survivor], views: &[View]) -> Result<String, serde_json::Error> {
    let all = survivors.iter().map(Line::Survivor).chain(views.iter().map(Line::Answer));
    let mut text = String::new();
    for line in all {
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    Ok(text)
}

fn page(survivors: &[Survivor], views: &[View], paint: Paint) -> String {
    let mut text = String::new();
    if !survivors.is_empty() {
        let head = format!(
            "{:<8}{:<15}{:<14}{:<14}directory",
            "server", "acceptedEpoch", "currentEpoch", "last"
        );
        text += &format!("{}\n", paint.strong(&head));
    }
    for survivor in survivors {
        let Survivor { id, accepted_epoch, current_epoch, zxid, directory, .. } = survivor;
        text += &format!("{id:<8}{accepted_epoch:<15}{current_epoch:<14}{zxid:<14}{directory}\n");
        if survivor.in_use {
            text += "        a server has it open\n";
        }
        if survivor.recovered.is_some() {
            text += "        it was recovered already (recovered.json)\n";
        }
        for problem in &survivor.problems {
            text += &format!("        {} {problem}\n", paint.alarm("not sound:"));
        }
    }
    for view in views {
        text += &answer(view);
    }
    text + "\n" + &conclusion(survivors, views, paint)
}

fn answer(view: &View) -> String {
    let View { address, error, answer, certificate: _ } = view;
    match (answer, error) {
        (Some(Belief { id, state, leader, peer_epoch, zxid, .. }), _) => {
            let state = match state {
                State::Looking => "looks for a leader",
                State::Following => "follows",
                State::Leading => "leads",
                State::Observing => "observes",
            };
            let number = |number: Option<i64>| number.map_or("?".to_owned(), |n| n.to_string());
            format!(
                "{address}: server {} {state}, votes {} (epoch {}, {})\n",
                number(*id),
                number(*leader),
                number(*peer_epoch),
                zxid.as_deref().unwrap_or("?"),
            )
        }
        (None, Some(error)) => format!("{address}: {error}\n"),
        (None, None) => String::new(),
    }
}

fn conclusion(survivors: &[Survivor], views: &[View], paint: Paint) -> String {
    let serves = |view: &&View| {
        let state = view.answer.as_ref().map(|belief| belief.state);
        matches!(state, Some(State::Leading | State::Following | State::Observing))
    };
    if let Some(view) = views.iter().find(serves) {
        let text = format!("{} has a leader: nothing is to be recovered", view.address);
        return format!("{}\n", paint.well(&text));
    }
    let sound = survivors.iter().filter(|survivor| survivor.problems.is_empty());
    let Some(newest) = sound.max_by_key(|survivor| survivor.age(None)) else {
        return "no directory of a survivor that is sound was shown\n".to_owned();
    };
    let (epoch, last) = newest.age(None);
    let as_new = survivors.iter().filter(|survivor| survivor.age(None) == (epoch, last));
    let ids: Vec<_> = as_new.map(|survivor| survivor.id.to_string()).collect();
    let text =
        format!("the newest history is that of server {} (epoch {epoch}, {last})", ids.join(", "));
    format!(
        "{}\n\
         Of transactions that the lost servers have, every one above {last} is lost with them: acknowledged writes may be \
         among them, and it cannot be known which.\n\
         If a majority comes back, wait for it, and nothing is lost. If it never does: `quorate recover run --help`.\n",
        paint.strong(&text)
    )
}
