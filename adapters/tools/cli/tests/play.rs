//! Stories as the command tells them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use crate::common::{lines, quorate, stderr, stdout};

/// A story of one's own.
fn story(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.txt");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

#[test]
fn every_story_that_is_listed_can_be_played_to_its_end() {
    let list = quorate(["play", "--list"]);
    let names: Vec<_> =
        stdout(&list).lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"two-of-three"), "{names:?}");
    for name in names {
        let output = quorate(["play", name, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        let lines = lines(&output);
        assert_eq!(lines.first().unwrap()["event"], "scenario", "{name}");
        assert_eq!(lines.last().unwrap()["ok"], true, "{name}");
    }
}

#[test]
fn a_vote_is_told_with_its_reason_in_the_column_of_its_server() {
    let output = quorate(["play", "two-of-three"]);
    let text = stdout(&output);
    let vote = "1 votes 2 (epoch 0, zxid 0.0): server id 2 > 1, says 2";
    let line = text.lines().find(|line| line.ends_with(vote)).expect(text);
    assert!(line.contains("●       ╎"), "1 does it, 2 looks: {line}");
    assert!(text.contains("▸ start 2") && text.contains("✓ led by 2"), "{text}");
}

#[test]
fn an_expectation_that_fails_ends_the_story_with_its_file_and_line() {
    let (_dir, path) = story("# mine\nservers 3\nstart 1 2\nuntil led\nexpect led by 1\nrun 1s\n");
    let output = quorate(["play", &path]);
    assert_eq!(output.status.code(), Some(1));
    let told = format!("{path}:5: expected `led by 1`, but 2 leads\n");
    assert_eq!(stderr(&output), told);
    assert!(stdout(&output).ends_with("✗ led by 1\n"), "{}", stdout(&output));
}

#[test]
fn what_is_no_command_is_refused_with_what_could_stand_there() {
    let (_dir, path) = story("servers 3\nstart 1\nuntil 1 is laeding\n");
    let output = quorate(["play", &path]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.starts_with(&format!("{path}:3: expected `looking` or")), "{told}");
    assert!(told.ends_with("found `laeding`\n"), "{told}");

    let output = quorate(["play", "no-such-story"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--list"), "{}", stderr(&output));
}

#[test]
fn a_diagram_has_the_title_and_every_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("story.svg");
    let output = quorate(["play", "all-together", "--svg", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let svg = fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("All three start together"));
    for id in 1..=3 {
        assert!(svg.contains(&format!(">{id}</text>")), "server {id}");
    }
}
