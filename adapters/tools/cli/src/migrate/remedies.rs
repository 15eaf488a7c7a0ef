//! What to do about settings of ZooKeeper before a server is replaced: a table.
//!
//! Which of them refuse a file, and which have no effect here, is told by the reader of zoo.cfg; a setting without a row
//! here has the words that are true of every one of its kind.

/// What to do about a line that refuses the file. A name that ends in `*` is a beginning.
pub(super) fn of_refusal(name: &str) -> &'static str {
    look_up(&REFUSALS, name).map_or(REFUSED, |(remedy, ())| remedy)
}

/// Why a setting that has no effect here, or another one than in Java, endangers a replacement, and what to do.
pub(super) fn of_danger(name: &str) -> Option<(&'static str, &'static str)> {
    look_up(&DANGERS, name).filter(|_| !name.starts_with("ssl.quorum."))
}

fn look_up<W: Copy>(table: &[(&[&str], &'static str, W)], name: &str) -> Option<(&'static str, W)> {
    let is = |key: &&str| match key.strip_suffix('*') {
        Some(family) => name.starts_with(family),
        None => name == *key,
    };
    let row = table.iter().find(|(keys, ..)| keys.iter().any(is));
    row.map(|(_, first, second)| (*first, *second))
}

const REFUSED: &str = "do not replace servers while it is needed; if it is not, take the line out of every server's file \
                       and restart them one at a time first";

const REFUSALS: [(&[&str], &str, ()); 10] = [
    (
        &["ssl.quorum.crl", "ssl.quorum.ocsp"],
        "fetch the lists of revoked certificates into a file now and then, name it with quorate.ssl.crlFile, and take the line \
         out: nothing is asked of an authority while servers link",
        (),
    ),
    (
        &["ssl.crl", "ssl.ocsp"],
        "fetch the lists of revoked certificates into a file now and then, name it with quorate.ssl.client.crlFile, and take the \
         line out: nothing is asked of an authority while clients connect",
        (),
    ),
    (
        &["ssl.quorum.*", "ssl.*"],
        "use the stores that the settings of the key store and the trust store name, and take the line out",
        (),
    ),
    (
        &["quorum.auth.*", "sessionRequireClientSASLAuth", "enforce.auth.*"],
        "name the JAAS file that Java is given: -Djava.security.auth.login.config in SERVER_JVMFLAGS here, too, or \
         quorate.jaas.file=… in zoo.cfg, which Java passes over",
        (),
    ),
    (
        &["authProvider.*"],
        "do not replace servers while access lists or clients need it: here are the schemes digest, ip, sasl, x509 and world. Nodes \
         with other schemes in their access lists could be used by no client",
        (),
    ),
    (
        &["localSessionsEnabled"],
        "turn it off on all servers, restarting one at a time; clients then get sessions that all servers know",
        (),
    ),
    (
        &["enforceQuota"],
        "turn it off on all servers, restarting one at a time: quotas are then counted and warned of, no longer enforced",
        (),
    ),
    (
        &["observerMasterPort"],
        "let the observers follow the leader: take the line out of all files, restarting one server at a time",
        (),
    ),
    (
        &["snapshot.compression.method"],
        "set it to CHECKED on all servers, restarting one at a time, and wait until each has written a snapshot",
        (),
    ),
    (
        &["emulate353TTLNodes"],
        "delete the TTL nodes that ZooKeeper 3.5.3 has written, then turn it off on all servers",
        (),
    ),
];

const DANGERS: [(&[&str], &str, &str); 11] = [
    (
        &["snapshot.trust.empty"],
        "a server without a snapshot starts from its log alone, which is right once, after an upgrade from 3.4",
        "turn it off on all servers as soon as each has a snapshot",
    ),
    (
        &["snapshot.compression.method"],
        "Java's snapshots are compressed; ours are not",
        "check that the data directories below can be read; ours take more room",
    ),
    (
        &["readonlymode.enabled"],
        "clients that ask for it are served by a lone Java server; there is no read-only mode here",
        "know that such clients wait until there is a quorum again",
    ),
    (
        &["leaderServes"],
        "a Java leader with it serves no clients; ours always does",
        "give the clients of a leader room on each machine",
    ),
    (
        &["extendedTypesEnabled"],
        "TTL nodes: a server on which it is off takes their owners for sessions",
        "check that it is set on every server, in its file or as a flag of its JVM; server ids stay below 255",
    ),
    (
        &["digest.enabled"],
        "servers with it off give no digest of their tree, so differences are not noticed",
        "turn it on everywhere for the time of the replacement, if that can be borne",
    ),
    (
        &["DigestAuthenticationProvider.digestAlg"],
        "digests of users depend on it: with another one on some server, access is refused there",
        "check that it is set on every server, in its file or as a flag of its JVM",
    ),
    (
        &["skipACL"],
        "access lists forbid nothing at this server",
        "set it alike on all servers, rather off",
    ),
    (
        &["sslQuorum"],
        "certificates are looked at more closely here than by ZooKeeper 3.9: each has to name a host of its server's line",
        "begin with quorate.ssl.identity=warn, which tells of those that do not; ssl.quorum.hostnameVerification=false asks \
         for no names at all",
    ),
    (
        &[
            "kerberos.*",
            "quorum.auth.kerberos.*",
            "SASLAuthenticationProvider.*",
            "requireKerberosConfig",
        ],
        "of SASL there is DIGEST-MD5 here, with the users of the JAAS file alone, and no Kerberos",
        "check that neither servers nor clients nor access lists (scheme sasl) need it",
    ),
    (
        &["requireClientAuthScheme*", "ensembleAuthName"],
        "clients are not asked for it",
        "enforce.auth.schemes says by which schemes clients have to prove who they are; or check that a network of its own, \
         or another server in front, does",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_single_settings() {
        assert!(of_refusal("quorum.auth.enableSasl").contains("quorate.jaas.file"));
        assert_eq!(of_refusal("something.new"), REFUSED);
        assert!(of_danger("sslQuorum").is_some() && of_danger("ssl.keyStore.location").is_none());
        assert!(of_danger("snapshot.trust.empty").unwrap().0.contains("3.4"));
        assert!(of_danger("snapshot.trust").is_none());
    }
}
