//! The digests of the tree that this server has compared with its leader's: one is kept for each 128 transactions.
//!
//! Two servers that answer `hash` with the same digest for the same zxid held the same then, whatever they are made of.

use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt::Write as _;

use quorate_core::zxid::Zxid;
use quorate_znode::DigestCheck;

/// What was compared.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// The oldest first.
    kept: VecDeque<(Zxid, u64)>,
    differed: u64,
}

impl Digests {
    /// A transaction is applied, and with it came this; the digest of the tree then.
    pub(crate) fn compared(&mut self, zxid: Zxid, check: DigestCheck, ours: u64) {
        match check {
            DigestCheck::Absent => {}
            DigestCheck::Differs { .. } => self.differed += 1,
            DigestCheck::Equal if zxid.0 % EVERY == 0 => {
                if self.kept.len() == KEPT_MAX {
                    self.kept.pop_front();
                }
                self.kept.push_back((zxid, ours));
            }
            DigestCheck::Equal => {}
        }
    }

    /// How often the leader had another digest.
    pub(crate) const fn differed(&self) -> u64 {
        self.differed
    }

    /// What is kept, oldest first.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (Zxid, u64)> {
        self.kept.iter().copied()
    }

    /// The answer to `hash`: a line for each, `<zxid in hexadecimal>: <digest>`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (zxid, digest) in &self.kept {
            let _ = writeln!(text, "{:x}: {digest}", zxid.0);
        }
        text
    }
}

/// One is kept for so many transactions, as by ZooKeeper.
const EVERY: i64 = 128;
/// So many are kept.
const KEPT_MAX: usize = 1024;
