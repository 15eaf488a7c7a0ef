//! An ensemble with TLS among its servers, and who certifies them.

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};

use super::{Ensemble, read};

/// TLS, and certificates that are for ids: all servers are on one host.
pub const WITH_IDS: &str = "sslQuorum=true\nquorate.ssl.identity=id";

/// Stands where a store's password does; what it opens is not sealed.
pub const SECRET: &str = "hunter2-and-more";

/// An authority, and what it has certified.
pub struct Authority {
    pub certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, key }
    }

    /// A certificate for a host and an id, with its key.
    pub fn certify(&self, name: &str, host: &str, id: usize) -> String {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let urn = format!("urn:quorate:server:{id}").try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(urn));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.certificate, &self.key).unwrap();
        certificate.pem() + &key.serialize_pem()
    }
}

/// Three servers with TLS among themselves, each with a certificate of its own; all on one host, so that the ids in them bind.
pub struct Secured {
    pub ensemble: Ensemble,
    pub authority: Authority,
}

impl Secured {
    pub fn new(lines: &str) -> Self {
        let ensemble = Ensemble::new(&["participant"; 3], lines);
        let secured = Self { ensemble, authority: Authority::new("an authority") };
        secured.write("trusted.pem", &secured.authority.certificate.pem());
        for id in 1..=3 {
            let own = secured.authority.certify(&format!("server {id}"), "127.0.0.1", id);
            secured.write(&format!("{id}.pem"), &own);
            let cfg = secured.ensemble.cfg(id);
            let stores = secured.stores(&format!("{id}.pem"), "trusted.pem");
            fs::write(&cfg, format!("{}\n{stores}\n", read(&cfg))).unwrap();
        }
        secured
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.ensemble.dir.path().join(name)
    }

    /// As the owner alone may read it.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        let owners = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(self.path(name), owners).unwrap();
    }

    pub fn stores(&self, own: &str, trusted: &str) -> String {
        format!(
            "ssl.quorum.keyStore.location={}\nssl.quorum.keyStore.password={SECRET}\n\
             ssl.quorum.trustStore.location={}\n",
            self.path(own).display(),
            self.path(trusted).display()
        )
    }
}
