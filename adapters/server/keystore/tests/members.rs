//! For what a certificate may be used, and what it says.

use std::net::{IpAddr, Ipv4Addr};

use quorate_keystore::{Certificate, Unusable, usable_by_a_member};

use crate::fixtures::keys;

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
