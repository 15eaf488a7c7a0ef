//! What `quorate example` prints for others to run, against what a server is and tells; and `quorate wait`, with which they wait.
#![allow(clippy::unwrap_used, reason = "tests; their helpers are not marked as such")]

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::secured::{Secured, WITH_IDS};
use crate::common::{QUORATE, free_port, quorate, says, stderr, stdout, until};

/// What ZooKeeper's sample rules, the dashboard "ZooKeeper by Prometheus" (Grafana 10465), Grafana's own collection and its
/// mixins ask for, but for figures of the JVM.
const ASKED_FOR: [&str; 68] = [
    "quorum_size",
    "leader_uptime",
    "learners",
    "synced_followers",
    "synced_non_voting_followers",
    "synced_observers",
    "uptime",
    "pending_syncs",
    "num_alive_connections",
    "outstanding_requests",
    "avg_latency",
    "min_latency",
    "max_latency",
    "global_sessions",
    "znode_count",
    "ephemerals_count",
    "approximate_data_size",
    "watch_count",
    "packets_received",
    "packets_sent",
    "connection_rejected",
    "connection_drop_count",
    "unrecoverable_error_count",
    "digest_mismatches_count",
    "election_time",
    "election_time_sum",
    "election_time_count",
    "looking_count",
    "leader_unavailable_time",
    "unavailable_time",
    "follower_sync_time",
    "commit_count",
    "proposal_count",
    "snap_count",
    "diff_count",
    "fsynctime_sum",
    "fsynctime_count",
    "snapshottime_sum",
    "dbinittime",
    "proposal_latency",
    "propagation_latency",
    "quorum_ack_latency",
    "ack_latency",
    "proposal_ack_creation_latency",
    "commit_propagation_latency",
    "learner_proposal_received_count",
    "learner_commit_received_count",
    "local_write_committed_time_ms",
    "server_write_committed_time_ms",
    "prep_process_time",
    "prep_processor_request_queued",
    "sync_processor_batch_size",
    "sync_processor_request_queued",
    "sync_process_time",
    "readlatency",
    "updatelatency",
    "open_file_descriptor_count",
    "max_file_descriptor_count",
    "startup_snap_load_time",
    "startup_txns_load_time",
    "startup_txns_loaded",
    "proposal_process_time",
    "quit_leading_due_to_disloyal_voter",
    "quorate_committed_zxid_lag",
    "quorate_dial_failures_total",
    "quorate_election_phase_seconds",
    "quorate_link_retransmits_total",
    "quorate_refused_total",
];

