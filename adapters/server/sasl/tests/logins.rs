//! Logins, token by token.

use quorate_sasl::{
    Acceptor, CLIENTS, Credentials, Dialler, Nonce, Nonces, Password, Refused, Reply, SERVERS,
    Service, Turn, Users,
};

fn users() -> Users {
    [("bob", Password::new("builder")), ("chris", Password::new("secret"))].into_iter().collect()
}

/// The answer of a server to the client's tokens, of which each may come from the challenge.
fn answer(service: Service, nonce: &str, response: &str) -> Result<Reply, Refused> {
    let mut acceptor = Acceptor::new(service, Nonce::recorded(nonce));
    assert!(matches!(acceptor.step(b"", &users()), Ok(Reply::Challenge(_))));
    acceptor.step(response.as_bytes(), &users())
}

/// The response of a client to a challenge.
fn respond(challenge: &[u8], user: &str, password: &str) -> Result<String, Refused> {
    let credentials = Credentials { user: user.into(), password: Password::new(password) };
    let mut dialler = Dialler::new(CLIENTS, credentials, Nonce::recorded("bm9uY2U="));
    match dialler.step(challenge)? {
        Turn::Send(token) => Ok(String::from_utf8_lossy(&token).into_owned()),
        Turn::Done => panic!("done with a challenge"),
    }
}

const CHALLENGE: &[u8] = b"realm=\"zk-sasl-md5\",nonce=\"n1\",charset=utf-8,algorithm=md5-sess";

#[test]
fn the_example_of_rfc_2831_is_answered_as_it_says() {
    // Its section 4: IMAP, with no authzid and another order.
    let service = Service { protocol: "imap", name: "elwood.innosoft.com" };
    let response = "charset=utf-8,username=\"chris\",realm=\"elwood.innosoft.com\",\
        nonce=\"OA6MG9tEQGm2hh\",nc=00000001,cnonce=\"OA6MHXh6VqTrRk\",\
        digest-uri=\"imap/elwood.innosoft.com\",\
        response=d388dad90d4bbd760a152321f2143af7,qop=auth";
    let token = b"rspauth=ea40f60335c427b5527b84dbabcdfffd".to_vec();
    let done = Reply::Done { user: "chris".into(), token };
    assert_eq!(answer(service, "OA6MG9tEQGm2hh", response), Ok(done));
    // Large letters, blanks, an element that is empty, a quality that is not said.
    let odd = response
        .replace("nonce=", " NONCE = ")
        .replace(",qop=auth", ",, ")
        .replace("CNONCE", "cnonce")
        .replace("c NONCE", "cnonce");
    assert!(answer(service, "OA6MG9tEQGm2hh", &odd).is_ok(), "{odd}");
}

#[test]
fn a_refusal_does_not_tell_the_user_from_the_password() {
    let right = respond(CHALLENGE, "bob", "builder").unwrap();
    assert!(matches!(answer(CLIENTS, "n1", &right), Ok(Reply::Done { user, .. }) if user == "bob"));
    for (user, password) in [("bob", "wrong"), ("eve", "builder"), ("eve", ""), ("", "")] {
        let response = respond(CHALLENGE, user, password).unwrap();
        let refused = answer(CLIENTS, "n1", &response);
        assert_eq!(refused, Err(Refused::Credentials), "{user} {password}");
    }
}

#[test]
fn a_login_is_good_once_and_for_its_own_challenge_alone() {
    let response = respond(CHALLENGE, "bob", "builder").unwrap();
    assert_eq!(answer(CLIENTS, "n2", &response), Err(Refused::Nonce), "recorded");
    assert_eq!(answer(SERVERS, "n1", &response), Err(Refused::Service));
    let mut acceptor = Acceptor::new(CLIENTS, Nonce::recorded("n1"));
    assert_eq!(acceptor.step(response.as_bytes(), &users()), Err(Refused::OutOfTurn));
    let mut acceptor = Acceptor::new(CLIENTS, Nonce::recorded("n1"));
    acceptor.step(b"", &users()).unwrap();
    acceptor.step(response.as_bytes(), &users()).unwrap();
    for again in [&b""[..], response.as_bytes()] {
        assert_eq!(acceptor.step(again, &users()), Err(Refused::OutOfTurn));
    }
    // One that has failed is over, too.
    let mut acceptor = Acceptor::new(CLIENTS, Nonce::recorded("n1"));
    acceptor.step(b"", &users()).unwrap();
    assert!(acceptor.step(b"x", &users()).is_err());
    assert_eq!(acceptor.step(response.as_bytes(), &users()), Err(Refused::OutOfTurn));
}

#[test]
fn two_logins_at_once_do_not_know_of_each_other() {
    let nonces = Nonces::new([9; 32]);
    let mut logins: Vec<_> = ["bob", "chris"]
        .map(|user| {
            let password = if user == "bob" { "builder" } else { "secret" };
            let own = Credentials { user: user.into(), password: Password::new(password) };
            let dialler = Dialler::new(CLIENTS, own, nonces.next());
            (user, Acceptor::new(CLIENTS, nonces.next()), dialler, Vec::new())
        })
        .into();
    for (_, acceptor, dialler, token) in &mut logins {
        let Ok(Reply::Challenge(challenge)) = acceptor.step(b"", &users()) else { panic!() };
        let Ok(Turn::Send(response)) = dialler.step(&challenge) else { panic!() };
        *token = response;
    }
    for (name, acceptor, dialler, token) in logins.iter_mut().rev() {
        let Ok(Reply::Done { user, token }) = acceptor.step(token, &users()) else { panic!() };
        assert_eq!((&*user, dialler.step(&token)), (*name, Ok(Turn::Done)));
    }
}

