//! Several writes as one transaction: all, or none and why.
//!
//! ```text
//!   int count, count times:  int kind, int length, body of the kind
//!   when one is refused:     those before it as they are; it and those behind it  -1, 4, code
//! ```

use bytes::{BufMut, BytesMut};
use quorate_core::prepared::Rejected;

use crate::encode::put_count;
use crate::judge::Judge;
use crate::outcome::ErrorCode;
use crate::refusal::MARSHALLING;
use crate::request::Write;
use crate::txn::kind;

/// Writes the transaction of a multi. One element that is refused takes back the records of those before it, and
/// is no error here: the transaction says so.
///
/// # Errors
///
/// What concerns the request as a whole: what cannot be encoded, or becomes longer than it may be.
pub(crate) fn multi(
    judge: &mut Judge<'_>,
    writes: &[Write<'_>],
    body: &mut BytesMut,
) -> Result<(), Rejected> {
    put_count(body, writes.len());
    let mut failed = false;
    for write in writes {
        let start = body.len();
        if failed {
            put_error(body, ErrorCode::RUNTIME_INCONSISTENCY.0);
        } else if let Err(refused) = element(judge, write, body) {
            if refused == MARSHALLING {
                return Err(refused);
            }
            judge.undo();
            body.truncate(start);
            put_error(body, refused.0);
            failed = true;
        }
        // At once: each of many may have become longer than what was asked for.
        if body.len() > judge.facts.bytes_max {
            return Err(Rejected::TOO_LONG);
        }
    }
    Ok(())
}

fn element(judge: &mut Judge<'_>, write: &Write<'_>, body: &mut BytesMut) -> Result<(), Rejected> {
    body.put_i32(match write {
        Write::Create(create) => create.kind,
        Write::Delete { .. } => kind::DELETE,
        Write::SetData { .. } => kind::SET_DATA,
        Write::Check { .. } => kind::CHECK,
        Write::SetAcl { .. } | Write::DeleteContainer { .. } => return Err(MARSHALLING),
    });
    let at = body.len();
    body.put_i32(0);
    judge.write(write, body)?;
    let length = body.len().saturating_sub(at + 4);
    let length = i32::try_from(length).map_err(|_| Rejected::TOO_LONG)?;
    if let Some(mut field) = body.get_mut(at..at + 4) {
        field.put_i32(length);
    }
    Ok(())
}

fn put_error(body: &mut BytesMut, code: i32) {
    body.put_i32(kind::ERROR);
    body.put_i32(4);
    body.put_i32(code);
}
