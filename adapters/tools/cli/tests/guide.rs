//! The guide and the first pages say what is so: each command line of theirs is one that the command takes, each rule of
//! the doctor has its name there, and each link leads somewhere.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{quorate, stderr, stdout};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The pages, and what they say.
fn pages() -> Vec<(PathBuf, String)> {
    let guide = fs::read_dir(Path::new(HERE).join("guide")).unwrap();
    let mut paths: Vec<_> = guide.map(|file| file.unwrap().path()).collect();
    assert!(paths.len() >= 6, "{paths:?}");
    paths.extend(["README.md", "tests/clients/README.md"].map(|page| Path::new(HERE).join(page)));
    let root = Path::new(HERE).join("../../..");
    paths.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|page| root.join(page)));
    paths.iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Lines that are typed: those behind a prompt, in blocks of a console.
fn typed(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for block in blocks {
        let mut rest = block.lines();
        while let Some(line) = rest.next() {
            let prompt = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "));
            let Some(mut line) = prompt.map(str::to_owned) else { continue };
            while line.ends_with('\\') {
                line.pop();
                line.push_str(rest.next().unwrap_or_default());
            }
            lines.push(line);
        }
    }
    lines
}

/// The words of each command of a line, as a shell takes them apart: without comments, redirections and assignments.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut is_quoted) = (String::new(), None, false);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => (quote, is_quoted) = (Some(c), true),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | '|' | ';' | '&' | '(' | ')') => {
                if !word.is_empty() || is_quoted {
                    commands.last_mut().unwrap().push(std::mem::take(&mut word));
                    is_quoted = false;
                }
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            (_, c) => word.push(c),
        }
    }
    let is_setting = |word: &String| {
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        word.split_once('=').is_some_and(|(name, _)| is_name(name))
    };
    for command in &mut commands {
        while command.first().is_some_and(is_setting) {
            command.remove(0);
        }
        let is_redirection = |word: &String| word.starts_with(['>', '<']) || word.starts_with("2>");
        command.truncate(command.iter().position(is_redirection).unwrap_or(command.len()));
    }
    commands
}

/// Those that are quorate's, without its name.
fn of_quorate(line: &str) -> impl Iterator<Item = Vec<String>> {
    let commands = commands(line).into_iter().filter_map(|mut words| {
        while ["sudo", "time", "-u"].contains(&words.first()?.as_str()) {
            words.remove(0);
        }
        let is_it = words.first()?.rsplit('/').next() == Some("quorate");
        is_it.then(|| words.split_off(1))
    });
    commands.filter(|words| words.first().is_some_and(|word| word != "…"))
}

#[test]
fn each_command_line_is_one_that_the_command_takes() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (path, page) in pages() {
        for words in typed(&page).iter().flat_map(|line| of_quorate(line)) {
            if !seen.insert(words.clone()) {
                continue;
            }
            // What stands before `--help` is taken apart as ever, and then nothing is done.
            let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let output = quorate(words[..own].iter().map(String::as_str).chain(["--help"]));
            if output.status.code() != Some(0) {
                wrong.push(format!("{}: {words:?}: {}", path.display(), stderr(&output)));
            }
        }
    }
    assert!(seen.len() > 40, "{} command lines were found", seen.len());
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn each_rule_of_the_doctor_has_its_name() {
    let rules = quorate(["doctor", "--rules"]);
    let rules: BTreeSet<_> =
        stdout(&rules).lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut named = 0;
    for (path, page) in pages() {
        let words = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'));
        let like_rules = words.filter(|word| {
            let kind =
                ["cfg.", "live.", "disk.", "host."].iter().find(|kind| word.starts_with(**kind));
            kind.is_some_and(|kind| word.len() > kind.len())
        });
        for word in like_rules.map(|word| word.trim_end_matches(['.', '-'])) {
            // Events of a log, too, have names of this kind.
            let is_event = word.starts_with("disk.")
                && !word.contains('-')
                && page.contains(&format!("`{word}`"));
            assert!(
                rules.contains(word) || is_event || word.ends_with(".cfg"),
                "{}: {word}",
                path.display()
            );
            named += usize::from(rules.contains(word));
        }
    }
    assert!(named > 10, "{named}");
}

#[test]
fn each_link_leads_somewhere() {
    for (path, page) in pages() {
        let links = page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let to = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(to.exists(), "{}: {link}", path.display());
            if !part.is_empty() {
                let text = fs::read_to_string(&to).unwrap();
                let heads = text.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(heads.into_iter().any(|head| head == part), "{}: {link}", path.display());
            }
        }
    }
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
