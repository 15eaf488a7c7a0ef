//! The quorum port: packets between a leader and a learner, back to back without frames.
//!
//! # The packet
//!
//! | field | bytes | |
//! |---|---|---|
//! | type | `i32` | below |
//! | zxid | `i64` | |
//! | data | `i32` length, bytes | length −1: absent |
//! | identities | `i32` count, each two strings of `i32` length and bytes | count −1: absent |
//!
//! The shortest packet is 20 bytes: an ACK, a COMMIT, a leader's PING.
//!
//! # The types
//!
//! | type | zxid | data |
//! |---|---|---|
//! | 1 REQUEST | −1 | session, cxid, operation, body |
//! | 2 PROPOSAL | its own | transaction |
//! | 3 ACK, 4 COMMIT | what is acknowledged, committed | |
//! | 5 PING | last proposed | sessions touched, from a learner |
//! | 6 REVALIDATE | −1 | session, then its timeout or the answer |
//! | 7 SYNC | 0 | |
//! | 8 INFORM | its own | transaction |
//! | 9 COMMITANDACTIVATE | what is committed | `i64` leader |
//! | 10 NEWLEADER | start of the epoch | config text |
//! | 11 FOLLOWERINFO, 16 OBSERVERINFO | start of the accepted epoch | `i64` id, `i32` protocol, `i64` config version |
//! | 12 UPTODATE | −1 | |
//! | 13 DIFF, 14 TRUNC, 15 SNAP | where it leads | |
//! | 17 LEADERINFO | start of the epoch | `i32` protocol |
//! | 18 ACKEPOCH | last logged | `i32` current epoch, or −1 |
//! | 19 INFORMANDACTIVATE | what is committed | `i64` leader, transaction |
//! | 0x71000001 TRANSFER | of the vote | `i64` leader, `i64` peer epoch, `i64` round |
//! | 0x71000002 LEASE | last proposed | `i64` milliseconds |
//! | 0x71000003 MAYLEAD | 1 or 0 | |
//!
//! The last three are not ZooKeeper's, and go to servers of ours only.
//!
//! Where a packet needs no data, data are tolerated and dropped, as are bytes after the fixed fields.
//! FOLLOWERINFO and OBSERVERINFO may end after the id or after the protocol, or have no data at all
//! (before 3.4); what is missing reads as protocol 1 and config version 0.

use core::ops::Range;
use core::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::DecodeError;
use super::identities::{encode_identities, identities_end, parse_identities};
use super::packet::{HEAD, kind, put_head, take, txn};
use super::primitive::{NULL, buffer_length, i32_at, i32_in, i64_at, i64_in, wire_length};
use super::runs::{put_run, take_proposals, take_run};
use crate::id::ServerId;
use crate::message::{Identity, LearnerInfo, Packet, Request};
use crate::txn::{RequestId, Txn};
use crate::vote::{Round, Vote};
use crate::zxid::{Epoch, Zxid};

/// Session, cxid and operation of a request.
const REQUEST_HEAD: usize = 16;

/// Takes a packet off the front of `buf`, as [`decode_packet`], and with a PROPOSAL, ACK or COMMIT those
/// of the transactions directly behind it, as far as they have come: under load they come in
/// runs, and a run is one step for its receiver.
pub fn take_packet(buf: &mut BytesMut, data_max: usize) -> Result<Option<Packet>, DecodeError> {
    let packet = decode_packet(buf, data_max)?;
    Ok(if let Some(Packet::Ack(first)) = packet {
        let run = take_run(buf, kind::ACK, first);
        Some(if run.last == first { Packet::Ack(first) } else { Packet::Acks(run) })
    } else if let Some(Packet::Commit(first)) = packet {
        let run = take_run(buf, kind::COMMIT, first);
        Some(if run.last == first { Packet::Commit(first) } else { Packet::Commits(run) })
    } else if let Some(Packet::Proposal(first)) = packet {
        Some(take_proposals(buf, first, data_max)?)
    } else {
        packet
    })
}

