//! Asks the servers of an ensemble what they believe, on their election ports.
//!
//! No permission and no client port is needed: any server answers the notification of a stranger that
//! has no vote with its own vote, state, round and configuration; ZooKeeper since 3.5 as well as we.
//! What each says is compared, and what does not fit together is pointed out.
//!
//! The rules of politeness that are kept, because Java servers punish or suffer otherwise:
//!
//! - the introduction goes out in one write, with a port that exists;
//! - our id is larger than anybody's, or the server would hang up and dial us back;
//! - our configuration is well-formed and has voters: an empty one ends the thread that receives
//!   notifications, if `standaloneEnabled=false`;
//! - our vote can't win: we look for a leader in round 0 and propose nobody, with no history.
//!
//! What it does not do: it never takes part in an election, and it needs no answer from everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use clap::Args;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::ballot::{Body, Claim, Generation, Letter};
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::Membership;
use quorate_tokio::core::message::{Introduction, Mark, Notification};
use quorate_tokio::core::vote::{Round, ServerState, Standing, Vote};
use quorate_tokio::core::wire;
use quorate_tokio::core::zxid::{Epoch, Zxid};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout_at;

use crate::event::{State, known, millis};
use crate::failure::Failure;
use crate::paint::Paint;

/// Ask election ports what their servers believe.
///
/// Works on any ZooKeeper server since 3.5, too, and changes nothing there. Exits with 0 if those that
/// answered agree on a leader, 1 if they do not, 3 if nobody answered.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Election ports (the last port of a server.N line, 3888 mostly).
    #[arg(required = true, value_name = "HOST:PORT", value_parser = address)]
    servers: Vec<HostPort>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// How long to wait for each answer.
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout: u64,
    /// The id to introduce ourselves with: larger than any server's, and nobody else's. Random if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(256..i64::MAX))]
    id: Option<i64>,
}

/// `host:port` or `[host]:port`.
fn address(text: &str) -> Result<HostPort, String> {
    let (host, port) = text.rsplit_once(':').ok_or("no :PORT")?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bracketed.unwrap_or(host);
    if host.is_empty() || (bracketed.is_none() && host.contains(':')) {
        return Err("write HOST:PORT, and an IPv6 address as [ADDRESS]:PORT".to_owned());
    }
    match port.parse() {
        Ok(port) if port > 0 => Ok(HostPort { host: host.to_owned(), port }),
        Ok(_) | Err(_) => Err(format!("{port:?} is no port from 1 to 65535")),
    }
}

/// Asks all at once, and tells.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let id = ServerId(arguments.id.unwrap_or_else(random_id));
    let patience = Duration::from_millis(arguments.timeout);
    let asked: Vec<_> = arguments
        .servers
        .into_iter()
        .map(|at| {
            let question = ask(at.clone(), id, patience);
            (at, tokio::spawn(question))
        })
        .collect();
    let mut views = Vec::new();
    for (at, answer) in asked {
        let answer = answer.await.unwrap_or_else(|error| Err(error.to_string()));
        views.push(View::new(&at, answer));
    }
    let findings = compare(&views);
    let reached = views.iter().any(|view| view.answer.is_some());
    let agree = reached && findings.is_empty();
    let text = if arguments.json {
        let report = Report { servers: &views, findings: &findings, agree };
        format!("{}\n", serde_json::to_string(&report).map_err(|e| Failure::failed(e.to_string()))?)
    } else {
        table(&views, &findings, Paint::stdout())
    };
    // A reader that has gone wants no more.
    drop(io::stdout().lock().write_all(text.as_bytes()));
    if !reached {
        return Err(Failure::unreachable("no server could be reached"));
    }
    if agree { Ok(()) } else { Err(Failure::failed("")) }
}

/// Large, so that the connection which we dial is the one that stays, and most likely nobody's: not
/// even another probe's.
fn random_id() -> i64 {
    let random = RandomState::new().hash_one(std::process::id());
    (1 << 62) | i64::try_from(random >> 3).unwrap_or(0)
}

/// What a server said.
#[derive(Debug)]
struct Answer {
    notification: Notification,
    remote: IpAddr,
    took: Duration,
}

