//! What the real servers replicate: cells, counted as the simulated application counts them, but written
//! apart from it.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use quorate_driver::clients::{Host, NoClients};
use quorate_driver::core::id::Origin;
use quorate_driver::core::message::{LearnerInfo, Request};
use quorate_driver::core::txn::Txn;
use quorate_driver::core::zxid::Zxid;
use quorate_driver::{
    Application, Facts, Prepared, Restore, RestoreError, Snapshot, SnapshotError,
};

/// ZooKeeper's `setData`.
const SET_DATA: i32 = 5;

/// How many writes there were, and the last of each cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) count: u64,
    pub(crate) cells: BTreeMap<u8, Zxid>,
    /// How many were prepared and not applied.
    ahead: u64,
}

impl Application for Cells {
    type Snapshot = Self;
    type Staged = Self;
    type Restore = Restoring;
    type Effect = ();
    type Clients = NoClients;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn clients(&mut self, _: Host) -> NoClients {
        NoClients
    }

    fn prepare(&mut self, request: &Request, _: Origin, _: &Facts) -> Prepared {
        self.ahead += 1;
        let number = (self.count + self.ahead).to_be_bytes();
        Prepared { kind: SET_DATA, body: [&number[..], &request.body].concat().into() }
    }

    fn apply(&mut self, txn: &Txn) {
        self.ahead = self.ahead.saturating_sub(1);
        self.count += 1;
        self.cells.insert(txn.body[8], txn.zxid);
    }

    fn reply((): &()) -> Bytes {
        Bytes::new()
    }

    fn void(&mut self) {}

    fn abandon(&mut self) {
        self.ahead = 0;
    }

    fn snapshot(&self) -> Self {
        Self { ahead: 0, ..self.clone() }
    }

    fn restore(_: Zxid) -> Restoring {
        Restoring::default()
    }

    fn staged_snapshot(staged: &Self) -> Self {
        staged.clone()
    }

    fn adopt(&mut self, staged: Self) {
        *self = staged;
    }
}

impl Snapshot for Cells {
    fn next(&mut self, out: &mut BytesMut) -> Result<bool, SnapshotError> {
        out.put_u64(self.count);
        out.put_u64(self.cells.len() as u64);
        for (cell, zxid) in &self.cells {
            out.put_u64(u64::from(*cell));
            out.put_i64(zxid.0);
        }
        Ok(false)
    }
}

/// What has come of cells.
#[derive(Default)]
pub(crate) struct Restoring(Vec<u8>);

impl Restore for Restoring {
    type State = Cells;

    fn push(&mut self, bytes: &mut &[u8]) -> Result<Option<Cells>, RestoreError> {
        while let Some((first, rest)) = bytes.split_first() {
            self.0.push(*first);
            *bytes = rest;
            if self.0.len() % 8 > 0 {
                continue;
            }
            let number = |number: &[u8]| u64::from_be_bytes(number.try_into().unwrap());
            let numbers: Vec<_> = self.0.chunks(8).map(number).collect();
            let [count, cells, ref entries @ ..] = numbers[..] else { continue };
            if entries.len() as u64 == 2 * cells {
                let entry = |entry: &[u64]| (entry[0].to_be_bytes()[7], Zxid(entry[1] as i64));
                let cells = entries.chunks(2).map(entry).collect();
                return Ok(Some(Cells { count, cells, ahead: 0 }));
            }
        }
        Ok(None)
    }
}