/// Takes a packet off the front of `buf`; none if more bytes are needed. A buffer or string in it has at most
/// `data_max` bytes: a longer one is refused by its announced length, before anything is held for it.
///
/// [`DecodeError::UnknownPacket`] takes the packet off too; every other error is fatal. After
/// [`Packet::Snap`] the bytes that follow are no packets.
///
/// Strings of identities that are not UTF-8 are read with replacement characters, as ZooKeeper does: a
/// client chooses them, and must not be able to break the link between two servers.
pub fn decode_packet(buf: &mut BytesMut, data_max: usize) -> Result<Option<Packet>, DecodeError> {
    let Some(head) = buf.first_chunk::<HEAD>() else { return Ok(None) };
    let kind = i32_in::<0, _>(head);
    let zxid = Zxid(i64_in::<4, _>(head));
    let data = match i32_in::<12, _>(head) {
        NULL => None,
        announced => Some(HEAD..HEAD + buffer_length(announced, data_max)?),
    };
    let identities_at = data.as_ref().map_or(HEAD, |data| data.end);
    let Some(end) = identities_end(buf, identities_at, data_max)? else { return Ok(None) };

    let packet = match kind {
        kind::ACK => Packet::Ack(zxid),
        kind::COMMIT => Packet::Commit(zxid),
        kind::DIFF => Packet::Diff(zxid),
        kind::TRUNC => Packet::Trunc(zxid),
        kind::SNAP => {
            let memberships = take(buf, data.unwrap_or(HEAD..HEAD), end);
            return Ok(Some(Packet::Snap { label: zxid, memberships }));
        }
        kind::UP_TO_DATE => Packet::UpToDate,
        kind::SYNC => Packet::Sync { tag: i32::try_from(zxid.0).unwrap_or(0) },
        kind::MAY_LEAD => Packet::MayLead(zxid == Zxid(1)),
        kind::FOLLOWER_INFO => {
            Packet::FollowerInfo(learner_info("FOLLOWERINFO", zxid, field(buf, data))?)
        }
        kind::OBSERVER_INFO => {
            Packet::ObserverInfo(learner_info("OBSERVERINFO", zxid, field(buf, data))?)
        }
        kind::LEADER_INFO => Packet::LeaderInfo {
            epoch: zxid.epoch(),
            protocol: first_i32("LEADERINFO", field(buf, data))?,
        },
        kind::ACK_EPOCH => {
            let current = first_i32("ACKEPOCH", field(buf, data))?;
            let current_epoch = (current != -1).then_some(Epoch(i64::from(current)));
            Packet::AckEpoch { last: zxid, current_epoch }
        }
        kind::COMMIT_AND_ACTIVATE => {
            let leader = ServerId(first_i64("COMMITANDACTIVATE", field(buf, data))?);
            Packet::CommitAndActivate { zxid, leader }
        }
        kind::TRANSFER => {
            let packet = "TRANSFER";
            let data = field(buf, data).ok_or(DecodeError::PacketWithoutData(packet))?;
            let length = data.len();
            let data = data.first_chunk::<24>().ok_or(DecodeError::PacketData {
                packet,
                length,
                least: 24,
            })?;
            let peer_epoch = Epoch(i64_in::<8, _>(data));
            let vote = Vote { leader: ServerId(i64_in::<0, _>(data)), zxid, peer_epoch };
            Packet::Transfer { vote, round: Round(i64_in::<16, _>(data)) }
        }
        kind::LEASE => {
            let data = required("LEASE", data)?;
            let millis = first_i64("LEASE", buf.get(data.clone()))?;
            let length = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
            let sessions = take(buf, data.start + 8..data.end, end);
            return Ok(Some(Packet::Lease { zxid, length, sessions }));
        }
        kind::INFORM_AND_ACTIVATE => {
            let name = "INFORMANDACTIVATE";
            let data = required(name, data)?;
            let leader = ServerId(first_i64(name, buf.get(data.clone()))?);
            let txn = txn(name, zxid, take(buf, data.start + 8..data.end, end))?;
            return Ok(Some(Packet::InformAndActivate { leader, txn }));
        }
        kind::PROPOSAL => {
            let txn = txn("PROPOSAL", zxid, take(buf, required("PROPOSAL", data)?, end))?;
            return Ok(Some(Packet::Proposal(txn)));
        }
        kind::INFORM => {
            let txn = txn("INFORM", zxid, take(buf, required("INFORM", data)?, end))?;
            return Ok(Some(Packet::Inform(txn)));
        }
        kind::REVALIDATE => {
            let data = take(buf, required("REVALIDATE", data)?, end);
            return Ok(Some(Packet::Revalidate(data)));
        }
        kind::NEW_LEADER => {
            // Leaders before 3.4 had no config to send.
            let config = take(buf, data.unwrap_or(HEAD..HEAD), end);
            return Ok(Some(Packet::NewLeader { zxid, config }));
        }
        kind::PING => {
            let Some(data) = data else {
                buf.advance(end);
                return Ok(Some(Packet::Ping { zxid, sessions: None }));
            };
            return Ok(Some(Packet::Ping { zxid, sessions: Some(take(buf, data, end)) }));
        }
        kind::REQUEST => {
            let data = required("REQUEST", data)?;
            let identities = parse_identities(&buf[identities_at..end], data_max)?;
            if data.len() < REQUEST_HEAD {
                let (packet, length) = ("REQUEST", data.len());
                return Err(DecodeError::PacketData { packet, length, least: REQUEST_HEAD });
            }
            let mut body = take(buf, data, end);
            let id = RequestId { client: body.get_i64(), cxid: body.get_i32() };
            let op = body.get_i32();
            return Ok(Some(Packet::Request(Request { id, op, body, identities })));
        }
        unknown => {
            buf.advance(end);
            return Err(DecodeError::UnknownPacket(unknown));
        }
    };
    buf.advance(end);
    Ok(Some(packet))
}

