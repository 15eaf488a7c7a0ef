//! Lines of logs, Java's and ours, that have one meaning.

use crate::finding::Level;

/// A kind of line.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// What the line contains, and so what identifies it.
    pub contains: &'static str,
    /// What else it must contain: one of these, if there are any.
    and: &'static [&'static str],
    /// The rule that it is a sign of.
    pub rule: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What it says, with `{}` for the number.
    pub what: &'static str,
    /// The number in it that matters.
    number: Number,
    /// From so many such lines on, or from this size on.
    pub least: i64,
    /// Up to this size.
    most: i64,
}

/// A number in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    None,
    /// Behind these words; which one it is tells one finding from another.
    Name(&'static str),
    /// Behind these words: a size.
    Size(&'static str),
    /// Anywhere, from one to the other.
    Between((i64, i64)),
}

impl Meaning {
    /// Whether a line is of this kind, and its number. None for another line.
    ///
    /// `next` is the line behind it: Java writes what an exception says there.
    pub(crate) fn read(&self, text: &str, next: &str) -> Option<Option<i64>> {
        if !text.contains(self.contains) {
            return None;
        }
        let says = |part: &&str| text.contains(part) || next.contains(part);
        if !self.and.is_empty() && !self.and.iter().any(says) {
            return None;
        }
        match self.number {
            Number::None => Some(None),
            Name(words) => Some(number_behind(text, words)),
            Between((least, most)) => {
                let numbers = text.split(|c: char| !c.is_ascii_digit());
                let mut numbers = numbers.filter_map(|digits| digits.parse::<i64>().ok());
                numbers.find(|number| (least..=most).contains(number)).map(Some)
            }
            Size(words) => {
                let size = number_behind(text, words)?;
                (self.least..=self.most).contains(&size).then_some(Some(size))
            }
        }
    }

    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self.number, Size(_))
    }

    /// Whether the number is a server's id.
    pub(crate) fn names_a_server(&self) -> bool {
        matches!(self.number, Name(_))
    }

    /// Whether it is of no more interest once that server has been heard.
    pub(crate) fn ends_when_heard(&self) -> bool {
        matches!(self.number, Name(DIAL | "sid:"))
    }

    /// How many such lines it takes.
    pub(crate) fn count_min(&self) -> usize {
        if self.is_of_size() { 1 } else { usize::try_from(self.least).unwrap_or(1) }
    }
}

/// The first number behind some words.
fn number_behind(text: &str, words: &str) -> Option<i64> {
    let rest = text.split_once(words)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

const fn row(
    contains: &'static str,
    rule: &'static str,
    level: Level,
    number: Number,
    what: &'static str,
) -> Meaning {
    Meaning { contains, and: &[], rule, level, what, number, least: 1, most: i64::MAX }
}

impl Meaning {
    const fn and(self, and: &'static [&'static str]) -> Self {
        Self { and, ..self }
    }

    const fn from(self, least: i64) -> Self {
        Self { least, ..self }
    }

    const fn to(self, most: i64) -> Self {
        Self { most, ..self }
    }
}

use Level::{Error, Notice, Warning};
use Number::{Between, Name, None as Nothing, Size};

