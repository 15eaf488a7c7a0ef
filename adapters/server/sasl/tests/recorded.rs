//! What two ZooKeeper servers have said to each other, once more: each side is played by ours, byte for byte.

use bytes::{Bytes, BytesMut};
use quorate_sasl::quorum::{Accepting, Admitted, Dialling, Move};
use quorate_sasl::{Credentials, Nonce, Packet, Password, Users};

const RECORDED: &str = include_str!("fixtures/between_servers.txt");

/// The packets of a plane, with who has sent them.
fn packets(plane: &str) -> Vec<(&'static str, Bytes)> {
    let lines = RECORDED.lines().filter(|line| line.starts_with(plane));
    let packet = |line: &'static str| {
        let mut words = line.split(' ').skip(1);
        let (from, hex) = (words.next().unwrap(), words.next().unwrap());
        let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (from, (0..hex.len()).step_by(2).map(digit).collect())
    };
    lines.map(packet).collect()
}

/// The nonce that follows these words in a packet.
fn nonce(packet: &Bytes, words: &str) -> Nonce {
    let text = String::from_utf8_lossy(packet).into_owned();
    let (_, text) = text.split_once(words).unwrap();
    Nonce::recorded(text.split('"').next().unwrap())
}

fn credentials() -> Credentials {
    Credentials { user: "zkq".into(), password: Password::new("s3cret-pw") }
}

#[test]
fn the_acceptor_says_what_java_has_said() {
    for plane in ["election", "quorum"] {
        let packets = packets(plane);
        let users: Users = [("zkq", Password::new("s3cret-pw"))].into_iter().collect();
        let mut accepting = Accepting::new(nonce(&packets[1].1, "nonce=\""), true);
        let mut received = BytesMut::new();
        for (from, packet) in &packets {
            if *from == "dialler" {
                // In two pieces.
                received.extend_from_slice(&packet[..3]);
                assert_eq!(accepting.next(&mut received, &users), Move::Read);
                received.extend_from_slice(&packet[3..]);
            } else {
                let said = accepting.next(&mut received, &users);
                assert_eq!(said, Move::Write(packet.clone()));
            }
        }
        let over = Move::Over(Ok(Admitted::As("zkq".into())));
        assert_eq!(accepting.next(&mut received, &users), over);
        assert!(received.is_empty());
    }
}

#[test]
fn the_dialler_says_what_java_has_said() {
    for plane in ["election", "quorum"] {
        let packets = packets(plane);
        let mut dialling = Dialling::new(credentials(), nonce(&packets[2].1, "cnonce=\""));
        let mut received = BytesMut::new();
        for (from, packet) in &packets {
            if *from == "dialler" {
                assert_eq!(dialling.next(&mut received), Move::Write(packet.clone()));
            } else {
                assert_eq!(dialling.next(&mut received), Move::Read);
                received.extend_from_slice(packet);
            }
        }
        received.extend_from_slice(b"what follows");
        assert_eq!(dialling.next(&mut received), Move::Over(Ok(())));
        assert_eq!(&received[..], b"what follows");
    }
}

#[test]
fn the_packets_are_read_and_written_as_they_were() {
    for plane in ["election", "quorum"] {
        for (_, bytes) in packets(plane) {
            let mut received = BytesMut::from(&bytes[..]);
            let packet = Packet::take(&mut received).unwrap().unwrap();
            assert_eq!((packet.encode(), received.is_empty()), (bytes, true));
        }
    }
}
