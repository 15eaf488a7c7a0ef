//! Arbitrary bytes as a certificate, and as lists of revoked ones: they are refused in one short line, or the names that are
//! read out of them name just what they say.

use std::path::Path;

use quorate_tls::rustls::pki_types::CertificateDer;
use quorate_tls::{Named, PeerNames, end_of, holder_of, lists_in, names_of};

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    if let Err(error) = lists_in(Path::new("lists.pem"), data) {
        is_a_line(&error.to_string());
    }
    let certificate = CertificateDer::from(data);
    let (names, holder) = (names_of(&certificate), holder_of(&certificate));
    let names = match (names, holder) {
        (Ok(names), Ok(_)) => names,
        // One of both may be good where the other is not.
        (names, holder) => {
            for failure in [names.err(), holder.err()].into_iter().flatten() {
                is_a_line(&failure.to_string());
            }
            return;
        }
    };
    assert!(end_of(&certificate).is_some(), "what has names has an end");
    is_a_line(&names.to_string());
    for ip in &names.addresses {
        assert_eq!(names.names(&ip.to_string()), Some(Named::Itself), "{ip}");
    }
    for host in &names.hosts {
        names_itself(&names, host);
    }
}

/// What a host's name in a certificate names, and what it does not.
fn names_itself(names: &PeerNames, host: &str) {
    let only = PeerNames { hosts: vec![host.to_owned()], ..PeerNames::default() };
    let is_number = |host: &str| host.parse::<std::net::IpAddr>().is_ok();
    let name = host.strip_suffix('.').unwrap_or(host);
    // Who asks may put brackets around a host: they are no part of it.
    if name.starts_with('[') || name.ends_with(']') {
        return;
    }
    match name.strip_prefix("*.") {
        Some("") => assert_eq!(only.names("a."), None),
        Some(zone) => {
            if !is_number(&format!("a.{zone}")) && !zone.ends_with('.') {
                assert_eq!(only.names(&format!("a.{zone}")), Some(Named::ByWildcard), "{host}");
            }
            assert_eq!(only.names(&format!("a.b.{zone}")), None, "{host}");
            assert_eq!(only.names(&format!(".{zone}")), None, "{host}");
        }
        None if name.is_empty() || is_number(name) || name.ends_with('.') => {}
        None => {
            assert_eq!(only.names(name), Some(Named::Itself), "{host}");
            assert_eq!(names.names(&name.to_ascii_uppercase()), Some(Named::Itself), "{host}");
            assert_eq!(only.names(&format!("a.{name}")), None, "{host}");
        }
    }
}

fn is_a_line(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.chars().count() < 1000, "{text}");
}
