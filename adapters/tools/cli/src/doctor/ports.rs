//! Election ports, asked as a stranger does, client ports, asked with four-letter words, and admin servers: all members at
//! once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use quorate_doctor::{
    ConfigFile, Facts, Heard, Looks, Member, Port, Silence, Words, client_ports, is_public,
};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::Role;
use tokio::net::TcpStream;
use tokio::task::JoinError;
use tokio::time::timeout;

use super::http::{self, Admin, silence_of};
use super::stores::Handshake;
use crate::peer_tls::PeerTls;
use crate::probe::{self, AskError, Asked};
use crate::word;

/// A member and where its ports are.
#[derive(Clone, Debug)]
pub(super) struct Target {
    id: ServerId,
    role: Role,
    election: Option<HostPort>,
    quorum: Option<HostPort>,
    client: Option<HostPort>,
    admin: Option<Admin>,
}

/// The members that the files name, and those that running servers do.
pub(super) fn targets(facts: &Facts, admins: &BTreeMap<ServerId, Admin>) -> Vec<Target> {
    let mut targets = BTreeMap::<ServerId, Target>::new();
    let mut clients: BTreeMap<_, _> = client_ports(&facts.files).into_iter().collect();
    let alone = |file: &ConfigFile| file.cfg().is_some_and(|cfg| cfg.alone);
    for file in facts.files.iter().filter(|file| alone(file)) {
        let Some(cfg) = file.cfg() else { continue };
        let (id, role) = (cfg.my_id, Role::Participant);
        let target = Target { id, role, election: None, quorum: None, client: None, admin: None };
        targets.insert(id, target);
    }
    let files = facts.files.iter().filter(|file| !alone(file));
    let files = files.filter_map(|file| file.cfg().map(|cfg| &cfg.membership));
    for member in files.chain(facts.membership()).flat_map(|membership| membership.members()) {
        targets.entry(member.id).or_insert_with(|| Target {
            id: member.id,
            role: member.role,
            election: Some(member.election_address().clone()),
            quorum: Some(member.quorum_address().clone()),
            client: None,
            admin: None,
        });
        if let Some(client) = &member.client {
            let mut at = client.clone();
            if at.is_wildcard() {
                at.host.clone_from(&member.quorum_address().host);
            }
            clients.entry(member.id).or_insert(at);
        }
    }
    let guess = guessed(facts);
    for target in targets.values_mut() {
        let host = target.election.as_ref().map(|at| at.host.clone());
        let guessed = host.zip(guess).map(|(host, port)| HostPort { host, port });
        target.client = clients.remove(&target.id).or(guessed).filter(|at| at.port != 0);
        let said = admins.get(&target.id).cloned();
        target.admin = said.or_else(|| admin_of(facts, target));
    }
    targets.into_values().collect()
}

/// The admin server that a member's own file names. One on loopback is for who is on its machine.
fn admin_of(facts: &Facts, target: &Target) -> Option<Admin> {
    let file = facts.files.iter().find(|file| file.id == Some(target.id))?;
    let settings = file.cfg()?.http.admin.as_ref()?;
    let mut at = settings.address.clone();
    let host = target.election.as_ref().map_or("127.0.0.1", |election| &election.host);
    if at.is_wildcard() {
        host.clone_into(&mut at.host);
    }
    let is_near = |host: &str| host == "localhost" || is_loopback(host);
    let reached = !is_near(&at.host) || is_near(host) || file.is_at_home;
    #[cfg(feature = "tls")]
    let secure = settings.tls.as_ref().is_some_and(|tls| !tls.accepts_plain);
    #[cfg(not(feature = "tls"))]
    let secure = false;
    reached.then(|| Admin { at, commands: settings.command_url.clone(), secure })
}

fn is_loopback(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The client port of members whose own files are not here: most likely that of the one that is, if each has a host of
/// its own.
fn guessed(facts: &Facts) -> Option<u16> {
    let file = facts.files.iter().find_map(|file| file.cfg().filter(|cfg| !cfg.alone))?;
    let port = file.client_address.as_ref()?.port;
    let mut hosts: Vec<_> =
        file.membership.members().iter().map(|member| &member.election_address().host).collect();
    let members = hosts.len();
    hosts.sort_unstable();
    hosts.dedup();
    (hosts.len() == members).then_some(port)
}

/// What members said, and what they showed.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) members: Vec<Member>,
    pub(super) shown: Vec<Handshake>,
}

