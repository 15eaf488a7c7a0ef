//! No application: servers that only elect.

use std::io::{self, Read, Write};

use bytes::Bytes;
use quorate_core::message::{LearnerInfo, Request};
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use crate::application::{Application, Prepared, Rejected, RestoreError, Snapshot};
use crate::framing::Framed;

/// Nothing is replicated: the servers elect a leader, and that is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoApplication;

/// The state of no application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

impl Snapshot for Nothing {
    fn write(self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&0_u32.to_be_bytes())
    }
}

impl Application for NoApplication {
    type Snapshot = Nothing;
    type Staged = Nothing;

    const PROTOCOL: i32 = LearnerInfo::OTHER_APPLICATION;

    fn prepare(&mut self, request: &Request, _now: i64, _bytes_max: usize) -> Prepared {
        if request.op == Request::RECONFIGURE {
            return Prepared::reconfiguration(request);
        }
        Prepared::rejected(Rejected::UNIMPLEMENTED)
    }

    fn void(&mut self) {}

    fn apply(&mut self, _txn: &Txn) -> Bytes {
        Bytes::new()
    }

    fn abandon(&mut self) {}

    fn snapshot(&self) -> Nothing {
        Nothing
    }

    fn restore(_label: Zxid, from: &mut dyn Read) -> Result<Nothing, RestoreError> {
        // Whoever took over something and forgot it could give nothing to the next.
        if Framed::new(from).read(&mut [0])? > 0 {
            return Err("there is a state, and no application for it".into());
        }
        Ok(Nothing)
    }

    fn staged_snapshot(_staged: &Nothing) -> Nothing {
        Nothing
    }

    fn adopt(&mut self, _staged: Nothing) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_application_takes_over_no_state() {
        let mut bytes = Vec::new();
        NoApplication.snapshot().write(&mut bytes).unwrap();
        assert!(NoApplication::restore(Zxid::ZERO, &mut &bytes[..]).is_ok());
        let one_byte = b"\0\0\0\x01\x01\0\0\0\0";
        assert!(NoApplication::restore(Zxid::ZERO, &mut &one_byte[..]).is_err());
    }
}
