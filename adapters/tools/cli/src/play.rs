//! `quorate play`: a scenario of the simulator step by step, each vote with its reason.
//!
//! ```text
//!   SCENARIO ─► Player ── a command, and the moments that came of it ──► page   text, in columns
//!                 │                                                 └──► lines  --json
//!                 └── everything that happened ──► --svg
//! ```
//!
//! In a terminal one step is shown at a time. The servers are the real ones, in a simulated world; all
//! knowledge of stories and charts is `quorate-sim`'s.

mod keys;
mod page;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use quorate_sim::Diagram;
use quorate_sim::scenario::{COMMANDS, Player, Scenario, bundled};

use crate::failure::Failure;
use crate::paint::Paint;
use page::Page;

/// Play a story of an election, a failure, a recovery, step by step.
///
/// Every vote, round and phase is told with its reason. In a terminal Enter goes one step on, `a` goes on to
/// the end, `q` leaves; elsewhere everything is told at once. Exits with 1 if something that the story
/// expects is not so.
#[derive(Debug, Args)]
#[command(after_help = COMMANDS, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// The name of a story that is built in, or a file; commands are listed below.
    #[arg(required_unless_present = "list")]
    scenario: Option<String>,
    /// List the stories that are built in.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Everything at once, also in a terminal.
    #[arg(long)]
    all: bool,
    /// Write a space-time diagram of all that happened, too.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// One JSON object per line and event.
    #[arg(long)]
    json: bool,
}

/// `quorate play`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(wanted) = &arguments.scenario else {
        list();
        return Ok(());
    };
    let (name, text) = find(wanted)?;
    let scenario =
        Scenario::read(&name, &text).map_err(|error| Failure::usage(error.to_string()))?;
    let mut player = Player::new();
    let told = tell(&scenario, &mut player, arguments);
    if let Some(file) = &arguments.svg {
        draw(&scenario, &player, file)?;
    }
    told
}

/// The stories that are built in, one line each.
fn list() {
    let width = bundled().iter().map(|story| story.name.len()).max().unwrap_or(0);
    let mut out = io::stdout().lock();
    for story in bundled() {
        let title = story.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        // A reader that has gone wants no more.
        drop(writeln!(out, "{:<width$}  {title}", story.name));
    }
}

/// A story's name, for errors, and its text.
fn find(wanted: &str) -> Result<(String, String), Failure> {
    if let Some(story) = bundled().iter().find(|story| story.name == wanted) {
        return Ok((story.name.to_owned(), story.text.to_owned()));
    }
    match fs::read_to_string(wanted) {
        Ok(text) => Ok((wanted.to_owned(), text)),
        Err(error) => Err(Failure::usage(format!(
            "{wanted}: {error}; no story of that name is built in either (quorate play --list)"
        ))),
    }
}

fn tell(scenario: &Scenario, player: &mut Player, arguments: &Arguments) -> Result<(), Failure> {
    let wait = !arguments.all && !arguments.json && arguments.svg.is_none();
    let mut keys = (wait && io::stdout().is_terminal()).then(keys::Keys::new).flatten();
    let mut page = Page::new(arguments.json, Paint::stdout());
    page.head(scenario);
    for step in scenario.steps() {
        let (moments, done) = player.play(step);
        let something = page.step(step, player.servers(), &moments, &done);
        if page.is_unread() {
            return Ok(());
        }
        if let Err(problem) = done {
            let error = scenario.error(step.line, problem);
            page.end(scenario, Some(&error));
            return Err(Failure::failed(error.to_string()));
        }
        if something {
            match keys.as_mut().map_or(keys::Key::Next, |keys| keys.wait()) {
                keys::Key::Next => {}
                keys::Key::All => keys = None,
                keys::Key::Quit => return Ok(()),
            }
        }
    }
    let last = scenario.steps().last().map_or(0, |step| step.line);
    let error = player.end().err().map(|problem| scenario.error(last, problem));
    page.end(scenario, error.as_ref());
    error.map_or(Ok(()), |error| Err(Failure::failed(error.to_string())))
}

fn draw(scenario: &Scenario, player: &Player, file: &Path) -> Result<(), Failure> {
    let topics = Diagram::TOPICS.into_iter().collect();
    let diagram =
        Diagram::new(scenario.title(), player.servers(), player.moments(), &topics).to_string();
    fs::write(file, diagram)
        .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}