/// All kinds of lines.
pub(crate) static MEANINGS: [Meaning; 34] = [
    row(DIAL, "live.port-closed", Warning, Name(DIAL), "it could not reach server {}: refused")
        .and(&["Connection refused"])
        .from(3),
    row(DIAL, "live.port-closed", Warning, Name(DIAL), "it could not reach server {} in time")
        .and(&["timed out", "Timeout"])
        .from(3),
    row(DIAL, "live.port-closed", Warning, Name(DIAL), "it had no route to server {}")
        .and(&["No route", "unreachable"])
        .from(3),
    row(
        DIAL,
        "cfg.host-unresolved",
        Error,
        Name(DIAL),
        "the name of server {} had no address there",
    )
    .and(&["UnknownHost", "unresolved", "UnresolvedAddress"]),
    row(OWN_ID, "cfg.myid-twice", Error, Nothing, "a second server says that it is this one"),
    row(
        "not in the peer list",
        "cfg.myid-not-listed",
        Error,
        Name("My id "),
        "its id is in no server line",
    ),
    row(DROPPING, "live.one-way", Warning, Name("sid:"), "it waits for server {} to dial it")
        .from(5),
    row(
        "advertised length of ",
        "live.client-protocol",
        Notice,
        Size("length of "),
        "a browser or a scraper speaks HTTP to the client port",
    )
    .from(HTTP)
    .to(HTTP),
    row(
        "advertised length of",
        "live.client-protocol",
        Notice,
        Size("length of "),
        "a client speaks TLS to a client port without it",
    )
    .from(TLS)
    .to(TLS + 0x3ff),
    row(
        "Unreasonable length",
        "cfg.timing-differs",
        Error,
        Size("length = "),
        "it could not read {} bytes that another wrote: they are more than its jute.maxbuffer",
    ),
    row(
        "Len error",
        "cfg.timing-differs",
        Warning,
        Size("length of "),
        "a packet of {} bytes is longer than its jute.maxbuffer",
    )
    .to(TLS - 1),
    row(
        "No snapshot found, but there are log entries",
        "disk.history",
        Error,
        Nothing,
        "it does not start from a log without a snapshot (left by 3.4, or a snapshot was deleted)",
    ),
    row(
        "is older than the last zxid",
        "disk.epochs",
        Error,
        Nothing,
        "it does not start: currentEpoch is older than its log",
    )
    .and(&["The current epoch"]),
    row(
        "is less than the current epoch",
        "disk.epochs",
        Error,
        Nothing,
        "it does not start: acceptedEpoch is less than currentEpoch",
    )
    .and(&["accepted epoch"]),
    row(FSYNC, "disk.fsync", Error, Size("took "), "a write took {} ms to be safe").from(1000),
    row(
        "fsync-ing the write ahead log in ",
        "disk.fsync",
        Warning,
        Size("took "),
        "a write took {} ms to be safe",
    )
    .from(100),
    row(
        "Detected pause in JVM",
        "host.pause",
        Warning,
        Size("approximately "),
        "the process stood still for {} ms",
    )
    .from(500),
    row(
        "Too many connections from",
        "live.connections",
        Warning,
        Nothing,
        "connections of one host were turned away",
    ),
    row(
        "Too many connections",
        "live.connections",
        Warning,
        Nothing,
        "connections were turned away",
    )
    .and(&["max allowed is"]),
    row(
        "Quit leading due to voter changed mind",
        "live.flapping",
        Notice,
        Nothing,
        "it gave up leading: a voter had changed its mind",
    )
    .from(3),
    row("Shutdown called. For the reason", "live.flapping", Notice, Nothing, "it gave up leading")
        .from(3),
    row(
        "Committed proposal cached out of order",
        "live.java-bug",
        Notice,
        Nothing,
        "it ended itself when it lost its leader (ZooKeeper since 3.9.4, with exit code 0): start it again",
    )
    .and(&["is not the next proposal"]),
    row(
        "Notification time out: ",
        "live.round-grows",
        Notice,
        Size("time out: "),
        "it waited {} ms for votes",
    )
    .from(30_000),
    row(
        "158",
        "live.tls-mismatch",
        Warning,
        Between(TLS_SID),
        "a server speaks TLS to its plain port: the first bytes read as an id are {}",
    ),
    row(
        "Received packet with invalid packet: -5",
        "live.tls-mismatch",
        Warning,
        Nothing,
        "a server speaks TLS to its plain port",
    ),
    row(
        "Blocked insecure connection attempt",
        "live.tls-mismatch",
        Warning,
        Nothing,
        "a server without TLS dialled it",
    ),
    row(
        "SSL peer shut down incorrectly",
        "live.tls-mismatch",
        Warning,
        Nothing,
        "whom it dialled does not speak TLS",
    ),
    row(
        "Failed to verify both host address and host name",
        "live.tls-name",
        Warning,
        Nothing,
        "a certificate was not made for the host that showed it",
    ),
    row(
        "PKIX path building failed",
        "live.tls-chain",
        Warning,
        Nothing,
        "a certificate was signed by no authority that it trusts",
    ),
    row("NotAfter", "live.tls-expired", Warning, Nothing, "a certificate has expired"),
    row(
        "will not use DIGEST-MD5",
        "live.sasl-fips",
        Warning,
        Nothing,
        "DIGEST-MD5 is configured and not used",
    ),
    row(
        "javax.security.sasl.SaslClient.hasInitialResponse()",
        "live.sasl-fips",
        Warning,
        Nothing,
        "it found no way to say who it is",
    ),
    row(
        "leader election failed so far",
        "live.no-leader",
        Notice,
        Nothing,
        "it had found no leader for half a minute",
    ),
    row(
        "Unable to load database on disk",
        "disk.history",
        Error,
        Nothing,
        "it does not start: its data cannot be loaded",
    ),
];

const DIAL: &str = "Cannot open channel to ";
const OWN_ID: &str = "We got a connection request from a server with our own ID";
const DROPPING: &str = "Have smaller server identifier, so dropping the connection";
const FSYNC: &str = "fsync-ing the write ahead log in";
/// The bytes `GET ` as a length.
const HTTP: i64 = 0x4745_5420;
/// The first bytes of a TLS handshake, up to those of 1.3.
const TLS: i64 = 0x1603_0100;
/// Such an id begins with the bytes of a TLS handshake, 0x16 0x03.
const TLS_SID: (i64, i64) = (0x1603_0000_0000_0000, 0x1603_ffff_ffff_ffff);
