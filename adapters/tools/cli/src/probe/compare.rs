//! The view of each server, from its answer, and where the views disagree.

use std::collections::BTreeMap;
use std::net::IpAddr;

use quorate_keystore::rustls_pki_types::CertificateDer;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::id::ServerId;
use quorate_tokio::core::membership::Membership;
use quorate_tokio::core::message::Notification;
use quorate_tokio::core::vote::Vote;
use serde::Serialize;

use super::ask::{Answer, Asked};
use crate::event::{State, known, millis};
use crate::tls::shown;
use crate::utc::utc_of_seconds;

/// What is known of a server.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    pub(crate) address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(flatten)]
    pub(crate) answer: Option<Belief>,
    /// What it showed, if it was asked through TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<Certified>,
}

/// A certificate that a server showed.
#[derive(Debug, Serialize)]
pub(crate) struct Certified {
    pub(crate) subject: String,
    /// When it ends, in UTC.
    pub(crate) ends: String,
}

/// A server's view of the election.
#[derive(Debug, Serialize)]
pub(crate) struct Belief {
    /// Its id: the member of its configuration that listens at the address that was asked.
    pub(crate) id: Option<i64>,
    pub(crate) state: State,
    pub(crate) leader: Option<i64>,
    pub(crate) round: Option<i64>,
    pub(crate) peer_epoch: Option<i64>,
    pub(crate) zxid: Option<String>,
    /// The version of its message.
    pub(crate) version: i32,
    /// The version of its configuration, in hexadecimal digits as configuration files have it.
    pub(crate) config_version: Option<String>,
    pub(crate) voters: Option<usize>,
    pub(crate) observers: Option<usize>,
    /// Whether it has a vote in its own configuration.
    pub(crate) voter: Option<bool>,
    pub(crate) config: String,
    pub(crate) took_ms: f64,
}
/// A disagreement.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

impl View {
    pub(super) fn new(at: &HostPort, Asked { answer, served }: Asked) -> Self {
        let address = at.to_string();
        let served: Vec<_> = served.into_iter().map(CertificateDer::from).collect();
        let own = shown(served.get(..1).unwrap_or_default(), &[]).into_iter().next();
        let certificate =
            own.map(|own| Certified { subject: own.subject, ends: utc_of_seconds(own.to) });
        let (answer, error) = match answer {
            Ok(answer) => (Some(Belief::new(at, &answer)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { address, error, answer, certificate }
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
        let own =
            membership.as_ref().and_then(|membership| member_at(membership, at, answer.remote));
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

/// The member that listens at `at`. A notification does not name its sender.
fn member_at(membership: &Membership, at: &HostPort, remote: IpAddr) -> Option<ServerId> {
    let remote = remote.to_canonical().to_string();
    let listening = |hosts: &dyn Fn(&HostPort) -> bool| {
        let mut found = membership.members().iter().filter(|member| {
            let mut addresses = member.addresses.iter();
            addresses.any(|a| a.election.port == at.port && hosts(&a.election))
        });
        // Two would be ambiguous.
        found.next().filter(|_| found.next().is_none()).map(|member| member.id)
    };
    listening(&|listens| listens.host == at.host || listens.host == remote)
        .or_else(|| listening(&|_| true))
}

/// All disagreements among the servers that answered.
pub(super) fn compare(views: &[View]) -> Vec<Finding> {
    let answered: Vec<_> =
        views.iter().filter_map(|view| Some((view, view.answer.as_ref()?))).collect();
    let mut findings = Vec::new();
    let mut found = |kind, text| findings.push(Finding { kind, text });

    let settled: Vec<_> = answered.iter().filter(|(_, belief)| belief.is_settled()).collect();
    if settled.is_empty() && !answered.is_empty() {
        found("no_leader", "there is no leader: all that answered are LOOKING".to_owned());
    }
    let leaders = grouped(settled.iter().map(|(view, belief)| (number(belief.leader), *view)));
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
        let of_leader = settled.iter().filter(|(_, belief)| number(belief.leader) == *leader);
        let epochs = grouped(of_leader.map(|(view, belief)| (number(belief.peer_epoch), *view)));
        if epochs.len() > 1 {
            let text = format!("under leader {leader} they are in different epochs: ");
            found("epochs", text + &list(&epochs));
        }
        let says = answered.iter().find(|(_, belief)| number(belief.id) == *leader);
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
    if let Some(text) = unlike_configurations(&answered) {
        found("configurations", text);
    }
    if let Some(text) = without_quorum(views, &settled).filter(|_| leaders.len() == 1) {
        found("no_quorum", text);
    }
    findings
}

/// Where some could not be reached: that those which name the leader are no quorum. It may have led for a while without one.
fn without_quorum(views: &[View], settled: &[&(&View, &Belief)]) -> Option<String> {
    let unreachable = views.iter().any(|view| view.answer.is_none());
    let (_, belief) = settled.first().filter(|_| unreachable)?;
    let quorum = Membership::parse(&belief.config).ok()?.quorum();
    let behind: Vec<_> = settled.iter().filter_map(|(_, belief)| belief.id.map(ServerId)).collect();
    let voters = behind.iter().filter(|id| quorum.is_voter(**id)).count();
    let (all, leader) = (quorum.voters().len(), number(belief.leader));
    (!quorum.is_quorum(behind)).then(|| {
        format!("{voters} of {all} voters names a leader, server {leader}: without the others that is no quorum")
    })
}

/// How the configurations of the servers that answered differ, if they do.
fn unlike_configurations(answered: &[(&View, &Belief)]) -> Option<String> {
    let configs = grouped(answered.iter().map(|(view, belief)| (same(&belief.config), *view)));
    if configs.len() <= 1 {
        return None;
    }
    let versions = grouped(answered.iter().map(|(view, belief)| {
        (belief.config_version.clone().unwrap_or_else(|| "?".to_owned()), *view)
    }));
    Some(if versions.len() > 1 {
        format!("they have different versions of the configuration: {}", list(&versions))
    } else {
        let texts: Vec<_> = configs.values().map(|views| names(views)).collect();
        format!("they have different configurations of one version: {}", texts.join(" / "))
    })
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

pub(super) fn number(number: Option<i64>) -> String {
    number.map_or("-".to_owned(), |number| number.to_string())
}

pub(super) fn word(state: State) -> &'static str {
    match state {
        State::Looking => "LOOKING",
        State::Following => "FOLLOWING",
        State::Leading => "LEADING",
        State::Observing => "OBSERVING",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use quorate_tokio::core::message::Mark;
    use quorate_tokio::core::vote::{Round, ServerState, Standing};

    use super::super::ask::AskError;
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
        let mut view = View::new(&at, Asked { answer: Ok(answer), served: Vec::new() });
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
            let at = HostPort { host: "127.0.0.1".to_owned(), port: 23 };
            View::new(&at, Asked { answer: Err(AskError::HungUp), served: Vec::new() })
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
}
