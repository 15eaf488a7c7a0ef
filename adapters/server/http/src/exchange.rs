//! What is asked and answered: a request without its bytes, an answer without its head.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How. A HEAD is a GET whose answer is not sent.
    pub method: Method,
    /// The path, as it came.
    pub path: String,
    /// The query, decoded, in order.
    pub query: Vec<(String, String)>,
    /// Whether `Accept` asks for JSON.
    pub accepts_json: bool,
    /// The value of `Authorization`.
    pub authorization: Option<String>,
    /// The value of `Last-Event-ID`: the last change that a reader of a stream has had before it came back.
    pub last_event_id: Option<String>,
    /// Where it comes from. What a proxy says of that counts for nothing.
    pub remote: SocketAddr,
}

/// How something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET, or HEAD.
    Get,
    /// POST, without what was posted.
    Post,
}

impl Request {
    /// The first value of a name in the query.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it comes from this machine.
    pub fn is_local(&self) -> bool {
        self.remote.ip().to_canonical().is_loopback()
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// A text with a status.
    pub fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }

    /// What there is no page for.
    pub fn not_found() -> Self {
        Self::text(404, "not found\n")
    }

    /// A value as JSON, see [`pretty`].
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        Self { status, content_type: "application/json", body: pretty(value).into() }
    }
}

/// JSON as ZooKeeper's admin server writes it (Jackson's `DefaultPrettyPrinter`): two spaces for each level of objects,
/// ` : ` behind a key, arrays in one line. Empty if the value cannot be JSON.
pub fn pretty(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Jackson::default());
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// Where the text is: how deep in objects, and whether what was begun last holds something.
#[derive(Default)]
struct Jackson {
    depth: usize,
    filled: bool,
}

impl Jackson {
    fn line<W: ?Sized + io::Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{:1$}", "", 2 * self.depth)
    }
}

impl Formatter for Jackson {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.filled = false;
        out.write_all(b"[ ")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.filled { b" ]" } else { b"]" })
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.filled = false;
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.filled {
            self.line(out)?;
        } else {
            out.write_all(b" ")?;
        }
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Shapes that ZooKeeper 3.9.5 has answered.
    #[test]
    fn json_looks_as_zookeepers_does() {
        let array = json!({ "all_addresses": ["127.0.0.1:1", "127.0.0.1:2"] });
        assert_eq!(
            pretty(&array),
            "{\n  \"all_addresses\" : [ \"127.0.0.1:1\", \"127.0.0.1:2\" ]\n}"
        );
        assert_eq!(pretty(&json!({ "connections": [] })), "{\n  \"connections\" : [ ]\n}");
        assert_eq!(pretty(&json!({ "watches": {} })), "{\n  \"watches\" : { }\n}");
        let nested = json!({ "a": { "avg_latency": 0.0, "error": null } });
        assert_eq!(
            pretty(&nested),
            "{\n  \"a\" : {\n    \"avg_latency\" : 0.0,\n    \"error\" : null\n  }\n}"
        );
        assert_eq!(pretty(&json!([{ "zxid": 1 }])), "[ {\n  \"zxid\" : 1\n} ]");
    }
}
