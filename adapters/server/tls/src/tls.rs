//! What a server needs to accept and to dial with TLS.

use std::fmt;
use std::sync::Arc;

use quorate_keystore::{KeyStore, Unusable, usable_by_a_member};
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, Error, InconsistentKeys, ServerConfig, SupportedProtocolVersion, version,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::certificate::{Certificate, Side};
use crate::error::{StoreError, TlsError};
use crate::marks::Marks;
use crate::names::PeerNames;
use crate::provider::provider;
use crate::reason::{Failure, Reason};
use crate::settings::{Settings, StoreFile, Versions};
use crate::stores;
use crate::trust::TrustSet;
use crate::verifier::{Check, Onlooker, Verifier};

/// What its operator should know about a store that can be used all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice(pub String);

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a server needs to accept and to dial with TLS: its stores, read and found good.
pub struct Tls {
    settings: Settings,
    trust: Arc<TrustSet>,
    own: Arc<CertifiedKey>,
    provider: Arc<CryptoProvider>,
    versions: Vec<&'static SupportedProtocolVersion>,
    acceptor: Arc<ServerConfig>,
    notices: Vec<Notice>,
    marks: Marks,
    shown: String,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the stores, and looks whether a member can do with them what it has to. Blocks.
    ///
    /// # Errors
    ///
    /// A [`TlsError`] that names the file, what is wrong, and what to do.
    pub fn open(settings: Settings) -> Result<Self, TlsError> {
        // Before they are read: what changes meanwhile is seen at the next look.
        let marks = Marks::of(&settings);
        let provider = Arc::new(provider(settings.versions, &settings.suites)?);
        let (own, mut notices) = own(&settings.key_store, usable_by_a_member, &provider)?;
        let trusted = stores::trusted(&settings.trust_store)?;
        notices.extend(told(&settings.trust_store, &trusted.notices));
        let revoked = settings.revoked.as_ref().map(stores::revoked).transpose()?;
        let trust = Arc::new(TrustSet::new(trusted.certificates, revoked));
        let versions = versions(&provider);
        let verifier = Verifier {
            trust: Arc::clone(&trust),
            algorithms: provider.signature_verification_algorithms,
            client_auth: settings.client_auth,
            check: None,
        };
        let acceptor = acceptor(&provider, verifier, &own)?;
        let shown = shown(&own);
        Ok(Self { settings, trust, own, provider, versions, acceptor, notices, marks, shown })
    }

    /// What it was told.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What its operator should know.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Its files, as they were when they were read.
    pub const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Its own certificate, for people: whose it is, its serial number, when it ends.
    pub fn own(&self) -> &str {
        &self.shown
    }

    /// When its own certificate ends, in seconds since 1970.
    pub fn ends(&self) -> Option<i64> {
        self.own.cert.first().and_then(end_of)
    }

    /// The lists of revoked certificates whose next update is overdue now, one sentence for each.
    pub fn overdue(&self) -> Vec<String> {
        self.trust.overdue()
    }

    /// Whether the holder of these certificates, the first its own, would be let in now; `dialled` says whether this server
    /// has dialled it.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn still_trusts(
        &self,
        certificates: &[CertificateDer<'_>],
        dialled: bool,
    ) -> Result<(), Failure> {
        let Some((leaf, chain)) = certificates.split_first() else { return Ok(()) };
        let side = if dialled { Side::Accepts } else { Side::Dials };
        let algorithms = &self.provider.signature_verification_algorithms;
        let checked = self.trust.check(leaf, chain, UnixTime::now(), side, algorithms);
        checked.map(drop).map_err(|error| Failure::of(&std::io::Error::other(error)))
    }

    /// What its own certificate calls this server.
    pub fn own_names(&self) -> PeerNames {
        let own = self.own.cert.first().and_then(|leaf| names_of(leaf).ok());
        own.unwrap_or_default()
    }

    /// For the side that accepts.
    pub fn acceptor(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.acceptor)
    }

    /// For one dial; `check` judges who answers.
    ///
    /// # Errors
    ///
    /// rustls's, which it has had at the start already.
    pub fn dialler(&self, check: Check) -> Result<Arc<ClientConfig>, TlsError> {
        let verifier = Verifier {
            trust: Arc::clone(&self.trust),
            algorithms: self.provider.signature_verification_algorithms,
            client_auth: self.settings.client_auth,
            check: Some(check),
        };
        self.dialling(Arc::new(verifier))
    }

    /// For one look at who answers: any certificate is taken, and it is up to the caller what it is worth
    /// ([`Tls::still_trusts`]).
    ///
    /// # Errors
    ///
    /// rustls's, which it has had at the start already.
    pub fn onlooker(&self) -> Result<Arc<ClientConfig>, TlsError> {
        self.dialling(Arc::new(Onlooker(self.provider.signature_verification_algorithms)))
    }

    /// Its certificate is shown whatever authorities the other side names: it may be known there for itself.
    fn dialling(
        &self,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let own = Arc::new(SingleCertAndKey::from(Arc::clone(&self.own)));
        let mut dialler = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&self.versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(own);
        dialler.enable_sni = false;
        dialler.enable_early_data = false;
        dialler.resumption = Resumption::disabled();
        Ok(Arc::new(dialler))
    }
}

