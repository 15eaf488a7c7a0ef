//! How the command comes to the ports between servers through TLS: with the stores that a server's configuration names.
//!
//! Whatever certificate a port shows is read, and then judged: who is not trusted is asked nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use quorate_keystore::rustls_pki_types::CertificateDer;
use quorate_tls::{Failure as Refusal, Reason, Settings, StoreFile, StorePassword, Tls};
use quorate_tokio::core::id::ServerId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::failure::Failure;
use crate::tls::{self, Store};

/// What is said of TLS between servers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PeerTlsArguments {
    /// Where servers speak TLS among themselves, through it: with the stores that ssl.quorum.* of this file name.
    ///
    /// Servers tell nothing to a member's certificate under another id: give it one that names no member. Where
    /// quorate.ssl.identity=id, it names the id that it comes with, urn:quorate:server:N with N above 255.
    #[arg(long, value_name = "ZOO.CFG")]
    tls: Option<PathBuf>,
}

/// What it takes to be let in.
#[derive(Clone, Debug)]
pub(crate) struct PeerTls {
    tls: Arc<Tls>,
    /// Whether its servers speak without TLS, too.
    is_both: bool,
    /// The id that its own certificate says, if that is none of a server's.
    id: Option<ServerId>,
}

/// A connection, with TLS or without.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl PeerTlsArguments {
    /// Reads the stores; none if there is to be no TLS. Blocks.
    pub(crate) fn open(&self) -> Result<Option<PeerTls>, Failure> {
        self.tls.as_deref().map(PeerTls::open).transpose()
    }
}

impl PeerTls {
    fn open(file: &Path) -> Result<Self, Failure> {
        let usage =
            |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", file.display()));
        let read = tls::read(file).map_err(|error| Failure::usage(error.to_string()))?;
        let is_both = read.takes_plain_links();
        let (own, trusted) = read.into_stores();
        let store = |store: Option<Store>, which: &str| -> Result<StoreFile, Failure> {
            let unset = || usage(&format!("ssl.quorum.{which}.location is not set"));
            let store = store.ok_or_else(unset)?;
            let kind = store.parsed().map_err(|reason| usage(&reason))?;
            let password = store.password.map_err(|error| usage(&error))?;
            let password = password.map(StorePassword::Inline);
            Ok(StoreFile { path: store.file, kind, password })
        };
        let settings = Settings::new(store(own, "keyStore")?, store(trusted, "trustStore")?);
        let tls = Tls::open(settings).map_err(|error| usage(&error))?;
        let id = tls.own_names().ids.into_iter().find(|id| !ServerId::CONFIGURABLE.contains(&id.0));
        Ok(Self { tls: Arc::new(tls), is_both, id })
    }

    /// The id to come with, where this one is random.
    pub(crate) fn id(&self, random: ServerId) -> ServerId {
        self.id.unwrap_or(random)
    }

    /// Whether the file says that servers speak without TLS, too.
    pub(crate) const fn is_both(&self) -> bool {
        self.is_both
    }

    /// A handshake, and the certificates that were shown, in DER: any are taken.
    pub(crate) async fn shake(
        &self,
        stream: TcpStream,
    ) -> Result<(Box<dyn Stream>, Vec<Vec<u8>>), String> {
        let onlooker = self.tls.onlooker().map_err(|error| error.to_string())?;
        let unsent = "quorate.invalid".try_into().map_err(|_| "no name".to_owned())?;
        let shaken = TlsConnector::from(onlooker).connect(unsent, stream).await;
        let stream = shaken.map_err(|error| Refusal::of(&error).to_string())?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = shown.iter().map(|der| der.to_vec()).collect();
        Ok((Box::new(stream), shown))
    }

    /// Whether who has shown these is to be asked.
    pub(crate) fn judge(&self, shown: &[Vec<u8>]) -> Result<(), String> {
        let shown: Vec<_> =
            shown.iter().map(|der| CertificateDer::from_slice(der.as_slice())).collect();
        self.tls.still_trusts(&shown, true).map_err(|why| why.to_string())
    }
}

/// Why who has these authorities would not trust who shows these certificates, all in DER; none if it would, or for what
/// others say: that a certificate has ended, what it may be used for.
pub(crate) fn distrust(authorities: &[Vec<u8>], shown: &[Vec<u8>]) -> Option<String> {
    let authorities: Vec<_> =
        authorities.iter().map(|der| CertificateDer::from(der.clone())).collect();
    let shown: Vec<_> = shown.iter().map(|der| CertificateDer::from_slice(der)).collect();
    let why = quorate_tls::trusted_by(&authorities, &shown, true).err()?;
    let is_others = matches!(
        why.reason,
        Reason::Expired | Reason::NotYetValid | Reason::Usage | Reason::WeakKey
    );
    (!is_others).then(|| why.to_string())
}
