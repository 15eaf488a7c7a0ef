//! What a server needs to accept clients with TLS, and who a client is by its certificate.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use quorate_keystore::{Certificate as Own, KeyStore, Unusable};
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;

use crate::certificate::Certificate;
use crate::client_settings::ClientSettings;
use crate::error::TlsError;
use crate::marks::Marks;
use crate::provider::provider;
use crate::reason::{Failure, Reason};
use crate::settings::ClientAuth;
use crate::stores;
use crate::tls::{Notice, acceptor, own, shown, told};
use crate::trust::TrustSet;
use crate::verifier::Verifier;

/// What a server needs to accept clients with TLS: its stores, read and found good.
pub struct ClientTls {
    settings: ClientSettings,
    trust: Arc<TrustSet>,
    acceptor: Arc<ServerConfig>,
    notices: Vec<Notice>,
    marks: Marks,
    shown: String,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Reads the stores, and looks whether clients can be accepted with them. Without a trust store no client is asked for a
    /// certificate, whatever the settings say. Blocks.
    ///
    /// # Errors
    ///
    /// A [`TlsError`] that names the file, what is wrong, and what to do.
    pub fn open(settings: ClientSettings) -> Result<Self, TlsError> {
        // Before they are read: what changes meanwhile is seen at the next look.
        let marks = Self::marks_of(&settings);
        let provider = Arc::new(provider(settings.versions, &settings.suites)?);
        let (own, mut notices) = own(&settings.key_store, may_accept, &provider)?;
        let (trust, client_auth) = match &settings.trust_store {
            None => (TrustSet::new(Vec::new(), None), ClientAuth::None),
            Some(file) => {
                let trusted = stores::trusted(file)?;
                notices.extend(told(file, &trusted.notices));
                let revoked = settings.revoked.as_ref().map(stores::revoked).transpose()?;
                (TrustSet::new(trusted.certificates, revoked), settings.client_auth)
            }
        };
        let trust = Arc::new(trust);
        let verifier = Verifier {
            trust: Arc::clone(&trust),
            algorithms: provider.signature_verification_algorithms,
            client_auth,
            check: None,
        };
        let acceptor = acceptor(&provider, verifier, &own)?;
        let shown = shown(&own);
        Ok(Self { settings, trust, acceptor, notices, marks, shown })
    }

    /// Its files as they are now. Blocks.
    pub fn marks_of(settings: &ClientSettings) -> Marks {
        let stores = [&settings.key_store].into_iter().chain(&settings.trust_store);
        Marks::of_files(stores, settings.revoked.as_ref())
    }

    /// What it was told.
    pub const fn settings(&self) -> &ClientSettings {
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

    /// The lists of revoked certificates whose next update is overdue now, one sentence for each.
    pub fn overdue(&self) -> Vec<String> {
        self.trust.overdue()
    }

    /// Its own certificate, for people: whose it is, its serial number, when it ends.
    pub fn own(&self) -> &str {
        &self.shown
    }

    /// rustls's configuration.
    pub fn acceptor(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.acceptor)
    }

    /// Who the client at this address is by a certificate that was verified.
    ///
    /// # Errors
    ///
    /// What cannot be read in it; that it is not for this address, if it has to be.
    pub fn holder(
        &self,
        certificate: &CertificateDer<'_>,
        from: IpAddr,
    ) -> Result<Holder, Failure> {
        let read = Certificate::read(certificate)?;
        let subject = read.subject_text();
        if subject.len() > SUBJECT_BYTES_MAX {
            let seen = format!(
                "its subject has {} bytes, the most are {SUBJECT_BYTES_MAX}",
                subject.len()
            );
            return Err(Failure::new(Reason::Malformed, seen));
        }
        if self.settings.verify_names {
            let names = read.names()?;
            if names.names(&from.to_canonical().to_string()).is_none() {
                let seen = format!("comes from {from}; certificate names {names}");
                return Err(Failure::new(Reason::Name, seen));
            }
        }
        Ok(Holder { subject })
    }
}

/// Who a client is by its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its subject as access lists of the scheme `x509` name it: RFC 2253 as Java writes it
    /// (`X500Principal.getName()`). Empty for a subject without a name.
    pub subject: String,
}

/// Who a certificate says that its holder is; nothing is verified.
///
/// # Errors
///
/// What cannot be read in it.
pub fn holder_of(certificate: &CertificateDer<'_>) -> Result<Holder, Failure> {
    Ok(Holder { subject: Certificate::read(certificate)?.subject_text() })
}

/// Unlike a member it dials no one with it.
fn may_accept(store: &KeyStore) -> Result<(), Unusable> {
    let leaf = store.chain.first().ok_or(Unusable::Damaged)?;
    let uses = Own::read(leaf).map_err(|_| Unusable::Damaged)?.uses();
    match (uses.accept, uses.sign) {
        (true, true) => Ok(()),
        (true, false) => Err(Unusable::SignsNot),
        (false, _) if uses.dial => Err(Unusable::OnlyDials),
        (false, _) => Err(Unusable::Neither),
    }
}

/// It is an identity: it goes to the leader with each write.
const SUBJECT_BYTES_MAX: usize = 4096;