/// How servers elect, and so what they understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tongue {
    Fast,
    Generation,
}

/// Asks one server: as ZooKeeper's servers understand it, and if it hangs up on that, as those do that elect by
/// generation.
async fn ask(at: HostPort, id: ServerId, patience: Duration) -> Result<Answer, String> {
    match ask_in(Tongue::Fast, at.clone(), id, patience).await {
        Err(Unheard::HungUp(error)) => {
            ask_in(Tongue::Generation, at, id, patience).await.map_err(|_| error)
        }
        Err(Unheard::Silent(error)) => Err(error),
        Ok(answer) => Ok(answer),
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Unheard {
    /// It ended the connection.
    HungUp(String),
    /// It cannot be reached, says nothing, or what nobody understands.
    Silent(String),
}

impl From<String> for Unheard {
    fn from(error: String) -> Self {
        Self::Silent(error)
    }
}

async fn ask_in(
    tongue: Tongue,
    at: HostPort,
    id: ServerId,
    patience: Duration,
) -> Result<Answer, Unheard> {
    let begun = Instant::now();
    let by = tokio::time::Instant::from_std(begun + patience);
    let late = || format!("no answer in {} ms", patience.as_millis());
    let connected = timeout_at(by, connect(&at)).await;
    let mut stream = connected.map_err(|_| format!("{} (connecting)", late()))??;
    let broken = |error: io::Error| format!("the connection broke: {error}");
    let remote = stream.peer_addr().map_err(broken)?.ip();

    let addresses = vec![HostPort { host: "127.0.0.1".to_owned(), port: 1 }];
    let introduction = Introduction { id, addresses };
    let mut frame = BytesMut::new();
    let introduction = match tongue {
        Tongue::Fast => {
            wire::encode_notification(&question(), &mut frame);
            wire::encode_introduction(&introduction)
        }
        Tongue::Generation => {
            wire::encode_letter(&question_by_letter(id), &mut frame);
            wire::encode_letter_introduction(&introduction)
        }
    };
    stream.write_all(&introduction).await.map_err(broken)?;
    stream.write_all(&frame).await.map_err(broken)?;

    let mut buffer = BytesMut::new();
    let mut last: Option<(Notification, Duration)> = None;
    loop {
        loop {
            let taken = match tongue {
                Tongue::Fast => wire::take_notification(&mut buffer),
                Tongue::Generation => wire::take_letter(&mut buffer).map(|l| l.map(told)),
            };
            match taken {
                Ok(Some(notification)) => last = Some((notification, begun.elapsed())),
                Ok(None) => break,
                Err(error) if error.is_fatal() => {
                    return Err(format!("what it sent is no notification: {error}").into());
                }
                Err(_) => {}
            }
        }
        let until = if last.is_some() { by.min(tokio::time::Instant::now() + SILENCE) } else { by };
        match timeout_at(until, stream.read_buf(&mut buffer)).await {
            Ok(Ok(read)) if read > 0 => {}
            // The end, or silence: what it said last is its answer.
            ended => {
                return match (last, ended) {
                    (Some((notification, took)), _) => Ok(Answer { notification, remote, took }),
                    (None, Ok(Ok(_))) => Err(Unheard::HungUp(
                        "it hung up without an answer; is this the election port?".to_owned(),
                    )),
                    (None, Ok(Err(error))) => Err(Unheard::HungUp(broken(error))),
                    (None, Err(_)) => Err(late().into()),
                };
            }
        }
    }
}

async fn connect(at: &HostPort) -> Result<TcpStream, String> {
    let addresses = lookup_host((at.host.as_str(), at.port))
        .await
        .map_err(|error| format!("cannot resolve {}: {error}", at.host))?;
    let mut why = format!("{} has no address", at.host);
    for address in addresses {
        // Half of it may be spent on an address that swallows everything.
        match TcpStream::connect(address).await {
            Ok(stream) => {
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Err(error) => why = format!("cannot connect: {error}"),
        }
    }
    Err(why)
}

/// We look for a leader, in a round before the first, and propose nobody.
fn question() -> Notification {
    Notification {
        standing: Standing { state: ServerState::Looking, vote: Vote::ABSTENTION, round: Round(0) },
        version: Notification::VERSION,
        config: Bytes::from_static(CONFIG.as_bytes()),
        mark: Mark::NONE,
    }
}

/// The same where servers elect by generation.
fn question_by_letter(id: ServerId) -> Letter {
    Letter {
        from: id,
        generation: Generation(0),
        claim: Claim { current_epoch: Epoch::NONE, last: Zxid::NONE },
        body: Body::Standing { leader: ServerId::NOBODY, beat: 0 },
        config: Bytes::new(),
        knows_probes: false,
    }
}

/// What a letter tells of its sender, in the words of the other election.
fn told(letter: Letter) -> Notification {
    let Letter { from, generation, claim, body, config, knows_probes: _ } = letter;
    let leader = match body {
        Body::Standing { leader, .. } => leader,
        Body::Request(_) | Body::Answer { .. } => ServerId::NOBODY,
    };
    let state = match leader {
        ServerId::NOBODY => ServerState::Looking,
        leader if leader == from => ServerState::Leading,
        _ => ServerState::Following,
    };
    let vote = Vote { peer_epoch: claim.current_epoch, zxid: claim.last, leader };
    let standing = Standing { state, vote, round: Round(generation.0) };
    Notification { standing, version: Notification::VERSION, config, mark: Mark::NONE }
}

/// Nobody's configuration, older than any: nobody takes it over. Three voters, since Java servers
/// complain about fewer.
const CONFIG: &str = "server.1=127.0.0.1:1:2:participant\nserver.2=127.0.0.1:3:4:participant\n\
                      server.3=127.0.0.1:5:6:participant\nversion=0";
/// A server may first send an older vote, then its answer.
const SILENCE: Duration = Duration::from_millis(100);

/// What we know of a server.
#[derive(Debug, Serialize)]
struct View {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    answer: Option<Belief>,
}

/// What a server believes.
#[derive(Debug, Serialize)]
struct Belief {
    /// Who it is: the member of its configuration that listens where we asked.
    id: Option<i64>,
    state: State,
    leader: Option<i64>,
    round: Option<i64>,
    peer_epoch: Option<i64>,
    zxid: Option<String>,
    /// The version of its message.
    version: i32,
    /// The version of its configuration, in hexadecimal digits as configuration files have it.
    config_version: Option<String>,
    voters: Option<usize>,
    observers: Option<usize>,
    /// Whether it has a vote in its own configuration.
    voter: Option<bool>,
    config: String,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    servers: &'a [View],
    findings: &'a [Finding],
    agree: bool,
}

/// Something that does not fit together.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    kind: &'static str,
    text: String,
}

impl View {
    fn new(at: &HostPort, answer: Result<Answer, String>) -> Self {
        let address = at.to_string();
        match answer {
            Ok(answer) => Self { address, error: None, answer: Some(Belief::new(at, &answer)) },
            Err(error) => Self { address, error: Some(error), answer: None },
        }
    }

    fn name(&self) -> String {
        match self.answer.as_ref().and_then(|belief| belief.id) {
            Some(id) => format!("server {id}"),
            None => self.address.clone(),
        }
    }
}

impl Belief {
    fn new(at: &HostPort, answer: &Answer) -> Self {
        let Notification { standing, version, config, mark: _ } = &answer.notification;
        let membership = Membership::parse(config).ok();
        let own = membership.as_ref().and_then(|membership| whose(membership, at, answer.remote));
        let voters = membership.as_ref().map(|membership| membership.participants().count());
        let members = membership.as_ref().map(|membership| membership.members().len());
        let Vote { peer_epoch, zxid, leader } = standing.vote;
        Self {
            id: own.map(|id| id.0),
            state: standing.state.into(),
            leader: known(leader.0),
            round: known(standing.round.0),
            peer_epoch: known(peer_epoch.0),
            zxid: known(zxid.0).map(|_| zxid.to_string()),
            version: *version,
            config_version: membership.as_ref().map(|m| format!("{:x}", m.version())),
            voters,
            observers: members.zip(voters).map(|(members, voters)| members - voters),
            voter: membership.as_ref().zip(own).map(|(members, id)| members.is_participant(id)),
            config: String::from_utf8_lossy(config).into_owned(),
            took_ms: millis(answer.took),
        }
    }

    fn is_settled(&self) -> bool {
        self.state != State::Looking
    }
}

/// The member that listens at `at`. A notification does not say who sent it.
fn whose(membership: &Membership, at: &HostPort, remote: IpAddr) -> Option<ServerId> {
    let remote = remote.to_canonical().to_string();
    let listening = |hosts: &dyn Fn(&HostPort) -> bool| {
        let mut found = membership.members().iter().filter(|member| {
            let mut addresses = member.addresses.iter();
            addresses.any(|a| a.election.port == at.port && hosts(&a.election))
        });
        // Two would be as good as none.
        found.next().filter(|_| found.next().is_none()).map(|member| member.id)
    };
    listening(&|listens| listens.host == at.host || listens.host == remote)
        .or_else(|| listening(&|_| true))
}

/// Everything that does not fit together among those that answered.
fn compare(views: &[View]) -> Vec<Finding> {
    let answered: Vec<_> =
        views.iter().filter_map(|view| Some((view, view.answer.as_ref()?))).collect();
    let mut findings = Vec::new();
    let mut found = |kind, text| findings.push(Finding { kind, text });

    let settled: Vec<_> = answered.iter().filter(|(_, belief)| belief.is_settled()).collect();
    if settled.is_empty() && !answered.is_empty() {
        found("no_leader", "nobody has a leader: all that answered are LOOKING".to_owned());
    }
    let leaders = grouped(settled.iter().map(|(view, belief)| (shown(belief.leader), *view)));
    if leaders.len() > 1 {
        found("leaders", format!("they have different leaders: {}", list(&leaders)));
    }
    let leading: Vec<_> =
        settled.iter().filter(|(_, belief)| belief.state == State::Leading).collect();
    if leading.len() > 1 {
        let names: Vec<_> = leading.iter().map(|(view, _)| view.name()).collect();
        found("two_leading", format!("{} say LEADING", names.join(" and ")));
    }
    for (leader, followers) in &leaders {
        let of_leader = settled.iter().filter(|(_, belief)| shown(belief.leader) == *leader);
        let epochs = grouped(of_leader.map(|(view, belief)| (shown(belief.peer_epoch), *view)));
        if epochs.len() > 1 {
            let text = format!("under leader {leader} they are in different epochs: ");
            found("epochs", text + &list(&epochs));
        }
        let says = answered.iter().find(|(_, belief)| shown(belief.id) == *leader);
        if let Some((_, belief)) = says.filter(|(_, belief)| belief.state != State::Leading) {
            let state = word(belief.state);
            let others: Vec<_> = followers.iter().map(|view| view.name()).collect();
            let text = format!(
                "{} follow(s) server {leader}, which does not say LEADING but {state}",
                others.join(", ")
            );
            found("not_leading", text);
        }
    }
    if !settled.is_empty() {
        for (view, _) in answered
            .iter()
            .filter(|(_, belief)| !belief.is_settled() && belief.voter != Some(false))
        {
            let text = format!("{} is LOOKING while others have a leader", view.name());
            found("looking", text);
        }
    }
    let configs = grouped(answered.iter().map(|(view, belief)| (same(&belief.config), *view)));
    if configs.len() > 1 {
        let versions = grouped(answered.iter().map(|(view, belief)| {
            (belief.config_version.clone().unwrap_or_else(|| "?".to_owned()), *view)
        }));
        let text = if versions.len() > 1 {
            format!("they have different versions of the configuration: {}", list(&versions))
        } else {
            let texts: Vec<_> = configs.values().map(|views| names(views)).collect();
            format!("they have different configurations of one version: {}", texts.join(" / "))
        };
        found("configurations", text);
    }
    findings
}

/// A configuration with every address in one spelling: Java writes `0:0:0:0:0:0:0:1` for `::1`.
fn same(config: &str) -> String {
    let Ok(membership) = Membership::parse(config) else { return config.to_owned() };
    let mut text = membership.to_string();
    let members = membership.members().iter();
    for host in members.flat_map(|member| &member.addresses).map(|address| &address.quorum.host) {
        if let Ok(ip) = host.parse::<IpAddr>() {
            text = text.replace(host.as_str(), &ip.to_string());
        }
    }
    text
}

fn grouped<'a, K: Ord>(views: impl Iterator<Item = (K, &'a View)>) -> BTreeMap<K, Vec<&'a View>> {
    let mut groups: BTreeMap<K, Vec<_>> = BTreeMap::new();
    for (key, view) in views {
        groups.entry(key).or_default().push(view);
    }
    groups
}

