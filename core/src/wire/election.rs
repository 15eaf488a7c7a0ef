//! The election port: one introduction, then frames of notifications.
//!
//! # The introduction
//!
//! | form | bytes | sent by |
//! |---|---|---|
//! | bare | `i64` id, not negative | 3.4 |
//! | one address | `i64` −65536, `i64` id, `i32` n, n bytes `host:port` | 3.5 and later, and us |
//! | several | `i64` −65535, `i64` id, `i32` n, n bytes `host:port\|host:port…` | 3.6 and later, on demand |
//!
//! # The notification
//!
//! | offset | field | 28 bytes | 40 bytes | 44 and more |
//! |---|---|---|---|---|
//! | 0 | `i32` state | x | x | x |
//! | 4 | `i64` leader | x | x | x |
//! | 12 | `i64` zxid | x | x | x |
//! | 20 | `i64` round | x | x | x |
//! | 28 | `i64` peer epoch | the zxid's | x | x |
//! | 36 | `i32` version | 0 | not read: 0 | x |
//! | 40 | `i32` config length | | | from version 2 on |
//! | 44 | config text | | | from version 2 on |
//! | | sent by | before 3.4 | 3.4.6 | 3.5 and later, and us |
//!
//! Behind the config text ZooKeeper reads nothing (`FastLeaderElection.WorkerReceiver`), however long the frame is.
//! There servers of ours say what only they understand, if there is anything:
//!
//! | offset from the end of the text | field |
//! |---|---|
//! | 0 | `qrt` |
//! | 3 | `u8` 1: the form. Later ones begin with the same fields and may append |
//! | 4 | `u32` one bit for each thing, see [`Mark`] |

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::DecodeError;
use super::limits::{MAX_ADDRESSES, MAX_FRAME};
use super::primitive::{i32_at, i32_in, i64_at, i64_in, wire_length};
use crate::address::HostPort;
use crate::id::ServerId;
use crate::message::{Introduction, Mark, Notification};
use crate::vote::{Round, ServerState, Standing, Vote};
use crate::zxid::{Epoch, Zxid};

/// The first number of an introduction with one address.
pub const PROTOCOL_ONE_ADDRESS: i64 = -65536;
/// The first number of an introduction with several addresses.
pub const PROTOCOL_MANY_ADDRESSES: i64 = -65535;

/// The first number of an introduction of a server that elects by generation: `quorate` behind a byte that makes
/// it negative, so that ZooKeeper 3.4 does not take it for an id.
pub const PROTOCOL_GENERATION: i64 = i64::from_be_bytes(*b"\xffquorate");

/// The bytes before the addresses of an introduction.
pub(super) const INTRODUCTION_HEAD: usize = 20;
/// The length before a frame.
pub(super) const FRAME_HEAD: usize = 4;
/// The notification of 3.5 and later, without its config text.
const NOTIFICATION: usize = 44;
/// The first version whose notifications carry a config text.
const FIRST_WITH_CONFIG: i32 = 2;
/// How a [`Mark`] begins, before its form and its bits.
const MARK: [u8; 3] = *b"qrt";
/// The form in which we send one.
const MARK_FORM: u8 = 1;
/// A mark with its beginning.
pub(super) const WHOLE_MARK: usize = 8;
/// The notification of 3.5 and later with the length of its frame.
const FRAMED_NOTIFICATION: usize = FRAME_HEAD + NOTIFICATION;

/// An introduction as bytes.
///
/// Write them in one go: ZooKeeper closes the connection if its first read does not get them all.
///
/// With one address it is what every ZooKeeper since 3.5 reads; with several, what reads several
/// (`multiAddress.enabled`, since 3.6), or with the first alone if all together are too long. Without an address, or
/// with one that is too long, only the id is written, as ZooKeeper 3.4 did; the acceptor then looks up the
/// address in its configuration.
pub fn encode_introduction(introduction: &Introduction) -> Bytes {
    let addresses = &introduction.addresses[..];
    let all = match addresses {
        [] => String::new(),
        [first, others @ ..] => {
            others.iter().fold(first.to_string(), |all, other| all + "|" + &other.to_string())
        }
    };
    let (protocol, text) = match addresses {
        [_, _, ..] if all.len() <= MAX_ADDRESSES => (PROTOCOL_MANY_ADDRESSES, all),
        [first, ..] => (PROTOCOL_ONE_ADDRESS, first.to_string()),
        [] => (PROTOCOL_ONE_ADDRESS, all),
    };
    let mut out = BytesMut::with_capacity(INTRODUCTION_HEAD + text.len());
    if (1..=MAX_ADDRESSES).contains(&text.len()) {
        out.put_i64(protocol);
        out.put_i64(introduction.id.0);
        out.put_i32(wire_length(text.len()));
        out.put_slice(text.as_bytes());
    } else {
        out.put_i64(introduction.id.0);
    }
    out.freeze()
}