/// Asks all of them at once; through TLS where they speak it and there is what it takes.
pub(super) async fn look(targets: Vec<Target>, patience: Duration, tls: Option<&PeerTls>) -> Seen {
    let asked: Vec<_> = targets
        .into_iter()
        .map(|target| {
            let through = |at| tokio::spawn(election(at, patience, tls.cloned()));
            let election = target.election.clone().map(through);
            let client = target.client.clone().map(|at| tokio::spawn(client(at, patience)));
            let admin = target.admin.clone();
            let admin = admin.map(|at| tokio::spawn(http::ask(at, patience, tls.cloned())));
            (target, election, client, admin)
        })
        .collect();
    let mut seen = Seen::default();
    for (target, election, client, admin) in asked {
        let (id, role) = (target.id, target.role);
        let mut member =
            Member { id, role, election: None, client: None, quorum: None, http: None };
        if let (Some(asked), Some(address)) = (election, target.election) {
            let (port, shown) = match asked.await {
                Ok((answer, shown)) => (port(address, answer), shown),
                Err(error) => (Port::new(address, ended(&error)), Vec::new()),
            };
            if !shown.is_empty() {
                seen.shown.push((id, port.address.clone(), shown));
            }
            member.election = Some(port);
        }
        if let (Some(asked), Some(address)) = (client, target.client) {
            member.client = Some(port(address, asked.await.unwrap_or_else(|error| ended(&error))));
        }
        if let Some(address) = target.quorum.filter(|_| is_to_be_seen(&member)) {
            let speaks_plainly = member.heard().is_some_and(|_| has_bare(member.election.as_ref()));
            let is_secret = member.silence() == Some(&Silence::Tls);
            let answer = quorum(&address, patience, !speaks_plainly && !is_secret).await;
            let answer =
                answer.and_then(|at| if is_secret { Err(Silence::Tls) } else { Ok(((), at)) });
            member.quorum = Some(port(address, answer));
        }
        if let (Some(asked), Some(Admin { at: address, .. })) = (admin, target.admin) {
            member.http = Some(port(address, asked.await.unwrap_or_else(|error| ended(&error))));
        }
        seen.members.push(member);
    }
    seen
}

/// A port whose answer came without TLS, if it came from somewhere.
fn port<T>(address: HostPort, answer: Result<(T, Option<IpAddr>), Silence>) -> Port<T> {
    match answer {
        Ok((answer, bare)) => Port { bare, ..Port::new(address, Ok(answer)) },
        Err(silence) => Port::new(address, Err(silence)),
    }
}

fn ended<T>(error: &JoinError) -> Result<T, Silence> {
    Err(Silence::Other(error.to_string()))
}

fn has_bare<T>(port: Option<&Port<T>>) -> bool {
    port.is_some_and(|port| port.bare.is_some())
}

/// Whether it matters that a leader's quorum port takes connections: it does not serve, or others have a way to it. A server
/// in Java logs each.
fn is_to_be_seen(member: &Member) -> bool {
    let bare = [
        member.election.as_ref().and_then(|port| port.bare),
        member.client.as_ref().and_then(|port| port.bare),
    ];
    let is_public = bare.into_iter().flatten().any(is_public);
    member.leads() && (member.is_not_serving() || is_public)
}

/// Whether a port takes a connection, and where; and that it does not speak TLS, if that is to be asked. Nothing else is said
/// on it.
async fn quorum(at: &HostPort, patience: Duration, asks: bool) -> Result<Option<IpAddr>, Silence> {
    let connecting = TcpStream::connect((at.host.as_str(), at.port));
    let connected = match timeout(patience, connecting).await {
        Ok(connected) => connected.map_err(|error| Silence::of(&error))?,
        Err(_) => return Err(Silence::Filtered),
    };
    if asks && probe::speaks_tls(at, patience).await {
        return Err(Silence::Tls);
    }
    Ok(connected.peer_addr().ok().map(|remote| remote.ip()))
}

/// What an election port says, where, if without TLS, and the certificates that it shows.
type Election = (Result<(Heard, Option<IpAddr>), Silence>, Vec<Vec<u8>>);