#[test]
fn a_response_that_is_not_as_it_should_be_is_refused() {
    let right = respond(CHALLENGE, "bob", "builder").unwrap();
    let is_malformed = |refused| matches!(refused, Err(Refused::Malformed(_)));
    for (from, to) in [
        ("username=\"bob\",", ""),
        ("realm=", "realm=\"zk-sasl-md5\",realm="),
        ("nc=00000001,", ""),
        ("response=", "response"),
        ("\"zk-sasl-md5\"", "\"zk-sasl-md5"),
        ("\"zk-sasl-md5\",", "\"zk-sasl-md5\" "),
        ("cnonce=\"bm9uY2U=\"", "cnonce=\"\""),
        ("maxbuf=65536", "maxbuf=65536,=1"),
        ("maxbuf=65536", "maxbuf="),
        ("\"bob\"", "\"b\\"),
    ] {
        let response = right.replace(from, to);
        assert_ne!(response, right, "{from}");
        assert!(is_malformed(answer(CLIENTS, "n1", &response)), "{response}");
    }
    for (from, to, refused) in [
        ("nc=00000001", "nc=00000002", Refused::Unspoken("the count of the nonce")),
        ("qop=auth", "qop=auth-int", Refused::Unspoken("the quality of protection")),
        ("utf-8", "utf-16", Refused::Unspoken("the character set")),
        ("authzid=\"bob\"", "authzid=\"chris\"", Refused::Authorization),
        ("realm=\"zk-sasl-md5\"", "realm=\"elsewhere\"", Refused::Service),
        ("zookeeper/zk", "zookeeper/kz", Refused::Service),
    ] {
        let response = right.replace(from, to);
        assert_eq!(answer(CLIENTS, "n1", &response), Err(refused), "{response}");
    }
    let long = format!("{right},x=\"{}\"", "x".repeat(4096));
    let length = long.len();
    assert_eq!(answer(CLIENTS, "n1", &long), Err(Refused::Length { length, most: 4096 }));
    let many = format!("{right}{}", ",x=1".repeat(32));
    assert!(is_malformed(answer(CLIENTS, "n1", &many)));
}

#[test]
fn a_challenge_that_is_not_as_it_should_be_is_refused() {
    let unspoken = |what| Err(Refused::Unspoken(what));
    let text = std::str::from_utf8(CHALLENGE).unwrap();
    let challenged = |from: &str, to: &str| respond(text.replace(from, to).as_bytes(), "bob", "x");
    assert_eq!(challenged("md5-sess", "md5"), unspoken("the algorithm"));
    assert_eq!(
        challenged("nonce", "qop=\"auth-int,auth-conf\",nonce"),
        unspoken("the quality of protection")
    );
    assert!(challenged("nonce", "qop=\"auth-conf, auth\",nonce").is_ok());
    for (from, to) in [("nonce=\"n1\",", ""), ("\"n1\"", "\"\""), (",algorithm=md5-sess", "")] {
        assert!(matches!(challenged(from, to), Err(Refused::Malformed(_))), "{to}");
    }
    // The first of several realms, and none, which is the empty one.
    let first = challenged("nonce", "realm=\"other\",nonce").unwrap();
    assert!(first.contains("realm=\"zk-sasl-md5\""), "{first}");
    assert!(challenged("realm=\"zk-sasl-md5\",", "").unwrap().contains("realm=\"\""));
}

#[test]
fn names_and_passwords_of_every_script_log_in() {
    let all = [("bölt", "ü\"\\:,="), ("łódź", "密码"), ("a b", " ")];
    let users: Users =
        all.map(|(user, password)| (user, Password::new(password))).into_iter().collect();
    for utf8 in [true, false] {
        for (user, password) in all {
            let mut acceptor = Acceptor::new(CLIENTS, Nonce::recorded("n1"));
            acceptor.step(b"", &users).unwrap();
            let text = std::str::from_utf8(CHALLENGE).unwrap();
            let challenge = if utf8 { text.into() } else { text.replace("charset=utf-8,", "") };
            let own = Credentials { user: user.into(), password: Password::new(password) };
            let mut dialler = Dialler::new(CLIENTS, own, Nonce::recorded("c1"));
            let response = match dialler.step(challenge.as_bytes()) {
                Ok(Turn::Send(response)) => response,
                refused => {
                    assert!(!utf8 && user == "łódź", "{refused:?}");
                    continue;
                }
            };
            let done = acceptor.step(&response, &users).unwrap();
            assert!(matches!(done, Reply::Done { user: known, .. } if known == user));
        }
    }
}

#[test]
fn nonces_do_not_come_again_and_hang_on_the_seed() {
    let (one, other) = (Nonces::new([1; 32]), Nonces::new([2; 32]));
    let mut seen: Vec<_> = (0..100).flat_map(|_| [one.next(), other.next()]).collect();
    assert_eq!(seen[0], Nonces::new([1; 32]).next());
    seen.sort_by_key(|nonce| format!("{nonce:?}"));
    seen.dedup();
    assert_eq!(seen.len(), 200);
    assert!(!format!("{one:?}").contains("seed"));
}

#[test]
fn no_password_is_shown() {
    let own = Credentials { user: "bob".into(), password: Password::new("builder") };
    let shown = format!(
        "{own:?} {:?} {:?}",
        users(),
        Dialler::new(CLIENTS, own.clone(), Nonce::recorded("n"))
    );
    assert!(shown.contains("bob") && !shown.contains("builder") && !shown.contains("secret"));
}