/// Takes an introduction off the front of `buf`; none if more bytes are needed.
///
/// Addresses to which no peer can dial are left out, names are kept as they are, and any id is accepted:
/// who may speak is decided elsewhere. Every error is fatal.
pub fn decode_introduction(buf: &mut BytesMut) -> Result<Option<Introduction>, DecodeError> {
    let Some(first) = i64_at(buf, 0) else { return Ok(None) };
    if first >= 0 {
        buf.advance(8);
        return Ok(Some(Introduction { id: ServerId(first), addresses: Vec::new() }));
    }
    if first == PROTOCOL_GENERATION {
        return Err(DecodeError::ElectsByGeneration);
    }
    if first != PROTOCOL_ONE_ADDRESS && first != PROTOCOL_MANY_ADDRESSES {
        return Err(DecodeError::UnknownProtocol(first));
    }
    let (Some(id), Some(announced)) = (i64_at(buf, 8), i32_at(buf, 16)) else { return Ok(None) };
    let length = bounded(announced, MAX_ADDRESSES).ok_or(DecodeError::AddressLength(announced))?;
    let Some(text) = buf.get(INTRODUCTION_HEAD..INTRODUCTION_HEAD + length) else {
        return Ok(None);
    };
    let addresses = parse_addresses(text)?;
    buf.advance(INTRODUCTION_HEAD + length);
    Ok(Some(Introduction { id: ServerId(id), addresses }))
}

