//! Servers that log in to each other: who is let in, who is not, and that nothing else changes.

use std::fs;
use std::time::Duration;

use bytes::BytesMut;
use futures_lite::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::vote::ServerState;
use quorate_sasl::quorum::{Dialling, Failure, Move};
use quorate_sasl::{Credentials, Nonces, Password};

use super::line::{Line, NON_MEMBER, hello, introduction, question};
use super::{Ensemble, Stage};
use crate::zoo_cfg::QuorumSasl;
use crate::{Application, Runtime, Server, ServerConfig};

/// The configuration of a server that logs in with this password, and may want others to.
pub(super) fn with_logins<R: Runtime, A: Application>(
    ensemble: &Ensemble<R, A>,
    id: ServerId,
    password: &str,
    (dials, required): (bool, bool),
) -> ServerConfig {
    let file = ensemble.data_dir(id).with_extension("jaas");
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule required";
    let text = format!(
        "QuorumServer {{ {module} user_zk=\"right\"; }};\n\
         QuorumLearner {{ {module} username=\"zk\" password=\"{password}\"; }};\n"
    );
    fs::write(&file, text).unwrap();
    let (server_section, learner_section) = ("QuorumServer".into(), "QuorumLearner".into());
    let mut config = ensemble.config(id);
    config.sasl = Some(QuorumSasl {
        file,
        server_section,
        learner_section,
        dials,
        required,
        reload: Some(Duration::from_millis(20)),
    });
    config
}

/// How often logins of a server have gone so.
pub(super) fn logins<R: Runtime, A: Application>(
    server: &Server<R, A>,
    plane: &str,
    side: &str,
    outcome: &str,
) -> u64 {
    let of = format!(
        "quorate_sasl_logins_total{{plane=\"{plane}\",side=\"{side}\",outcome=\"{outcome}\"}} "
    );
    let page = server.figures().page(&[]);
    let count = page.lines().find_map(|line| line.strip_prefix(&of)?.parse::<f64>().ok());
    count.map_or(0, |count| format!("{count:.0}").parse().unwrap())
}

pub async fn servers_log_in_to_each_other_and_go_on_without_their_leader<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.electors(3, 1);
    for id in ensemble.ids() {
        ensemble.start_as(with_logins(&ensemble, id, "right", (true, true))).await;
    }
    let (leader, epoch) = ensemble.agreed().await;
    ensemble.kill(leader).await;
    assert!(ensemble.agreed().await.1 > epoch);
    ensemble.start_as(with_logins(&ensemble, leader, "right", (true, true))).await;
    let (next, _) = ensemble.agreed().await;
    for (id, server) in ensemble.running() {
        assert_eq!(logins(server, "quorum", "accept", "without"), 0, "{id}");
        assert_eq!(logins(server, "election", "accept", "without"), 0, "{id}");
    }
    assert!(logins(ensemble.server(next), "quorum", "accept", "ok") >= 2);
}

/// Logs in as servers do.
pub(super) async fn log_in<R: Runtime, S: AsyncRead + AsyncWrite + Unpin>(
    stage: &Stage<R>,
    stream: &mut S,
    received: &mut BytesMut,
    password: &str,
) -> Result<(), Failure> {
    let own = Credentials { user: "zk".into(), password: Password::new(password) };
    let mut dialling = Dialling::new(own, Nonces::new([1; 32]).next());
    loop {
        match dialling.next(received) {
            Move::Over(outcome) => return outcome,
            // One byte at a time. The server may have closed meanwhile.
            Move::Write(bytes) => {
                for byte in bytes {
                    drop(stage.within("write", stream.write_all(&[byte])).await);
                }
                drop(stage.within("write", stream.flush()).await);
            }
            Move::Read => {
                let mut piece = [0; 4096];
                let read = stage.within("a token", stream.read(&mut piece)).await;
                match read.unwrap_or(0) {
                    0 => return Err(dialling.ended()),
                    count => received.extend_from_slice(&piece[..count]),
                }
            }
        }
    }
}

/// The same on a connection of its own.
async fn log_in_on<R: Runtime>(line: &mut Line<'_, R>, password: &str) -> Result<(), Failure> {
    log_in(line.stage, &mut line.stream, &mut line.received, password).await
}

pub async fn who_does_not_log_in_is_refused_at_both_ports_and_nothing_else_happens<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.electors(3, 0);
    for id in ensemble.ids() {
        ensemble.start_as(with_logins(&ensemble, id, "right", (true, true))).await;
    }
    let agreed = ensemble.agreed().await;
    let target = ensemble.server(agreed.0);
    let round = target.status().peer.round;
    for (plane, name) in [(Plane::Election, "election"), (Plane::Quorum, "quorum")] {
        let counted = async |outcome: &'static str| {
            let what = format!("{outcome} at the {name} port");
            stage.until(&what, || logins(target, name, "accept", outcome) > 0).await;
        };
        let introduced = async || {
            let mut line = Line::to(&stage, &ensemble, agreed.0, plane).await;
            if plane == Plane::Election {
                line.write(&introduction(NON_MEMBER)).await;
            }
            line
        };
        let mut line = introduced().await;
        let word = match plane {
            Plane::Election => question(1).freeze(),
            Plane::Quorum => hello(plane, NON_MEMBER),
        };
        line.write(&word).await;
        line.until_closed("no login").await;
        counted("absent").await;
        let mut line = introduced().await;
        assert_eq!(log_in_on(&mut line, "wrong").await, Err(Failure::ByPeer), "{name}");
        line.until_closed("a wrong password").await;
        counted("credentials").await;
        let mut line = introduced().await;
        line.write(&[0x5f, 0x24, 0x35, 0x01, 0x35, 0x01, 0xed, 0xcc, 0, 0, 0, 0, 0x7f]).await;
        line.write(&[0xff; 3]).await;
        line.until_closed("a token that is too long").await;
        counted("malformed").await;
        let mut line = introduced().await;
        assert_eq!(log_in_on(&mut line, "right").await, Ok(()), "{name}");
        line.write(&word).await;
        if plane == Plane::Election {
            let standing = line.answer().await.standing;
            assert_eq!((standing.state, standing.vote.leader), (ServerState::Leading, agreed.0));
        }
    }
    assert_eq!(target.status().peer.round, round);
    assert_eq!(ensemble.agreed().await, agreed);
}

