//! No secret of an ensemble stands in what its servers and tools say, write or answer, whatever they log.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use crate::common::{Ensemble, Process, QUORATE, free_port, quorate, read, until};

/// Keys and passwords are in its memory.
#[test]
fn a_server_that_is_aborted_leaves_no_core_file() {
    let ensemble = Ensemble::new(&["participant"], "");
    let shell = |script: &str, words: &[&str]| {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -c unlimited; {script}");
        shell.args(["-c", &script, "sh"]).args(words).current_dir(ensemble.dir.path());
        shell
    };
    if !shell("kill -ABRT $$", &[]).status().unwrap().core_dumped() {
        // This system writes no core files.
        return;
    }
    let cfg = ensemble.cfg(1);
    let mut serve = shell("exec \"$@\"", &[QUORATE, "serve", cfg.to_str().unwrap()]);
    let mut server = Process::start(serve.stderr(Stdio::null()));
    ensemble.led();
    server.signal("ABRT");
    assert!(!server.child.wait().unwrap().core_dumped());
}

/// What nothing may say, each found nowhere else.
struct Secrets(BTreeMap<&'static str, String>);

impl Secrets {
    fn new() -> Self {
        let names = [
            "the key store's password",
            "the trust store's password",
            "the client port's key store's password",
            "the key store's password of metrics",
            "the superuser's password",
            "a server's password",
            "a client's password",
            "a password that a client says",
            "a password that is not right",
        ];
        Self(names.map(|name| (name, random())).into_iter().collect())
    }

    fn of(&self, name: &str) -> &str {
        &self.0[name]
    }

    /// None of them is in these bytes, as it is, in hexadecimal digits or in base 64.
    fn are_not_in(&self, place: &str, bytes: &[u8]) {
        for (name, secret) in &self.0 {
            let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
            let mut forms = vec![secret.clone(), hex.to_uppercase(), hex];
            // By what stands before it, one in three places of base 64.
            for before in 0..3 {
                let mut padded = vec![b' '; before];
                padded.extend(secret.bytes());
                let text = STANDARD_NO_PAD.encode(&padded);
                forms.push(text[(before * 4).div_ceil(3)..text.len() - 1].to_owned());
            }
            for form in forms {
                let is_there = bytes.windows(form.len()).any(|window| window == form.as_bytes());
                let text = String::from_utf8_lossy(bytes);
                let line = text.lines().find(|line| line.contains(&form)).unwrap_or_default();
                assert!(!is_there, "{name} stands in {place}: {line}");
            }
        }
    }
}

fn random() -> String {
    let number = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", number(), number())
}

/// Three servers with TLS and SASL among themselves and for clients, which tell all that they can tell.
struct Outspoken {
    ensemble: Ensemble,
    http: Vec<[u16; 2]>,
    secrets: Secrets,
}

impl Outspoken {
    fn new() -> Self {
        let mut secrets = Secrets::new();
        let ensemble = Ensemble::new(&["participant"; 3], "4lw.commands.whitelist=*");
        let dir = ensemble.dir.path().to_owned();
        let of = |name: &str| dir.join(name);
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let pem = key.serialize_pem();
        secrets.0.insert("a line of a key", pem.lines().nth(1).unwrap()[16..].to_owned());
        fs::write(of("own.pem"), certificate.pem() + &pem).unwrap();
        fs::write(of("trusted.pem"), certificate.pem()).unwrap();
        fs::write(of("password"), secrets.of("the trust store's password")).unwrap();
        let jaas = format!(
            "QuorumServer {{ {MODULE} user_peer=\"{peer}\"; }};\nQuorumLearner {{ {MODULE} username=\"peer\" \
             password=\"{peer}\"; }};\nServer {{ {MODULE} user_sara=\"{sara}\"; }};\n",
            peer = secrets.of("a server's password"),
            sara = secrets.of("a client's password"),
        );
        fs::write(of("jaas.conf"), jaas).unwrap();
        let mut http = Vec::new();
        for id in 1..=3 {
            let [admin, metrics, secure] = [free_port(), free_port(), free_port()];
            let scraped = free_port();
            let at = dir.display();
            let lines = format!(
                "\nsslQuorum=true\nssl.quorum.keyStore.location={at}/own.pem\n\
                 ssl.quorum.keyStore.password={key_store}\nssl.quorum.trustStore.location={at}/trusted.pem\n\
                 ssl.quorum.trustStore.passwordPath={at}/password\nsecureClientPort={secure}\n\
                 ssl.keyStore.location={at}/own.pem\nssl.keyStore.password={client_store}\n\
                 ssl.trustStore.location={at}/trusted.pem\nquorate.jaas.file={at}/jaas.conf\n\
                 quorum.auth.enableSasl=true\nquorum.auth.learnerRequireSasl=true\n\
                 quorum.auth.serverRequireSasl=true\n\
                 DigestAuthenticationProvider.superDigest=super:{super_digest}\n\
                 audit.enable=true\nquorate.audit.log={at}/audit-{id}.log\n\
                 admin.enableServer=true\nadmin.serverPort={admin}\nmetricsProvider.httpPort={metrics}\n\
                 metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n\
                 metricsProvider.httpsPort={scraped}\nmetricsProvider.ssl.keyStore.location={at}/own.pem\n\
                 metricsProvider.ssl.keyStore.password={scraped_store}\n\
                 metricsProvider.ssl.trustStore.location={at}/trusted.pem\n",
                scraped_store = secrets.of("the key store's password of metrics"),
                key_store = secrets.of("the key store's password"),
                client_store = secrets.of("the client port's key store's password"),
                super_digest = secrets.of("the superuser's password"),
            );
            fs::write(ensemble.cfg(id), read(&ensemble.cfg(id)) + &lines).unwrap();
            http.push([admin, metrics]);
        }
        Self { ensemble, http, secrets }
    }

    /// A server that logs everything.
    fn serve(&self, id: usize) -> Process {
        let log = fs::File::create(self.ensemble.log(id)).unwrap();
        let mut command = Command::new(QUORATE);
        command.arg("serve").arg(self.ensemble.cfg(id)).env("RUST_LOG", "trace");
        Process::start(command.stdout(log.try_clone().unwrap()).stderr(log))
    }

    /// What a command says, whether or not it is well.
    fn says_nothing(&self, words: &[&str]) {
        let Output { stdout, stderr, .. } = quorate(words);
        self.secrets.are_not_in(&format!("{words:?}"), &stdout);
        self.secrets.are_not_in(&format!("{words:?}"), &stderr);
    }

    fn get(&self, port: u16, path: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(!answer.is_empty(), "{path}");
        self.secrets.are_not_in(path, &answer);
    }
}

#[test]
fn no_secret_stands_in_what_servers_and_tools_say() {
    let outspoken = Outspoken::new();
    let Outspoken { ensemble, http, secrets } = &outspoken;
    let servers: Vec<_> = (1..=3).map(|id| outspoken.serve(id)).collect();
    ensemble.led();

    // Clients that say their passwords, and wrong ones.
    let address = format!("127.0.0.1:{}", ensemble.client[0]);
    let said = format!("bob:{}", secrets.of("a password that a client says"));
    let list = format!("digest:bob:{}:cdrwa", STANDARD.encode("x"));
    for identity in [&said, &format!("super:{}", secrets.of("a password that is not right"))] {
        let output = quorate(["client", &address, "--auth", identity, "create", "/a", "x"]);
        secrets.are_not_in("the client's answer", &[&output.stdout[..], &output.stderr].concat());
    }
    outspoken.says_nothing(&["client", &address, "setAcl", "/a", &list]);
    outspoken.says_nothing(&["client", &address, "getAcl", "/a"]);

    for word in ["conf", "envi", "cons", "dump", "mntr", "srvr", "stat", "wchp", "dirs"] {
        secrets.are_not_in(word, ensemble.ask(1, word).as_bytes());
    }
    let [admin, metrics] = http[0];
    outspoken.get(metrics, "/metrics");
    for command in [
        "configuration",
        "environment",
        "system_properties",
        "connections",
        "monitor",
        "dump",
        "initial_configuration",
        "last_snapshot",
        "leader",
        "server_stats",
        "watches",
    ] {
        outspoken.get(admin, &format!("/commands/{command}"));
    }
    outspoken.get(admin, "/quorate/status");
    outspoken.get(admin, "/quorate/changes");

    let (cfg, log) = (ensemble.cfg(1), ensemble.log(1));
    let (cfg, log) = (cfg.to_str().unwrap(), log.to_str().unwrap());
    outspoken.says_nothing(&["tls", "check", cfg]);
    outspoken.says_nothing(&["tls", "check", cfg, "--json"]);
    outspoken.says_nothing(&["doctor", cfg, "--logs", log, "--budget", "3s"]);
    outspoken.says_nothing(&["doctor", cfg, "--json", "--budget", "3s"]);
    outspoken.says_nothing(&["doctor", cfg, "--json", "--budget", "3s", "--tls", cfg]);
    let election = format!("127.0.0.1:{}", ensemble.election[0]);
    outspoken.says_nothing(&["probe", &election, "--tls", cfg]);
    outspoken.says_nothing(&["migrate", cfg]);
    outspoken.says_nothing(&["timeline", log]);
    drop(servers);

    // What stands in files, but for those that hold a secret.
    let own = ["own.pem", "password", "jaas.conf"];
    let mut folders = vec![ensemble.dir.path().to_owned()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() && !own.contains(&&*name) && !name.ends_with(".cfg") {
                secrets.are_not_in(&name, &fs::read(&path).unwrap());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at >= 9, "{looked_at}: three logs, three audit logs, the data");
    let traced = read(&ensemble.log(1));
    assert!(traced.contains(" DEBUG "), "everything is logged");
    until("the change is told", || {
        read(&ensemble.dir.path().join("audit-1.log")).contains("/a").then_some(())
    });
}

#[test]
fn a_secret_that_is_said_would_be_found() {
    let secrets = Secrets::new();
    let secret = secrets.of("a server's password");
    for said in [
        secret.to_owned(),
        STANDARD.encode(format!("peer:{secret}")),
        STANDARD.encode(format!("peers:{secret}!")),
        secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ] {
        let look = || secrets.are_not_in("a line", format!("before {said} behind").as_bytes());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).is_err(), "{said}");
    }
}

const MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule required";
