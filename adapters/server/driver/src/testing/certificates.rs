//! An authority, and the certificates of an ensemble's servers and of those who are none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_rustls::pki_types::pem::PemObject;
use futures_rustls::pki_types::{CertificateDer, PrivateKeyDer};
use futures_rustls::rustls::crypto::aws_lc_rs;
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use quorate_core::id::ServerId;
use quorate_tls::{ClientSettings, IdentityMode, RevokedFile, Settings, StoreFile};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SanType,
    SerialNumber, date_time_ymd,
};

/// An authority.
pub(super) struct Authority {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

/// A certificate with its key, as PEM.
#[derive(Debug)]
pub(super) struct Holder {
    chain: String,
    key: String,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Ended,
    NotBegun,
    AcceptsOnly,
    DialsOnly,
    EndsSoon,
}

impl Holder {
    /// What its server has in its key store.
    pub(super) fn own(&self) -> String {
        format!("{}{}", self.chain, self.key)
    }
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap(), key }
    }

    /// For a server on this machine, by its id.
    pub(super) fn for_server(&self, id: ServerId) -> Holder {
        self.with_flaw(id, None)
    }

    pub(super) fn with_flaw(&self, id: ServerId, flaw: Option<Flaw>) -> Holder {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.serial_number = Some(serial(id));
        let urn = format!("urn:quorate:server:{id}");
        params.subject_alt_names.push(SanType::URI(urn.as_str().try_into().unwrap()));
        match flaw {
            None => {}
            Some(Flaw::Ended) => {
                params.not_before = date_time_ymd(2001, 1, 1);
                params.not_after = date_time_ymd(2002, 1, 1);
            }
            Some(Flaw::NotBegun) => {
                params.not_before = date_time_ymd(2200, 1, 1);
                params.not_after = date_time_ymd(2201, 1, 1);
            }
            Some(Flaw::EndsSoon) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                params.not_after = date_time_ymd(1970, 1, 1) + now + SOON;
            }
            Some(Flaw::AcceptsOnly) => {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            }
            Some(Flaw::DialsOnly) => {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }
        }
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.certificate, &self.key).unwrap();
        Holder { chain: signed.pem(), key: key.serialize_pem() }
    }

    /// Writes the stores of a server; the settings of a server with them, whose ids are in the certificates since all are
    /// on one host.
    pub(super) fn settings(&self, dir: &Path, holder: &Holder) -> Settings {
        fs::create_dir_all(dir).unwrap();
        let file = |name: &str, text: String| -> PathBuf {
            let path = dir.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let own = file("own.pem", format!("{}{}", holder.chain, holder.key));
        let trusted = file("trusted.pem", self.certificate.pem());
        let mut settings = Settings::new(StoreFile::new(own), StoreFile::new(trusted));
        settings.identity = IdentityMode::Id;
        settings
    }

    /// For a client that is called so, and is on this machine.
    pub(super) fn for_client(&self, name: &str) -> Holder {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "ours, all of it");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.certificate, &self.key).unwrap();
        Holder { chain: signed.pem(), key: key.serialize_pem() }
    }

    /// Writes the stores that a server has for its clients; their settings.
    pub(super) fn for_clients(&self, dir: &Path, holder: &Holder) -> ClientSettings {
        let settings = self.settings(&dir.join("clients"), holder);
        ClientSettings::new(settings.key_store, Some(settings.trust_store))
    }

    /// The list of what it has taken back: all that it has signed for these servers.
    pub(super) fn revoked(&self, ids: &[ServerId]) -> String {
        let revoked = ids.iter().map(|id| RevokedCertParams {
            serial_number: serial(*id),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1),
            next_update: date_time_ymd(2200, 1, 1),
            crl_number: SerialNumber::from(vec![1]),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.certificate, &self.key).unwrap().pem().unwrap()
    }

    /// Writes such a list beside the stores of a server.
    pub(super) fn takes_back(&self, settings: &Settings, ids: &[ServerId]) -> RevokedFile {
        let path = settings.trust_store.path.with_file_name("lists.pem");
        fs::write(&path, self.revoked(ids)).unwrap();
        RevokedFile { path, strict: false }
    }

    /// What whoever trusts it has in its store.
    pub(super) fn trusted(&self) -> String {
        self.certificate.pem()
    }

    /// Of one that dials servers of this authority with a certificate, or without.
    pub(super) fn stranger(&self, holder: Option<&Holder>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match holder {
            None => config.with_no_client_auth(),
            Some(Holder { chain, key }) => {
                let chain = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![chain], key).unwrap()
            }
        })
    }
}

/// Makes an authority that is forgotten, and writes the stores of servers that are processes on this machine: `own.pem` and
/// `trusted.pem` in a directory for each, `DIR/ID`. Returns how one dials them who trusts them and has no certificate.
pub fn member_stores(dir: &Path, ids: impl IntoIterator<Item = ServerId>) -> Arc<ClientConfig> {
    let authority = Authority::new("an authority");
    for id in ids {
        authority.settings(&dir.join(id.to_string()), &authority.for_server(id));
    }
    authority.stranger(None)
}

impl Holder {
    /// Of one that servers of whatever authority dial, and that asks them for nothing.
    pub(super) fn impersonates(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = CertificateDer::from_pem_slice(self.chain.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key);
        Arc::new(config.unwrap())
    }
}

/// The number of each certificate for a server.
fn serial(id: ServerId) -> SerialNumber {
    SerialNumber::from(vec![u8::try_from(id.0).unwrap()])
}

/// After a start, and a few links.
const SOON: Duration = Duration::from_secs(4);
