//! Logins by SASL: who is let in as whom, what becomes of those who are not, and what has to be proved first.

use std::sync::Arc;

use bytes::Bytes;
use quorate_application::clients::ClientId;
use quorate_service::sasl::{CLIENTS, Credentials, Dialler, Nonce, Nonces, Password, Turn, Users};
use quorate_service::wire::{Request, Response, op};
use quorate_service::{Options, Sasl};

use crate::clients::{create, exists, get};
use crate::permissions::{acl, with_list};
use crate::stand::{Heard, Part, Stand};

fn users() -> Users {
    let all = [("bob", "bobsecret"), ("ann", "annsecret"), ("root", "rootsecret")];
    all.map(|(user, password)| (user, Password::new(password))).into_iter().collect()
}

fn with_sasl(options: &mut Options, failed_stay: bool) {
    let nonces = Nonces::new([7; 32]);
    let super_users = vec!["root".to_owned()];
    options.sasl = Some(Arc::new(Sasl { users: users(), nonces, super_users, failed_stay }));
}

fn stand(set: impl FnOnce(&mut Options)) -> Stand {
    Stand::with(true, |options| {
        with_sasl(options, false);
        set(options);
    })
}

fn dialler(user: &str, password: &str) -> Dialler {
    let own = Credentials { user: user.into(), password: Password::new(password) };
    Dialler::new(CLIENTS, own, Nonce::recorded("Y25vbmNl"))
}

/// Sends a token, and takes the one that answers it.
fn token(stand: &mut Stand, client: ClientId, token: Bytes) -> Option<Bytes> {
    match stand.call(client, Request::Sasl { token }) {
        Ok(Response::Token(token)) => token,
        other => panic!("{other:?}"),
    }
}

/// Up to the response, which is not sent.
fn response(stand: &mut Stand, client: ClientId, dialler: &mut Dialler) -> Bytes {
    let challenge = token(stand, client, Bytes::new()).unwrap();
    let Ok(Turn::Send(response)) = dialler.step(&challenge) else { panic!() };
    response.into()
}

fn log_in(stand: &mut Stand, client: ClientId, user: &str) {
    let mut dialler = dialler(user, &format!("{user}secret"));
    let response = response(stand, client, &mut dialler);
    let proof = token(stand, client, response).unwrap();
    assert_eq!(dialler.step(&proof), Ok(Turn::Done));
}

fn who(stand: &mut Stand, client: ClientId) -> Vec<(String, String)> {
    match stand.call(client, Request::WhoAmI) {
        Ok(Response::Identities(all)) => all,
        other => panic!("{other:?}"),
    }
}

fn ids(others: &[(&str, &str)]) -> Vec<(String, String)> {
    let all = [&[("ip", "10.0.0.7")], others].concat();
    all.into_iter().map(|(scheme, id)| (scheme.to_owned(), id.to_owned())).collect()
}

/// The reply to a login that is refused: the error, a null token, and the end.
fn refused(err: i32) -> [Heard; 2] {
    [Heard::Reply(5, err, Bytes::from_static(&[0xff; 4])), Heard::Closed]
}

#[test]
fn who_logs_in_is_that_user_for_lists_on_each_kind_of_server() {
    for part in Part::ALL {
        let mut stand = Stand::idle(1, |options| with_sasl(options, false));
        stand.serve_as(part);
        let ((bob, _), (other, _)) = (stand.client(), stand.client());
        let own = with_list(create("/own"), vec![acl(31, "sasl", "bob")]);
        stand.call(other, own).unwrap();
        assert_eq!(stand.call(bob, get("/own", false)), Err(-102));
        log_in(&mut stand, bob, "bob");
        assert_eq!(who(&mut stand, bob), ids(&[("sasl", "bob")]));
        stand.call(bob, get("/own", false)).unwrap();
        stand.call(bob, create("/own/x")).unwrap();
        log_in(&mut stand, other, "ann");
        assert_eq!(stand.call(other, get("/own", false)), Err(-102));
        // `auth` in a list is the user, too.
        stand.call(bob, with_list(create("/auth"), vec![acl(31, "auth", "")])).unwrap();
        assert_eq!(stand.call(other, get("/auth", false)), Err(-102));
        stand.call(bob, get("/auth", false)).unwrap();
    }
}

