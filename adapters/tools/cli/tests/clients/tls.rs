//! Clients through TLS: ZooKeeper's command line and kazoo, with certificates that `openssl` and `keytool` make. What they see
//! is what they see at Apache ZooKeeper.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::common::{Ensemble, folder, free_port, jars, quorate, read, stderr, stdout, until};
use crate::ensemble::java_is_here;
use crate::peer::{available, beside, run};

/// An odd subject: two attributes in one part, one that has no short name, and what has to be escaped.
const ONE: &str =
    "/C=DE/O=Example, Inc. #1/OU=ops+UID=7/emailAddress=a@example.org/CN=client = one ";
const ADMIN: &str = "/O=ours/CN=admin";
const EC: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// An authority, a server's certificate, and those of clients.
struct Stores(TempDir);

impl Stores {
    fn make() -> Self {
        let stores = Self(tempfile::tempdir().unwrap());
        stores.openssl(
            &format!("req -x509 {EC} -days 3650 -keyout authority.key -out authority.pem -subj"),
            Some("/CN=authority"),
        );
        fs::write(stores.at("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
        stores.leaf("server", "/CN=server");
        stores.leaf("one", ONE);
        stores.leaf("two", "/CN=two");
        stores.leaf("admin", ADMIN);
        stores.openssl(
            &format!("req -x509 {EC} -days 3650 -keyout stranger.key -out stranger.pem -subj"),
            Some("/CN=stranger"),
        );
        stores.pack("stranger");
        let mut keytool = Command::new("keytool");
        keytool.args("-importcert -noprompt -alias authority -file".split(' '));
        keytool.arg(stores.at("authority.pem")).arg("-keystore").arg(stores.at("trust.jks"));
        run(keytool.args("-storetype JKS -storepass changeit".split(' ')));
        stores
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Words between blanks, and a last one.
    fn openssl(&self, words: &str, last: Option<&str>) {
        let mut openssl = Command::new("openssl");
        openssl.args(words.split_whitespace()).args(last).current_dir(self.0.path());
        run(&mut openssl);
    }

    fn leaf(&self, name: &str, subject: &str) {
        let request = format!("req {EC} -utf8 -keyout {name}.key -out {name}.csr -subj");
        self.openssl(&request, Some(subject));
        self.openssl(
            &format!(
                "x509 -req -in {name}.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
                 -days 3650 -extfile names -out {name}.pem"
            ),
            None,
        );
        self.pack(name);
    }

    fn pack(&self, name: &str) {
        let pack =
            format!("pkcs12 -export -in {name}.pem -inkey {name}.key -passout pass:changeit");
        self.openssl(&format!("{pack} -name {name} -out {name}.p12"), None);
    }

    /// What a server is told.
    fn settings(&self, port: u16) -> String {
        format!(
            "secureClientPort={port}\nssl.keyStore.location={}\nssl.keyStore.password=changeit\n\
             ssl.trustStore.location={}\nssl.trustStore.password=changeit\n\
             serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             X509AuthenticationProvider.superUser=CN=admin,O=ours\nauthProvider.x509=\
             org.apache.zookeeper.server.auth.X509AuthenticationProvider\n",
            self.at("server.p12").display(),
            self.at("trust.jks").display(),
        )
    }

    /// The command line of a client with this certificate, with lines as one types them; what it prints.
    fn zk_cli(&self, port: u16, client: &str, typed: &str) -> String {
        let mut cli = Command::new("java");
        let path: Vec<_> = jars().into_iter().chain(commons_cli()).collect();
        cli.args(["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
        cli.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", &path.join(":")]);
        let set = |key: &str, value: &str| format!("-Dzookeeper.{key}={value}");
        let (own, trusted) = (self.at(&format!("{client}.p12")), self.at("trust.jks"));
        cli.args([
            set("clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty"),
            set("client.secure", "true"),
            set("ssl.keyStore.location", &own.display().to_string()),
            set("ssl.keyStore.password", "changeit"),
            set("ssl.trustStore.location", &trusted.display().to_string()),
            set("ssl.trustStore.password", "changeit"),
        ]);
        let main = "org.apache.zookeeper.ZooKeeperMain";
        cli.args([main, "-waitforconnection", "-timeout", "8000"]);
        cli.args(["-server", &format!("127.0.0.1:{port}")]);
        let mut cli = cli
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(cli.stdin.take().unwrap().write_all(typed.as_bytes()));
        let output = cli.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }

    /// kazoo with this certificate at a node; its lines.
    fn kazoo(&self, python: &Path, port: u16, client: &str, path: &str) -> Vec<String> {
        let mut kazoo = Command::new(python);
        kazoo.arg(beside("secure.py")).arg(format!("127.0.0.1:{port}"));
        kazoo.arg(self.at("authority.pem")).arg(self.at(&format!("{client}.pem")));
        run(kazoo.arg(self.at(&format!("{client}.key"))).arg(path))
            .lines()
            .filter(|line| ["acl", "data", "err", "no "].iter().any(|word| line.starts_with(word)))
            .map(str::to_owned)
            .collect()
    }
}

/// What the command line needs besides.
fn commons_cli() -> Option<String> {
    folder().is_none().then(|| "/usr/share/java/commons-cli.jar".to_owned())
}

/// Puts lines behind those of a file.
fn add(ensemble: &Ensemble, id: usize, lines: &str) {
    let text = read(&ensemble.cfg(id));
    fs::write(ensemble.cfg(id), format!("{text}\n{lines}")).unwrap();
}

/// The lines of the command line that say whose a node is, or that it may not be touched.
fn told(said: &str) -> Vec<&str> {
    let wanted = ["'x509,'", "'ip,'", ": cdrwa", "Insufficient permission", "owned"];
    said.lines().filter(|line| wanted.iter().any(|part| line.contains(part))).collect()
}

const OWNED: &str = "create /own owned auth::cdrwa\ngetAcl /own\nget /own\nquit\n";
const LOOK: &str = "get /own\nquit\n";

#[test]
fn clients_through_tls_are_who_their_certificates_say_as_at_java_servers() {
    let tools = ["/usr/bin/openssl", "/usr/bin/keytool"];
    if !java_is_here() || !available(&tools, "Debian: openssl, default-jre") {
        return;
    }
    let stores = Stores::make();
    let theirs = Ensemble::new(&["participant"], "");
    let their_port = free_port();
    add(&theirs, 1, &stores.settings(their_port));
    let java = theirs.java(1);
    let ours = Ensemble::new(&["participant"; 3], "4lw.commands.whitelist=*");
    let ports = [free_port(), free_port(), free_port()];
    for (port, id) in ports.iter().zip(1..) {
        let settings = stores.settings(*port);
        // There is no provider of Java's here, and none is needed.
        let settings = settings.split("authProvider").next().unwrap();
        add(&ours, id, settings);
    }
    let servers = ours.serve_all();
    ours.led();
    until("a Java server", || TcpStream::connect(("127.0.0.1", their_port)).ok());
    for (client, typed) in [("one", OWNED), ("two", LOOK), ("admin", LOOK)] {
        let [here, there] = [ports[0], their_port].map(|port| stores.zk_cli(port, client, typed));
        assert!(!told(&there).is_empty(), "{there}");
        assert_eq!(told(&here), told(&there), "{client}: {here}");
    }
    // One that no authority has signed has no session, and that is counted and logged.
    let said = stores.zk_cli(ports[1], "stranger", LOOK);
    assert!(told(&said).is_empty(), "{said}");
    let figures = ours.ask(2, "mntr");
    assert!(!figures.contains("zk_unsuccessful_handshake\t0\n"), "{figures}");
    // Java shows none whose issuer the server does not name.
    assert!(read(&ours.log(2)).contains("no-certificate"), "{}", read(&ours.log(2)));

    let mut plain = TcpStream::connect(("127.0.0.1", ports[2])).unwrap();
    plain.write_all(b"ruok").unwrap();
    assert!(!matches!(plain.read(&mut [0; 4]), Ok(1..)), "no word without TLS");
    let said = stores.zk_cli(ours.client[2], "one", LOOK);
    assert!(told(&said).is_empty(), "{said}");
    let log = until("both in the log", || {
        let log = read(&ours.log(3));
        (log.contains("plain-on-tls-port") && log.contains("tls-on-plain-port")).then_some(log)
    });
    assert!(!log.contains("changeit"));

    let Some(python) = kazoo() else { return };
    let own = "acl x509:CN=client \\= one\\ ,1.2.840.113549.1.9.1=#160d61406578616d706c652e6f7267,\
               OU=ops+UID=7,O=Example\\, Inc. \\#1,C=DE";
    assert_eq!(stores.kazoo(&python, ports[1], "one", "/own"), [own, "data owned"]);
    assert_eq!(stores.kazoo(&python, ports[2], "two", "/own"), ["error NoAuthError"]);
    assert_eq!(stores.kazoo(&python, ports[0], "admin", "/own")[1], "data owned");
    let refused = stores.kazoo(&python, ports[0], "stranger", "/own");
    assert!(refused[0].starts_with("no session"), "{refused:?}");
    drop((servers, java));
}

/// The Python that has it. Says so if there is none.
fn kazoo() -> Option<PathBuf> {
    let home =
        PathBuf::from(std::env::var_os("QUORATE_KAZOO").unwrap_or_else(|| "/nowhere".into()));
    let python = home.join("bin/python");
    available(&[python.to_str()?], "QUORATE_KAZOO: an environment with kazoo").then_some(python)
}

#[test]
fn sessions_of_the_command_itself_go_through_tls() {
    let tools = ["/usr/bin/openssl", "/usr/bin/keytool"];
    if !available(&tools, "Debian: openssl, default-jre") {
        return;
    }
    let stores = Stores::make();
    let ours = Ensemble::new(&["participant"], "");
    let port = free_port();
    let settings = stores.settings(port);
    add(&ours, 1, settings.split("authProvider").next().unwrap());
    let server = ours.serve(1);
    ours.led();
    let at = |name: &str| stores.at(name).display().to_string();
    // As a Java client has it: PKCS #12 and JKS.
    let file = at("client.properties");
    let lines = format!(
        "zookeeper.ssl.keyStore.location={}\nzookeeper.ssl.keyStore.password=changeit\n\
         zookeeper.ssl.trustStore.location={}\nzookeeper.ssl.trustStore.password=changeit\n",
        at("one.p12"),
        at("trust.jks")
    );
    fs::write(&file, lines).unwrap();
    let pem = |name: &str| {
        let files = [("--ca", "authority.pem".to_owned()), ("--cert", format!("{name}.pem"))];
        let files = files.into_iter().chain([("--key", format!("{name}.key"))]);
        files.flat_map(|(option, file)| [option.to_owned(), at(&file)]).collect::<Vec<_>>()
    };
    let server_at = format!("127.0.0.1:{port}");
    let java = vec!["--tls".to_owned(), file];
    let run = |act: &str, tls: &[String], words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        let output = quorate([act.to_owned()].into_iter().chain(words).chain(tls.iter().cloned()));
        (output.status.code(), stdout(&output).to_owned() + stderr(&output))
    };
    let client = |tls: &[String], words: &[&str]| {
        run("client", tls, &[&[server_at.as_str()], words].concat())
    };
    assert_eq!(client(&java, &["create", "/own", "owned"]).0, Some(0));
    assert_eq!(client(&java, &["setacl", "/own", "auth::cdrwa"]).0, Some(0));
    assert_eq!(client(&java, &["get", "/own"]), (Some(0), "owned\n".to_owned()));
    let (code, said) = client(&pem("two"), &["get", "/own"]);
    assert!(code == Some(1) && said.contains("NoAuth"), "{said}");
    assert_eq!(client(&pem("admin"), &["get", "/own"]), (Some(0), "owned\n".to_owned()));
    // A server that the stores do not name, no certificate, half of what is needed.
    let others = ["--ca".to_owned(), at("stranger.pem")];
    let short = ["--timeout", "1000", "get", "/own"];
    assert_eq!(client(&others, &short).0, Some(3));
    assert_eq!(client(&pem("two")[..2], &short).0, Some(3));
    assert_eq!(client(&pem("two")[..4], &short).0, Some(2));
    let elect = ["--zookeeper", &server_at, "--path", "/job", "--identity", "me"];
    // Behind them stands the command.
    let command = [&java[..], &["--".to_owned(), "echo".to_owned(), "ran".to_owned()]].concat();
    assert_eq!(run("elect", &command, &elect), (Some(0), "ran\n".to_owned()));
    drop(server);
}
