//! Authorities and certificates for one test each.

use std::path::PathBuf;

use quorate_tls::{Settings, StoreFile};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SanType, SerialNumber, date_time_ymd,
};

/// An authority.
pub(crate) struct Authority {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

/// A certificate with its key, as PEM.
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// What a certificate of a server says, to be changed by a test.
pub(crate) fn params(hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::CommonName, "a server");
    params
}

/// One that is for this server by id.
pub(crate) fn with_id(id: i64) -> CertificateParams {
    let mut params = params(&[]);
    let name = format!("urn:quorate:server:{id}").as_str().try_into().unwrap();
    params.subject_alt_names.push(SanType::URI(name));
    params
}

/// For accepting alone.
pub(crate) fn accepting_only(hosts: &[&str]) -> CertificateParams {
    let mut params = params(hosts);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, key }
    }

    /// Whoever holds a certificate that does not say that it may sign, and signs with it.
    pub(crate) fn that_is_none(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params(&[name]).self_signed(&key).unwrap();
        Self { certificate, key }
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub(crate) fn sign(&self, params: &CertificateParams) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let certificate = params.clone().signed_by(&key, &self.certificate, &self.key).unwrap();
        Leaf { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Authority {
    /// The list of what it has taken back, by serial number; the next one is due in this year.
    pub(crate) fn list(&self, serials: &[u8], due: i32) -> String {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(vec![*serial]),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1),
            next_update: date_time_ymd(due, 1, 1),
            crl_number: SerialNumber::from(vec![1]),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.certificate, &self.key).unwrap().pem().unwrap()
    }
}

/// One that nobody has signed, and that says of itself whether it is an authority.
pub(crate) fn self_signed(mut params: CertificateParams, authority: bool) -> Leaf {
    if authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Leaf { certificate: certificate.pem(), key: key.serialize_pem() }
}

/// A directory for stores, gone with its value.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("quorate-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&at).unwrap();
        Self(at)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> StoreFile {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        StoreFile::new(path)
    }

    /// The settings of a server with this certificate that trusts these.
    pub(crate) fn settings(&self, name: &str, leaf: &Leaf, trusted: &[&str]) -> Settings {
        let own = self.file(&format!("{name}.pem"), &format!("{}{}", leaf.certificate, leaf.key));
        let trusted = self.file(&format!("{name}-trust.pem"), &trusted.concat());
        Settings::new(own, trusted)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The same settings, but for this.
pub(crate) fn but(settings: &Settings, change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = settings.clone();
    change(&mut settings);
    settings
}
