//! Stores of an ensemble's servers as operators make them, with `openssl` and `keytool`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quorate_core::membership::Membership;
use quorate_tls::{Password, Settings, StoreFile, StorePassword};
use quorate_tokio::ServerConfig;

use crate::java;
use crate::mixed::Mixed;

/// What the certificates of servers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An authority's, which all trust.
    Authority,
    /// As ZooKeeper's guide makes them: each self-signed, with a common name alone, and in the trust store of all.
    Guide,
    /// The same as `openssl req -x509` makes them, which calls each an authority.
    SelfSigned,
}

/// How they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Jks,
    Pkcs12,
    Pem,
}

use Format::{Jks, Pem, Pkcs12};

impl Format {
    const fn ending(self) -> &'static str {
        match self {
            Jks => "jks",
            Pkcs12 => "p12",
            Pem => "pem",
        }
    }
}

/// Whether there is what makes them; see [`java::available`].
pub(crate) fn can_be_made() -> bool {
    let runs = |program: &str, argument: &str| {
        let mut command = Command::new(program);
        command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match java::available() {
        false => false,
        true if !runs("openssl", "version") => java::skipped("openssl", "openssl"),
        true if !runs("keytool", "-help") => java::skipped("keytool", "default-jdk-headless"),
        true => true,
    }
}

/// Makes those of all servers, each in its directory.
pub(crate) fn make(mixed: &mut Mixed, origin: Origin, format: Format) {
    let dirs: Vec<_> = mixed.kinds.keys().map(|id| mixed.data_dir(*id)).collect();
    for dir in &dirs {
        fs::create_dir_all(dir).unwrap();
        match origin {
            Origin::Authority => of_authority(&dirs[0], dir),
            Origin::Guide => by_keytool(dir),
            Origin::SelfSigned => by_openssl(dir),
        }
        own(dir, format);
    }
    let trusted = match origin {
        Origin::Authority => vec![dirs[0].join("authority.crt")],
        // Their names are those of this host.
        Origin::Guide | Origin::SelfSigned => {
            let text = String::from_utf8(mixed.membership.text().to_vec()).unwrap();
            mixed.membership = Membership::parse(text.replace("127.0.0.1", "localhost")).unwrap();
            dirs.iter().map(|dir| dir.join("own.crt")).collect()
        }
    };
    trust(&dirs[0], &trusted, format);
    let name = format!("trust.{}", format.ending());
    for dir in &dirs[1..] {
        fs::copy(dirs[0].join(&name), dir.join(&name)).unwrap();
    }
}

/// What a Java server is told of them.
pub(crate) fn properties(format: Format) -> Vec<&'static str> {
    let locations = match format {
        Jks => [
            "ssl.quorum.keyStore.location=@DIR@/own.jks",
            "ssl.quorum.trustStore.location=@DIR@/trust.jks",
        ],
        Pkcs12 => [
            "ssl.quorum.keyStore.location=@DIR@/own.p12",
            "ssl.quorum.trustStore.location=@DIR@/trust.p12",
        ],
        Pem => [
            "ssl.quorum.keyStore.location=@DIR@/own.pem",
            "ssl.quorum.trustStore.location=@DIR@/trust.pem",
        ],
    };
    let passwords =
        ["ssl.quorum.keyStore.password=changeit", "ssl.quorum.trustStore.password=changeit"];
    // Java takes a key in PEM for an encrypted one if there is a password.
    let passwords = if format == Pem { &[][..] } else { &passwords };
    [&locations[..], passwords].concat()
}

/// Has a quorate server use those in its directory, with TLS alone.
pub(crate) fn secure(config: &mut ServerConfig) {
    let found =
        |format: &Format| config.data_dir.join("own").with_extension(format.ending()).exists();
    let format = [Jks, Pkcs12, Pem].into_iter().find(found).expect("stores were made");
    let store = |name: &str| {
        let mut file = StoreFile::new(config.data_dir.join(name).with_extension(format.ending()));
        let password = StorePassword::Inline(Password::new("changeit"));
        file.password = (format != Pem).then_some(password);
        file
    };
    config.tls = Some(Settings::new(store("own"), store("trust")));
}

/// A key and its certificate as `own.key` and `own.crt`, by an authority that the first directory has.
fn of_authority(first: &Path, dir: &Path) {
    let at = first.join("authority").display().to_string();
    if dir == first {
        run(
            dir,
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=authority \
             -days 3650 -keyout authority.key -out authority.crt",
        );
    }
    fs::write(dir.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    run(
        dir,
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=member -keyout own.key \
         -out own.csr",
    );
    run(
        dir,
        &format!(
            "openssl x509 -req -in own.csr -CA {at}.crt -CAkey {at}.key -CAcreateserial -days 3650 -extfile names \
             -out own.crt"
        ),
    );
}

fn by_openssl(dir: &Path) {
    // Subjects differ: of several with one, Java keeps the last that is in a file of PEM.
    let subject = subject(dir).replace(',', "/");
    run(
        dir,
        &format!(
            "openssl req -x509 -newkey rsa:2048 -nodes -subj /{subject} -days 3650 -keyout own.key -out own.crt"
        ),
    );
}

fn by_keytool(dir: &Path) {
    let subject = subject(dir);
    run(
        dir,
        &format!(
            "keytool -genkeypair -alias own -keyalg RSA -keysize 2048 -dname {subject} -storetype PKCS12 \
             -keystore made.p12 -storepass changeit -validity 3650"
        ),
    );
    let of = "openssl pkcs12 -in made.p12 -passin pass:changeit";
    run(dir, &format!("{of} -nocerts -nodes -out own.key"));
    run(dir, &format!("{of} -nokeys -out own.crt"));
}

fn subject(dir: &Path) -> String {
    let id = dir.file_name().unwrap().to_str().unwrap();
    format!("OU={id},CN=localhost")
}

/// The key store out of both.
fn own(dir: &Path, format: Format) {
    if format == Pem {
        let parts = ["own.key", "own.crt"].map(|name| fs::read(dir.join(name)).unwrap());
        return fs::write(dir.join("own.pem"), parts.concat()).unwrap();
    }
    run(
        dir,
        "openssl pkcs12 -export -in own.crt -inkey own.key -name own -passout pass:changeit -out packed.p12",
    );
    match format {
        Jks => run(
            dir,
            "keytool -importkeystore -srckeystore packed.p12 -srcstoretype PKCS12 -srcstorepass changeit \
             -destkeystore own.jks -deststoretype JKS -deststorepass changeit",
        ),
        Pkcs12 | Pem => fs::rename(dir.join("packed.p12"), dir.join("own.p12")).unwrap(),
    }
}

/// The trust store with all these.
fn trust(dir: &Path, certificates: &[PathBuf], format: Format) {
    if format == Pem {
        let all: Vec<_> = certificates.iter().map(|file| fs::read(file).unwrap()).collect();
        return fs::write(dir.join("trust.pem"), all.concat()).unwrap();
    }
    let (kind, ending) = (if format == Jks { "JKS" } else { "PKCS12" }, format.ending());
    for (number, file) in certificates.iter().enumerate() {
        run(
            dir,
            &format!(
                "keytool -importcert -noprompt -alias trusted{number} -file {} -keystore trust.{ending} \
                 -storetype {kind} -storepass changeit",
                file.display()
            ),
        );
    }
}

/// Runs a tool in a directory, words between spaces.
fn run(dir: &Path, line: &str) {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir(dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}
