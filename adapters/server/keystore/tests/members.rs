//! For what a certificate may be used, and what it says.

use std::net::{IpAddr, Ipv4Addr};

use quorate_keystore::rustls_pki_types::CertificateDer;
use quorate_keystore::rustls_pki_types::pem::PemObject;
use quorate_keystore::{Certificate, Named, Names, Unusable, usable_by_a_member};

use crate::fixtures::{bytes, keys};

#[test]
fn a_member_accepts_and_dials() {
    let usable = |name| usable_by_a_member(&keys(name).unwrap());
    assert_eq!(usable("pkcs8-ec.pem"), Ok(()), "both are named");
    assert_eq!(usable("pkcs8-rsa.pem"), Ok(()), "nothing is said");
    assert_eq!(usable("self-signed.jks"), Ok(()), "nothing is said");
    assert_eq!(usable("accepts-only.pem"), Err(Unusable::OnlyAccepts));
    assert_eq!(usable("dials-only.pem"), Err(Unusable::OnlyDials));
    assert_eq!(
        Unusable::OnlyAccepts.to_string(),
        "the certificate may only accept; a member also dials: add clientAuth to its extended key usage"
    );
}

#[test]
fn a_certificate_says_for_whom_it_is() {
    let store = keys("pkcs8-ec.pem").unwrap();
    let [leaf, root] = &*store.chain else { panic!("{store:?}") };
    let (leaf, root) = (Certificate::read(leaf).unwrap(), Certificate::read(root).unwrap());
    assert_eq!((leaf.subject(), leaf.issuer()), ("CN=ec1.test".to_owned(), root.subject()));
    assert_eq!(leaf.common_name().as_deref(), Some("ec1.test"));
    assert_eq!(leaf.dns_names(), ["ec1.test"]);
    assert_eq!(leaf.addresses(), [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    assert_eq!(leaf.key(), "P-256");
    assert!(leaf.names_as_issuer(&root) && root.names_as_issuer(&root));
    assert!(!root.names_as_issuer(&leaf));
    assert!(root.uses().issue && !root.uses().sign && !leaf.uses().issue);
    assert_eq!(leaf.not_after() - leaf.not_before(), 36_500 * 24 * 3600);
}

#[test]
fn a_certificate_names_its_hosts_and_no_others() {
    let store = keys("names.pem").unwrap();
    let leaf = Certificate::read(&store.chain[0]).unwrap();
    for host in
        ["zk1.test", "ZK1.Test.", "a.pods.test", "10.0.0.1", "::ffff:10.0.0.1", "[2001:db8::1]"]
    {
        assert!(leaf.names_host(host).is_some(), "{host}");
    }
    assert_eq!(leaf.names_host("a.pods.test"), Some(Named::ByWildcard));
    // The common name is none of them, since there are others.
    for host in [
        "names.test",
        "zk2.test",
        "a.b.pods.test",
        "pods.test",
        ".pods.test",
        "10.0.0.2",
        "test",
        "",
    ] {
        assert_eq!(leaf.names_host(host), None, "{host}");
    }
    let alone = keys("self-signed.jks").unwrap();
    let alone = Certificate::read(&alone.chain[0]).unwrap();
    assert_eq!(alone.names_host("zk1.test"), Some(Named::Itself));
    assert_eq!(alone.names_host("zk2.test"), None);
    // As ZooKeeper has it, also right below a top-level domain.
    let zone = Names { hosts: &["*.test".to_owned()], ..Names::default() };
    assert_eq!(zone.names("zk1.test"), Some(Named::ByWildcard));
    assert_eq!((zone.names("test"), zone.names("a.zk1.test")), (None, None));
}

#[test]
fn what_is_too_weak_about_a_certificate_is_said() {
    let weakness = |name: &str| {
        let der = CertificateDer::from_pem_slice(&bytes(name)).unwrap();
        Certificate::read(&der).unwrap().weakness()
    };
    assert_eq!(weakness("pkcs8-ec.pem"), None);
    assert_eq!(weakness("weak-rsa.pem").unwrap(), "has a key that is too weak, RSA of 1024 bits");
    assert_eq!(weakness("sha1-signed.pem").unwrap(), "is signed with SHA-1 with ECDSA");
}
