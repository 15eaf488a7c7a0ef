//! Lists of revoked certificates.
//!
//! Given some, a certificate whose authority has none among them is refused: that it was not taken back is not known. A list
//! whose next update is overdue still counts, and its operator is told, unless lists have to be new.

use std::path::Path;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateRevocationListDer, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, OwnedCertRevocationList,
    RevocationCheckDepth, RevocationOptions, RevocationOptionsBuilder, UnknownStatusPolicy,
};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::error::StoreError;

/// Lists of revoked certificates; at least one.
#[derive(Debug)]
pub(crate) struct Revoked {
    lists: Vec<CertRevocationList<'static>>,
    /// Whose each is, for people, and when the next one was to come, in seconds since 1970.
    due: Vec<(String, i64)>,
    /// Whether one that is overdue says nothing.
    strict: bool,
}

impl Revoked {
    /// Those in a text in PEM.
    pub(crate) fn read(file: &Path, text: &[u8], strict: bool) -> Result<Self, StoreError> {
        let wrong = |what: String| StoreError::Revoked { file: file.to_owned(), what };
        if text.len() > BYTES_MAX {
            return Err(wrong(format!("it is longer than {BYTES_MAX} bytes")));
        }
        let (mut lists, mut due) = (Vec::new(), Vec::new());
        for list in CertificateRevocationListDer::pem_slice_iter(text) {
            let nth = lists.len() + 1;
            let wrong = |what: &dyn std::fmt::Display| wrong(format!("list {nth}: {what}"));
            let list = list.map_err(|error| wrong(&broken(&error)))?;
            let (_, read) =
                CertificateRevocationList::from_der(&list).map_err(|error| wrong(&error))?;
            let issuer = read.issuer().to_string();
            let issuer =
                issuer.chars().take(ISSUER_MAX).map(|c| if c.is_control() { '?' } else { c });
            due.extend(read.next_update().map(|at| (issuer.collect(), at.timestamp())));
            let list = OwnedCertRevocationList::from_der(&list);
            lists.push(CertRevocationList::Owned(list.map_err(|error| wrong(&error))?));
        }
        if lists.is_empty() {
            return Err(wrong(
                "it holds no list: no section of PEM in it is an X509 CRL".to_owned(),
            ));
        }
        Ok(Self { lists, due, strict })
    }

    /// Those that should have been replaced, one sentence for each.
    pub(crate) fn overdue(&self, now: UnixTime) -> Vec<String> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let what = match self.strict {
            true => "its authority's certificates are refused",
            false => "it is used all the same",
        };
        let overdue = self.due.iter().filter(|(_, due)| *due < now);
        overdue
            .map(|(of, _)| format!("the list of revoked certificates of {of} is overdue: {what}"))
            .collect()
    }

    /// Calls `check` with what it has to ask: that the first certificate was not taken back, and then that none of the others
    /// is known to be.
    pub(crate) fn each<E>(
        &self,
        mut check: impl FnMut(RevocationOptions<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let lists: Vec<_> = self.lists.iter().collect();
        for (depth, unknown) in [
            (RevocationCheckDepth::EndEntity, UnknownStatusPolicy::Deny),
            (RevocationCheckDepth::Chain, UnknownStatusPolicy::Allow),
        ] {
            let Ok(asked) = RevocationOptionsBuilder::new(&lists) else { return Ok(()) };
            let late =
                if self.strict { ExpirationPolicy::Enforce } else { ExpirationPolicy::Ignore };
            let asked = asked.with_depth(depth).with_status_policy(unknown);
            check(asked.with_expiration_policy(late).build())?;
        }
        Ok(())
    }

    /// Whether a list names a certificate. That is enough for one that is trusted by itself, of which perhaps no list is.
    pub(crate) fn name(&self, leaf: &EndEntityCert<'_>) -> bool {
        let of_its_issuer = self.lists.iter().filter(|list| list.issuer() == leaf.issuer());
        // A list that cannot be read was not taken.
        of_its_issuer.into_iter().any(|list| !matches!(list.find_serial(leaf.serial()), Ok(None)))
    }
}

/// How many lists of revoked certificates there are in what a file holds, as a server would read it.
///
/// # Errors
///
/// What is wrong with it.
pub fn lists_in(file: &Path, bytes: &[u8]) -> Result<usize, StoreError> {
    Revoked::read(file, bytes, false).map(|revoked| revoked.lists.len())
}

/// What is wrong with a section of PEM. The crate's own words show the line, byte by byte and as long as it is.
fn broken(error: &pem::Error) -> &'static str {
    if matches!(error, pem::Error::MissingSectionEnd { .. }) {
        "its section of PEM has no end"
    } else if matches!(error, pem::Error::IllegalSectionStart { .. }) {
        "the line that begins its section of PEM is broken"
    } else {
        "its section of PEM cannot be read"
    }
}

/// How long a file with lists may be.
const BYTES_MAX: usize = 64 << 20;
/// How many characters of an issuer are shown.
const ISSUER_MAX: usize = 200;