/// Appends a packet to `out`.
///
/// Data of more bytes than the receiver reads make a packet that it refuses, as does a current epoch
/// that is none; both are prevented where they arise. A [`LearnerInfo`] without an id is written without
/// data, so that its other fields do not arrive.
pub fn encode_packet(packet: &Packet, out: &mut BytesMut) {
    let rest = encode_head(packet, out);
    if let Some(payload) = rest.payload {
        out.reserve(payload.len() + 4);
        out.extend_from_slice(payload);
    }
    encode_identities(rest.identities, out);
}

/// Appends a packet to `out`, all but its payload: the config text, transaction, sessions or request.
///
/// Returns the payload (of a transaction or a request, its body) and its place in `out`. Writing `out` up to that place, the payload, and the rest
/// of `out` is what [`encode_packet`] would have written, without a copy of the payload.
pub fn encode_around_payload(packet: &Packet, out: &mut BytesMut) -> Option<(usize, Bytes)> {
    let rest = encode_head(packet, out);
    let place = out.len();
    encode_identities(rest.identities, out);
    rest.payload.map(|payload| (place, payload.clone()))
}

/// What follows the head of a packet.
#[derive(Default)]
struct Rest<'a> {
    payload: Option<&'a Bytes>,
    identities: Option<&'a [Identity]>,
}

