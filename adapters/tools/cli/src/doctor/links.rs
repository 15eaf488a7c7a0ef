//! The links of servers on this machine, as `ss` tells of the kernel's `TCP_INFO`.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use quorate_doctor::{Facts, Link};
use quorate_tokio::core::id::ServerId;
use tokio::process::Command;

/// The links with members, or why they are not known.
pub(super) async fn look(facts: &Facts, patience: Duration) -> Result<Vec<Link>, String> {
    let mut ss = Command::new("ss");
    ss.args(["-tinH", "state", "established"]).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(patience, ss.output()).await {
        Ok(Ok(output)) if output.status.success() => {
            Ok(read(&String::from_utf8_lossy(&output.stdout), &ends(facts)))
        }
        Ok(Ok(output)) => Err(format!("ss: {}", output.status)),
        Ok(Err(error)) => Err(format!("ss: {error}")),
        Err(_) => Err("ss: no answer in time".to_owned()),
    }
}

/// A member, where its host is, and its ports for other members.
struct End {
    id: ServerId,
    ips: Vec<IpAddr>,
    ports: Vec<u16>,
}

fn ends(facts: &Facts) -> Vec<End> {
    let Some(membership) = facts.membership() else { return Vec::new() };
    let ends = membership.members().iter().map(|member| {
        let both = member.addresses.iter().flat_map(|at| [&at.quorum, &at.election]);
        let ips = both.clone().filter_map(|at| facts.hosts.get(&at.host)?.as_ref().ok()).flatten();
        End {
            id: member.id,
            ips: ips.map(|address| address.ip).collect(),
            ports: both.map(|at| at.port).collect(),
        }
    });
    ends.collect()
}

/// The member at the other end: known by its port, or by its host if we are the one that was dialled.
fn other_end(local: SocketAddr, remote: SocketAddr, ends: &[End]) -> Option<ServerId> {
    let ip = remote.ip().to_canonical();
    let there: Vec<_> = ends.iter().filter(|end| end.ips.contains(&ip)).collect();
    if let Some(dialled) = there.iter().find(|end| end.ports.contains(&remote.port())) {
        return Some(dialled.id);
    }
    let is_ours = |end: &End| {
        end.ips.contains(&local.ip().to_canonical()) && end.ports.contains(&local.port())
    };
    match there.as_slice() {
        [one] if ends.iter().any(is_ours) => Some(one.id),
        _ => None,
    }
}

/// Two lines a connection: its ends, and what is counted.
fn read(text: &str, ends: &[End]) -> Vec<Link> {
    let mut links = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(counted) = lines.next_if(|next| next.starts_with(char::is_whitespace)) else {
            continue;
        };
        let mut addresses = line.split_whitespace().filter_map(socket);
        let (Some(local), Some(remote)) = (addresses.next(), addresses.next()) else { continue };
        let Some(server) = other_end(local, remote, ends) else { continue };
        let value = |name: &str| {
            let mut words = counted.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
        };
        let number = |name: &str| value(name).and_then(|text| text.parse::<u64>().ok());
        // `rtt:MEAN/DEVIATION`, `retrans:NOW/ALL`.
        let half = |name: &str, at: usize| value(name).and_then(|text| text.split('/').nth(at));
        links.push(Link {
            server,
            local,
            remote,
            round_trip_ms: half("rtt", 0).and_then(|text| text.parse().ok()),
            segments: number("segs_out").unwrap_or(0),
            repeated: half("retrans", 1).and_then(|text| text.parse().ok()).unwrap_or(0),
            unacknowledged: number("unacked").unwrap_or(0),
            backoff: number("backoff").unwrap_or(0),
            acknowledged_bytes: number("bytes_acked").unwrap_or(0),
            received_ms_ago: number("lastrcv"),
            segment_bytes: number("mss"),
        });
    }
    links
}

/// `10.0.0.1:2888`, `[::ffff:10.0.0.1]:2888`, `[fe80::1]%eth0:2888`.
fn socket(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.split('%').next()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(SocketAddr::new(host.parse().ok()?, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ss` of iproute2 6.1 writes it.
    const SEEN: &str = "\
0      0               10.0.0.1:41648         10.0.0.3:2888 \n\
\t cubic wscale:7,7 rto:408 backoff:2 rtt:1.297/0.852 ato:40 mss:1348 pmtu:1400 rcvmss:1348 advmss:1348 cwnd:1 \
bytes_sent:8452 bytes_retrans:2696 bytes_acked:3060 bytes_received:790 segs_out:1292 segs_in:423 data_segs_out:49 \
send 4905bps lastsnd:120 lastrcv:360 lastack:36844 unacked:3 retrans:1/14 lost:3 rcv_rtt:0.944 minrtt:0.083\n\
0      0      [::ffff:10.0.0.1]:3888 [::ffff:10.0.0.2]:50000 \n\
\t cubic rtt:0.1/0.05 mss:1448 bytes_acked:7 segs_out:12 lastrcv:9000\n\
0      0               10.0.0.1:22            10.0.0.2:50001 \n\
\t cubic rtt:0.1/0.05\n\
0      0               10.0.0.1:50002      203.0.113.80:443 \n\
\t bbr rtt:0.1/0.05\n\
0      0      [fe80::1]%eth0:50002  [fe80::2]%eth0:443 \n\
garbage\n\
\t rtt:1/1\n";

    #[test]
    fn links_with_members_are_read_and_no_other_connection() {
        let end = |id: u8| End {
            id: ServerId(i64::from(id)),
            ips: vec![IpAddr::from([10, 0, 0, id])],
            ports: vec![2888, 3888],
        };
        let links = read(SEEN, &[end(1), end(2), end(3)]);
        let [dialled, accepted] = links.as_slice() else { panic!("{links:#?}") };
        assert_eq!((dialled.server, accepted.server), (ServerId(3), ServerId(2)));
        let Link { segments, repeated, unacknowledged, backoff, .. } = *dialled;
        assert_eq!((segments, repeated, unacknowledged, backoff), (1292, 14, 3, 2));
        assert_eq!((dialled.round_trip_ms, dialled.segment_bytes), (Some(1.297), Some(1348)));
        assert_eq!((dialled.acknowledged_bytes, dialled.received_ms_ago), (3060, Some(360)));
        assert_eq!((accepted.repeated, accepted.unacknowledged, accepted.backoff), (0, 0, 0));
    }

    #[test]
    fn of_several_servers_on_one_machine_only_the_one_with_the_port_is_known() {
        let end = |id: i64, port: u16| End {
            id: ServerId(id),
            ips: vec![[127, 0, 0, 1].into()],
            ports: vec![port],
        };
        let ends = [end(1, 3881), end(2, 3882)];
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(other_end(at(50_000), at(3882), &ends), Some(ServerId(2)));
        assert_eq!(other_end(at(3881), at(50_000), &ends), None);
    }
}
