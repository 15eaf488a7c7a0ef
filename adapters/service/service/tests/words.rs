//! What operators ask in four letters, beside what is shown of it with the clients.

use std::time::Duration;

use quorate_application::clients::Frame;

use crate::clients::set;
use crate::stand::Stand;

/// In the order of ZooKeeper's, whose tools take them apart.
#[test]
fn cons_tells_how_long_answers_took_and_crst_sets_that_back() {
    let mut stand = Stand::new(true);
    let (client, _) = stand.client();
    for (xid, millis) in [(1, 40), (2, 5), (3, 17)] {
        stand.request(client, &[(xid, set("/", -1))]);
        stand.now = stand.now + Duration::from_millis(millis);
        stand.settle();
    }
    let mut cons = |word: &[u8; 4]| {
        let client = stand.connect();
        stand.send(client, vec![Frame::Word(*word)]);
        stand.text(client)
    };
    let told = cons(b"cons");
    assert!(told.contains(",lop=SETD,") && told.contains(",lcxid=0x3,"), "{told}");
    assert!(told.contains(",lresp=62,llat=17,minlat=5,avglat=20,maxlat=40)"), "{told}");
    cons(b"crst");
    let told = cons(b"cons");
    assert!(told.contains("recved=0,sent=0") && told.contains(",lop=NA,est=17"), "{told}");
    assert!(told.contains(",lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)"), "{told}");
}