/// Whether the holder of these certificates, its own first, would be trusted now by who has these authorities; `dialled`
/// says whether it is the one that was dialled.
///
/// # Errors
///
/// Why not.
pub fn trusted_by(
    authorities: &[CertificateDer<'static>],
    certificates: &[CertificateDer<'_>],
    dialled: bool,
) -> Result<(), Failure> {
    let Some((leaf, chain)) = certificates.split_first() else { return Ok(()) };
    let both = Versions { tls12: true, tls13: true };
    let provider = provider(both, &[]);
    let provider = provider.map_err(|error| Failure::new(Reason::Malformed, error.to_string()))?;
    let trust = TrustSet::new(authorities.to_vec(), None);
    let side = if dialled { Side::Accepts } else { Side::Dials };
    let algorithms = &provider.signature_verification_algorithms;
    let checked = trust.check(leaf, chain, UnixTime::now(), side, algorithms);
    checked.map(drop).map_err(|error| Failure::of(&std::io::Error::other(error)))
}

/// The names in a certificate that was verified.
///
/// # Errors
///
/// What cannot be read in it.
pub fn names_of(certificate: &CertificateDer<'_>) -> Result<PeerNames, Failure> {
    Certificate::read(certificate)?.names()
}

/// When a certificate ends, in seconds since 1970; none if it cannot be read.
pub fn end_of(certificate: &CertificateDer<'_>) -> Option<i64> {
    Certificate::read(certificate).ok().map(|read| read.ends())
}

/// The versions of the suites that are left.
pub(crate) fn versions(provider: &CryptoProvider) -> Vec<&'static SupportedProtocolVersion> {
    let has = |tls13: bool| {
        let mut suites = provider.cipher_suites.iter();
        suites.any(|suite| suite.tls13().is_some() == tls13)
    };
    let mut versions = Vec::new();
    versions.extend(has(true).then_some(&version::TLS13));
    versions.extend(has(false).then_some(&version::TLS12));
    versions
}

/// rustls's configuration of the side that accepts.
pub(crate) fn acceptor(
    provider: &Arc<CryptoProvider>,
    verifier: Verifier,
    own: &Arc<CertifiedKey>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut acceptor = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&versions(provider))?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    acceptor.session_storage = Arc::new(NoServerSessionStorage {});
    acceptor.ticketer = Arc::new(Receipts);
    acceptor.send_tls13_tickets = 1;
    acceptor.max_early_data_size = 0;
    Ok(Arc::new(acceptor))
}

/// A certificate of this server, for people.
pub(crate) fn shown(own: &CertifiedKey) -> String {
    let shown = own.cert.first().map(|leaf| Certificate::read(leaf).map(|read| read.shown()));
    shown.and_then(Result::ok).unwrap_or_default()
}

/// The key of this server, and what is worth a word about its certificate. `usable` says whether it may do what it is for.
pub(crate) fn own(
    key_store: &StoreFile,
    usable: fn(&KeyStore) -> Result<(), Unusable>,
    provider: &CryptoProvider,
) -> Result<(Arc<CertifiedKey>, Vec<Notice>), TlsError> {
    let file = || key_store.path.clone();
    let store = stores::own(key_store)?;
    usable(&store).map_err(|source| StoreError::Usage { file: file(), source })?;
    let mut notices: Vec<_> = told(key_store, &store.notices).collect();
    let KeyStore { key, chain, .. } = store;
    let key_is = |subject, what| StoreError::Key { file: file(), subject, what };
    let leaf = chain.first().cloned().unwrap_or_else(|| Vec::new().into());
    let read = Certificate::read(&leaf);
    let read = read.map_err(|failure| key_is("a certificate".to_owned(), failure.seen))?;
    let signing = provider.key_provider.load_private_key(key);
    let signing = signing
        .map_err(|error| key_is(read.subject(), format!("none that can sign here: {error}")))?;
    let own = CertifiedKey::new(chain, signing);
    match own.keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(_) => {
            let what = "not the one that its certificate is for".to_owned();
            return Err(key_is(read.subject(), what).into());
        }
    }
    if let Err(failure) = read.check_time(UnixTime::now()) {
        let seen = format!("{}: {}, and no server will trust it", file().display(), failure.seen);
        notices.push(Notice(seen));
    }
    Ok((Arc::new(own), notices))
}

/// What the reader of a store has noticed, with its name.
pub(crate) fn told<'a>(
    file: &'a StoreFile,
    notices: &'a [quorate_keystore::Notice],
) -> impl Iterator<Item = Notice> + 'a {
    notices.iter().map(|notice| Notice(format!("{}: {notice}", file.path.display())))
}

/// Tickets that open nothing.
///
/// In TLS 1.3 the side that dials is done before its certificate was looked at, and learns that it was refused only
/// from what comes next. A ticket comes next when it was accepted (RFC 8446, 4.6.1): so it is a receipt. No session is
/// ever resumed with it.
#[derive(Debug)]
struct Receipts;

impl ProducesTickets for Receipts {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        Some(b"receipt".to_vec())
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
