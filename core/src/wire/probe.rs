//! The probe: a frame on the election port that is shorter than any notification and any message.
//!
//! | offset | field |
//! |---|---|
//! | 0 | `qrp` |
//! | 3 | `u8` 1: the form. Later ones begin with the same fields and may append |
//! | 4 | `u8` bit 0: the sender hears the receiver |
//!
//! In front of it stands its length, as `i32`. It is sent only to those that have said that they know it. Others
//! would pass over the frame: ZooKeeper does so with whatever is shorter than a notification
//! (`FastLeaderElection.WorkerReceiver`), and so did servers of ours from before there were probes.

use bytes::{Buf, BufMut, BytesMut};

use super::election::{FRAME_HEAD, whole_frame};
use super::primitive::wire_length;
use crate::message::Probe;

/// How a probe begins, before its form.
const PROBE: [u8; 3] = *b"qrp";
/// The form in which we send one.
const PROBE_FORM: u8 = 1;
/// A probe without the length of its frame.
const LENGTH: usize = 5;
/// The longest that a later form may be: the shortest notification has 28 bytes.
const LENGTH_MAX: usize = 27;

/// Appends a probe with its frame to `out`.
pub fn encode_probe(probe: &Probe, out: &mut BytesMut) {
    out.put_i32(wire_length(LENGTH));
    out.put_slice(&PROBE);
    out.put_u8(PROBE_FORM);
    out.put_u8(u8::from(probe.hears_you));
}

/// Takes a frame off the front of `buf` if it is there as a whole and a probe is in it. Whatever else is there stays
/// where it is, for [`take_notification`](super::take_notification) or [`take_generation`](super::take_generation).
#[inline]
pub fn take_probe(buf: &mut BytesMut) -> Option<Probe> {
    let length = whole_frame(buf).ok().flatten()?;
    if length > LENGTH_MAX {
        return None;
    }
    let payload = buf.get(FRAME_HEAD..FRAME_HEAD + length)?;
    let [a, b, c, form, bits] = payload.first_chunk::<LENGTH>()?;
    if [*a, *b, *c] != PROBE || *form < PROBE_FORM {
        return None;
    }
    let probe = Probe { hears_you: bits & 1 != 0 };
    buf.advance(FRAME_HEAD + length);
    Some(probe)
}

#[cfg(test)]
mod tests {
    use super::super::election::take_notification;
    use super::super::error::DecodeError;
    use super::super::generation::take_generation;
    use super::*;

    #[test]
    fn the_layout_and_what_comes_behind_it() {
        for hears_you in [false, true] {
            let mut out = BytesMut::new();
            encode_probe(&Probe { hears_you }, &mut out);
            assert_eq!(out[..], [&b"\0\0\0\x05qrp\x01"[..], &[u8::from(hears_you)]].concat());
            out.put_slice(b"next");
            assert_eq!(take_probe(&mut out), Some(Probe { hears_you }));
            assert_eq!(out[..], *b"next");
        }
        let mut later = BytesMut::from(&b"\0\0\0\x07qrp\x02\xff++"[..]);
        assert_eq!(take_probe(&mut later), Some(Probe { hears_you: true }));
        assert!(later.is_empty());
    }

    #[test]
    fn what_is_no_probe_or_not_all_there_stays() {
        let whole = b"\0\0\0\x05qrp\x01\x01";
        let others: [&[u8]; 5] = [
            b"\0\0\0\x05qrq\x01\x01",
            b"\0\0\0\x05qrp\0\x01",
            b"\0\0\0\x04qrp\x01",
            b"\0\0\0\x00",
            &[&b"\0\0\0\x1cqrp\x01\x01"[..], &[0; 23]].concat(),
        ];
        for other in (0..whole.len()).map(|end| &whole[..end]).chain(others) {
            let mut buf = BytesMut::from(other);
            assert_eq!(take_probe(&mut buf), None, "{other:?}");
            assert_eq!(buf[..], *other);
        }
    }

    /// Servers of ours from before there were probes read on behind one.
    #[test]
    fn to_those_that_do_not_know_it_it_is_a_frame_to_pass_over() {
        let mut bytes = BytesMut::new();
        encode_probe(&Probe { hears_you: true }, &mut bytes);
        let refused = take_notification(&mut bytes.clone()).expect_err("no notification");
        assert_eq!(refused, DecodeError::NotificationLength(LENGTH));
        assert!(!refused.is_fatal());
        let refused = take_generation(&mut bytes).expect_err("no message");
        assert_eq!(refused, DecodeError::GenerationLength(LENGTH));
        assert!(!refused.is_fatal() && bytes.is_empty());
    }
}
