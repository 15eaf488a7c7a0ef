//! What a request is checked by at a leader of ZooKeeper: modes, paths, versions, access lists.

use std::sync::Arc;

use quorate_core::message::Identity;
use quorate_service::wire::{code, op};
use quorate_znode::acl::{Acl, Acls};

/// `EphemeralType.TTL`: the longest there is.
const TTL_MAX: i64 = (1 << 40) - 1;

/// `CreateMode.fromFlag`, `EphemeralType.validateTTL`; `extendedTypesEnabled` is on.
pub(super) fn check_mode(op: i32, flags: i32, ttl: i64) -> Result<(), i32> {
    let fits = match flags {
        5 | 6 => (1..=TTL_MAX).contains(&ttl),
        0..=4 => op != op::CREATE_TTL || ttl < 0,
        _ => false,
    };
    if fits { Ok(()) } else { Err(code::BAD_ARGUMENTS) }
}

/// `PathUtils.validatePath`, as far as its characters are ASCII.
pub(super) fn validate(path: &str) -> Result<(), i32> {
    let names = path.strip_prefix('/').ok_or(code::BAD_ARGUMENTS)?;
    let odd = |name: &str| {
        matches!(name, "" | "." | "..") || name.chars().any(|character| character.is_control())
    };
    if path != "/" && names.split('/').any(odd) { Err(code::BAD_ARGUMENTS) } else { Ok(()) }
}

/// `validatePathForCreate`.
pub(super) fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|_| !path.contains('\0'))
}

/// `getParentPathAndValidate`.
pub(super) fn deletable(path: &str) -> Result<&str, i32> {
    let kept = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];
    parent_of(path).filter(|_| !kept.contains(&path)).ok_or(code::BAD_ARGUMENTS)
}

/// `checkAndIncVersion`.
pub(super) fn next_version(version: i32, expected: i32) -> Result<i32, i32> {
    let fits = expected == -1 || expected == version;
    if fits { Ok(version.wrapping_add(1)) } else { Err(code::BAD_VERSION) }
}

/// `ZooKeeperServer.checkACL`.
pub(super) fn check_acl(
    own: Option<&[Identity]>,
    list: Option<&[Acl]>,
    permission: i32,
) -> Result<(), i32> {
    let own = own.unwrap_or_default();
    let Some(list) = list.filter(|list| !list.is_empty()) else { return Ok(()) };
    let permits = |acl: &Acl| {
        let same = |own: &Identity| *own.scheme == *acl.scheme && *own.id == *acl.id;
        acl.perms & permission != 0 && (&*acl.scheme == "world" || own.iter().any(same))
    };
    let is_super = own.iter().any(|own| own.scheme == "super");
    if is_super || list.iter().any(permits) { Ok(()) } else { Err(code::NO_AUTH) }
}

/// `fixupACL`, of the schemes `world`, `auth` and `digest`.
pub(super) fn fix_up(list: Option<&[Acl]>, own: Option<&[Identity]>) -> Result<Acls, i32> {
    let mut fixed: Vec<Acl> = Vec::new();
    let mut seen = Vec::new();
    for acl in list.unwrap_or_default() {
        // `removeDuplicates`.
        if seen.contains(&acl) {
            continue;
        }
        seen.push(acl);
        match &*acl.scheme {
            "world" if &*acl.id == "anyone" => fixed.push(acl.clone()),
            "auth" => {
                let own = own.unwrap_or_default().iter().filter(|own| own.scheme == "digest");
                let entry = |own: &Identity| Acl {
                    perms: acl.perms,
                    scheme: own.scheme.as_str().into(),
                    id: own.id.as_str().into(),
                };
                let entries: Vec<_> = own.map(entry).collect();
                if entries.is_empty() {
                    return Err(code::INVALID_ACL);
                }
                fixed.extend(entries);
            }
            // `DigestAuthenticationProvider.isValid`.
            "digest" if acl.id.split(':').count() == 2 => fixed.push(acl.clone()),
            _ => return Err(code::INVALID_ACL),
        }
    }
    if fixed.is_empty() { Err(code::INVALID_ACL) } else { Ok(Arc::from(fixed)) }
}
