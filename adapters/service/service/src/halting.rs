//! When a server must not go on: it would hold something else than the others do, and say so to its clients.
//!
//! | what it meets | why it stops |
//! |---|---|
//! | a transaction that it does not understand | another server may, a newer one for instance |
//! | a TTL node, where `extendedTypesEnabled` is off | servers where it is off take its owner for a session's (`EphemeralType.get`) |
//!
//! It serves no longer, and the server ends by name. What is on disk stays, and is read when the cause is mended.

use alloc::format;
use alloc::string::String;

use quorate_application::clients::Output;
use quorate_core::txn::Txn;
use quorate_znode::{Applied, ApplyError, Tree};

use crate::service::{Role, Service, Step};

impl Service {
    /// Why it must not serve what it has.
    pub(crate) fn unfit(&self, tree: &Tree) -> Option<String> {
        if self.options.extended_types {
            return None;
        }
        let path = tree.ttls().next()?;
        Some(format!(
            "{path} is a TTL node, and extendedTypesEnabled is not set here: set it to true on every server, or delete \
             all TTL nodes where it is"
        ))
    }

    /// The same, behind a transaction. While it does not serve, TTL nodes may come and go again.
    pub(crate) fn unfit_behind(
        &self,
        tree: &Tree,
        txn: &Txn,
        effect: &Result<Applied, ApplyError>,
    ) -> Option<String> {
        let unknown = effect.as_ref().err().filter(|error| error.may_differ());
        if let Some(error) = unknown {
            return Some(format!(
                "transaction {}: {error}. Another server may have understood it: keep this data directory, and start a \
                 version that does",
                txn.zxid
            ));
        }
        if matches!(self.role, Role::Idle) { None } else { self.unfit(tree) }
    }

    /// It goes on no longer.
    pub(crate) fn halt(&mut self, step: &mut Step<'_>, reason: String) {
        self.retire(step, None);
        step.out.push(Output::Halt(reason));
    }
}
