//! The picture and the page: well formed, of one file, and small.

use std::fmt::Write as _;

use crate::logs::{KINDS, read, timeline};

/// Each tag that begins ends, in order.
fn balanced(text: &str, alone: &[&str]) {
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, rest) = piece.split_once('>').expect("a tag ends");
        assert!(!rest.contains('>'), "{piece}");
        let name = tag.split([' ', '/', '\n']).next().unwrap();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{piece}");
        } else if !tag.ends_with('/') && !alone.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_picture_is_whole_and_shows_states_votes_and_messages() {
    for kind in KINDS {
        let svg = timeline(&read(kind)).svg();
        balanced(&svg, &[]);
        for class in ["looking", "following", "leading"] {
            assert!(svg.matches(&format!("class=\"{class}\"")).count() > 1, "{kind}: {class}");
        }
        for text in
            ["votes 3, round 1", "server id 3 &gt; ", "LEADING", "<path d=\"M", "server 3</text>"]
        {
            assert!(svg.contains(text), "{kind}: {text}");
        }
        for browsers_only in ["<style", "style=", "var(", "href"] {
            assert!(!svg.contains(browsers_only), "{kind}: {browsers_only}");
        }
    }
}

#[test]
fn the_band_of_a_killed_leader_ends_where_the_others_miss_it() {
    for kind in KINDS {
        let svg = timeline(&read(kind)).election(2).unwrap().svg();
        let tall: i64 = attribute(&svg, "<svg ", " height=");
        let leading = svg.lines().filter(|line| line.starts_with("<rect class=\"leading\""));
        let ends: Vec<_> = leading
            .map(|line| attribute(line, "<rect ", " y=") + attribute(line, "<rect ", " height="))
            .filter(|end| *end > 60)
            .collect();
        assert_eq!(ends.len(), 2, "{kind}: the old leader's and the new one's: {ends:?}");
        assert!(ends.iter().min().unwrap() < &(tall / 3), "{kind}: {ends:?} of {tall}");
    }
}

fn attribute(text: &str, tag: &str, name: &str) -> i64 {
    let rest = text.split_once(tag).unwrap().1.split_once(name).unwrap().1;
    rest.trim_start_matches('"').split('"').next().unwrap().parse().unwrap()
}

#[test]
fn a_page_needs_nothing_from_elsewhere_and_each_claim_has_its_line() {
    for kind in KINDS {
        let page = timeline(&read(kind)).html();
        balanced(&page, &["!DOCTYPE", "meta"]);
        for outside in ["<script", "<link", "<img", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{kind}: {outside}");
        }
        let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{kind}");
        assert!(page.contains("prefers-color-scheme:dark"));
        let claims: Vec<_> =
            page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(claims.len() > 50, "{kind}: {}", claims.len());
        for claim in claims {
            assert!(page.contains(&format!("<li id=\"{claim}\">")), "{kind}: {claim}");
        }
    }
}

#[test]
fn what_a_log_says_is_no_markup() {
    let log = "2026-11-26 13:19:47,000 [myid:1] - INFO  [x:y@1] - LEADING\n\
               2026-11-26 13:19:47,001 [myid:1] - WARN  [x:y@1] - Shutdown called. For the reason <script>&\"</svg>\n\
               2026-11-26 13:19:47,002 [myid:1] - INFO  [x:y@1] - LOOKING\n";
    let timeline = timeline(&[log]);
    for text in [timeline.svg(), timeline.html()] {
        balanced(&text, &["!DOCTYPE", "meta"]);
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;&amp;&quot;"), "{text}");
    }
}

#[test]
fn ten_elections_of_five_servers_are_less_than_a_megabyte() {
    let timeline = timeline(&rounds(10, 5));
    assert_eq!(timeline.elections(), 10);
    assert_eq!(timeline.conflicts(), 0, "{timeline}");
    let page = timeline.html();
    assert!(page.len() < 1_000_000, "{}", page.len());
    balanced(&page, &["!DOCTYPE", "meta"]);
}

#[test]
fn a_long_log_is_read_to_its_end() {
    let mut logs = rounds(20, 3);
    for log in &mut logs {
        let noise = "2026-11-26 13:19:47,000 [myid:1] - INFO  [NIOWorkerThread-2:NIOServerCnxn@517] - Processing srvr command\n";
        *log += &noise.repeat(20_000);
    }
    assert_eq!(timeline(&logs).elections(), 20);
}

/// Logs of ours in which the leader is lost again and again.
fn rounds(elections: usize, servers: usize) -> Vec<String> {
    let mut logs = vec![String::new(); servers];
    for election in 1..=elections {
        let leader = election % servers + 1;
        let all: Vec<_> = (1..=servers).map(|id| id.to_string()).collect();
        let all = all.join(",");
        for (at, log) in logs.iter_mut().enumerate() {
            let id = at + 1;
            let mut tell = |micros: usize, change: String, why: String| {
                let _ = writeln!(
                    log,
                    "2026-11-26T13:{:02}:{:02}.{micros:06}Z  INFO quorate_driver::drive::publish: {change} event=\"x\" sid={id} round={election} epoch={} reason={why}",
                    election / 60,
                    election % 60,
                    election - 1
                );
            };
            let own = "a round begins with one's own vote";
            tell(100 + at, "state FOLLOWING -> LOOKING".into(), "leader 1 closed its link".into());
            tell(
                200 + at,
                format!("vote 1 (peer epoch 1, zxid 0x1) -> {id} (peer epoch 1, zxid 0x1)"),
                own.into(),
            );
            if id != leader {
                let why = format!("server id {leader} > {id}, says {leader}");
                tell(
                    5_000 + at,
                    format!(
                        "vote {id} (peer epoch 1, zxid 0x1) -> {leader} (peer epoch 1, zxid 0x1)"
                    ),
                    why,
                );
            }
            let to = if id == leader { "LEADING" } else { "FOLLOWING" };
            tell(
                9_000 + at,
                format!("state LOOKING -> {to}"),
                format!("quorum {{{all}}} for {leader}, everybody heard"),
            );
            tell(
                9_100 + at,
                "phase election -> discovery".into(),
                format!("quorum {{{all}}} for {leader}"),
            );
            if id == leader {
                tell(
                    20_000,
                    format!("accepted epoch {election}"),
                    format!("quorum {{{all}}} connected, epoch {election}"),
                );
                tell(
                    40_000,
                    "phase discovery -> synchronization".into(),
                    format!("quorum {{{all}}} promised"),
                );
                for learner in (1..=servers).filter(|learner| *learner != leader) {
                    tell(
                        41_000,
                        format!("learner {learner} is brought up by DIFF"),
                        "its history ends at 0x1".into(),
                    );
                }
                for learner in (1..=servers).filter(|learner| *learner != leader) {
                    tell(
                        60_000,
                        format!("learner {learner} synchronised"),
                        format!("quorum {{{learner}}} acknowledged"),
                    );
                }
                tell(
                    61_000,
                    "phase synchronization -> broadcast".into(),
                    format!("quorum {{{all}}} acknowledged"),
                );
            } else {
                let why = format!("leader {leader} begins epoch {election}");
                tell(30_000 + at, format!("accepted epoch {election}"), why.clone());
                tell(30_100 + at, "phase discovery -> synchronization".into(), why.clone());
                tell(
                    50_000 + at,
                    format!("learner {id} is brought up by DIFF"),
                    "its history ends at 0x1".into(),
                );
                tell(50_100 + at, format!("current epoch {election}"), why.clone());
                tell(70_000 + at, "phase synchronization -> broadcast".into(), why);
            }
        }
    }
    logs
}
