//! What an operator says about TLS between servers, under ZooKeeper's names.

use std::path::PathBuf;
use std::time::Duration;

use quorate_keystore::{Kind, Password};

use crate::identity::IdentityMode;

/// What a server is told about TLS between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Whether this server dials with TLS (`sslQuorum`); it never tries again without after a handshake that failed.
    pub dials_tls: bool,
    /// Whether it accepts connections without TLS beside those with it (`portUnification`).
    pub accepts_plain: bool,
    /// Its key and certificates (`ssl.quorum.keyStore.*`).
    pub key_store: StoreFile,
    /// Whom it trusts (`ssl.quorum.trustStore.*`): authorities, and certificates of single servers.
    pub trust_store: StoreFile,
    /// What may be spoken (`ssl.quorum.protocol`, `ssl.quorum.enabledProtocols`).
    pub versions: Versions,
    /// The cipher suites that may be agreed on (`ssl.quorum.ciphersuites`); none said: all there are.
    pub suites: Vec<Suite>,
    /// Whether the side that dials has to show a certificate (`ssl.quorum.clientAuth`).
    pub client_auth: ClientAuth,
    /// Whether the certificate of a server that is dialled has to name a host of it
    /// (`ssl.quorum.hostnameVerification`).
    pub verify_names: bool,
    /// Whether a certificate has to be for the id that is claimed with it (`quorate.ssl.identity`).
    pub identity: IdentityMode,
    /// How long the first byte and the handshake together may take (`ssl.quorum.handshakeDetectionTimeoutMillis`; 5 s).
    pub handshake_time: Duration,
    /// How often it is looked whether the stores have changed (`quorate.ssl.reloadInterval`; 10 s); never, if none
    /// (`sslQuorumReloadCertFiles=false`). Links that are up stay as they are.
    pub reload: Option<Duration>,
    /// Lists of revoked certificates, if there are any (`quorate.ssl.crlFile`).
    pub revoked: Option<RevokedFile>,
    /// Whether a link is closed when the certificate of the other side ends (`quorate.ssl.closeExpired`); it is told either
    /// way.
    pub close_expired: bool,
    /// Which links are closed when the stores have changed (`quorate.ssl.closeOnReload`).
    pub close_on_reload: CloseOnReload,
    /// After how many records in one direction a link over TLS 1.2 ends, if its cipher does not set less: it is made anew
    /// before.
    pub records_max: u64,
}

impl Settings {
    /// TLS on every link with these two stores, both versions, all suites, names and ids checked.
    pub fn new(key_store: StoreFile, trust_store: StoreFile) -> Self {
        Self {
            dials_tls: true,
            accepts_plain: false,
            key_store,
            trust_store,
            versions: Versions { tls12: true, tls13: true },
            suites: Vec::new(),
            client_auth: ClientAuth::Need,
            verify_names: true,
            identity: IdentityMode::Member,
            handshake_time: Duration::from_secs(5),
            reload: Some(Duration::from_secs(10)),
            revoked: None,
            close_expired: false,
            close_on_reload: CloseOnReload::Untrusted,
            records_max: u64::MAX,
        }
    }

    /// How a server that is dialled is judged: as the identity says, or, without that, by its names alone.
    pub fn dialled_mode(&self) -> IdentityMode {
        let by_names = self.identity == IdentityMode::Off && self.verify_names;
        if by_names { IdentityMode::Member } else { self.identity }
    }
}

/// A file with keys or certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is said to be; by the end of its name, if it is not said.
    pub kind: Option<Kind>,
    /// What opens it, if anything has to.
    pub password: Option<StorePassword>,
}

impl StoreFile {
    /// A file without a password, whose name says what it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), kind: None, password: None }
    }
}

/// A file with lists of revoked certificates, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether a list counts no more when its next update is overdue, so that its authority's certificates are refused
    /// (`quorate.ssl.crlStrict`).
    pub strict: bool,
}

/// Which links are closed, one after the other, when stores have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseOnReload {
    /// None.
    None,
    /// Those with a certificate that has ended.
    Expired,
    /// Those with a certificate that would not be trusted now, for whatever reason.
    Untrusted,
}

impl CloseOnReload {
    /// The one of this name; none if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "expired" => Some(Self::Expired),
            "untrusted" => Some(Self::Untrusted),
            _ => None,
        }
    }
}

/// The kind of store that ZooKeeper has under this name, in any case; none if there is none of those that are read.
pub fn store_kind(name: &str) -> Option<Kind> {
    let kinds = [Kind::Jks, Kind::Pkcs12, Kind::Pem];
    kinds.into_iter().find(|kind| kind.to_string().eq_ignore_ascii_case(name))
}

/// Where the password of a store comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePassword {
    /// It stands in `zoo.cfg`.
    Inline(Password),
    /// It is the first line of this file.
    File(PathBuf),
}

/// The versions of TLS that may be spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// TLS 1.2, the newest that ZooKeeper 3.8 speaks unless it is told otherwise.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
}

/// Whether the side that dials has to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// It is not asked for one: anyone may be any server.
    None,
    /// It is asked, and may have none: the same.
    Want,
    /// It has to.
    Need,
}

/// The cipher suites that there are, under their names in Java and in the registry of IANA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the registry")]
pub enum Suite {
    Tls13Aes128,
    Tls13Aes256,
    Tls13Chacha20,
    EcdheRsaAes128,
    EcdheRsaAes256,
    EcdheRsaChacha20,
    EcdheEcdsaAes128,
    EcdheEcdsaAes256,
    EcdheEcdsaChacha20,
}

impl Suite {
    /// All, the cheapest first.
    pub const ALL: [Self; 9] = [
        Self::Tls13Aes128,
        Self::Tls13Aes256,
        Self::Tls13Chacha20,
        Self::EcdheEcdsaAes128,
        Self::EcdheRsaAes128,
        Self::EcdheEcdsaAes256,
        Self::EcdheRsaAes256,
        Self::EcdheEcdsaChacha20,
        Self::EcdheRsaChacha20,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls13Aes128 => "TLS_AES_128_GCM_SHA256",
            Self::Tls13Aes256 => "TLS_AES_256_GCM_SHA384",
            Self::Tls13Chacha20 => "TLS_CHACHA20_POLY1305_SHA256",
            Self::EcdheRsaAes128 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheRsaAes256 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheRsaChacha20 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            Self::EcdheEcdsaAes128 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes256 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Self::EcdheEcdsaChacha20 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        }
    }

    /// The suite of this name; none if it is one that is not there.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Whether it is one of TLS 1.3.
    pub const fn is_tls13(self) -> bool {
        matches!(self, Self::Tls13Aes128 | Self::Tls13Aes256 | Self::Tls13Chacha20)
    }
}
