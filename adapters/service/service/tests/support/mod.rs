//! Reads the conversations in `golden`.

use bytes::Bytes;
use quorate_core::zxid::Zxid;
use quorate_service::wire::{Stat, op};
use serde_json::Value;

pub(crate) const CONVERSATIONS: [&str; 12] = [
    include_str!("../golden/client-acl-auth.jsonl"),
    include_str!("../golden/client-children.jsonl"),
    include_str!("../golden/client-connect.jsonl"),
    include_str!("../golden/client-create-modes.jsonl"),
    include_str!("../golden/client-data-versions.jsonl"),
    include_str!("../golden/client-multi.jsonl"),
    include_str!("../golden/client-odd-requests.jsonl"),
    include_str!("../golden/client-reconfig.jsonl"),
    include_str!("../golden/client-session-move.jsonl"),
    include_str!("../golden/client-set-watches.jsonl"),
    include_str!("../golden/client-sync-order.jsonl"),
    include_str!("../golden/client-watches.jsonl"),
];

pub(crate) fn lines() -> impl Iterator<Item = Value> {
    CONVERSATIONS.iter().flat_map(|file| file.lines()).map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line
    })
}

pub(crate) fn frames(kind: &'static str) -> impl Iterator<Item = (Value, Bytes)> {
    lines().filter(move |line| line["frame"] == kind).map(|line| {
        let bytes = unhex(line["hex"].as_str().unwrap());
        (line, bytes)
    })
}

pub(crate) fn unhex(hex: &str) -> Bytes {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

pub(crate) fn long(value: &Value) -> i64 {
    match value.as_str() {
        Some(hex) => u64::from_str_radix(hex.strip_prefix("0x").unwrap(), 16).unwrap() as i64,
        None => value.as_i64().unwrap_or_else(|| panic!("{value} is no number")),
    }
}

pub(crate) fn int(value: &Value) -> i32 {
    i32::try_from(long(value)).unwrap()
}

/// What stands behind the length, which has to be right.
pub(crate) fn body_of(frame: &Bytes) -> Bytes {
    let length = usize::try_from(i32::from_be_bytes(frame[..4].try_into().unwrap())).unwrap();
    assert_eq!(length, frame.len() - 4);
    frame.slice(4..)
}

pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(crate) fn stat(value: &Value) -> Stat {
    Stat {
        czxid: Zxid(long(&value["czxid"])),
        mzxid: Zxid(long(&value["mzxid"])),
        ctime: long(&value["ctime"]),
        mtime: long(&value["mtime"]),
        version: int(&value["version"]),
        cversion: int(&value["cversion"]),
        aversion: int(&value["aversion"]),
        ephemeral_owner: long(&value["ephemeralOwner"]),
        data_length: int(&value["dataLength"]),
        num_children: int(&value["numChildren"]),
        pzxid: Zxid(long(&value["pzxid"])),
    }
}

/// The number of an operation that the files call by its name.
pub(crate) fn code_of(name: &Value) -> Option<i32> {
    Some(match name.as_str()? {
        "create" => op::CREATE,
        "create2" => op::CREATE2,
        "createContainer" => op::CREATE_CONTAINER,
        "createTTL" => op::CREATE_TTL,
        "delete" => op::DELETE,
        "exists" => op::EXISTS,
        "getData" => op::GET_DATA,
        "setData" => op::SET_DATA,
        "getACL" => op::GET_ACL,
        "setACL" => op::SET_ACL,
        "getChildren" => op::GET_CHILDREN,
        "getChildren2" => op::GET_CHILDREN2,
        "sync" => op::SYNC,
        "ping" => op::PING,
        "check" => op::CHECK,
        "multi" => op::MULTI,
        "multiRead" => op::MULTI_READ,
        "reconfig" => op::RECONFIG,
        "checkWatches" => op::CHECK_WATCHES,
        "removeWatches" => op::REMOVE_WATCHES,
        "auth" => op::AUTH,
        "setWatches" => op::SET_WATCHES,
        "setWatches2" => op::SET_WATCHES2,
        "addWatch" => op::ADD_WATCH,
        "getEphemerals" => op::GET_EPHEMERALS,
        "getAllChildrenNumber" => op::GET_ALL_CHILDREN_NUMBER,
        "whoAmI" => op::WHO_AM_I,
        "createSession" => op::CREATE_SESSION,
        "closeSession" => op::CLOSE_SESSION,
        _ => return None,
    })
}