pub async fn an_ensemble_comes_to_logins_one_server_at_a_time<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.start_all().await;
    ensemble.agreed().await;
    for (dials, required) in [(false, false), (true, false), (true, true)] {
        for id in ensemble.ids() {
            ensemble.kill(id).await;
            ensemble.agreed().await;
            ensemble.start_as(with_logins(&ensemble, id, "right", (dials, required))).await;
            ensemble.agreed().await;
        }
    }
    let (leader, _) = ensemble.agreed().await;
    assert_eq!(logins(ensemble.server(leader), "quorum", "accept", "without"), 0);
}

/// As with ZooKeeper: while logins come, a server that fails to is no worse than one that does not try.
pub async fn where_no_login_is_required_who_comes_without_or_fails_is_let_in<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    ensemble.start_as(with_logins(&ensemble, id, "right", (true, false))).await;
    ensemble.agreed().await;
    for (password, outcome) in
        [(None, "without"), (Some("wrong"), "allowed"), (Some("right"), "ok")]
    {
        let mut line = Line::to(&stage, &ensemble, id, Plane::Election).await;
        line.write(&introduction(NON_MEMBER)).await;
        if let Some(password) = password {
            assert_eq!(log_in_on(&mut line, password).await.is_ok(), outcome == "ok");
        }
        line.write(&question(1)).await;
        assert_eq!(line.answer().await.standing.vote.leader, id, "{outcome}");
        assert_eq!(logins(ensemble.server(id), "election", "accept", outcome), 1);
    }
}

pub async fn a_server_with_another_password_stays_out_until_it_has_the_right_one<R: Runtime>(
    stage: Stage<R>,
) {
    let mut ensemble = stage.electors(3, 0);
    let [first, second, third] = ensemble.ids()[..] else { panic!("three") };
    for id in [first, second] {
        ensemble.start_as(with_logins(&ensemble, id, "right", (true, true))).await;
    }
    let agreed = ensemble.agreed().await;
    ensemble.start_as(with_logins(&ensemble, third, "wrong", (true, true))).await;
    let refused = || {
        let of = |side, outcome| logins(ensemble.server(third), "election", side, outcome);
        of("dial", "refused-by-peer") > 0
    };
    stage.until("a refusal", refused).await;
    assert_eq!(ensemble.server(third).leader(), None);
    assert_eq!(ensemble.server(first).leader(), Some(agreed));
    ensemble.kill(third).await;
    ensemble.start_as(with_logins(&ensemble, third, "right", (true, true))).await;
    ensemble.agreed().await;
}

/// What is there when a link comes counts for it; links that are there stay.
pub async fn logins_that_are_replaced_count_for_links_to_come<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    let ids = ensemble.ids();
    for id in &ids {
        let mut config = with_logins(&ensemble, *id, "right", (true, true));
        // One looks only when it is asked to.
        let every = (*id != ids[0]).then_some(Duration::from_millis(20));
        config.sasl.as_mut().unwrap().reload = every;
        ensemble.start_as(config).await;
    }
    let agreed = ensemble.agreed().await;
    let joins = async |id: ServerId, password: &str| {
        let mut line = Line::to(&stage, &ensemble, id, Plane::Election).await;
        line.write(&introduction(NON_MEMBER)).await;
        log_in_on(&mut line, password).await.is_ok()
    };
    let replace = |text: &dyn Fn(&str) -> String| {
        for id in &ids {
            let file = ensemble.data_dir(*id).with_extension("jaas");
            let before = fs::read_to_string(&file).unwrap();
            fs::write(file, text(&before)).unwrap();
        }
    };
    // Half of it is no file of logins, and changes nothing.
    let whole = fs::read_to_string(ensemble.data_dir(ids[0]).with_extension("jaas")).unwrap();
    replace(&|before| before[..before.len() / 2].to_owned());
    ensemble.server(ids[0]).look_at_stores();
    for id in &ids {
        assert!(joins(*id, "right").await, "{id}");
    }
    replace(&|_| whole.replace("right", "next"));
    ensemble.server(ids[0]).look_at_stores();
    for id in &ids {
        let joined = async {
            while !joins(*id, "next").await {
                stage.runtime(0).sleep(Duration::from_millis(5)).await;
            }
        };
        stage.within("another password", joined).await;
        assert!(!joins(*id, "right").await, "{id}");
    }
    assert_eq!(ensemble.agreed().await, agreed, "links stay");
    // And they find each other again with it.
    ensemble.kill(agreed.0).await;
    let (_, epoch) = ensemble.agreed().await;
    assert!(epoch > agreed.1);
}
