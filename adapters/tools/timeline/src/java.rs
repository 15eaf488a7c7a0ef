//! The lines of Java's servers, 3.4 to 3.9, by the words of their messages: layouts differ from site to site, words do not.
//!
//! Their sources are `FastLeaderElection`, `QuorumPeer`, `Leader`, `LearnerHandler`, `Learner`, `Follower`,
//! `QuorumCnxManager` and `FileTxnLog`.

use quorate_core::id::ServerId;
use quorate_core::report::How;
use quorate_core::status::Phase;
use quorate_core::vote::{Round, ServerState, Vote};
use quorate_core::zxid::{Epoch, Zxid};

use crate::event::{Said, What};

/// What a line says, behind its time.
pub(crate) fn read(text: &str) -> Option<Said> {
    for (words, reader) in WORDS {
        if let Some((before, rest)) = text.split_once(words) {
            let mut said = reader(rest)?;
            said.own = said.own.or_else(|| {
                number_after(before, "myid:").or_else(|| number_after(before, "myid="))
            });
            return Some(said);
        }
    }
    let bare = text.split(" (org.apache").next()?.trim_end();
    let state = STATES.iter().find(|(name, _)| {
        bare.strip_suffix(name).is_some_and(|before| {
            [" - ", ": ", "INFO ", "INFO  "].iter().any(|end| before.ends_with(end))
        })
    });
    let mut said = into(state?.1)?;
    said.own = number_after(text, "myid:").or_else(|| number_after(text, "myid="));
    Some(said)
}

/// The server that a line names as its own, whatever else it says.
pub(crate) fn own(text: &str) -> Option<ServerId> {
    let head: &str = text.get(..text.len().min(200)).unwrap_or(text);
    number_after(head, "[myid:").or_else(|| number_after(head, "myid="))
}

type Reader = fn(&str) -> Option<Said>;

const STATES: [(&str, ServerState); 4] = [
    ("LOOKING", ServerState::Looking),
    ("FOLLOWING", ServerState::Following),
    ("LEADING", ServerState::Leading),
    ("OBSERVING", ServerState::Observing),
];

const WORDS: &[(&str, Reader)] = &[
    // Another server's text may be in it, so it comes first.
    ("Notification: ", notification),
    ("Notification time out: ", |rest| {
        Some(Said::new(What::Silence { ms: leading_number(rest)? }))
    }),
    ("New election. My id = ", new_election),
    ("Starting quorum peer", |rest| {
        Some(Said { what: What::Started, own: number_after(rest, "myid=") })
    }),
    ("Peer state changed: ", peer_state),
    ("Cannot open channel to ", |rest| {
        Some(Said::new(What::Unreachable { peer: ServerId(leading_number(rest)?) }))
    }),
    ("Exception when following the leader", |_| lost("the link to the leader broke")),
    ("Exception when observing the leader", |_| lost("the link to the leader broke")),
    ("Shutdown called. For the reason ", |rest| lost(rest)),
    ("Shutting down because", |_| None),
    ("Follower sid: ", |rest| {
        Some(Said::new(What::Connected { learner: ServerId(leading_number(rest)?) }))
    }),
    ("Synchronizing with Learner sid: ", compared),
    // 3.4 and 3.5.
    ("Synchronizing with Follower sid: ", compared),
    ("Sending DIFF", |rest| sending(rest, How::Diff)),
    ("Sending TRUNC", |rest| sending(rest, How::Trunc)),
    ("Getting a diff from", |_| getting(How::Diff)),
    ("Getting a snapshot from", |_| getting(How::Snap)),
    ("Truncating log to get in sync", |_| getting(How::Trunc)),
    ("Learner received NEWLEADER", |_| Some(Said::new(What::TookOver { epoch: None }))),
    ("Learner received UPTODATE", |_| Some(Said::new(What::UpToDate))),
    ("Have quorum of supporters, sids: ", supporters),
    ("Received NEWLEADER-ACK message from ", |rest| {
        Some(Said::new(What::Learner { id: ServerId(leading_number(rest)?), synced: true }))
    }),
    ("Creating new log file: log.", |rest| {
        let hex: String = rest.chars().take_while(char::is_ascii_hexdigit).take(16).collect();
        Some(Said::new(What::Wrote { zxid: Zxid(hexadecimal(&hex)?) }))
    }),
];

