//! Logins between servers, packet by packet, where one side does not do as it should.

use bytes::{Bytes, BytesMut};
use quorate_sasl::quorum::{Accepting, Admitted, Dialling, Failure, Move};
use quorate_sasl::{
    Credentials, MAGIC, Nonces, Packet, PacketError, Password, Refused, Status, TOKEN_BYTES_MAX,
    Users,
};

fn users() -> Users {
    [("zk", Password::new("right"))].into_iter().collect()
}

fn own(password: &str) -> Credentials {
    Credentials { user: "zk".into(), password: Password::new(password) }
}

/// Both sides until both are done, or one has closed and the other noticed.
fn run(
    mut accepting: Accepting,
    mut dialling: Dialling,
) -> (Result<Admitted, Failure>, Result<(), Failure>) {
    let (mut there, mut here) = (BytesMut::new(), BytesMut::new());
    let (mut admitted, mut connected) = (None, None);
    for _ in 0..20 {
        if connected.is_none() {
            match dialling.next(&mut here) {
                Move::Read if admitted.is_some() => connected = Some(Err(dialling.ended())),
                Move::Read => {}
                Move::Write(bytes) => there.extend_from_slice(&bytes),
                Move::Over(outcome) => connected = Some(outcome),
            }
        }
        if admitted.is_none() {
            match accepting.next(&mut there, &users()) {
                Move::Read if connected.is_some() => admitted = Some(accepting.ended()),
                Move::Read => {}
                Move::Write(bytes) => here.extend_from_slice(&bytes),
                Move::Over(outcome) => admitted = Some(outcome),
            }
        }
    }
    (admitted.unwrap(), connected.unwrap())
}

#[test]
fn the_right_password_is_let_in_and_a_wrong_one_only_where_none_is_required() {
    let nonces = Nonces::new([1; 32]);
    let both = |required, password| {
        let dialling = Dialling::new(own(password), nonces.next());
        run(Accepting::new(nonces.next(), required), dialling)
    };
    for required in [true, false] {
        assert_eq!(both(required, "right"), (Ok(Admitted::As("zk".into())), Ok(())));
    }
    let wrong = Failure::Refused(Refused::Credentials);
    assert_eq!(both(true, "wrong"), (Err(wrong.clone()), Err(Failure::ByPeer)));
    assert_eq!(both(false, "wrong"), (Ok(Admitted::Despite(wrong)), Err(Failure::ByPeer)));
}

#[test]
fn a_peer_without_sasl_loses_no_byte_and_is_let_in_where_none_is_required() {
    let nonces = Nonces::new([2; 32]);
    let said = b"\0\0\0\x0b\0\0\0\0\0\0\0\x14";
    for (required, admitted) in [(false, Ok(Admitted::Without)), (true, Err(Failure::Absent))] {
        let mut accepting = Accepting::new(nonces.next(), required);
        let mut received = BytesMut::new();
        assert_eq!(accepting.next(&mut received, &users()), Move::Read);
        assert_eq!(accepting.ended(), admitted, "it closes without a word");
        received.extend_from_slice(&said[..1]);
        assert_eq!(accepting.next(&mut received, &users()), Move::Over(admitted));
        assert_eq!(received, said[..1]);
    }
    // As far as it goes it may be a login.
    let mut accepting = Accepting::new(nonces.next(), false);
    let mut received = BytesMut::from(&MAGIC.to_be_bytes()[..7]);
    assert_eq!(accepting.next(&mut received, &users()), Move::Read);
    received.extend_from_slice(&[0]);
    assert_eq!(accepting.next(&mut received, &users()), Move::Over(Ok(Admitted::Without)));
    assert_eq!(received.len(), 8);
}

#[test]
fn a_dialler_says_that_the_peer_does_not_speak_sasl() {
    let nonces = Nonces::new([3; 32]);
    let dialling = || Dialling::new(own("right"), nonces.next());
    let mut one = dialling();
    let mut received = BytesMut::new();
    assert!(matches!(one.next(&mut received), Move::Write(_)));
    assert_eq!(one.next(&mut received), Move::Read);
    assert_eq!(one.ended(), Failure::Unanswered);
    received.extend_from_slice(b"\0\0\0\x28");
    assert_eq!(one.next(&mut received), Move::Over(Err(Failure::Absent)));
    assert_eq!((Failure::Absent.word(), Failure::Unanswered.word()), ("absent", "absent"));
}

#[test]
fn success_without_a_proof_is_none() {
    let nonces = Nonces::new([4; 32]);
    for token in [&b""[..], b"rspauth=00000000000000000000000000000000", b"realm=\"a\",nonce=\"b\""]
    {
        for challenged in [false, true] {
            let mut dialling = Dialling::new(own("right"), nonces.next());
            let mut received = BytesMut::new();
            assert!(matches!(dialling.next(&mut received), Move::Write(_)));
            if challenged {
                let challenge = b"realm=\"r\",nonce=\"n\",algorithm=md5-sess";
                put(&mut received, Status::InProgress, challenge);
                assert!(matches!(dialling.next(&mut received), Move::Write(_)));
            }
            put(&mut received, Status::Success, token);
            let over = dialling.next(&mut received);
            assert_eq!(over, Move::Over(Err(Refused::Unproved.into())), "{challenged}");
        }
    }
}

#[test]
fn what_is_no_packet_is_refused_as_soon_as_it_can_be_told() {
    let header = |status: i32, length: i32| {
        let mut bytes = MAGIC.to_be_bytes().to_vec();
        bytes.extend_from_slice(&status.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        BytesMut::from(&bytes[..])
    };
    let most = i32::try_from(TOKEN_BYTES_MAX).unwrap();
    for (mut bytes, error) in [
        (header(2, 0), PacketError::Status(2)),
        (header(0, -2), PacketError::Length(-2)),
        (header(0, most + 1), PacketError::Length(most + 1)),
        (header(0, i32::MAX), PacketError::Length(i32::MAX)),
        (BytesMut::from(&b"\x5e"[..]), PacketError::Magic),
    ] {
        let before = bytes.clone();
        assert_eq!(Packet::take(&mut bytes), Err(error));
        assert_eq!(bytes, before);
    }
    assert_eq!(Packet::take(&mut header(0, most)), Ok(None));
    let null = Packet { status: Status::InProgress, token: Bytes::new() };
    assert_eq!(Packet::take(&mut header(0, -1)), Ok(Some(null)));
}

fn put(received: &mut BytesMut, status: Status, token: &[u8]) {
    let token = Bytes::copy_from_slice(token);
    received.extend_from_slice(&Packet { status, token }.encode());
}

#[test]
fn a_login_has_no_more_rounds_than_it_needs() {
    let nonces = Nonces::new([5; 32]);
    let mut accepting = Accepting::new(nonces.next(), true);
    let mut received = BytesMut::new();
    for token in ["", ""] {
        put(&mut received, Status::InProgress, token.as_bytes());
        assert!(matches!(accepting.next(&mut received, &users()), Move::Write(_)));
    }
    let over = accepting.next(&mut received, &users());
    assert!(matches!(over, Move::Over(Err(Failure::Refused(Refused::Malformed(_))))), "{over:?}");
}
