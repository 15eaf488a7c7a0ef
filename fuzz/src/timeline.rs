//! Arbitrary bytes as logs: a timeline of them ends, has each cause before its effect, and its pictures are whole.

use quorate_timeline::{Source, Timeline};

/// Feeds these bytes: up to three logs with a zero byte between them.
pub fn feed(data: &[u8]) {
    let logs: Vec<_> = data.splitn(3, |byte| *byte == 0).collect();
    let source = |(bytes, name)| Source { name, bytes, own: None };
    let sources: Vec<_> = logs.into_iter().zip(["1.log", "2.log", "3.log"]).map(source).collect();
    let timeline = Timeline::of(&sources);
    for [cause, effect] in timeline.matches() {
        assert!(cause.2 < effect.2, "{cause:?} {effect:?}");
        assert!(cause.1 <= effect.1, "{cause:?} {effect:?}");
    }
    assert!(timeline.to_string().starts_with(&sources.len().to_string()));
    whole(&timeline.svg());
    whole(&timeline.html().replacen("<!DOCTYPE html>", "", 1));
    assert!(timeline.json().starts_with('{'));
    if timeline.elections() > 0 {
        assert!(timeline.election(1).is_some_and(|first| !first.to_string().is_empty()));
    }
}

/// What came from outside opens and closes no tag.
fn whole(text: &str) {
    assert_eq!(text.matches('<').count(), text.matches('>').count());
    assert!(!text.contains("<script"));
}