/// `3 (server 1, server 2), 4 (server 5)`
fn list(groups: &BTreeMap<String, Vec<&View>>) -> String {
    let groups: Vec<_> =
        groups.iter().map(|(key, views)| format!("{key} ({})", names(views))).collect();
    groups.join(", ")
}

fn names(views: &[&View]) -> String {
    let names: Vec<_> = views.iter().map(|view| view.name()).collect();
    names.join(", ")
}

fn shown(number: Option<i64>) -> String {
    number.map_or("-".to_owned(), |number| number.to_string())
}

fn word(state: State) -> &'static str {
    match state {
        State::Looking => "LOOKING",
        State::Following => "FOLLOWING",
        State::Leading => "LEADING",
        State::Observing => "OBSERVING",
    }
}

/// For people.
fn table(views: &[View], findings: &[Finding], paint: Paint) -> String {
    const HEADS: [&str; 8] =
        ["address", "id", "state", "leader", "epoch", "zxid", "round", "configuration"];
    let mut rows = Vec::new();
    for view in views {
        let cells = match &view.answer {
            Some(belief) => [
                view.address.clone(),
                shown(belief.id),
                word(belief.state).to_owned(),
                shown(belief.leader),
                shown(belief.peer_epoch),
                belief.zxid.clone().unwrap_or_else(|| "-".to_owned()),
                shown(belief.round),
                configuration(belief),
            ],
            None => {
                let mut cells = [const { String::new() }; 8];
                cells[0].clone_from(&view.address);
                cells[2] = "unreachable".to_owned();
                cells[7] = view.error.clone().unwrap_or_default();
                cells
            }
        };
        rows.push((view, cells));
    }
    let mut widths = HEADS.map(str::len);
    for (_, cells) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let format = |cells: [&str; 8]| {
        let padded: Vec<_> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut text = format!("{}\n", paint.strong(&format(HEADS)));
    for (view, cells) in &rows {
        let line = format(cells.each_ref().map(String::as_str));
        let line = match &view.answer {
            Some(belief) if belief.state == State::Leading => paint.strong(&line),
            Some(_) => line,
            None => paint.faint(&line),
        };
        text += &line;
        text.push('\n');
    }
    text.push('\n');
    let answered: Vec<_> = views.iter().filter_map(|view| view.answer.as_ref()).collect();
    for finding in findings {
        text += &format!("{} {}\n", paint.alarm("disagreement:"), finding.text);
    }
    let silent = views.len() - answered.len();
    if silent > 0 {
        text += &format!("{silent} of {} could not be reached\n", views.len());
    }
    let leaders: BTreeSet<_> = answered.iter().map(|belief| belief.leader).collect();
    if let (true, [Some(leader)]) =
        (findings.is_empty(), leaders.into_iter().collect::<Vec<_>>().as_slice())
    {
        let epoch = answered.iter().find_map(|belief| belief.peer_epoch);
        let sentence = match answered.len() {
            1 => format!("the one that answered has leader {leader} in epoch {}", shown(epoch)),
            many => format!(
                "all {many} that answered agree: server {leader} leads epoch {}",
                shown(epoch)
            ),
        };
        text += &format!("{}\n", paint.well(&sentence));
    }
    text
}

fn configuration(belief: &Belief) -> String {
    match (&belief.config_version, belief.voters, belief.observers) {
        (Some(version), Some(voters), Some(0)) => format!("version {version}, {voters} voters"),
        (Some(version), Some(voters), Some(observers)) => {
            format!("version {version}, {voters} voters, {observers} observers")
        }
        _ if belief.config.is_empty() => "none sent".to_owned(),
        _ => "cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENSEMBLE: &str = "server.1=127.0.0.1:11:21:participant\n\
                            server.2=127.0.0.1:12:22:participant\n\
                            server.3=127.0.0.1:13:23:participant\nversion=0";

    fn view(port: u16, state: State, leader: i64, epoch: i64) -> View {
        let notification = Notification {
            standing: Standing {
                state: ServerState::Looking,
                vote: Vote::ABSTENTION,
                round: Round(1),
            },
            version: 2,
            config: Bytes::from_static(ENSEMBLE.as_bytes()),
            mark: Mark::NONE,
        };
        let at = HostPort { host: "127.0.0.1".to_owned(), port };
        let remote = "127.0.0.1".parse().unwrap();
        let answer = Answer { notification, remote, took: Duration::ZERO };
        let mut view = View::new(&at, Ok(answer));
        let belief = view.answer.as_mut().unwrap();
        belief.state = state;
        belief.leader = Some(leader);
        belief.peer_epoch = Some(epoch);
        view
    }

    fn kinds(views: &[View]) -> Vec<&'static str> {
        compare(views).iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn a_server_is_known_by_its_port() {
        assert_eq!(view(22, State::Looking, 1, 0).answer.unwrap().id, Some(2));
        assert_eq!(view(99, State::Looking, 1, 0).answer.unwrap().id, None);
    }

    #[test]
    fn agreement_and_every_disagreement() {
        use State::{Following, Leading, Looking};
        let down = || {
            View::new(
                &HostPort { host: "127.0.0.1".to_owned(), port: 23 },
                Err("refused".to_owned()),
            )
        };
        let table: [(Vec<View>, &[&str]); 8] = [
            (
                vec![view(21, Following, 3, 1), view(22, Following, 3, 1), view(23, Leading, 3, 1)],
                &[],
            ),
            (vec![view(21, Following, 2, 1), view(22, Leading, 2, 1), down()], &[]),
            (vec![view(21, Looking, 3, 1), view(22, Looking, 3, 1)], &["no_leader"]),
            (vec![view(21, Following, 2, 1), view(23, Leading, 3, 1)], &["leaders"]),
            (vec![view(22, Leading, 2, 1), view(23, Leading, 3, 1)], &["leaders", "two_leading"]),
            (vec![view(21, Following, 3, 2), view(23, Leading, 3, 1)], &["epochs"]),
            (vec![view(21, Following, 3, 1), view(23, Looking, 3, 1)], &["not_leading", "looking"]),
            (
                vec![view(21, Looking, 1, 1), view(22, Following, 3, 1), view(23, Leading, 3, 1)],
                &["looking"],
            ),
        ];
        for (views, expected) in table {
            assert_eq!(kinds(&views), expected, "{views:?}");
        }
    }

    /// Java spells an IPv6 address out; that is no disagreement.
    #[test]
    fn two_spellings_of_one_address_are_one_configuration() {
        let short = "server.1=[::1]:2888:3888:participant\nversion=0";
        let long = "server.1=[0:0:0:0:0:0:0:1]:2888:3888:participant\nversion=0";
        assert_eq!(same(short), same(long));
        assert_ne!(same(short), same("server.1=[::2]:2888:3888:participant\nversion=0"));
        assert_ne!(same("no configuration"), same(short));
    }

    #[test]
    fn different_configurations_are_told() {
        let mut views = [view(21, State::Following, 2, 1), view(22, State::Leading, 2, 1)];
        let config = &mut views[1].answer.as_mut().unwrap().config;
        config.push('x');
        assert_eq!(kinds(&views), ["configurations"]);
    }

    #[test]
    fn addresses() {
        assert_eq!(address("zk1:3888").unwrap().port, 3888);
        assert_eq!(address("[::1]:3888").unwrap().host, "::1");
        for wrong in ["zk1", "zk1:", ":3888", "zk1:0", "zk1:70000", "::1:3888"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn our_id_is_large_and_not_reserved() {
        let id = random_id();
        assert!(id > i64::MAX / 2 && id < i64::MAX, "{id}");
    }

    #[test]
    fn what_we_send_is_well_formed() {
        assert_eq!(Membership::parse(CONFIG).unwrap().participants().count(), 3);
    }
}