/// Three servers with metrics, and TLS among them, of which those that asked in vain say so; and what they tell all together.
#[test]
fn every_figure_that_dashboards_and_alerts_ask_for_is_told() {
    let Secured { ensemble, .. } = Secured::new(WITH_IDS);
    let ports: Vec<_> = (1..=3).map(|id| (free_port(), free_port(), id)).collect();
    for (metrics, probes, id) in &ports {
        let provider = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";
        let mut file = OpenOptions::new().append(true).open(ensemble.cfg(*id)).unwrap();
        writeln!(file, "\nmetricsProvider.className={provider}").unwrap();
        writeln!(file, "metricsProvider.httpPort={metrics}").unwrap();
        writeln!(file, "quorate.probe.address=127.0.0.1:{probes}").unwrap();
    }
    let client = format!("127.0.0.1:{}", ensemble.client[0]);
    let wait = |at: &str, time: &str| quorate(["wait", "--ready", "--timeout", time, at]);

    let nobody = wait(&client, "1ms");
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
    let _first = ensemble.serve(1);
    let probes = format!("127.0.0.1:{}", ports[0].1);
    until("a server that looks", || {
        let output = wait(&probes, "300ms");
        assert_eq!(output.status.code(), Some(1), "one of three serves nobody: {output:?}");
        stderr(&output).contains("looking for").then_some(())
    });
    let output = wait(&client, "300ms");
    assert!(stderr(&output).contains("not currently serving"), "{output:?}");
    let _others = [ensemble.serve(2), ensemble.serve(3)];
    for at in [&probes, &client] {
        let output = wait(at, "30s");
        assert_eq!(output.status.code(), Some(0), "{at}: {output:?}");
    }

    for id in 0..3 {
        let at = format!("127.0.0.1:{}", ensemble.client[id]);
        let output = quorate(["client", &at, "create", &format!("/of-{id}"), "x"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    // Acknowledgements of the slower follower may be under way.
    let told = || -> BTreeSet<String> {
        let names = |page: String| -> Vec<String> { page.lines().filter_map(name).collect() };
        ports.iter().flat_map(|(metrics, _, _)| names(page(*metrics))).collect()
    };
    until("acknowledgements", || told().contains("quorate_link_rtt_seconds").then_some(()));
    let told = told();
    let alerts = Prints::of("alerts").yaml().remove(0);
    let dashboard: Value = serde_json::from_str(&Prints::of("dashboard").0).unwrap();
    let mut asked: BTreeSet<String> = ASKED_FOR.iter().map(|name| (*name).to_owned()).collect();
    let rules = alerts["groups"].as_array().unwrap().iter().flat_map(|group| {
        group["rules"].as_array().unwrap().iter().map(|rule| rule["expr"].as_str().unwrap())
    });
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel.get("targets")?.as_array()).flatten();
    let targets = targets.map(|target| target["expr"].as_str().unwrap());
    rules.chain(targets).for_each(|expression| asked.extend(figures(expression)));
    // Prometheus makes it.
    assert!(asked.remove("up") && asked.len() > 70, "{asked:?}");
    let missing: Vec<_> = asked.difference(&told).collect();
    assert!(missing.is_empty(), "nobody tells {missing:?}");
}

/// What a line of a page tells.
fn name(line: &str) -> Option<String> {
    let end = line.find(['{', ' '])?;
    (!line.starts_with('#')).then(|| line[..end].to_owned())
}

/// A page with metrics.
fn page(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// The names of figures in an expression of Prometheus: words that are no function, label or keyword.
fn figures(expression: &str) -> Vec<String> {
    let (mut names, mut word, mut inside) = (Vec::new(), String::new(), Vec::new());
    let mut labels_follow = false;
    for character in expression.chars().chain([' ']) {
        if character.is_ascii_alphanumeric() || "_:".contains(character) {
            word.push(character);
            continue;
        }
        let (taken, called) = (std::mem::take(&mut word), character == '(');
        let lists_labels = ["by", "on", "without", "ignoring", "group_left", "group_right"];
        labels_follow |= lists_labels.contains(&&*taken);
        let keywords = ["and", "or", "unless", "bool", "offset", "max", "min", "count_values"];
        let keyword = keywords.contains(&&*taken);
        let is_name = taken.starts_with(|first: char| first.is_ascii_lowercase());
        if is_name && !called && !keyword && !labels_follow && inside.is_empty() {
            names.push(taken);
        }
        match character {
            '{' | '[' => inside.push(character),
            '}' | ']' => drop(inside.pop()),
            '"' if inside.last() == Some(&'"') => drop(inside.pop()),
            '"' => inside.push('"'),
            '(' if labels_follow => inside.push('('),
            ')' if inside.last() == Some(&'(') => {
                inside.pop();
                labels_follow = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn names_are_found_in_expressions() {
    for (expression, expected) in [
        ("rate(a_sum{x=~\"b c\"}[5m]) / rate(a_count[5m]) > 20", vec!["a_sum", "a_count"]),
        ("min by (job, peer) (zk) - time() < 7", vec!["zk"]),
        ("max by (job) (zk) - on (job) group_right () zk2 > 1000", vec!["zk", "zk2"]),
        ("count_values by (job) (\"epoch\", e and on (job, instance) l) > 1", vec!["e", "l"]),
        ("a < 1 * 1024 or predict_linear(b[6h], 24 * 3600) < 0", vec!["a", "b"]),
    ] {
        assert_eq!(figures(expression), expected, "{expression}");
    }
}

/// What `quorate example` prints.
struct Prints(String);

impl Prints {
    fn of(name: &str) -> Self {
        let output: Output = quorate(["example", name]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        Self(stdout(&output).to_owned())
    }

    /// Its documents.
    fn yaml(&self) -> Vec<Value> {
        let documents = serde_norway::Deserializer::from_str(&self.0);
        documents.map(|document| Value::deserialize(document).unwrap()).collect()
    }
}

#[test]
fn prometheus_takes_the_alerts() {
    let alerts = Prints::of("alerts").0;
    let said = says("promtool", &["check", "rules", "/dev/stdin"], &alerts);
    assert!(said.is_none_or(|said| said.status.success()));
}

/// By Kubernetes' own schemas, which the tool has with it: it stands beside kazoo.
#[test]
fn kubernetes_takes_the_manifests() {
    let tool = PathBuf::from("kubernetes-validate");
    let installed = std::env::var_os("QUORATE_KAZOO").map(PathBuf::from);
    let tool = installed.map_or(tool.clone(), |folder| folder.join("bin").join(tool));
    let said = says(tool, &["--strict", "/dev/stdin"], &Prints::of("k8s").0);
    assert!(said.is_none_or(|said| said.status.success()));
}

/// The rules that the manifests rest on: who finds whom, who is asked what, and that nothing has more rights than it needs.
#[test]
fn kubernetes_manifests_fit_together() {
    let documents = Prints::of("k8s").yaml();
    let one = |kind: &str, name: &str| {
        let found =
            documents.iter().find(|of| of["kind"] == kind && of["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{kind} {name}"))
    };
    let set = &one("StatefulSet", "quorate")["spec"];
    let (pod, labels) = (&set["template"]["spec"], &set["template"]["metadata"]["labels"]);
    let container = &pod["containers"][0];
    assert!(labels.as_object().is_some_and(|labels| !labels.is_empty()));

    // Names are there before their servers are ready, all of which start at once; clients are sent to those that serve.
    let peers = &one("Service", "quorate")["spec"];
    let clients = &one("Service", "quorate-client")["spec"];
    let budget = &one("PodDisruptionBudget", "quorate")["spec"];
    assert_eq!(
        (&set["serviceName"], &set["podManagementPolicy"]),
        (&json!("quorate"), &json!("Parallel"))
    );
    assert_eq!(
        (&peers["clusterIP"], &peers["publishNotReadyAddresses"]),
        (&json!("None"), &json!(true))
    );
    assert!(clients.get("publishNotReadyAddresses").is_none());
    assert_eq!(budget["maxUnavailable"], 1);
    let away =
        &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(away["topologyKey"], "kubernetes.io/hostname");
    for selector in [
        &set["selector"]["matchLabels"],
        &peers["selector"],
        &clients["selector"],
        &budget["selector"]["matchLabels"],
        &away["labelSelector"]["matchLabels"],
        &pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }

    // The configuration is one that is served, and its ports are those of the pods.
    let text = one("ConfigMap", "quorate")["data"]["zoo.cfg"].as_str().unwrap();
    let settings: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let setting = |key: &str| settings.iter().find(|(of, _)| *of == key).unwrap().1;
    let port = |name: &str| {
        let ports = container["ports"].as_array().unwrap();
        let found = ports.iter().find(|port| port["name"] == name);
        found.unwrap_or_else(|| panic!("{name}"))["containerPort"].to_string()
    };
    let served: Vec<_> = settings.iter().filter(|(key, _)| key.starts_with("server.")).collect();
    assert_eq!(set["replicas"], served.len());
    for (ordinal, (key, line)) in served.into_iter().enumerate() {
        let [quorum, election, client] = ["quorum", "election", "client"].map(port);
        assert_eq!(*key, format!("server.{}", ordinal + 1));
        assert_eq!(*line, format!("quorate-{ordinal}.quorate:{quorum}:{election};{client}"));
    }
    assert_eq!(setting("quorate.probe.address"), format!("0.0.0.0:{}", port("probes")));
    assert_eq!(setting("metricsProvider.httpPort"), port("metrics"));
    for service in [peers, clients] {
        for of in service["ports"].as_array().unwrap() {
            assert_eq!(port(of["targetPort"].as_str().unwrap()), of["port"].to_string());
        }
    }
    let mounted = |path: &str| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts.iter().any(|mount| mount["mountPath"] == path)
    };
    assert!(["dataDir", "dataLogDir"].iter().all(|key| mounted(setting(key))), "{container}");

    // What restarts a server depends on no other one.
    for (probe, path) in
        [("startupProbe", "/healthy"), ("livenessProbe", "/healthy"), ("readinessProbe", "/ready")]
    {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "probes"}), "{probe}");
    }
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= 60);
    let stop = &container["lifecycle"]["preStop"]["exec"]["command"];
    assert_eq!(
        *stop,
        json!([
            "/usr/bin/quorate",
            "admin",
            "/etc/quorate/zoo.cfg",
            "transfer",
            "--to",
            "lowest",
            "--wait",
            "20s"
        ])
    );

    let (may, who) = (&container["securityContext"], &pod["securityContext"]);
    assert_eq!(*who.pointer("/seccompProfile/type").unwrap(), "RuntimeDefault");
    assert_eq!((&who["runAsNonRoot"], &who["runAsUser"]), (&json!(true), &json!(10001)));
    assert_eq!(
        (&who["fsGroup"], &pod["automountServiceAccountToken"]),
        (&json!(10001), &json!(false))
    );
    assert_eq!(
        *may,
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}
        })
    );
    assert_eq!(
        container["resources"]["limits"],
        json!({"memory": "1Gi"}),
        "the processor has no limit"
    );
    assert_eq!(container["resources"]["requests"]["memory"], "1Gi");
}

/// The arguments and the file are those of the manifests; the host is this one, and need not end in a number.
#[test]
fn a_server_whose_host_has_no_number_is_told_so() {
    let documents = Prints::of("k8s").yaml();
    let cfg = documents.iter().find_map(|of| of.pointer("/data/zoo.cfg")?.as_str()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text = cfg.replace("/var/lib/quorate", &dir.path().display().to_string());
    let file = dir.path().join("zoo.cfg");
    std::fs::write(&file, text).unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    // No number that a host can have.
    std::fs::write(dir.path().join("data/myid"), "255\n").unwrap();
    let output = Command::new(QUORATE)
        .args(["serve", "--myid", "from-hostname"])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("host's name") || said.contains("255"), "{said}");
}
