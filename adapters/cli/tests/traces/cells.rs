//! What the real servers replicate: cells, counted as the simulated application counts them, but written
//! apart from it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use bytes::Bytes;
use quorate_driver::core::message::{LearnerInfo, Request};
use quorate_driver::core::txn::Txn;
use quorate_driver::core::zxid::Zxid;
use quorate_driver::{Application, Prepared, RestoreError, Snapshot};

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

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn prepare(&mut self, request: &Request, _now: i64, _bytes_max: usize) -> Prepared {
        self.ahead += 1;
        let number = (self.count + self.ahead).to_be_bytes();
        Prepared { kind: SET_DATA, body: [&number[..], &request.body].concat().into() }
    }

    fn apply(&mut self, txn: &Txn) -> Bytes {
        self.ahead = self.ahead.saturating_sub(1);
        self.count += 1;
        self.cells.insert(txn.body[8], txn.zxid);
        Bytes::new()
    }

    fn void(&mut self) {}

    fn abandon(&mut self) {
        self.ahead = 0;
    }

    fn snapshot(&self) -> Self {
        Self { ahead: 0, ..self.clone() }
    }

    fn restore(_: Zxid, from: &mut dyn Read) -> Result<Self, RestoreError> {
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes).map(|()| bytes)
        };
        let (count, cells) = (u64::from_be_bytes(number()?), u64::from_be_bytes(number()?));
        let mut restored = Self { count, ..Self::default() };
        for _ in 0..cells {
            let [.., cell] = number()?;
            restored.cells.insert(cell, Zxid(i64::from_be_bytes(number()?)));
        }
        Ok(restored)
    }

    fn staged_snapshot(staged: &Self) -> Self {
        staged.clone()
    }

    fn adopt(&mut self, staged: Self) {
        *self = staged;
    }
}

impl Snapshot for Cells {
    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.count.to_be_bytes())?;
        to.write_all(&(self.cells.len() as u64).to_be_bytes())?;
        for (cell, zxid) in self.cells {
            to.write_all(&u64::from(cell).to_be_bytes())?;
            to.write_all(&zxid.0.to_be_bytes())?;
        }
        Ok(())
    }
}
