//! The examples of this crate do what they say, and what they print stands on the page that shows it.

#[expect(dead_code, reason = "it is run from here, not from its main")]
#[path = "../examples/quorum_reads.rs"]
mod quorum_reads;

const PAGE: &str = include_str!("../../cli/guide/compare.md");

#[test]
fn quorums_of_reads_have_no_order_and_a_leader_has_one_in_every_run() {
    let story = quorum_reads::story().unwrap();
    assert!(story.contains("no order explains it") && story.contains("one order explains"));
    assert!(PAGE.contains(&story), "the page shows something else than\n{story}");
}
