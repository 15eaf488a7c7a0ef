//! Lines of the log for programs: one flat JSON object each, `{"ts":…,"level":…,"event":…,"sid":…, fields …,"msg":…}`.
//!
//! `event` is one of [`EVENTS`](super::events::EVENTS), `msg` is for people. Numbers are numbers, zxids `"0x…"`. Whatever
//! stands in a text is escaped, so that a line stays a line.

use std::fmt::{self, Debug};
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_tokio::Observed;
use serde::Serializer as _;
use serde::ser::SerializeMap as _;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::events::{OTHER, known};
use crate::utc::utc_micros;

/// One line.
#[derive(Debug)]
pub(crate) struct JsonLine<'a> {
    /// When.
    pub(crate) at: SystemTime,
    /// `error` to `trace`.
    pub(crate) level: &'static str,
    /// Its name.
    pub(crate) event: &'static str,
    /// Which server.
    pub(crate) sid: i64,
    /// What belongs to it, in order.
    pub(crate) fields: Vec<(&'a str, Value)>,
    /// For people.
    pub(crate) msg: String,
}

impl JsonLine<'_> {
    /// The line, without its end.
    pub(crate) fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(256);
        let mut serializer = serde_json::Serializer::new(&mut bytes);
        let written = serializer.serialize_map(None).and_then(|mut map| {
            map.serialize_entry("ts", &utc_micros(micros(self.at)))?;
            map.serialize_entry("level", self.level)?;
            map.serialize_entry("event", self.event)?;
            map.serialize_entry("sid", &self.sid)?;
            for (name, value) in &self.fields {
                map.serialize_entry(name, value)?;
            }
            map.serialize_entry("msg", &self.msg)?;
            map.end()
        });
        // Texts, numbers and truths can all be written.
        drop(written);
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// A change of a server, as it is logged.
pub(crate) fn of_change(
    observed: &Observed,
    now: (std::time::Instant, SystemTime),
) -> JsonLine<'static> {
    let status = &observed.status;
    let at = now.1.checked_sub(now.0.saturating_duration_since(observed.at));
    JsonLine {
        at: at.unwrap_or(UNIX_EPOCH),
        level: "info",
        event: observed.event(),
        sid: status.id.0,
        fields: vec![
            ("round", status.round.0.into()),
            ("epoch", status.current_epoch.0.into()),
            ("reason", observed.report.reason.to_string().into()),
        ],
        msg: observed.report.change.to_string(),
    }
}

/// Writes lines of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonLines {
    /// Which server, where a line does not say so.
    pub(crate) sid: i64,
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { event: name, sid, msg, mut fields } = fields;
        let name = name.as_deref().map_or(OTHER, known);
        if name == OTHER {
            fields.push(("target", event.metadata().target().into()));
        }
        let line = JsonLine {
            at: SystemTime::now(),
            level: level(*event.metadata().level()),
            event: name,
            sid: sid.unwrap_or(self.sid),
            fields,
            msg,
        };
        writeln!(writer, "{}", line.text())
    }
}

/// What a line has to say.
#[derive(Debug, Default)]
struct Fields {
    event: Option<String>,
    sid: Option<i64>,
    msg: String,
    fields: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), &value) {
            ("event", Value::String(name)) => self.event = Some(name.clone()),
            ("sid", Value::Number(sid)) => self.sid = sid.as_i64(),
            ("message", Value::String(msg)) => self.msg.clone_from(msg),
            // Names of ours, which stand in each line already.
            ("ts" | "level" | "event" | "sid" | "msg", _) => {}
            (name, _) => self.fields.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn micros(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