/// Appends type, zxid, length of the data, and those data that are a few numbers.
fn encode_head<'a>(packet: &'a Packet, out: &mut BytesMut) -> Rest<'a> {
    let fixed = |out: &mut BytesMut, kind, zxid: Zxid, data: &[u8], payload: Option<&'a Bytes>| {
        let payload_length = payload.map_or(0, Bytes::len);
        let length = data.len() + payload_length;
        debug_assert!(i32::try_from(length).is_ok(), "{} with {length} bytes", packet.name());
        put_head(out, kind, zxid, wire_length(length));
        out.extend_from_slice(data);
        Rest { payload, identities: None }
    };
    let bare = |out: &mut BytesMut, kind, zxid| {
        put_head(out, kind, zxid, NULL);
        Rest::default()
    };
    let same = |out: &mut BytesMut, kind, run| {
        put_run(out, kind, run);
        Rest::default()
    };
    match packet {
        Packet::FollowerInfo(info) => learner_info_out(out, kind::FOLLOWER_INFO, info),
        Packet::ObserverInfo(info) => learner_info_out(out, kind::OBSERVER_INFO, info),
        Packet::LeaderInfo { epoch, protocol } => {
            let data = protocol.to_be_bytes();
            fixed(out, kind::LEADER_INFO, Zxid::start_of(*epoch), &data, None)
        }
        Packet::AckEpoch { last, current_epoch } => {
            let current = current_epoch.and_then(|epoch| i32::try_from(epoch.0).ok()).unwrap_or(-1);
            fixed(out, kind::ACK_EPOCH, *last, &current.to_be_bytes(), None)
        }
        Packet::Diff(zxid) => bare(out, kind::DIFF, *zxid),
        Packet::Trunc(zxid) => bare(out, kind::TRUNC, *zxid),
        Packet::Snap { label, memberships } if memberships.is_empty() => {
            bare(out, kind::SNAP, *label)
        }
        Packet::Snap { label, memberships } => {
            fixed(out, kind::SNAP, *label, &[], Some(memberships))
        }
        Packet::NewLeader { zxid, config } => {
            fixed(out, kind::NEW_LEADER, *zxid, &[], Some(config))
        }
        Packet::UpToDate => bare(out, kind::UP_TO_DATE, Zxid(-1)),
        Packet::Ack(zxid) => bare(out, kind::ACK, *zxid),
        Packet::Acks(run) => same(out, kind::ACK, *run),
        Packet::Commits(run) => same(out, kind::COMMIT, *run),
        Packet::Ping { zxid, sessions: None } => bare(out, kind::PING, *zxid),
        Packet::Ping { zxid, sessions: Some(sessions) } => {
            fixed(out, kind::PING, *zxid, &[], Some(sessions))
        }
        Packet::Proposal(txn) => fixed(out, kind::PROPOSAL, txn.zxid, &txn.head(), Some(&txn.body)),
        Packet::Commit(zxid) => bare(out, kind::COMMIT, *zxid),
        Packet::Proposals(txns) => {
            let Some((last, others)) = txns.split_last() else { return Rest::default() };
            out.reserve(txns.iter().map(|txn| HEAD + txn.len() + 4).sum());
            for txn in others {
                put_head(out, kind::PROPOSAL, txn.zxid, wire_length(txn.len()));
                out.extend_from_slice(&txn.head());
                out.extend_from_slice(&txn.body);
                out.put_i32(NULL);
            }
            fixed(out, kind::PROPOSAL, last.zxid, &last.head(), Some(&last.body))
        }
        Packet::Inform(txn) => fixed(out, kind::INFORM, txn.zxid, &txn.head(), Some(&txn.body)),
        Packet::CommitAndActivate { zxid, leader } => {
            fixed(out, kind::COMMIT_AND_ACTIVATE, *zxid, &leader.0.to_be_bytes(), None)
        }
        Packet::InformAndActivate { leader, txn } => {
            let mut data = [0; 8 + Txn::HEADER_BYTES];
            data[..8].copy_from_slice(&leader.0.to_be_bytes());
            data[8..].copy_from_slice(&txn.head());
            fixed(out, kind::INFORM_AND_ACTIVATE, txn.zxid, &data, Some(&txn.body))
        }
        Packet::Request(request) => {
            let mut data = [0; REQUEST_HEAD];
            data[..8].copy_from_slice(&request.id.client.to_be_bytes());
            data[8..12].copy_from_slice(&request.id.cxid.to_be_bytes());
            data[12..].copy_from_slice(&request.op.to_be_bytes());
            Rest {
                identities: request.identities.as_deref(),
                ..fixed(out, kind::REQUEST, Zxid(-1), &data, Some(&request.body))
            }
        }
        Packet::Revalidate(data) => fixed(out, kind::REVALIDATE, Zxid(-1), &[], Some(data)),
        Packet::Sync { tag } => bare(out, kind::SYNC, Zxid(i64::from(*tag))),
        Packet::Lease { zxid, length, sessions } => {
            let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
            fixed(out, kind::LEASE, *zxid, &millis.to_be_bytes(), Some(sessions))
        }
        Packet::MayLead(yes) => bare(out, kind::MAY_LEAD, Zxid(i64::from(*yes))),
        Packet::Transfer { vote, round } => {
            let mut data = [0; 24];
            data[..8].copy_from_slice(&vote.leader.0.to_be_bytes());
            data[8..16].copy_from_slice(&vote.peer_epoch.0.to_be_bytes());
            data[16..].copy_from_slice(&round.0.to_be_bytes());
            fixed(out, kind::TRANSFER, vote.zxid, &data, None)
        }
    }
}

fn learner_info_out(out: &mut BytesMut, kind: i32, info: &LearnerInfo) -> Rest<'static> {
    let zxid = Zxid::start_of(info.accepted_epoch);
    match info.id {
        None => put_head(out, kind, zxid, NULL),
        Some(id) => {
            put_head(out, kind, zxid, 20);
            out.put_i64(id.0);
            out.put_i32(info.protocol);
            out.put_i64(info.config_version);
        }
    }
    Rest::default()
}

/// The bytes of the data, if the packet has any.
fn field(bytes: &[u8], data: Option<Range<usize>>) -> Option<&[u8]> {
    bytes.get(data?)
}

/// The data of a packet that cannot do without.
fn required(packet: &'static str, data: Option<Range<usize>>) -> Result<Range<usize>, DecodeError> {
    data.ok_or(DecodeError::PacketWithoutData(packet))
}

