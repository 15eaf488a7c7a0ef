//! Arbitrary bytes as tokens, and as packets of a login between servers: who is let in has answered the challenge with the
//! password; what is no login is left where it is; and it does not matter in which pieces the bytes come.

use bytes::BytesMut;
use quorate_sasl::quorum::{Accepting, Admitted, Dialling, Move};
use quorate_sasl::{
    Acceptor, CLIENTS, Credentials, Dialler, Nonce, Password, Refused, Reply, Turn, Users,
};

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    as_response(data);
    as_challenge(data);
    as_packets(data);
}

fn users(password: &str) -> Users {
    [("bob", Password::new(password))].into_iter().collect()
}

fn answered(nonce: &str, response: &[u8], users: &Users) -> Result<Reply, Refused> {
    let mut acceptor = Acceptor::new(CLIENTS, Nonce::recorded(nonce));
    let challenge = acceptor.step(b"", users);
    assert!(matches!(challenge, Ok(Reply::Challenge(_))));
    let answer = acceptor.step(response, users);
    assert_eq!(acceptor.step(response, users), Err(Refused::OutOfTurn));
    answer
}

fn as_response(data: &[u8]) {
    let Ok(done) = answered("n1", data, &users("builder")) else { return };
    let Reply::Done { user, .. } = done else { panic!("a second challenge") };
    assert_eq!(user, "bob");
    assert_eq!(answered("n2", data, &users("builder")), Err(Refused::Nonce));
    assert_eq!(answered("n1", data, &users("other")), Err(Refused::Credentials));
}

fn own() -> Credentials {
    Credentials { user: "bob".into(), password: Password::new("builder") }
}

fn as_challenge(data: &[u8]) {
    let mut dialler = Dialler::new(CLIENTS, own(), Nonce::recorded("c1"));
    let Ok(turn) = dialler.step(data) else { return };
    let Turn::Send(response) = turn else { panic!("logged in by a challenge") };
    // Its realm and nonce may be quoted all through.
    assert!(response.len() <= data.len() * 4 + 400);
    assert_eq!(dialler.step(data), Err(Refused::Unproved));
}

fn as_packets(data: &[u8]) {
    for required in [false, true] {
        let run = |pieces: usize| {
            let mut accepting = Accepting::new(Nonce::recorded("n1"), required);
            let users = users("builder");
            let next = |received: &mut BytesMut| accepting.next(received, &users);
            let (mut said, rest) = exchanged(data, pieces, next);
            if matches!(said.last(), None | Some(Move::Write(_) | Move::Read)) {
                said.push(Move::Over(accepting.ended()));
            }
            (said, rest)
        };
        let (said, rest) = run(data.len().max(1));
        if let Some(Move::Over(Ok(Admitted::Without))) = said.last() {
            assert!(!required && rest == data, "what is no login is left");
        }
        assert_eq!(run(1).0, said);
    }
    let run = |pieces: usize| {
        let mut dialling = Dialling::new(own(), Nonce::recorded("c1"));
        exchanged(data, pieces, |received| dialling.next(received)).0
    };
    let said = run(data.len().max(1));
    assert!(!matches!(said.last(), Some(Move::Over(Ok(())))), "the proof hangs on our nonce");
    assert_eq!(run(1), said);
}

/// What a side does, but for reading, when it is given these bytes in pieces; and what it leaves.
fn exchanged<T>(
    data: &[u8],
    pieces: usize,
    mut next: impl FnMut(&mut BytesMut) -> Move<T>,
) -> (Vec<Move<T>>, BytesMut) {
    let (mut said, mut received) = (Vec::new(), BytesMut::new());
    let mut pieces = data.chunks(pieces);
    loop {
        match next(&mut received) {
            Move::Read => match pieces.next() {
                Some(piece) => received.extend_from_slice(piece),
                None => return (said, received),
            },
            over @ Move::Over(_) => {
                said.push(over);
                pieces.for_each(|piece| received.extend_from_slice(piece));
                return (said, received);
            }
            write @ Move::Write(_) => said.push(write),
        }
        assert!(said.len() < 5, "a login has few rounds");
    }
}