#[test]
fn a_user_that_an_operator_has_named_may_do_everything() {
    let mut stand = stand(|_| {});
    let ((root, _), (bob, _)) = (stand.client(), stand.client());
    stand.call(bob, with_list(create("/x"), vec![acl(31, "sasl", "bob")])).unwrap();
    log_in(&mut stand, root, "root");
    assert_eq!(who(&mut stand, root), ids(&[("sasl", "root"), ("super", "")]));
    stand.call(root, get("/x", false)).unwrap();
}

/// Also of one that is in the middle of it: what it has to know is what is known when it says it.
#[test]
fn other_logins_count_for_who_logs_in_from_then_on() {
    let mut stand = stand(|_| {});
    let ((bob, _), (ann, _), (later, _)) = (stand.client(), stand.client(), stand.client());
    log_in(&mut stand, bob, "bob");
    let mut dialler = dialler("ann", "annsecret");
    let under_way = response(&mut stand, ann, &mut dialler);
    let mut options = Options::default();
    with_sasl(&mut options, false);
    let mut next = Arc::into_inner(options.sasl.unwrap()).unwrap();
    next.users = [("eve", Password::new("evesecret"))].into_iter().collect();
    stand.service.adopt_logins(Arc::new(next));
    assert_eq!(who(&mut stand, bob), ids(&[("sasl", "bob")]), "who is logged in stays");
    log_in(&mut stand, later, "eve");
    stand.request(ann, &[(5, Request::Sasl { token: under_way })]);
    assert_eq!(stand.heard(ann), refused(-115));
}

#[test]
fn a_wrong_user_or_password_is_refused_alike_and_its_connection_ends_and_not_its_session() {
    for (user, password) in [("bob", "wrong"), ("eve", "bobsecret"), ("eve", "")] {
        let mut stand = stand(|_| {});
        let (client, session) = stand.client();
        let response = response(&mut stand, client, &mut dialler(user, password));
        // What stands behind it is not carried out.
        stand.request(client, &[(5, Request::Sasl { token: response }), (6, create("/behind"))]);
        assert_eq!(stand.heard(client), refused(-115), "{user}");
        let again = stand.connect();
        stand.ask(again, session, 4000);
        stand.settle();
        assert_eq!(stand.answer(again).unwrap().session, session);
        assert_eq!(stand.call(again, exists("/behind", false)), Err(-101));
        assert_eq!(who(&mut stand, again), ids(&[]));
    }
}

#[test]
fn a_login_is_answered_at_once_with_its_own_number_and_no_zxid() {
    let mut stand = stand(|_| {});
    let (client, _) = stand.client();
    let token = Bytes::new();
    stand.request(client, &[(1, create("/first")), (5, Request::Sasl { token })]);
    assert_eq!(stand.headers(client), [(5, 0, 0)], "ahead of a write that waits");
    stand.settle();
    assert_eq!(stand.told(client), ["1 ok"]);
}

#[test]
fn what_was_recorded_of_another_login_is_refused() {
    let mut stand = stand(|_| {});
    let ((bob, _), (thief, _)) = (stand.client(), stand.client());
    let mut dialler = dialler("bob", "bobsecret");
    let recorded = response(&mut stand, bob, &mut dialler);
    assert!(token(&mut stand, bob, recorded.clone()).is_some());
    let challenge = token(&mut stand, thief, Bytes::new()).unwrap();
    assert!(challenge.starts_with(b"realm=\"zk-sasl-md5\",nonce=\""));
    stand.request(thief, &[(5, Request::Sasl { token: recorded })]);
    assert_eq!(stand.heard(thief), refused(-115));
}

#[test]
fn a_connection_logs_in_once() {
    for second in [Bytes::new(), Bytes::from_static(b"x")] {
        let mut stand = stand(|_| {});
        let (client, _) = stand.client();
        log_in(&mut stand, client, "bob");
        stand.request(client, &[(5, Request::Sasl { token: second })]);
        assert_eq!(stand.heard(client), refused(-115));
    }
}

