//! Access lists as people write them: `scheme:id:perms`, with commas between them.

use thiserror::Error;
use zookeeper_client::{Acl, AuthId, Permission};

/// The letters of the permissions, in the order in which they are shown.
const LETTERS: [(char, Permission); 5] = [
    ('c', Permission::CREATE),
    ('d', Permission::DELETE),
    ('r', Permission::READ),
    ('w', Permission::WRITE),
    ('a', Permission::ADMIN),
];

/// Why a text is no access list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum AclError {
    #[error("{0:?} is not SCHEME:ID:PERMISSIONS, such as world:anyone:cdrwa")]
    Form(String),
    #[error("{0:?} is no permission: they are c(reate), d(elete), r(ead), w(rite), a(dmin)")]
    Letter(char),
}

/// Reads an access list. An id may have colons itself, as that of `digest:USER:HASH:cdrwa` has.
pub(super) fn parse(text: &str) -> Result<Vec<Acl>, AclError> {
    text.split(',').map(entry).collect()
}

fn entry(text: &str) -> Result<Acl, AclError> {
    let form = || AclError::Form(text.to_owned());
    let (scheme, rest) = text.split_once(':').ok_or_else(form)?;
    let (id, letters) = rest.rsplit_once(':').ok_or_else(form)?;
    if scheme.is_empty() {
        return Err(form());
    }
    let mut permission = Permission::NONE;
    for letter in letters.chars() {
        let known = LETTERS.iter().find(|(known, _)| *known == letter);
        permission = permission | known.ok_or(AclError::Letter(letter))?.1;
    }
    Ok(Acl::new(permission, AuthId::new(scheme, id)))
}

/// An entry as [`parse`] reads it.
pub(super) fn shown(acl: &Acl) -> String {
    let letters: String = LETTERS
        .iter()
        .filter(|(_, permission)| acl.permission().has(*permission))
        .map(|(letter, _)| letter)
        .collect();
    format!("{}:{}:{letters}", acl.scheme(), acl.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["world:anyone:cdrwa", "digest:ann:aGFzaA==:rw", "ip:10.0.0.0/8:r", "auth::a"] {
            let [acl] = &parse(text).unwrap()[..] else { panic!("one entry: {text}") };
            assert_eq!(shown(acl), text);
        }
        assert_eq!(parse("world:anyone:r,ip:::1:cdrwa").unwrap().len(), 2);
        for wrong in ["world", "world:cdrwa", ":anyone:r", "world:anyone:x", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
