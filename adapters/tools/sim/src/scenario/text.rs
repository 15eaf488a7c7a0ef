//! The text of a story: heads, notes, commands, traces; read, compared and written anew.

use super::command::Demand;
use super::{Difference, Problem, ScenarioError, grammar};

/// How far a trace is indented.
const INDENT: &str = "    ";

/// A story that was read.
#[derive(Debug)]
pub struct Scenario {
    file: String,
    head: Vec<String>,
    steps: Vec<Step>,
    /// Notes and empty lines after the last trace.
    tail: Vec<String>,
}

/// One command of a story.
#[derive(Debug)]
pub struct Step {
    /// Where it stands, from 1.
    pub line: usize,
    /// The command, as it is written.
    pub text: String,
    /// What is told before it, without the `#`.
    pub notes: Vec<String>,
    /// What stands below it, without the indentation.
    pub trace: Vec<String>,
    /// Notes and empty lines before it, as they are written.
    before: Vec<String>,
    pub(super) demand: Demand,
}

impl Scenario {
    /// Reads a story; `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// If a line is no command.
    pub fn read(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut scenario =
            Self { file: file.to_owned(), head: Vec::new(), steps: Vec::new(), tail: Vec::new() };
        let mut before: Vec<String> = Vec::new();
        for (line, written) in (1..).zip(text.lines()) {
            let written = written.trim_end();
            if written.starts_with(char::is_whitespace) {
                let problem = "a command before the first trace".to_owned();
                let Some(step) = scenario.steps.last_mut() else {
                    let found = format!("`{}`", written.trim());
                    let problem = Problem::Syntax { expected: problem, found };
                    return Err(scenario.error(line, problem));
                };
                step.trace.push(written.trim_start().to_owned());
            } else if written.is_empty() || written.starts_with('#') {
                before.push(written.to_owned());
            } else {
                if scenario.steps.is_empty() {
                    scenario.head = notes(&before);
                }
                let demand =
                    grammar::demand(written).map_err(|problem| scenario.error(line, problem))?;
                let told = if scenario.steps.is_empty() { Vec::new() } else { notes(&before) };
                scenario.steps.push(Step {
                    line,
                    text: written.to_owned(),
                    notes: told,
                    trace: Vec::new(),
                    before: std::mem::take(&mut before),
                    demand,
                });
            }
        }
        scenario.tail = before;
        Ok(scenario)
    }

    /// The first line of the head.
    pub fn title(&self) -> &str {
        self.head.first().map_or(&self.file, String::as_str)
    }

    /// The story and its reason, without the `#`.
    pub fn head(&self) -> &[String] {
        &self.head
    }

    /// The commands.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What is told at the end.
    pub fn end(&self) -> Vec<String> {
        notes(&self.tail)
    }

    /// A problem at a line of this file.
    pub fn error(&self, line: usize, problem: Problem) -> ScenarioError {
        ScenarioError { file: self.file.clone(), line, problem }
    }

    /// The file with these traces below its commands.
    pub fn rewritten(&self, traces: &[Vec<String>]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            lines.extend(step.before.iter().cloned());
            lines.push(step.text.clone());
            let trace = traces.get(at).into_iter().flatten();
            lines.extend(trace.map(|line| format!("{INDENT}{line}")));
        }
        lines.extend(self.tail.iter().cloned());
        lines.join("\n") + "\n"
    }
}

impl Step {
    /// Compares what happened with what stands below the command.
    ///
    /// # Errors
    ///
    /// The first line in which they differ.
    pub fn compare(&self, happened: &[String]) -> Result<(), Problem> {
        let lines = self.trace.len().max(happened.len());
        for at in 0..lines {
            let (written, now) = (self.trace.get(at), happened.get(at));
            if written.map(|line| line.trim()) != now.map(|line| line.trim()) {
                let difference = Difference { written: written.cloned(), happened: now.cloned() };
                return Err(Problem::Differs(difference));
            }
        }
        Ok(())
    }
}

/// Comment lines without their `#`; what is empty stays between them only.
fn notes(lines: &[String]) -> Vec<String> {
    let text = |line: &String| line.strip_prefix('#').map(|text| text.trim().to_owned());
    lines.iter().filter_map(text).collect()
}
