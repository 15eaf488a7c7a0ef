//! What a certificate says, as far as it is asked here.

use std::net::IpAddr;

use quorate_core::id::ServerId;
use rustls_pki_types::UnixTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::X509Version;

use crate::distinguished::rfc2253;
use crate::names::{PeerNames, URN};
use crate::reason::{Failure, Reason};

/// For what a side shows its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It has dialled.
    Dials,
    /// It has accepted.
    Accepts,
}

/// A certificate, read.
pub(crate) struct Certificate<'a>(X509Certificate<'a>);

impl<'a> Certificate<'a> {
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, Failure> {
        let unreadable = |why: String| Failure::new(Reason::Malformed, why);
        let (rest, read) = X509Certificate::from_der(der)
            .map_err(|error| unreadable(format!("a certificate cannot be read: {error}")))?;
        if !rest.is_empty() {
            return Err(unreadable("there is more behind a certificate".to_owned()));
        }
        Ok(Self(read))
    }

    /// Whose it is, for people.
    pub(crate) fn subject(&self) -> String {
        let subject = self.0.subject().to_string();
        let shown = subject.chars().take(SUBJECT_MAX).map(|c| if c.is_control() { '?' } else { c });
        shown.collect()
    }

    /// Whose it is, as it stands there.
    pub(crate) fn subject_der(&self) -> &[u8] {
        self.0.subject().as_raw()
    }

    /// Whose it is, for access lists.
    pub(crate) fn subject_text(&self) -> String {
        rfc2253(self.0.subject())
    }

    /// Which one it is, for people.
    pub(crate) fn shown(&self) -> String {
        let (serial, ends) = (self.0.raw_serial_as_string(), self.0.validity().not_after);
        format!("{}, serial {serial}, until {ends}", self.subject())
    }

    pub(crate) fn names(&self) -> Result<PeerNames, Failure> {
        let unreadable =
            |_| Failure::new(Reason::Malformed, "its alternative names cannot be read");
        let mut names = PeerNames::default();
        let alternatives = self.0.subject_alternative_name().map_err(unreadable)?;
        for name in alternatives.iter().flat_map(|names| &names.value.general_names) {
            match name {
                GeneralName::DNSName(host) => names.hosts.push((*host).to_owned()),
                GeneralName::IPAddress(bytes) => names.addresses.extend(address(bytes)),
                GeneralName::URI(text) => {
                    let id = text.strip_prefix(URN).and_then(|id| id.parse().ok());
                    names.ids.extend(id.map(ServerId));
                }
                GeneralName::OtherName(..)
                | GeneralName::RFC822Name(_)
                | GeneralName::X400Address(_)
                | GeneralName::DirectoryName(_)
                | GeneralName::EDIPartyName(_)
                | GeneralName::RegisteredID(_)
                | GeneralName::Invalid(..) => {}
            }
        }
        let common = self.0.subject().iter_common_name().last();
        names.common_name = common.and_then(|name| name.as_str().ok()).map(str::to_owned);
        Ok(names)
    }

    /// When it ends, in seconds since 1970.
    pub(crate) fn ends(&self) -> i64 {
        self.0.validity().not_after.timestamp()
    }

    /// Whether it holds at this moment.
    pub(crate) fn check_time(&self, now: UnixTime) -> Result<(), Failure> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = self.0.validity();
        if now < validity.not_before.timestamp() {
            let begins =
                format!("the certificate {} begins {}", self.subject(), validity.not_before);
            return Err(Failure::new(Reason::NotYetValid, begins));
        }
        if now > validity.not_after.timestamp() {
            let ended = format!("the certificate {} ended {}", self.subject(), validity.not_after);
            return Err(Failure::new(Reason::Expired, ended));
        }
        Ok(())
    }

    /// Whether its holder may do this with it. What it does not say is allowed.
    pub(crate) fn check_use(&self, side: Side) -> Result<(), Failure> {
        match self.forbids(side) {
            None => Ok(()),
            Some(what) => {
                let seen = format!("the certificate {} {what}", self.subject());
                Err(Failure::new(Reason::Usage, seen))
            }
        }
    }

    /// What forbids its holder to do this with it, and what to do about that.
    fn forbids(&self, side: Side) -> Option<&'static str> {
        match self.0.key_usage() {
            Ok(Some(usage)) if !usage.value.digital_signature() => return Some(NO_SIGNATURE),
            Ok(_) => {}
            Err(_) => return Some(UNREADABLE),
        }
        match (self.0.extended_key_usage(), side) {
            (Ok(None), _) => None,
            (Ok(Some(usage)), _) if usage.value.any => None,
            (Ok(Some(usage)), Side::Dials) => (!usage.value.client_auth).then_some(NO_CLIENT),
            (Ok(Some(usage)), Side::Accepts) => (!usage.value.server_auth).then_some(NO_SERVER),
            (Err(_), _) => Some(UNREADABLE),
        }
    }

    /// Whether its key is long enough.
    pub(crate) fn check_key(&self) -> Result<(), Failure> {
        match self.0.public_key().parsed() {
            Ok(PublicKey::RSA(key)) if key.key_size() < RSA_BITS_MIN => {
                let seen =
                    format!("RSA of {} bits, and {RSA_BITS_MIN} are the least", key.key_size());
                Err(Failure::new(Reason::WeakKey, seen))
            }
            Ok(PublicKey::DSA(_)) => {
                Err(Failure::new(Reason::WeakKey, "DSA, which TLS has given up"))
            }
            // What else there is the provider knows or refuses.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Whether others may be signed with it. The rule of Java's path validation since 2020: one of version 3 has to say
    /// so, an older one cannot.
    pub(crate) fn is_authority(&self) -> bool {
        if self.0.version() != X509Version::V3 {
            return true;
        }
        let constraints = self.0.basic_constraints().ok().flatten();
        let signs = match self.0.key_usage() {
            Ok(usage) => usage.is_none_or(|usage| usage.value.key_cert_sign()),
            Err(_) => false,
        };
        signs && constraints.is_some_and(|constraints| constraints.value.ca)
    }
}

/// Four or sixteen bytes; what has other lengths names no address.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

const NO_SIGNATURE: &str = "may not sign: its key usage lacks digitalSignature";
const NO_CLIENT: &str =
    "may only accept; a member also dials: add clientAuth to its extended key usage";
const NO_SERVER: &str =
    "may only dial; a member also accepts: add serverAuth to its extended key usage";
const UNREADABLE: &str = "has key usages that cannot be read";
/// What the providers verify, and what is held to be safe.
const RSA_BITS_MIN: usize = 2048;
/// How many characters of a subject are shown.
const SUBJECT_MAX: usize = 200;
