//! `quorate completions`: scripts for shells, made of the commands as they are.

use std::io::{self, Write};

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;

/// Prints the script of a shell.
#[allow(clippy::unnecessary_wraps, reason = "as every command")]
pub(crate) fn run(shell: Shell, mut commands: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut commands, "quorate", &mut script);
    if shell == Shell::Fish {
        script.extend(values_for_fish(&commands).into_bytes());
    }
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(&script));
    Ok(())
}

/// What may stand behind a command, where that is one of some words: in its place `clap_complete` has fish offer files.
fn values_for_fish(commands: &Command) -> String {
    let mut lines = String::new();
    for command in commands.get_subcommands().filter(|command| !command.is_hide_set()) {
        for argument in command.get_positionals() {
            let values: Vec<_> = argument
                .get_possible_values()
                .iter()
                .filter(|value| !value.is_hide_set())
                .map(|value| value.get_name().to_owned())
                .collect();
            if !values.is_empty() {
                lines.push_str(&format!(
                    "complete -c quorate -n \"__fish_quorate_using_subcommand {}\" -f -a \"{}\"\n",
                    command.get_name(),
                    values.join(" "),
                ));
            }
        }
    }
    lines
}
