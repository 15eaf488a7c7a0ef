//! One seed: its run as a chart, and the outcome.

use std::fs;

use quorate_sim::campaign::{self, Case};
use quorate_sim::record::Moment;
use quorate_sim::{Chart, Diagram, World};
use serde::Serialize;

use super::{Arguments, Kind, as_json, say};
use crate::failure::Failure;
use crate::paint::Paint;

/// How wide the chart is.
const WIDTH: usize = 140;

/// The outcome.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    story: &'static str,
    /// What may have happened.
    disturbances: Vec<String>,
    steps: u64,
    virtual_ms: u128,
    failure: Option<String>,
    trace_hash: String,
}

pub(super) fn run(arguments: &Arguments, seed: u64) -> Result<(), Failure> {
    let mut case = Case::new(seed);
    case.story = arguments.story.map_or(case.story, Into::into);
    case.servers = arguments.servers;
    case.generation = arguments.election == Kind::Generation;
    case.only.clone_from(&arguments.only);
    case.plant_loss = arguments.inject_loss;
    let all = campaign::disturbances(&case);
    let allowed = all.iter().filter(|disturbance| case.allows(disturbance.number));
    // A run that panics prints its place by itself.
    let (outcome, world) = campaign::explain(&case);
    let report = Report {
        seed,
        story: case.story.name(),
        disturbances: allowed.map(ToString::to_string).collect(),
        steps: world.steps(),
        virtual_ms: world.now().since_origin().as_millis(),
        failure: outcome.as_ref().err().map(ToString::to_string),
        trace_hash: format!("{:016x}", world.trace_hash()),
    };
    if let Some(path) = &arguments.svg {
        let moments = last(&world, arguments.lines);
        let topics = Diagram::TOPICS.into_iter().collect();
        let title = format!("quorate sim {case}");
        let drawn = Diagram::new(&title, world.servers(), &moments, &topics).to_string();
        fs::write(path, drawn).map_err(|error| {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    if arguments.json {
        say(&as_json(&report)?)?;
    } else {
        let paint = Paint::stdout();
        let end = match &report.failure {
            None => paint.well("every rule held, and it ended well"),
            Some(failure) => paint.alarm(failure),
        };
        say(&format!(
            "{}seed {seed}, {}: {}\n{} steps, {} ms of simulated time: {end}",
            Chart::new(world.servers(), WIDTH).draw(&last(&world, arguments.lines)),
            report.story,
            report.disturbances.join(", "),
            report.steps,
            report.virtual_ms,
        ))?;
    }
    match outcome {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure { code: 1, message: String::new() }),
    }
}

/// The last of what happened.
fn last(world: &World, count: usize) -> Vec<Moment> {
    let mut moments = world.record().moments();
    moments.drain(..moments.len().saturating_sub(count));
    moments
}
