//! What must be on every server at the end: all that was acknowledged, and all that belongs to a session that lives.

use std::collections::BTreeSet;

use quorate_service::wire::{Request, Response, Stat};

use super::load::Record;
use crate::raw::{Client, exists, get};

/// The stat in an answer.
pub(super) fn stat(answer: Response) -> Stat {
    let Response::Stat(stat) = answer else { panic!("{answer:?}") };
    stat
}

/// Compares what a server has with what sessions know.
pub(super) fn audit(port: u16, records: &[Record]) {
    let mut client = Client::open(port, 10_000);
    client.sync();
    for record in records {
        let Record { nth, session, created, creations, last, sets } = record;
        let ephemeral = client.ask(&exists(&format!("/e/{nth}")));
        let ephemeral = stat(ephemeral.unwrap_or_else(|err| panic!("{port}: /e/{nth}: {err}")));
        assert_eq!((ephemeral.ephemeral_owner, ephemeral.czxid), (*session, *created), "{port}");

        let Response::Data { data, stat } = client.ask(&get(&format!("/n/{nth}"))).unwrap() else {
            panic!()
        };
        let number = data.map(|data| String::from_utf8(data.to_vec()).unwrap());
        let expected = if *last == 0 { "data".to_owned() } else { last.to_string() };
        assert_eq!(number, Some(expected), "{port}: what {nth} set last");
        let (acknowledged, unknown) = sets;
        let version = usize::try_from(stat.version).unwrap();
        assert!(
            (*acknowledged..=acknowledged + unknown).contains(&version),
            "{port}: {nth} has set {version} times, {acknowledged} acknowledged, {unknown} unknown"
        );

        let list = Request::GetChildren { path: format!("/d/{nth}"), watch: false };
        let Response::Children(names) = client.ask(&list).unwrap() else { panic!() };
        let there: BTreeSet<usize> = names.iter().map(|name| name.parse().unwrap()).collect();
        let lost: Vec<_> = creations.iter().filter(|number| !there.contains(number)).collect();
        assert!(lost.is_empty(), "{port}: {nth} has lost {lost:?}");
    }
}