async fn election(at: HostPort, patience: Duration, tls: Option<PeerTls>) -> Election {
    let id = ServerId(probe::random_id());
    let Asked { answer, mut served } = probe::ask(at.clone(), id, patience, tls.clone()).await;
    let is_bare = served.is_empty();
    // Its certificate is shown to who asks for it, too.
    if let Some(tls) = tls.filter(|tls| answer.is_ok() && is_bare && tls.is_both()) {
        served = probe::look(&at, patience, &tls).await;
    }
    let answer = match answer {
        Ok(answer) => {
            let bare = is_bare.then_some(answer.remote);
            Ok((Heard::new(answer.notification), bare))
        }
        Err(AskError::Resolve { source, .. }) => Err(Silence::Unresolved(source.to_string())),
        Err(AskError::NoAddress(_)) => Err(Silence::Unresolved("it has none".to_owned())),
        Err(AskError::Connect(error) | AskError::Write(error) | AskError::Read(error)) => {
            Err(Silence::of(&error))
        }
        Err(AskError::ConnectLate(_)) => Err(Silence::Filtered),
        Err(AskError::HungUp) => Err(Silence::HungUp),
        Err(AskError::Late(_)) => Err(Silence::NoAnswer),
        Err(AskError::Tls) => Err(Silence::Tls),
        Err(error @ (AskError::Handshake(_) | AskError::NotLetIn(_))) => {
            Err(Silence::Shut(error.to_string()))
        }
        Err(AskError::Garbled(error)) => Err(Silence::Strange(error.to_string())),
        Err(AskError::Task(error)) => Err(Silence::Other(error.to_string())),
    };
    (answer, served)
}

/// Each word has a connection of its own: a server closes it behind its answer.
async fn client(at: HostPort, patience: Duration) -> Result<(Words, Option<IpAddr>), Silence> {
    let asked = WORDS.map(|word| {
        let at = at.clone();
        (word, tokio::spawn(async move { word::ask_from(&at, word, patience).await }))
    });
    let (mut answers, mut silence, mut at) = (Vec::new(), None, None);
    for (word, answer) in asked {
        match answer.await {
            Ok(Ok((bytes, _))) if bytes.is_empty() => silence = silence.or(Some(Silence::HungUp)),
            Ok(Ok((bytes, from))) => {
                answers.push((word, bytes));
                at = Some(from);
            }
            Ok(Err(error)) => silence = silence.or(Some(silence_of(&error))),
            Err(error) => silence = silence.or(Some(Silence::Other(error.to_string()))),
        }
    }
    let words = Words::of(answers.iter().map(|(word, bytes)| (*word, bytes.as_slice())));
    match (&words.strange, silence) {
        (Some(strange), _) => Err(Silence::Strange(format!("{strange:?}"))),
        (None, Some(silence)) if answers.is_empty() => Err(silence),
        (None, _) => Ok((words, at)),
    }
}

/// Those that are asked for. `conf` and `mntr` are read where they are allowed.
const WORDS: [&str; 3] = ["srvr", "mntr", "conf"];

/// Which ports answered, and why others did not.
pub(super) fn tell(facts: &Facts, looks: &mut Looks) {
    for member in &facts.members {
        let id = Some(member.id);
        if let Some(port) = &member.election {
            let at = port.address.to_string();
            match &port.answer {
                Ok(_) => looks.done("election port", id, at),
                Err(silence) => looks.failed("election port", id, at, silence.to_string()),
            }
        }
        if let Some(port) = &member.quorum {
            let at = port.address.to_string();
            match &port.answer {
                Ok(()) => looks.done("quorum port", id, at),
                Err(silence) => looks.failed("quorum port", id, at, silence.to_string()),
            }
        }
        if let Some(port) = &member.http {
            let at = port.address.to_string();
            match &port.answer {
                Ok(_) => looks.done("admin server", id, at),
                Err(silence) => looks.failed("admin server", id, at, silence.to_string()),
            }
        }
        let Some(port) = &member.client else {
            let because = "no file says where it is".to_owned();
            looks.failed("client port", id, "unknown".to_owned(), because);
            continue;
        };
        let at = port.address.to_string();
        match &port.answer {
            Ok(_) => looks.done("client port", id, at),
            Err(silence) => looks.failed("client port", id, at, silence.to_string()),
        }
    }
}
