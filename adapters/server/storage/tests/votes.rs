//! The vote of a server that elects by generation, in its directory.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use quorate_core::generation_message::{Generation, GrantedVote};
use quorate_core::id::ServerId;
use quorate_core::zxid::Epoch;
use quorate_storage::{Found, Log, LogError, OpenOptions};

fn open(dir: &Path, id: i64) -> Result<(Log, Found), LogError> {
    let options = OpenOptions { voter: Some(ServerId(id)), ..OpenOptions::default() };
    Log::open(dir, options)
}

fn granted_vote(generation: i64, vote: i64) -> GrantedVote {
    GrantedVote { generation: Generation(generation), vote: ServerId(vote) }
}

#[test]
fn a_vote_is_found_again_and_none_is_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, found) = open(dir.path(), 1).unwrap();
    assert_eq!(found.durable.granted_vote, GrantedVote::NONE);
    log.write_vote(granted_vote(6, 2)).unwrap();
    log.write_vote(granted_vote(6, 2)).unwrap();
    for twice in [granted_vote(6, 3), granted_vote(5, 2)] {
        let error = log.write_vote(twice).unwrap_err().to_string();
        assert!(error.contains("cannot follow that in generation 6"), "{error}");
    }
    drop(log);
    let (mut log, found) = open(dir.path(), 1).unwrap();
    assert_eq!(found.durable.granted_vote, granted_vote(6, 2));
    assert!(log.write_vote(granted_vote(6, 3)).is_err());
    log.write_vote(granted_vote(7, 3)).unwrap();
}

#[test]
fn a_server_whose_vote_is_lost_torn_or_anothers_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = open(dir.path(), 1).unwrap();
    log.write_accepted_epoch(Epoch(1)).unwrap();
    log.write_vote(granted_vote(6, 2)).unwrap();
    drop(log);
    let file = dir.path().join("version-2/grantedVote");
    let whole = fs::read(&file).unwrap();
    let refused = || open(dir.path(), 1).unwrap_err().to_string();

    assert!(open(dir.path(), 3).unwrap_err().to_string().contains("holds the vote of server 1"));
    for end in 0..whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        assert!(refused().contains("should hold a vote with its checksum"), "{end} bytes");
    }
    fs::remove_file(&file).unwrap();
    let error = refused();
    assert!(error.contains("would vote twice"), "{error}");
    assert!(!file.exists(), "nothing is put in its place");

    // As the message says, for one that has elected in another way so far.
    fs::write(dir.path().join("initializeGeneration"), "").unwrap();
    assert_eq!(open(dir.path(), 1).unwrap().1.durable.granted_vote, GrantedVote::NONE);
    assert!(file.exists() && !dir.path().join("initializeGeneration").exists());
    // It may go back, too: nothing of it is looked at then.
    drop(Log::open(dir.path(), OpenOptions::default()).unwrap());
}

#[test]
fn what_is_left_of_a_vote_that_was_not_given_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), 1).unwrap());
    let temporary = dir.path().join("version-2/grantedVote.tmp");
    fs::write(&temporary, "9 2 1").unwrap();
    assert_eq!(open(dir.path(), 1).unwrap().1.durable.granted_vote, GrantedVote::NONE);
    assert!(!temporary.exists());
}