/// The addresses of an introduction. Both forms are split at `|`, as ZooKeeper does.
pub(super) fn parse_addresses(text: &[u8]) -> Result<Vec<HostPort>, DecodeError> {
    let text = core::str::from_utf8(text).map_err(|e| DecodeError::AddressText(e.valid_up_to()))?;
    let mut addresses = Vec::new();
    for (index, address) in text.split('|').enumerate() {
        let address = parse_address(index, address)?;
        if !address.is_wildcard() {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// `host:port` or `[host]:port`. A port that does not exist ends ZooKeeper's acceptor for good.
///
/// The host is for a resolver and for logs: brackets and control characters are no part of any.
fn parse_address(index: usize, address: &str) -> Result<HostPort, DecodeError> {
    let malformed = DecodeError::Address(index);
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").ok_or(malformed)?,
        None => address.split_once(':').ok_or(malformed)?,
    };
    if host.contains(|c: char| c == '[' || c == ']' || c.is_control()) {
        return Err(malformed);
    }
    let port = port.parse::<u64>().map_err(|_| malformed)?;
    let port = u16::try_from(port).map_err(|_| DecodeError::Port { index, port })?;
    Ok(HostPort { host: String::from(host), port })
}

/// Takes a frame off the front of `buf`, without its length; none if more bytes are needed.
///
/// Every error is fatal. [`take_notification`] does this and [`decode_notification`] in one, cheaper.
#[inline]
pub fn decode_frame(buf: &mut BytesMut) -> Result<Option<Bytes>, DecodeError> {
    let Some(length) = whole_frame(buf)? else { return Ok(None) };
    buf.advance(FRAME_HEAD);
    Ok(Some(buf.split_to(length).freeze()))
}

/// Takes a frame off the front of `buf` and decodes the notification in it; none if more bytes are
/// needed.
///
/// An error that is not fatal concerns this frame alone, which is gone then; call again for the next.
#[inline]
pub fn take_notification(buf: &mut BytesMut) -> Result<Option<Notification>, DecodeError> {
    let Some(length) = whole_frame(buf)? else { return Ok(None) };
    let end = FRAME_HEAD + length;
    match parse_notification(&buf[FRAME_HEAD..end]) {
        Ok((standing, version, config)) => {
            let mark = mark(&buf[FRAME_HEAD + config.end..end], version);
            let config = if config.is_empty() {
                buf.advance(end);
                Bytes::new()
            } else {
                let mut frame = buf.split_to(end).freeze();
                frame.truncate(FRAME_HEAD + config.end);
                frame.advance(FRAME_HEAD + config.start);
                frame
            };
            Ok(Some(Notification { standing, version, config, mark }))
        }
        Err(error) => {
            buf.advance(end);
            Err(error)
        }
    }
}

/// Decodes the payload of a frame. No error is fatal.
///
/// The older forms of 28 and 40 bytes are accepted. The config text stays undecoded: it may be garbage
/// even if the notification is good.
#[inline]
pub fn decode_notification(mut payload: Bytes) -> Result<Notification, DecodeError> {
    let (standing, version, config) = parse_notification(&payload)?;
    let mark = mark(&payload[config.end..], version);
    let config = if config.is_empty() {
        Bytes::new()
    } else {
        payload.truncate(config.end);
        payload.advance(config.start);
        payload
    };
    Ok(Notification { standing, version, config, mark })
}

/// Appends a notification with its frame to `out`, in the form of 3.5 and later.
///
/// Nothing is allocated if `out` has room. A config text that does not fit in a frame makes one that
/// the receiver refuses; texts are bounded where they are read.
#[inline]
pub fn encode_notification(notification: &Notification, out: &mut BytesMut) {
    let Notification { standing, version, config, mark } = notification;
    let Standing { state, vote, round } = standing;
    let length = NOTIFICATION + config.len();
    debug_assert!(length <= MAX_FRAME - WHOLE_MARK, "config of {} bytes", config.len());
    let marked = *mark != Mark::NONE && *version >= FIRST_WITH_CONFIG;
    let length = length + if marked { WHOLE_MARK } else { 0 };
    let mut fixed = [0; FRAMED_NOTIFICATION];
    let mut rest = &mut fixed[..];
    rest.put_i32(wire_length(length));
    rest.put_i32(state.code());
    rest.put_i64(vote.leader.0);
    rest.put_i64(vote.zxid.0);
    rest.put_i64(round.0);
    rest.put_i64(vote.peer_epoch.0);
    rest.put_i32(*version);
    rest.put_i32(wire_length(config.len()));
    out.reserve(FRAME_HEAD + length);
    out.extend_from_slice(&fixed);
    if !config.is_empty() {
        out.extend_from_slice(config);
    }
    if marked {
        put_mark(*mark, out);
    }
}

/// Appends a mark with its beginning.
pub(super) fn put_mark(mark: Mark, out: &mut BytesMut) {
    out.extend_from_slice(&MARK);
    out.put_u8(MARK_FORM);
    out.put_u32(mark.0);
}

/// What stands behind the config text of a notification of this version, if a server of ours has put it there.
#[inline]
fn mark(behind: &[u8], version: i32) -> Mark {
    if version < FIRST_WITH_CONFIG { Mark::NONE } else { mark_in(behind) }
}

/// The mark that stands there, if one does.
#[inline]
pub(super) fn mark_in(behind: &[u8]) -> Mark {
    match behind.first_chunk::<WHOLE_MARK>() {
        Some([a, b, c, form, bits @ ..]) if [*a, *b, *c] == MARK && *form >= MARK_FORM => {
            Mark(u32::from_be_bytes(*bits))
        }
        Some(_) | None => Mark::NONE,
    }
}

/// The length of the frame at the front, once it is there as a whole.
#[inline]
pub(super) fn whole_frame(buf: &[u8]) -> Result<Option<usize>, DecodeError> {
    let Some(announced) = i32_at(buf, 0) else { return Ok(None) };
    let length = bounded(announced, MAX_FRAME).ok_or(DecodeError::FrameLength(announced))?;
    let whole = buf.len() - FRAME_HEAD >= length;
    Ok(whole.then_some(length))
}

/// `announced` if it lies within `1..=most`.
#[inline]
pub(super) fn bounded(announced: i32, most: usize) -> Option<usize> {
    usize::try_from(announced).ok().filter(|length| (1..=most).contains(length))
}

/// Standing, version, and where the config text is.
#[inline]
fn parse_notification(payload: &[u8]) -> Result<(Standing, i32, Range<usize>), DecodeError> {
    // One comparison for all that is sent today.
    let Some(fixed) = payload.first_chunk::<NOTIFICATION>() else {
        return parse_short_notification(payload)
            .map(|(standing, version)| (standing, version, 0..0));
    };
    let standing = standing(fixed, Epoch(i64_in::<28, _>(fixed)))?;
    let version = i32_in::<36, _>(fixed);
    if version < FIRST_WITH_CONFIG {
        return Ok((standing, version, 0..0));
    }
    let announced = i32_in::<40, _>(fixed);
    let carried = payload.len() - NOTIFICATION;
    match usize::try_from(announced) {
        Ok(length) if length <= carried => {
            Ok((standing, version, NOTIFICATION..NOTIFICATION + length))
        }
        _ => Err(DecodeError::ConfigLength { announced, carried }),
    }
}

/// Standing and version of what is shorter than today's notifications.
#[cold]
fn parse_short_notification(payload: &[u8]) -> Result<(Standing, i32), DecodeError> {
    let too_short = DecodeError::NotificationLength(payload.len());
    let fixed = payload.first_chunk::<28>().ok_or(too_short)?;
    if payload.len() == 28 {
        let zxid = Zxid(i64_in::<12, _>(fixed));
        return Ok((standing(fixed, zxid.epoch())?, 0));
    }
    let standing = standing(fixed, Epoch(i64_at(payload, 28).ok_or(too_short)?))?;
    // 3.4.6 put its version here, but no receiver reads it unless more follows.
    let version = i32_at(payload, 36).ok_or(too_short)?;
    match payload.len() {
        40 => Ok((standing, 0)),
        _ if version < FIRST_WITH_CONFIG => Ok((standing, version)),
        _ => Err(too_short),
    }
}

/// The fields that every form has.
#[inline(always)]
fn standing<const N: usize>(fixed: &[u8; N], peer_epoch: Epoch) -> Result<Standing, DecodeError> {
    let code = i32_in::<0, _>(fixed);
    let state = ServerState::from_code(code).ok_or(DecodeError::State(code))?;
    Ok(Standing {
        state,
        vote: Vote {
            peer_epoch,
            zxid: Zxid(i64_in::<12, _>(fixed)),
            leader: ServerId(i64_in::<4, _>(fixed)),
        },
        round: Round(i64_in::<20, _>(fixed)),
    })
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers from a bounded generator")]
mod tests {
    use alloc::format;
    use alloc::vec;

    use super::*;
    use crate::rng::Rng;

    fn notification(config: &'static [u8]) -> Notification {
        Notification {
            standing: Standing {
                state: ServerState::Following,
                vote: Vote { peer_epoch: Epoch(4), zxid: Zxid(0x5_0000_0010), leader: ServerId(3) },
                round: Round(9),
            },
            version: 2,
            config: Bytes::from_static(config),
            mark: Mark::NONE,
        }
    }

    fn payload(config: &'static [u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        encode_notification(&notification(config), &mut out);
        out.split_off(FRAME_HEAD).to_vec()
    }

    fn with_version(version: i32) -> Vec<u8> {
        let mut payload = payload(b"text");
        payload[36..40].copy_from_slice(&version.to_be_bytes());
        payload
    }

    fn with_config_length(length: i32) -> Vec<u8> {
        let mut payload = payload(b"text");
        payload[40..44].copy_from_slice(&length.to_be_bytes());
        payload
    }

    #[test]
    fn the_layout() {
        let bytes = payload(b"text");
        let fields: [&[u8]; 8] = [
            &1_i32.to_be_bytes(),
            &3_i64.to_be_bytes(),
            &0x5_0000_0010_i64.to_be_bytes(),
            &9_i64.to_be_bytes(),
            &4_i64.to_be_bytes(),
            &2_i32.to_be_bytes(),
            &4_i32.to_be_bytes(),
            b"text",
        ];
        assert_eq!(bytes, fields.concat());
    }

    #[test]
    fn every_length_of_every_version() {
        for version in [i32::MIN, -1, 0, 1, 2, 3, i32::MAX] {
            for length in 0..=48 {
                let bytes = Bytes::from(with_version(version)).slice(..length);
                let row = format!("{length} bytes of version {version}");
                let result = decode_notification(bytes);
                match (length, version) {
                    (28, _) => {
                        let decoded = result.expect(&row);
                        assert_eq!(decoded.standing.vote.peer_epoch, Epoch(5), "{row}");
                        assert_eq!(decoded.version, 0, "{row}");
                    }
                    (40, _) => assert_eq!(result.expect(&row).version, 0, "{row}"),
                    (41.., i32::MIN..=1) => {
                        let decoded = result.expect(&row);
                        assert_eq!(decoded.version, version, "{row}");
                        assert_eq!(decoded.standing, notification(b"").standing, "{row}");
                        assert!(decoded.config.is_empty(), "{row}");
                    }
                    (44..=47, 2..) => {
                        let carried = length - 44;
                        let error = DecodeError::ConfigLength { announced: 4, carried };
                        assert_eq!(result, Err(error), "{row}");
                    }
                    (48, 2..) => {
                        let expected = Notification { version, ..notification(b"text") };
                        assert_eq!(result, Ok(expected), "{row}");
                    }
                    _ => assert_eq!(result, Err(DecodeError::NotificationLength(length)), "{row}"),
                }
            }
        }
    }

    /// ZooKeeper reads no further than its text; so do servers of ours from before there were marks.
    #[test]
    fn a_mark_stands_behind_the_text() {
        let marked = Notification { mark: Mark(0x8000_0001), ..notification(b"text") };
        let mut out = BytesMut::new();
        encode_notification(&marked, &mut out);
        let bytes = out.clone().split_off(FRAME_HEAD);
        assert_eq!(bytes[..48], payload(b"text"));
        assert_eq!(bytes[48..], *b"qrt\x01\x80\x00\x00\x01");
        assert_eq!(take_notification(&mut out), Ok(Some(marked.clone())));
        assert_eq!(decode_notification(bytes.clone().freeze()), Ok(marked.clone()));
        // A later form says more behind it.
        let later = [&bytes[..51], &[2], &bytes[52..], b"more"].concat();
        assert_eq!(decode_notification(later.into()), Ok(marked.clone()));
        for other in [&bytes[..55], &[&bytes[..48], b"qrs\x01\0\0\0\x01"].concat()] {
            let plain = decode_notification(Bytes::copy_from_slice(other));
            assert_eq!(plain, Ok(notification(b"text")));
        }
        let zeroth = [&bytes[..51], &[0], &bytes[52..]].concat();
        assert_eq!(decode_notification(zeroth.into()), Ok(notification(b"text")));
        // What has no room for a text has none behind it.
        let mut out = BytesMut::new();
        let old = Notification { version: 1, config: Bytes::new(), ..marked };
        encode_notification(&old, &mut out);
        assert_eq!(out.len(), FRAMED_NOTIFICATION);
    }

    #[test]
    fn config_lengths_and_states() {
        for (length, accepted) in
            [(-1, false), (i32::MIN, false), (i32::MAX, false), (5, false), (4, true), (0, true)]
        {
            let result = decode_notification(with_config_length(length).into());
            assert_eq!(result.is_ok(), accepted, "config length {length}");
        }
        let shorter = decode_notification(with_config_length(2).into());
        assert_eq!(shorter, Ok(notification(b"te")), "bytes after the config are ignored");
        for (code, accepted) in
            [(0, true), (1, true), (2, true), (3, true), (4, false), (-1, false), (i32::MAX, false)]
        {
            for length in [28, 40, 44, 48] {
                let mut bytes = with_config_length(0);
                bytes.truncate(length);
                bytes[..4].copy_from_slice(&i32::to_be_bytes(code));
                let result = decode_notification(bytes.into()).map(|n| n.standing.state.code());
                let expected = if accepted { Ok(code) } else { Err(DecodeError::State(code)) };
                assert_eq!(result, expected, "state {code} in {length} bytes");
            }
        }
    }

    /// ZOOKEEPER-3769: one malformed notification was the last that a server received.
    #[test]
    fn the_notification_after_a_malformed_one_arrives() {
        let mut framed = BytesMut::new();
        encode_notification(&notification(b"text"), &mut framed);
        for malformed in [
            payload(b"")[..27].to_vec(),
            payload(b"")[..39].to_vec(),
            with_config_length(-1),
            with_config_length(i32::MAX),
            vec![0xff; 44],
        ] {
            let mut buf = BytesMut::new();
            buf.put_i32(wire_length(malformed.len()));
            buf.put_slice(&malformed);
            buf.put_slice(&framed);
            let error = take_notification(&mut buf).expect_err("malformed");
            assert!(!error.is_fatal(), "{error}");
            assert_eq!(take_notification(&mut buf), Ok(Some(notification(b"text"))));
        }
    }

    #[test]
    fn frame_lengths() {
        for length in [0, -1, i32::MIN, i32::MAX, 524_289] {
            let mut buf = BytesMut::from(&length.to_be_bytes()[..]);
            let error = DecodeError::FrameLength(length);
            assert!(error.is_fatal());
            assert_eq!(decode_frame(&mut buf), Err(error));
            assert_eq!(take_notification(&mut buf), Err(error));
        }
        let mut buf = BytesMut::new();
        buf.put_i32(524_288);
        assert_eq!(decode_frame(&mut buf), Ok(None));
        buf.resize(3 + 524_288, 0);
        assert_eq!(decode_frame(&mut buf), Ok(None));
        buf.put_u8(7);
        assert_eq!(decode_frame(&mut buf).unwrap().unwrap().len(), 524_287 + 1);
    }

    #[test]
    fn nothing_is_copied_and_a_reused_buffer_does_not_grow() {
        let mut out = BytesMut::with_capacity(128);
        let place = out.as_ptr();
        for _ in 0..3 {
            out.clear();
            encode_notification(&notification(b"text"), &mut out);
            assert_eq!((out.as_ptr(), out.capacity()), (place, 128));
        }
        let taken = take_notification(&mut out).unwrap().unwrap();
        assert_eq!(taken.config.as_ptr(), place.wrapping_add(FRAMED_NOTIFICATION));
    }

    #[test]
    fn random_notifications_round_trip() {
        let mut rng = Rng::new(3);
        let corners = [i64::MIN, -1, 0, 1, i64::MAX];
        let mut out = BytesMut::new();
        let mut sent = Vec::new();
        for _ in 0..if cfg!(miri) { 50 } else { 2_000 } {
            let mut number = || match rng.below(8) {
                corner @ 0..5 => corners[corner as usize],
                _ => rng.next_u64() as i64,
            };
            let vote = Vote {
                peer_epoch: Epoch(number()),
                zxid: Zxid(number()),
                leader: ServerId(number()),
            };
            let round = Round(number());
            let state = ServerState::from_code(rng.below(4) as i32).unwrap();
            let config = vec![b'c'; rng.below(300) as usize].into();
            let standing = Standing { state, vote, round };
            let mark = Mark(rng.below(3) as u32);
            let notification = Notification { standing, version: 2, config, mark };
            encode_notification(&notification, &mut out);
            sent.push(notification);
        }
        for notification in sent {
            assert_eq!(take_notification(&mut out), Ok(Some(notification)));
        }
        assert_eq!(take_notification(&mut out), Ok(None));
    }

    #[test]
    fn random_introductions_round_trip() {
        let mut rng = Rng::new(4);
        for _ in 0..if cfg!(miri) { 50 } else { 2_000 } {
            let host = match rng.below(3) {
                0 => format!("10.0.{}.{}", rng.below(256), rng.below(256)),
                1 => format!("fe80::{:x}", 1 + rng.below(0xffff)),
                _ => format!("zk-{}.example.org", rng.below(1000)),
            };
            let port = 1 + rng.below(0xffff) as u16;
            let introduction = Introduction {
                id: ServerId(rng.next_u64() as i64),
                addresses: vec![HostPort { host, port }],
            };
            let mut buf = BytesMut::from(encode_introduction(&introduction));
            assert_eq!(decode_introduction(&mut buf), Ok(Some(introduction)));
            assert!(buf.is_empty());
        }
    }

    #[test]
    fn an_introduction_without_a_usable_address_is_the_bare_id() {
        let too_long = HostPort { host: "a".repeat(MAX_ADDRESSES), port: 1 };
        for addresses in [Vec::new(), vec![too_long]] {
            let bytes = encode_introduction(&Introduction { id: ServerId(3), addresses });
            assert_eq!(bytes, 3_i64.to_be_bytes()[..]);
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut rng = Rng::new(6);
        for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
            let mut bytes = vec![0; rng.below(80) as usize];
            bytes.fill_with(|| rng.next_u64().to_be_bytes()[0]);
            if rng.below(2) == 0 && bytes.len() > 4 {
                // A plausible length, so that what follows is looked at.
                let length = wire_length(bytes.len() - 4).to_be_bytes();
                bytes[..4].copy_from_slice(&length);
            }
            drop(take_notification(&mut BytesMut::from(&bytes[..])));
            drop(decode_introduction(&mut BytesMut::from(&bytes[..])));
            drop(decode_notification(bytes.into()));
        }
    }
}
