//! Whether anything answers at the ports of the members, asked all at once.

use std::io;
use std::time::Duration;

use quorate_rescue::verdict::{Answer, Heard};
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::membership::Membership;
use tokio::net::{TcpStream, lookup_host};

/// What is heard at the election and the quorum port of each member, at each of its addresses.
pub(super) async fn ask_all(members: &Membership, patience: Duration) -> Vec<Answer> {
    let mut asked = Vec::new();
    for member in members.members() {
        for address in &member.addresses {
            for (port, at) in [("election", &address.election), ("quorum", &address.quorum)] {
                let (at, id) = (at.clone(), member.id.0);
                asked.push((id, port, at.to_string(), tokio::spawn(ask(at, patience))));
            }
        }
    }
    let mut answers = Vec::new();
    for (id, port, address, heard) in asked {
        // One that failed of itself has asked nothing.
        let heard = heard.await.unwrap_or(Heard::NotAsked);
        answers.push(Answer { id, address, port, heard });
    }
    answers
}

async fn ask(at: HostPort, patience: Duration) -> Heard {
    let asking = async {
        let addresses = match lookup_host((at.host.as_str(), at.port)).await {
            Ok(addresses) => addresses,
            Err(error) if is_for_now(&error) => return Heard::NotAsked,
            Err(_) => return Heard::Nothing,
        };
        let mut heard = Heard::Nothing;
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(_) => return Heard::Accepted,
                Err(error) => heard = worse(heard, of(&error)),
            }
        }
        heard
    };
    tokio::time::timeout(patience, asking).await.unwrap_or(Heard::Nothing)
}

#[allow(clippy::wildcard_enum_match_arm, reason = "all others are of this machine")]
fn of(error: &io::Error) -> Heard {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted => Heard::Refused,
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => Heard::Nothing,
        // Something here, such as a rule of this machine's firewall, or no descriptor.
        _ => Heard::NotAsked,
    }
}

/// Of several addresses, the one that says most against its server's being lost.
fn worse(one: Heard, other: Heard) -> Heard {
    match (one, other) {
        (Heard::Refused, _) | (_, Heard::Refused) => Heard::Refused,
        (Heard::NotAsked, _) | (_, Heard::NotAsked) => Heard::NotAsked,
        _ => other,
    }
}

/// Whether names are not resolved at present, which says nothing of this one (EAI_AGAIN; the system's library has no
/// other way to tell us than its words, glibc's and musl's).
fn is_for_now(error: &io::Error) -> bool {
    let text = error.to_string();
    ["Temporary failure", "Try again"].iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_refused_connection_says_is_not_what_a_silent_host_says() {
        let heard = |kind: io::ErrorKind| of(&kind.into());
        assert_eq!(heard(io::ErrorKind::ConnectionRefused), Heard::Refused);
        assert_eq!(heard(io::ErrorKind::HostUnreachable), Heard::Nothing);
        assert_eq!(heard(io::ErrorKind::PermissionDenied), Heard::NotAsked);
        assert_eq!(worse(Heard::Refused, Heard::Nothing), Heard::Refused);
        assert_eq!(worse(Heard::Nothing, Heard::NotAsked), Heard::NotAsked);
    }

    #[tokio::test]
    async fn a_port_where_something_listens_answers_and_a_closed_one_refuses() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at =
            HostPort { host: "127.0.0.1".to_owned(), port: listener.local_addr().unwrap().port() };
        let patience = Duration::from_secs(20);
        assert_eq!(ask(at.clone(), patience).await, Heard::Accepted);
        drop(listener);
        assert_eq!(ask(at, patience).await, Heard::Refused);
    }
}