/// `my state:LOOKING; n.sid:2, n.state:…, n.leader:…, n.round:0x…, n.peerEpoch:0x…, n.zxid:0x…` since 3.6;
/// before, `3 (n.leader), 0x0 (n.zxid), 0x1 (n.round), LOOKING (n.state), 2 (n.sid), 0x0 (n.peerEPoch), …`, since 3.4.6
/// behind the version of the message.
fn notification(rest: &str) -> Option<Said> {
    let field = |name: &str| {
        if let Some((_, value)) = rest.split_once(&format!("n.{name}:")) {
            return Some(value.split([',', ';', ' ']).next()?.trim());
        }
        let names = [format!(" (n.{name})"), format!(" (n.{})", name.replace("Epoch", "EPoch"))];
        let (before, _) = names.iter().find_map(|name| rest.split_once(name.as_str()))?;
        before.rsplit([' ', ',']).next()
    };
    let decimal = |name: &str| field(name)?.parse::<i64>().ok();
    let hex = |name: &str| hexadecimal(field(name)?.strip_prefix("0x")?);
    let state = field("state")?;
    let state = STATES.iter().find(|(name, _)| *name == state)?.1;
    let vote = Vote {
        leader: ServerId(decimal("leader")?),
        zxid: Zxid(hex("zxid")?),
        peer_epoch: Epoch(hex("peerEpoch")?),
    };
    let (from, round) = (ServerId(decimal("sid")?), Round(hex("round")?));
    Some(Said::new(What::Heard { from, state, vote, round }))
}

fn new_election(rest: &str) -> Option<Said> {
    let own = ServerId(leading_number(rest.trim_start())?);
    let (_, zxid) = rest.split_once("zxid=0x")?;
    let hex: String = zxid.chars().take_while(char::is_ascii_hexdigit).collect();
    let zxid = Zxid(hexadecimal(&hex)?);
    Some(Said { what: What::Begins { zxid }, own: Some(own) })
}

fn peer_state(rest: &str) -> Option<Said> {
    let rest = rest.split(" (org.apache").next()?.trim_end();
    let (state, phase) = rest.split_once(" - ").unwrap_or((rest, ""));
    let phase = match phase {
        "discovery" => Phase::Discovery,
        "synchronization" => Phase::Synchronization,
        "broadcast" => Phase::Broadcast,
        "" => {
            let state = STATES.iter().find(|(name, _)| name.eq_ignore_ascii_case(state))?;
            return into(state.1);
        }
        // `synchronization - diff`: another line says that.
        _ => return None,
    };
    Some(Said::new(What::Phase { to: phase, members: Vec::new(), why: String::new() }))
}

fn into(to: ServerState) -> Option<Said> {
    let why = String::new();
    Some(Said::new(What::State { to, leader: None, members: Vec::new(), why }))
}

fn lost(why: &str) -> Option<Said> {
    let why = why.split(" (org.apache").next()?.chars().take(160).collect();
    Some(Said::new(What::Lost { why }))
}

fn compared(rest: &str) -> Option<Said> {
    Some(Said::new(What::Compared { learner: ServerId(leading_number(rest)?) }))
}

fn sending(rest: &str, how: How) -> Option<Said> {
    let learner = number_after(rest, "peer sid: ").or_else(|| number_after(rest, "peer sid:"))?;
    Some(Said::new(What::Sync { learner, how }))
}

/// The learner is the one that says it.
fn getting(how: How) -> Option<Said> {
    Some(Said::new(What::Sync { learner: ServerId::NONE, how }))
}

