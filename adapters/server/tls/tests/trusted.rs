//! Whom a trust store lets in, asked without a handshake.

use quorate_tls::rustls::pki_types::CertificateDer;
use quorate_tls::rustls::pki_types::pem::PemObject;
use quorate_tls::{Reason, trusted_by};

use crate::made::{Authority, accepting_only, params, self_signed};

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// Why not, of one that dials and of one that was dialled.
fn refusals(
    trusted: &[CertificateDer<'static>],
    shown: &[CertificateDer<'_>],
) -> [Option<Reason>; 2] {
    let refusal = |dialled| trusted_by(trusted, shown, dialled).err().map(|error| error.reason);
    [refusal(false), refusal(true)]
}

/// It is trusted whatever it says of its issuer, and not for what it says that it is not for.
#[test]
fn a_certificate_that_is_for_accepting_alone_dials_none_be_it_in_the_trust_store_or_signed() {
    let known = [der(&self_signed(accepting_only(&["zk1.test"]), false).certificate)];
    assert_eq!(refusals(&known, &known), [Some(Reason::Usage), None]);
    let authority = Authority::new("ours");
    let signed = [der(&authority.sign(&accepting_only(&["zk1.test"])).certificate)];
    assert_eq!(refusals(&[der(&authority.pem())], &signed), [Some(Reason::Usage), None]);
}

/// NIST SP 800-131A has disallowed RSA keys below 2048 bits since 2014.
#[test]
fn a_certificate_with_a_weak_key_is_refused_even_if_it_is_in_the_trust_store() {
    let weak = [der(include_str!("../../keystore/tests/fixtures/weak-rsa.pem"))];
    assert_eq!(refusals(&weak, &weak), [Some(Reason::WeakKey); 2]);
    let told = trusted_by(&weak, &weak, true).unwrap_err().to_string();
    assert!(told.contains("RSA of 1024 bits"), "{told}");
}

/// Paths are looked for among all that is shown, so what is shown is bounded.
#[test]
fn a_chain_is_refused_unread_when_it_is_longer_than_any_is() {
    let authority = Authority::new("ours");
    let trusted = [der(&authority.pem())];
    let mut shown = vec![der(&authority.sign(&params(&["zk1.test"])).certificate)];
    shown.resize(10, trusted[0].clone());
    assert_eq!(refusals(&trusted, &shown), [None; 2]);
    shown.push(trusted[0].clone());
    assert_eq!(refusals(&trusted, &shown), [Some(Reason::Malformed); 2]);
}
