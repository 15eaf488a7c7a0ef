//! The output of an election: candidates and events, as text and as JSON.

use std::io::{self, Write};

use quorate_recipes::{Contender, Event, Events, FencingToken, Notice};
use serde::Serialize;
use serde_json::{Value, json};

fn one(contender: &Contender) -> Value {
    json!({
        "identity": contender.name(),
        "token": contender.token.as_u64(),
        "designated": contender.token.is_designated(),
        "key": contender.key,
    })
}

/// All candidates, the leader first.
pub(crate) fn row(row: &[Contender]) -> Value {
    json!({
        "leader": row.first().map(one),
        "waiting": row.iter().skip(1).map(one).collect::<Vec<_>>(),
    })
}

/// The leader, if there is one.
pub(crate) fn leader(leader: Option<&Contender>) -> Value {
    json!({ "leader": leader.map(one) })
}

/// One event.
#[derive(Debug, Serialize)]
struct Line {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    designated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    again_ms: Option<u128>,
}

impl Line {
    const fn bare(event: &'static str) -> Self {
        Self { event, token: None, designated: None, why: None, again_ms: None }
    }

    fn leads(event: &'static str, token: FencingToken) -> Self {
        let (token, designated) = (token.as_u64(), token.is_designated());
        Self { token: Some(token), designated: Some(designated), ..Self::bare(event) }
    }

    fn new(event: &Event) -> Option<Self> {
        Some(match event {
            Event::Notice(notice) => Self::bare(notice_name(*notice)),
            Event::Elected(token) => Self::leads("leads", *token),
            Event::Designated(token) => Self::leads("designated", *token),
            Event::Suspended => Self::bare("suspended"),
            Event::Confirmed => Self::bare("confirmed"),
            Event::Lost(loss) => Self { why: Some(loss.to_string()), ..Self::bare("lost") },
            Event::Leader(leader) => Self {
                why: leader.as_ref().map(|name| String::from_utf8_lossy(name).into_owned()),
                ..Self::bare("leader")
            },
            Event::Trouble { error, again } => Self {
                why: Some(error.to_string()),
                again_ms: again.map(|again| again.as_millis()),
                ..Self::bare("trouble")
            },
            _ => return None,
        })
    }

    fn text(&self) -> String {
        let mut text = self.event.to_owned();
        if let Some(token) = self.token {
            text += &format!(", token {token}");
        }
        if let Some(why) = &self.why {
            text += &format!(": {why}");
        }
        text
    }
}

/// As LeaderElectionSupport names them.
const fn notice_name(notice: Notice) -> &'static str {
    match notice {
        Notice::Start => "START",
        Notice::OfferStart => "OFFER_START",
        Notice::OfferComplete => "OFFER_COMPLETE",
        Notice::DetermineStart => "DETERMINE_START",
        Notice::DetermineComplete => "DETERMINE_COMPLETE",
        Notice::ElectedStart => "ELECTED_START",
        Notice::ElectedComplete => "ELECTED_COMPLETE",
        Notice::ReadyStart => "READY_START",
        Notice::ReadyComplete => "READY_COMPLETE",
        Notice::Failed => "FAILED",
        Notice::StopStart => "STOP_START",
        Notice::StopComplete => "STOP_COMPLETE",
    }
}

/// Writes events to stderr: stdout is the command's.
pub(crate) async fn write_events(mut events: Events, json: bool) {
    while let Some(event) = events.next().await {
        let Some(line) = Line::new(&event) else { continue };
        let text = if json {
            let Ok(text) = serde_json::to_string(&line) else { continue };
            text
        } else {
            line.text()
        };
        if writeln!(io::stderr(), "{text}").is_err() {
            return;
        }
    }
}
