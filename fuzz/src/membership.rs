//! Arbitrary bytes as the text of a membership, and as what is asked of one: what is accepted writes itself
//! and is read again as the same, and is a membership that can decide something.

use bytes::Bytes;
use quorate_core::id::ServerId;
use quorate_core::membership::Membership;
use quorate_core::reconfiguration::{Reconfiguration, body_of, membership_of};
use quorate_core::txn::{Txn, TxnHeader};
use quorate_core::zxid::Zxid;

/// Feeds these bytes; the first says as what.
pub fn feed(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    if first % 2 == 0 {
        if let Ok(membership) = Membership::parse(data) {
            holds(&membership);
        }
        return;
    }
    let Ok(asked) = Reconfiguration::decode(data) else { return };
    let again = Reconfiguration::decode(&asked.encode()).expect("our own bytes");
    assert_eq!(again, asked);
    for present in [
        "server.1=a:1:2:participant\nserver.2=b:1:2:participant\nserver.3=c:1:2:observer\nversion=7",
        "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1\ngroup.2=2\nweight.1=2\nversion=7",
    ] {
        let present = Membership::parse(present).expect("a good text");
        if let Ok(next) = asked.apply(&present) {
            holds(&next);
            assert_eq!(next.version(), present.version(), "the leader gives it the next");
        }
    }
}

fn holds(membership: &Membership) {
    let again = Membership::parse(membership.text()).expect("our own text");
    assert_eq!(&again, membership);
    assert!(membership.text().len() <= Membership::TEXT_BYTES_MAX);
    assert!(membership.members().windows(2).all(|pair| pair[0].id < pair[1].id));
    let voters: Vec<ServerId> = membership.participants().map(|member| member.id).collect();
    assert!(membership.quorum().is_quorum(voters.iter().copied()), "no quorum can decide");
    assert!(!membership.quorum().is_quorum([]), "the empty set decides");
    let header = TxnHeader { client: 1, cxid: 1, time: 0, kind: Txn::RECONFIGURATION };
    let txn = Txn { zxid: Zxid(0x1_0000_0001), header, body: body_of(membership) };
    assert_eq!(membership_of(&txn), Some(membership.with_version(0x1_0000_0001)));
    let short = Txn { body: txn.body.slice(..txn.body.len() / 2), ..txn };
    assert_eq!(membership_of(&short), None);
    assert_eq!(membership_of(&Txn { body: Bytes::new(), ..short }), None);
}
