//! Rules of what protects an ensemble, from files alone: whether the other's name is looked at, and where secrets stand.

use crate::facts::{Facts, Member};
use crate::file::ConfigFile;
use crate::finding::{Found, Level, Subject};
use crate::java::Version;
use crate::rule::Rule;
use crate::rules::steps::{at, has_tls, is_true, of_ensembles};
use crate::words::Words;

pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "cfg.names-unchecked",
        levels: &[Level::Warning],
        when: "with TLS between servers: hostnameVerification is false, clientAuth is not need, quorate.ssl.identity is off, or \
               the member is a ZooKeeper 3.9 whose fips-mode is not false",
        why: "any certificate of the same authority can be any server's, or none is asked for: its holder can join and write",
        todo: "give each server a certificate with the names of its server.N line, and remove the line",
        sources: &["ZOOKEEPER-4393", "zookeeperAdmin.md, \"fips-mode\""],
        explains: &[],
        check: names_unchecked,
    },
    Rule {
        id: "cfg.sasl-fips",
        levels: &[Level::Error],
        when: "servers log in by DIGEST-MD5, and a member is a ZooKeeper 3.9 whose fips-mode is not false, or a file that is not \
               of one of ours sets fips-mode=true",
        why: "with fips-mode, the default from 3.9.0 on, the learner fails before it has sent anything, and the ensemble never \
              forms",
        todo: "set fips-mode=false on all servers before the upgrade to 3.9, or use TLS in place of SASL",
        sources: &["zookeeperAdmin.md, \"fips-mode\"", "ZOOKEEPER-4393"],
        explains: &["live.no-leader", "live.left-out"],
        check: sasl_fips,
    },
    Rule {
        id: "cfg.secret-inline",
        levels: &[Level::Notice],
        when: "the password of a store stands in zoo.cfg or in a flag of the JVM, and not in a file of its own",
        why: "it goes where the configuration goes: version control, support bundles, and of a flag the list of processes",
        todo: "write it into a file that its server alone may read, and name that with passwordPath in place of password",
        sources: &["ZOOKEEPER-4396"],
        explains: &[],
        check: secret_inline,
    },
];

/// From this version on fips-mode is true unless it is set.
const FIPS_SINCE: Version = Version(3, 9, 0);

/// The server of a file, as it answered.
fn of_file<'a>(facts: &'a Facts, file: &ConfigFile) -> Option<&'a Member> {
    facts.member(file.id?)
}

/// Whether it is known that a file is of one of our servers.
fn is_ours(facts: &Facts, file: &ConfigFile) -> bool {
    of_file(facts, file).and_then(Member::words).is_some_and(Words::is_ours)
}

/// The version of a member's ZooKeeper, if it has fips-mode on, in which it looks at no names: with or without a line of its
/// file that says so.
pub(crate) fn fips_by_default(member: &Member, file: Option<&ConfigFile>) -> Option<Version> {
    let words = member.words().filter(|words| !words.is_ours())?;
    let version = words.number_of_version().filter(|version| *version >= FIPS_SINCE)?;
    let setting = file.and_then(|file| file.setting("fips-mode"));
    let is_off = setting.is_some_and(|setting| !setting.value.trim().eq_ignore_ascii_case("true"));
    (!is_off).then_some(version)
}

/// The same of the server of a file.
fn has_fips(facts: &Facts, file: &ConfigFile) -> Option<Version> {
    fips_by_default(of_file(facts, file)?, Some(file))
}

/// A setting, which of its values are weak, and what they mean.
type Weak = (&'static str, fn(&str) -> bool, &'static str);

fn names_unchecked(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for file in of_ensembles(facts).filter(|file| has_tls(file)) {
        let weak: [Weak; 4] = [
            ("ssl.quorum.hostnameVerification", |value| value == "false", NAMES),
            ("ssl.quorum.clientHostnameVerification", |value| value == "false", NAMES_OF_DIALLERS),
            ("ssl.quorum.clientAuth", |value| value != "need", NO_CERTIFICATE),
            ("quorate.ssl.identity", |value| value == "off", NAMES_OF_DIALLERS),
        ];
        for (name, is_weak, what) in weak {
            let Some(setting) = file.setting(name) else { continue };
            if is_weak(&setting.value.trim().to_ascii_lowercase()) {
                let subject = Subject::file(&file.path, file.id).set_by(setting);
                found.push(Found::warning(subject, what));
            }
        }
        if let Some(version) = has_fips(facts, file) {
            let what = format!("it is a ZooKeeper {version} with fips-mode on: {NAMES}");
            let todo = "set fips-mode=false, once each server's certificate has the names of its server.N line";
            found.push(Found::warning(at(file, "fips-mode"), what).todo(todo));
        }
    }
    found
}

const NAMES: &str = "the names in certificates of servers are not looked at";
const NAMES_OF_DIALLERS: &str = "the names in certificates of those who dial are not looked at";
const NO_CERTIFICATE: &str = "who dials may do so without a certificate";

fn sasl_fips(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    // With a principal the logins are Kerberos's, which fips-mode leaves alone.
    let by_digest = |file: &&ConfigFile| {
        is_true(file, "quorum.auth.enableSasl")
            && file.setting("quorum.auth.kerberos.servicePrincipal").is_none()
    };
    for file in of_ensembles(facts).filter(by_digest) {
        let what = match has_fips(facts, file) {
            Some(version) => {
                format!("it is a ZooKeeper {version} with fips-mode on, and logs in by DIGEST-MD5")
            }
            None if is_true(file, "fips-mode") && !is_ours(facts, file) => {
                "fips-mode is on, and the servers log in by DIGEST-MD5".to_owned()
            }
            None => continue,
        };
        found.push(Found::error(at(file, "fips-mode"), what));
    }
    found
}

fn secret_inline(facts: &Facts) -> Vec<Found> {
    let mut found = Vec::new();
    for file in &facts.files {
        let stores = file.survey.settings.iter().filter(|(name, setting)| {
            name.ends_with("Store.password") && !setting.value.is_empty()
        });
        for (name, setting) in stores {
            let counts = format!("{name}Path");
            let beside = match file.setting(&counts) {
                Some(_) => format!(", though {counts} is what counts"),
                None => String::new(),
            };
            let what = format!("the password of a store stands in it{beside}");
            found.push(Found::notice(Subject::file(&file.path, file.id).set_by(setting), what));
        }
    }
    found
}
