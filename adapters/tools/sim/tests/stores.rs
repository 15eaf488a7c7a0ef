//! What a story of a store may ask for, and what it is refused: a command that cannot do what it says is an
//! error, and so is a condition that nobody has looked at.

#![allow(clippy::unwrap_used, reason = "tests")]

use quorate_sim::scenario::{Player, Scenario};

/// Plays a story to its end, or to the command that fails; what was told, and what is wrong in which line.
fn play(story: &str) -> (String, Result<(), String>) {
    let scenario = Scenario::read("story", story).unwrap();
    let (mut player, mut told) = (Player::new(), Vec::new());
    for step in scenario.steps() {
        let (moments, done) = player.play(step);
        told.extend(Player::trace(&moments));
        if let Err(problem) = done {
            let wrong = scenario.error(step.line, problem).to_string();
            return (told.join("\n"), Err(wrong));
        }
    }
    let last = scenario.steps().last().unwrap().line;
    let done = player.end().map_err(|problem| scenario.error(last, problem).to_string());
    (told.join("\n"), done)
}

/// Stories of two candidates, of which the first leads, and what is wrong with each.
fn are_wrong(stories: &[(&str, &str)]) {
    let found = stories.iter().filter_map(|(story, why)| {
        let whole = format!("elect 2 by offers\nstart 1\nuntil led by 1\n{story}");
        let wrong = play(&whole).1.err().unwrap_or_default();
        (!wrong.contains(why)).then(|| format!("{story:?}: `{wrong}` is not `{why}`"))
    });
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn nothing_is_settled_while_somebody_cannot_be_reached_or_stands_still() {
    are_wrong(&[
        ("start 2\nuntil settled\ncut 2\nrun 5s\nexpect settled", "2 is cut off"),
        ("start 2\nuntil settled\npause 2\nexpect settled", "2 stands still"),
        ("pause 1\nexpect settled", "1 stands still"),
        ("cut 2\nstart 2\nrun 5s\nexpect settled", "2 is cut off"),
    ]);
    let (_, again) = play(
        "elect 2 by lease\nstart 1\nuntil led by 1\nstart 2\nuntil settled\nstop 2\n\
         until 2 is stopped\nrun 60s\nstart 2\nexpect settled",
    );
    assert_eq!(again, Err("story:10: expected `settled`, but 2 has something to do".to_owned()));
}

#[test]
fn whoever_has_no_connection_does_not_wait() {
    let why = "2 is neither leading nor waiting";
    are_wrong(&[
        ("start 2\nuntil 2 is waiting\nbreak 2\nexpect 2 is waiting", why),
        ("start 2\nuntil 2 is waiting\ncut 2\nexpect 2 is waiting", why),
        ("start 2\nexpect 2 is waiting", why),
    ]);
}

#[test]
fn what_cannot_be_done_is_refused() {
    are_wrong(&[
        ("resume 1", "candidate 1 does not stand still"),
        ("pause 1\npause 1", "candidate 1 stands still"),
        ("pause 1\nstop 1", "candidate 1 stands still"),
        ("pause 2\nstart 2", "candidate 2 stands still"),
        ("start 1", "candidate 1 is to lead already"),
        ("start 2 2", "candidate 2 is to lead already"),
        ("stop 2", "candidate 2 is not to lead"),
        ("stop 1\nstop 1", "candidate 1 is not to lead"),
        ("delete 2", "candidate 2 has no node"),
        ("end 2", "candidate 2 has no session"),
        ("end 1\nend 1", "candidate 1 has no session"),
        ("break 2", "candidate 2 has no connection"),
        ("break 1\nbreak 1", "candidate 1 has no connection"),
        ("cut 1\ncut 1", "candidate 1 is cut off"),
        ("crash 1\ncut 1", "candidate 1 is down"),
        ("crash 1\nbreak 1", "candidate 1 is down"),
        ("crash 1 1", "candidate 1 is down"),
        ("crash 1 power", "candidates have no power to lose"),
        ("heal", "nothing is cut"),
        ("linger off", "nothing stays"),
        ("linger\nlinger", "it stays already"),
        ("lose answer 2 create\nlose answer 2 read", "candidate 2 has a fault before it already"),
    ]);
}

#[test]
fn a_mishap_waits_for_a_call_that_is_made() {
    // Without a connection the call is answered by the candidate's own library, and none is lost.
    let (told, done) = play(
        "elect 2 by lease\nstart 1\nuntil led by 1\nlose request 2 read\nstart 2\nuntil settled",
    );
    done.unwrap_or_else(|wrong| panic!("{wrong}\n{told}"));
    assert_eq!(told.matches("2 has lost its connection").count(), 1, "{told}");
}

#[test]
fn a_late_answer_breaks_no_later_connection() {
    let (told, done) = play(
        "elect 2 by offers\nstart 1\nuntil led by 1\nlate answer 1 ping 20s\nend 1\nrun 4s\nbreak 1\n\
         until led\nrun 1s\nhold led by 1 for 30s",
    );
    done.unwrap_or_else(|wrong| panic!("{wrong}\n{told}"));
    assert_eq!(told.matches("1 has lost its connection").count(), 1, "{told}");
}

#[test]
fn each_server_has_a_trap_of_its_own() {
    let story = "start 1 2 3\nuntil settled\ntrap 1 after append\ntrap 2 after append\nwrite 3 x\n\
                 run 5s\nexpect 1 is down\nexpect 2 is down";
    assert_eq!(play(story).1, Ok(()));
    let again = play("start 1 2 3\ntrap 1 after append\ntrap 1 after ACK").1;
    assert_eq!(again, Err("story:3: server 1 has a trap before it already".to_owned()));
}

#[test]
fn what_was_prepared_and_has_not_happened_is_an_error_at_the_end() {
    let one = play("elect 2 by offers\nlose answer 2 create\nstart 1\nuntil led by 1").1;
    let why =
        "expected what was prepared to happen, but 2 has made no call to Create whose Answer fails";
    assert_eq!(one, Err(format!("story:4: {why}")));
    let other = play("start 1 2 3\nuntil settled\ntrap 1 after append\nrun 1s").1;
    let why = "expected what was prepared to happen, but 1 has not come to its trap";
    assert_eq!(other, Err(format!("story:4: {why}")));
}