/// ZOOKEEPER-4839: where connections share what a login is at, one is taken for the other.
#[test]
fn two_logins_at_once_are_two_users_and_requests_in_between_are_judged_without() {
    let mut stand = stand(|_| {});
    let ((bob, _), (ann, _)) = (stand.client(), stand.client());
    stand.call(bob, with_list(create("/own"), vec![acl(31, "sasl", "bob")])).unwrap();
    let (mut as_bob, mut as_ann) = (dialler("bob", "bobsecret"), dialler("ann", "annsecret"));
    let by_bob = response(&mut stand, bob, &mut as_bob);
    let by_ann = response(&mut stand, ann, &mut as_ann);
    assert_eq!(stand.call(bob, get("/own", false)), Err(-102), "in the middle of its login");
    let to_ann = token(&mut stand, ann, by_ann).unwrap();
    assert_eq!(who(&mut stand, bob), ids(&[]));
    let to_bob = token(&mut stand, bob, by_bob).unwrap();
    assert_eq!((as_ann.step(&to_ann), as_bob.step(&to_bob)), (Ok(Turn::Done), Ok(Turn::Done)));
    assert_eq!(who(&mut stand, bob), ids(&[("sasl", "bob")]));
    assert_eq!(who(&mut stand, ann), ids(&[("sasl", "ann")]));
    stand.call(bob, get("/own", false)).unwrap();
    assert_eq!(stand.call(ann, get("/own", false)), Err(-102));
}

#[test]
fn who_has_failed_may_stay_where_an_operator_says_so_and_has_no_identity() {
    let mut stand = Stand::with(true, |options| with_sasl(options, true));
    let (client, _) = stand.client();
    let wrong = response(&mut stand, client, &mut dialler("bob", "wrong"));
    assert_eq!(token(&mut stand, client, wrong), None);
    assert_eq!(who(&mut stand, client), ids(&[]));
    stand.call(client, create("/x")).unwrap();
    // Nor is there a second try.
    assert_eq!(token(&mut stand, client, Bytes::new()), None);
    // Where an identity is required, it does not.
    let mut stand = Stand::with(true, |options| {
        with_sasl(options, true);
        options.required_schemes = vec!["sasl".to_owned()];
    });
    let (client, _) = stand.client();
    let wrong = response(&mut stand, client, &mut dialler("bob", "wrong"));
    stand.request(client, &[(5, Request::Sasl { token: wrong })]);
    assert_eq!(stand.heard(client), refused(-124));
}

#[test]
fn where_a_proof_is_required_nothing_goes_without_and_the_session_lives() {
    let requests = [
        get("/", false),
        create("/x"),
        Request::Ping,
        Request::CloseSession,
        Request::WhoAmI,
        Request::Sync { path: None },
    ];
    for request in requests {
        let mut stand = stand(|options| options.required_schemes = vec!["sasl".to_owned()]);
        let (client, session) = stand.client();
        stand.request(client, &[(5, request.clone()), (6, create("/behind"))]);
        let told = [Heard::Reply(5, -124, Bytes::new()), Heard::Closed];
        assert_eq!(stand.heard(client), told, "{request:?}");
        assert!(stand.submitted.is_empty() && stand.tree().session(session).is_some());
        // With a proof it goes.
        let again = stand.connect();
        stand.ask(again, session, 4000);
        stand.settle();
        assert_eq!(stand.answer(again).unwrap().session, session);
        log_in(&mut stand, again, "bob");
        stand.call(again, create("/x")).unwrap();
    }
    // An operation that there is not is none.
    let mut stand = stand(|options| options.required_schemes = vec!["sasl".to_owned()]);
    let (client, _) = stand.client();
    stand.raw(client, 5, op::CHECK, &[]);
    assert_eq!(stand.told(client), ["5 -124", "closed"]);
}

#[test]
fn any_of_the_schemes_that_are_required_is_a_proof() {
    let both = || vec!["sasl".to_owned(), "digest".to_owned()];
    let mut stand = stand(|options| options.required_schemes = both());
    let (client, _) = stand.client();
    let auth = Bytes::from_static(b"bob:secret");
    stand.request(client, &[(-4, Request::Auth { kind: 0, scheme: Some("digest".into()), auth })]);
    assert_eq!(stand.told(client), ["-4 ok"]);
    stand.call(client, create("/x")).unwrap();
}

#[test]
fn settings_with_users_are_printed_without_their_passwords() {
    let mut options = Options::default();
    with_sasl(&mut options, false);
    let printed = format!("{options:?}");
    assert!(printed.contains("ann") && !printed.contains("secret"), "{printed}");
}