/// `[[2, 3]]; starting up and setting last processed zxid: 0x100000000`, without the inner brackets before 3.5.
fn supporters(rest: &str) -> Option<Said> {
    let (sids, behind) = rest.split_once(']')?;
    let members: Vec<_> = sids
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|id| id.parse().ok().map(ServerId))
        .take(MEMBERS_MAX)
        .collect();
    let epoch = behind.split_once("zxid: 0x").and_then(|(_, zxid)| {
        let hex: String = zxid.chars().take_while(char::is_ascii_hexdigit).collect();
        Some(Zxid(hexadecimal(&hex)?).epoch())
    });
    Some(Said::new(What::Quorum { members, epoch }))
}

/// As many servers as a line may name.
const MEMBERS_MAX: usize = 256;

fn leading_number(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

fn number_after(text: &str, words: &str) -> Option<ServerId> {
    leading_number(text.split_once(words)?.1).map(ServerId)
}

/// As Java writes a `long`: the two's complement of what is below 0.
fn hexadecimal(digits: &str) -> Option<i64> {
    let bits = u64::from_str_radix(digits, 16).ok()?;
    Some(i64::from_ne_bytes(bits.to_ne_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_read_in_the_words_of_every_version() {
        let expected = What::Heard {
            from: ServerId(1),
            state: ServerState::Looking,
            vote: Vote { leader: ServerId(3), zxid: Zxid(0x7_0000_0197), peer_epoch: Epoch(7) },
            round: Round(0x12),
        };
        for text in [
            // 3.4.5
            " - INFO  [WorkerReceiver[myid=2]:FastLeaderElection@542] - Notification: 3 (n.leader), 0x700000197 (n.zxid), 0x12 (n.round), LOOKING (n.state), 1 (n.sid), 0x7 (n.peerEPoch), LOOKING (my state)",
            // 3.4.6 and later
            " [myid:2] - INFO  [WorkerReceiver[myid=2]:FastLeaderElection@595] - Notification: 1 (message format version), 3 (n.leader), 0x700000197 (n.zxid), 0x12 (n.round), LOOKING (n.state), 1 (n.sid), 0x7 (n.peerEpoch) LOOKING (my state)",
            // 3.5
            " [myid:2] - INFO  [WorkerReceiver[myid=2]:FastLeaderElection@679] - Notification: 2 (message format version), 3 (n.leader), 0x700000197 (n.zxid), 0x12 (n.round), LOOKING (n.state), 1 (n.sid), 0x7 (n.peerEPoch), LOOKING (my state)0 (n.config version)",
            // 3.6 to 3.9
            " [myid:2] - INFO  [WorkerReceiver[myid=2]:FastLeaderElection$Messenger$WorkerReceiver@391] - Notification: my state:LOOKING; n.sid:1, n.state:LOOKING, n.leader:3, n.round:0x12, n.peerEpoch:0x7, n.zxid:0x700000197, message format version:0x2, n.config version:0x0",
        ] {
            assert_eq!(
                read(text),
                Some(Said { what: expected.clone(), own: Some(ServerId(2)) }),
                "{text}"
            );
        }
    }

    #[test]
    fn a_state_is_read_from_every_layout() {
        for text in [
            " [myid:2] - INFO  [QuorumPeer[myid=2](plain=127.0.0.1:2181)(secure=disabled):QuorumPeer@1455] - LOOKING",
            "] INFO LOOKING (org.apache.zookeeper.server.quorum.QuorumPeer)",
            " INFO org.apache.zookeeper.server.quorum.QuorumPeer: LOOKING",
        ] {
            let what = read(text).map(|said| said.what);
            assert!(
                matches!(what, Some(What::State { to: ServerState::Looking, .. })),
                "{text}: {what:?}"
            );
        }
        assert_eq!(read(" INFO - PeerState set to NOTLOOKING"), None);
    }
}