fn first_i32(packet: &'static str, data: Option<&[u8]>) -> Result<i32, DecodeError> {
    let data = data.ok_or(DecodeError::PacketWithoutData(packet))?;
    i32_at(data, 0).ok_or(DecodeError::PacketData { packet, length: data.len(), least: 4 })
}

fn first_i64(packet: &'static str, data: Option<&[u8]>) -> Result<i64, DecodeError> {
    let data = data.ok_or(DecodeError::PacketWithoutData(packet))?;
    i64_at(data, 0).ok_or(DecodeError::PacketData { packet, length: data.len(), least: 8 })
}

/// What a learner says of itself, in any of the lengths that there have been.
fn learner_info(
    packet: &'static str,
    zxid: Zxid,
    data: Option<&[u8]>,
) -> Result<LearnerInfo, DecodeError> {
    let id = match data {
        None => None,
        Some(_) => Some(ServerId(first_i64(packet, data)?)),
    };
    let data = data.unwrap_or_default();
    Ok(LearnerInfo {
        accepted_epoch: zxid.epoch(),
        id,
        protocol: i32_at(data, 8).unwrap_or(1),
        config_version: i64_at(data, 12).unwrap_or(0),
    })
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers from a bounded generator")]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use alloc::{format, vec};

    use super::super::limits::{MAX_DATA, MAX_IDENTITIES};
    use super::*;
    use crate::message::Run;
    use crate::rng::Rng;
    use crate::txn::TxnHeader;

    fn random_packet(rng: &mut Rng) -> Packet {
        let zxid = Zxid(rng.next_u64() as i64);
        let epoch = Epoch(rng.below(1 << 31) as i64);
        let leader = ServerId(rng.next_u64() as i64);
        let info = LearnerInfo {
            accepted_epoch: epoch,
            id: Some(leader),
            protocol: rng.next_u64() as i32,
            config_version: zxid.0,
        };
        let data = Bytes::from(vec![7; rng.below(200) as usize]);
        let header = TxnHeader { client: leader.0, cxid: info.protocol, time: epoch.0, kind: 5 };
        let txn = Txn { zxid, header, body: data.clone() };
        let id = RequestId { client: epoch.0, cxid: info.protocol };
        let identities = (rng.below(3) > 0).then(|| {
            let identity = |n| Identity { scheme: "ip".to_string(), id: format!("{n}") };
            (0..rng.below(4)).map(identity).collect()
        });
        match rng.below(23) {
            0 => Packet::FollowerInfo(info),
            1 => Packet::ObserverInfo(info),
            2 => Packet::LeaderInfo { epoch, protocol: info.protocol },
            3 => Packet::AckEpoch { last: zxid, current_epoch: Some(epoch) },
            4 => Packet::AckEpoch { last: zxid, current_epoch: None },
            5 => Packet::Diff(zxid),
            6 => Packet::Trunc(zxid),
            7 => Packet::Snap { label: zxid, memberships: data },
            8 => Packet::NewLeader { zxid, config: data },
            9 => Packet::UpToDate,
            10 => Packet::Ack(zxid),
            11 => Packet::Ping { zxid, sessions: (rng.below(2) == 0).then_some(data) },
            12 => Packet::Proposal(txn),
            13 => Packet::Commit(zxid),
            14 => Packet::Inform(txn),
            15 => Packet::CommitAndActivate { zxid, leader },
            16 => Packet::InformAndActivate { leader, txn },
            17 => Packet::Request(Request { id, op: 1, body: data, identities }),
            18 => Packet::Revalidate(data),
            19 => Packet::Transfer {
                vote: Vote { leader, zxid, peer_epoch: epoch },
                round: Round(rng.next_u64() as i64),
            },
            20 => {
                let length = Duration::from_millis(rng.below(1 << 62));
                Packet::Lease { zxid, length, sessions: data }
            }
            21 => Packet::MayLead(rng.below(2) == 0),
            _ => Packet::Sync { tag: zxid.0 as i32 },
        }
    }

    fn encoded(packet: &Packet) -> BytesMut {
        let mut out = BytesMut::new();
        encode_packet(packet, &mut out);
        out
    }

    fn raw(kind: i32, length: i32, data: &[u8], tail: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        put_head(&mut out, kind, Zxid(7), length);
        out.extend_from_slice(data);
        out.extend_from_slice(tail);
        out
    }

    const ABSENT: &[u8] = &[0xff; 4];

    #[test]
    fn random_packets_round_trip_with_and_without_their_payload() {
        let mut rng = Rng::new(17);
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let packet = random_packet(&mut rng);
            let bytes = encoded(&packet);
            let mut around = BytesMut::from(&b"earlier"[..]);
            if let Some((place, payload)) = encode_around_payload(&packet, &mut around) {
                let tail = around.split_off(place);
                around.extend_from_slice(&payload);
                around.extend_from_slice(&tail);
            }
            assert_eq!(around[7..], bytes[..], "{packet:?}");

            let mut buf = BytesMut::from(&bytes[..]);
            buf.extend_from_slice(b"later");
            assert_eq!(decode_packet(&mut buf, MAX_DATA), Ok(Some(packet)));
            assert_eq!(buf, b"later"[..]);
        }
    }

    #[test]
    fn no_prefix_of_a_packet_is_a_packet() {
        let mut rng = Rng::new(18);
        for _ in 0..if cfg!(miri) { 10 } else { 300 } {
            let packet = random_packet(&mut rng);
            let bytes = encoded(&packet);
            for length in 0..bytes.len() {
                let mut buf = BytesMut::from(&bytes[..length]);
                assert_eq!(
                    decode_packet(&mut buf, MAX_DATA),
                    Ok(None),
                    "{length} bytes of {packet:?}"
                );
                assert_eq!(buf.len(), length);
            }
        }
    }

    #[test]
    fn lengths_out_of_bounds_are_refused_before_their_bytes_arrive() {
        let most = MAX_DATA as i32;
        for length in [-2, i32::MIN, i32::MAX, most + 1] {
            let error = DecodeError::BufferLength { length, max: MAX_DATA };
            assert!(error.is_fatal());
            assert_eq!(
                decode_packet(&mut raw(kind::PROPOSAL, length, &[], &[]), MAX_DATA),
                Err(error)
            );
            let tail = [1_i32.to_be_bytes(), length.to_be_bytes()].concat();
            assert_eq!(decode_packet(&mut raw(kind::REQUEST, 0, &[], &tail), MAX_DATA), Err(error));
        }
        for count in [-2, i32::MIN, i32::MAX, MAX_IDENTITIES as i32 + 1] {
            let mut buf = raw(kind::REQUEST, 0, &[], &count.to_be_bytes());
            assert_eq!(decode_packet(&mut buf, MAX_DATA), Err(DecodeError::IdentityCount(count)));
        }
        let null = [1_i32.to_be_bytes(), NULL.to_be_bytes()].concat();
        let result = decode_packet(&mut raw(kind::REQUEST, 0, &[], &null), MAX_DATA);
        assert_eq!(result, Err(DecodeError::IdentityNull(0)));
        let long = [1_i32.to_be_bytes(), most.to_be_bytes()].concat();
        let result = decode_packet(&mut raw(kind::REQUEST, 0, &[], &long), MAX_DATA);
        assert_eq!(
            result,
            Err(DecodeError::IdentitiesLength { length: MAX_DATA + 8, max: MAX_DATA })
        );
        assert_eq!(decode_packet(&mut raw(kind::PROPOSAL, most, &[], &[]), MAX_DATA), Ok(None));
    }

    #[test]
    fn the_longest_data_arrive_without_a_copy() {
        assert_eq!(MAX_DATA, Txn::BYTES_MAX);
        let header = TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 };
        let body = vec![1; MAX_DATA - Txn::HEADER_BYTES].into();
        let packet = Packet::Proposal(Txn { zxid: Zxid(1), header, body });
        let mut buf = encoded(&packet);
        let place = buf.as_ptr();
        let decoded = decode_packet(&mut buf, MAX_DATA).unwrap().unwrap();
        assert_eq!(decoded, packet);
        let Packet::Proposal(txn) = decoded else { panic!("another packet") };
        assert_eq!(txn.body.as_ptr(), place.wrapping_add(HEAD + Txn::HEADER_BYTES));
    }

    #[test]
    fn a_transaction_of_3_mib_is_refused_unless_the_limit_is_raised() {
        let header = TxnHeader { client: 1, cxid: 1, time: 1, kind: 5 };
        let txn = |zxid| Txn { zxid: Zxid(zxid), header, body: vec![7; 3 << 20].into() };
        let (packets, most) = ([Packet::Proposal(txn(1)), Packet::Proposal(txn(2))], 4 << 20);
        let mut bytes = encoded(&packets[0]);
        encode_packet(&packets[1], &mut bytes);

        let length = (3 << 20) + Txn::HEADER_BYTES as i32;
        let error = DecodeError::BufferLength { length, max: MAX_DATA };
        assert!(error.to_string().contains("jute.maxbuffer"), "{error}");
        assert_eq!(take_packet(&mut bytes.clone(), MAX_DATA), Err(error));

        let run = Packet::Proposals([txn(1), txn(2)].into_iter().collect::<Vec<_>>().into());
        assert_eq!(take_packet(&mut bytes, most), Ok(Some(run)));
        assert!(bytes.is_empty());
    }

    #[test]
    fn an_unknown_packet_is_skipped_whole() {
        for unknown in [0, 20, -1, i32::MAX] {
            let mut buf = raw(unknown, 3, b"abc", ABSENT);
            encode_packet(&Packet::Sync { tag: 0 }, &mut buf);
            let error = DecodeError::UnknownPacket(unknown);
            assert!(!error.is_fatal());
            assert_eq!(decode_packet(&mut buf, MAX_DATA), Err(error));
            assert_eq!(decode_packet(&mut buf, MAX_DATA), Ok(Some(Packet::Sync { tag: 0 })));
        }
    }

    #[test]
    fn known_packets_that_lack_their_data_are_refused() {
        for (kind, least) in [
            (kind::FOLLOWER_INFO, 8),
            (kind::OBSERVER_INFO, 8),
            (kind::LEADER_INFO, 4),
            (kind::ACK_EPOCH, 4),
            (kind::COMMIT_AND_ACTIVATE, 8),
            (kind::TRANSFER, 24),
            (kind::LEASE, 8),
            (kind::REQUEST, REQUEST_HEAD),
        ] {
            for length in 0..=least {
                let mut buf = raw(kind, wire_length(length), &vec![0; length], ABSENT);
                let result = decode_packet(&mut buf, MAX_DATA);
                if length == least {
                    assert!(
                        matches!(result, Ok(Some(_))),
                        "type {kind}, {length} bytes: {result:?}"
                    );
                } else {
                    let error = result.expect_err("too short");
                    assert!(error.is_fatal(), "type {kind}, {length} bytes: {error}");
                }
            }
        }
        for kind in [
            kind::REQUEST,
            kind::PROPOSAL,
            kind::INFORM,
            kind::REVALIDATE,
            kind::LEADER_INFO,
            kind::ACK_EPOCH,
            kind::COMMIT_AND_ACTIVATE,
            kind::INFORM_AND_ACTIVATE,
            kind::TRANSFER,
            kind::LEASE,
        ] {
            let error =
                decode_packet(&mut raw(kind, NULL, &[], ABSENT), MAX_DATA).expect_err("no data");
            assert!(error.is_fatal() && error.to_string().ends_with("without data"), "{error}");
        }
    }

    #[test]
    fn a_transaction_that_is_cut_short_or_of_another_zxid_is_refused() {
        for (kind, before) in
            [(kind::PROPOSAL, 0), (kind::INFORM, 0), (kind::INFORM_AND_ACTIVATE, 8)]
        {
            for length in 0..before + Txn::HEADER_BYTES {
                let mut buf = raw(kind, wire_length(length), &vec![0; length], ABSENT);
                let error = decode_packet(&mut buf, MAX_DATA).expect_err("too short");
                assert!(error.is_fatal(), "type {kind}, {length} bytes: {error}");
            }
            let length = before + Txn::HEADER_BYTES;
            let mut buf = raw(kind, wire_length(length), &vec![0; length], ABSENT);
            let error = decode_packet(&mut buf, MAX_DATA).expect_err("another zxid");
            assert!(matches!(error, DecodeError::TwoZxids { .. }) && error.is_fatal(), "{error}");
        }
    }

    /// They are ours alone, so no other project keeps them as they are.
    #[test]
    fn what_servers_of_ours_say_to_one_another_stays_as_it_is() {
        let vote = Vote { leader: ServerId(2), zxid: Zxid(0x5_0000_0007), peer_epoch: Epoch(5) };
        let transfer = b"\x71\0\0\x01\0\0\0\x05\0\0\0\x07\0\0\0\x18\
            \0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x09\xff\xff\xff\xff";
        let lease = b"\x71\0\0\x02\0\0\0\x05\0\0\0\0\0\0\0\x08\
            \0\0\0\0\0\0\x17\x70\xff\xff\xff\xff";
        let touched = b"\x71\0\0\x02\0\0\0\x05\0\0\0\0\0\0\0\x0b\
            \0\0\0\0\0\0\x17\x70abc\xff\xff\xff\xff";
        let sync = b"\0\0\0\x07\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\xff\xff\xff\xff";
        let may_lead = b"\x71\0\0\x03\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff";
        let (zxid, length) = (Zxid(0x5_0000_0000), Duration::from_secs(6));
        for (packet, golden) in [
            (Packet::Transfer { vote, round: Round(9) }, &transfer[..]),
            (Packet::Lease { zxid, length, sessions: Bytes::new() }, &lease[..]),
            (Packet::Lease { zxid, length, sessions: Bytes::from_static(b"abc") }, &touched[..]),
            (Packet::Sync { tag: 7 }, &sync[..]),
            (Packet::MayLead(true), &may_lead[..]),
        ] {
            assert_eq!(encoded(&packet), golden, "{packet:?}");
            assert_eq!(decode_packet(&mut BytesMut::from(golden), MAX_DATA), Ok(Some(packet)));
        }
        // No lease is shorter than none.
        let mut buf = raw(kind::LEASE, 8, &(-1_i64).to_be_bytes(), ABSENT);
        let none = Packet::Lease { zxid: Zxid(7), length: Duration::ZERO, sessions: Bytes::new() };
        assert_eq!(decode_packet(&mut buf, MAX_DATA), Ok(Some(none)));
    }

    #[test]
    fn a_run_is_a_packet_for_each_transaction() {
        let run = Run { first: Zxid(0x1_0000_0003), last: Zxid(0x1_0000_0005) };
        for (packet, single) in [
            (Packet::Acks(run), Packet::Ack as fn(Zxid) -> Packet),
            (Packet::Commits(run), Packet::Commit),
        ] {
            let mut singles = BytesMut::new();
            run.zxids().for_each(|zxid| encode_packet(&single(zxid), &mut singles));
            let mut buf = encoded(&packet);
            assert_eq!(buf, singles);
            // Those that have come are taken together, and no others.
            encode_packet(&single(Zxid(0x1_0000_0007)), &mut buf);
            assert_eq!(take_packet(&mut buf, MAX_DATA), Ok(Some(packet)));
            assert_eq!(take_packet(&mut buf, MAX_DATA), Ok(Some(single(Zxid(0x1_0000_0007)))));
            assert!(buf.is_empty());
            let mut first = singles.split_to(20 + 7);
            assert_eq!(take_packet(&mut first, MAX_DATA), Ok(Some(single(run.first))));
            assert_eq!(first.len(), 7);
        }
    }

    #[test]
    fn data_that_nobody_needs_are_dropped() {
        let mut buf = raw(kind::ACK, 3, b"abc", ABSENT);
        assert_eq!(decode_packet(&mut buf, MAX_DATA), Ok(Some(Packet::Ack(Zxid(7)))));
        assert!(buf.is_empty());
        let mut buf = raw(kind::COMMIT, NULL, &[], &0_i32.to_be_bytes());
        assert_eq!(decode_packet(&mut buf, MAX_DATA), Ok(Some(Packet::Commit(Zxid(7)))));
    }

    /// Java writes characters beyond U+FFFF as two surrogates, which are no UTF-8.
    #[test]
    fn an_identity_in_javas_utf_8_does_not_break_the_link() {
        let surrogates = b"\xed\xa0\xbd\xed\xb8\x80";
        let mut tail = [0, 0, 0, 1, 0, 0, 0, 2, b'i', b'p', 0, 0, 0, 6].to_vec();
        tail.extend_from_slice(surrogates);
        let packet =
            decode_packet(&mut raw(kind::REQUEST, 16, &[0; 16], &tail), MAX_DATA).unwrap().unwrap();
        let Packet::Request(Request { identities: Some(identities), .. }) = packet else {
            panic!("{packet:?}")
        };
        assert_eq!(identities[0].scheme, "ip");
        assert!(identities[0].id.chars().all(|c| c == char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut rng = Rng::new(6);
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let mut bytes = vec![0; rng.below(80) as usize];
            bytes.fill_with(|| rng.next_u64().to_be_bytes()[0]);
            if let Some(head) = bytes.first_chunk_mut::<HEAD>() {
                // Plausible numbers, so that what follows is looked at.
                head[..4].copy_from_slice(&[0, 0, 0, rng.below(21) as u8]);
                head[12..].copy_from_slice(&[0, 0, 0, rng.below(40) as u8]);
            }
            drop(decode_packet(&mut BytesMut::from(&bytes[..]), MAX_DATA));
        }
    }
}
