//! Every crate keeps its floors.
#![cfg(not(miri))] // what sources look like is no matter of how they run
#![allow(clippy::unwrap_used, reason = "a test; its helpers are not marked as such")]

mod plans;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use quorate_floors::{Place, sources, survey};

use crate::plans::{
    application, cli, core, doctor, driver, etcd, http, keystore, leadership, metrics, recipes,
    rescue, sasl, servers, service, sim, storage, timeline, tls, znode, zookeeper,
};

/// The plans of all crates, by folder; a crate of one file needs none.
const PLANS: &[(&str, &[(&str, Place)])] = &[
    ("core", core::PLAN),
    ("adapters/tools/cli", cli::PLAN),
    ("adapters/tools/doctor", doctor::PLAN),
    ("adapters/server/driver", driver::PLAN),
    ("adapters/recipes/etcd", etcd::PLAN),
    ("adapters/leadership", leadership::PLAN),
    ("adapters/server/http", http::PLAN),
    ("adapters/server/keystore", keystore::PLAN),
    ("adapters/server/metrics", metrics::PLAN),
    ("adapters/server/sasl", sasl::PLAN),
    ("adapters/server/storage", storage::PLAN),
    ("adapters/server/tls", tls::PLAN),
    ("adapters/server/application", application::PLAN),
    ("adapters/service/service", service::PLAN),
    ("adapters/tools/rescue", rescue::PLAN),
    ("adapters/tools/servers", servers::PLAN),
    ("adapters/tools/sim", sim::PLAN),
    ("adapters/tools/timeline", timeline::PLAN),
    ("adapters/recipes/recipes", recipes::PLAN),
    ("adapters/runtimes/tokio", &[("connection", Place::Floor(1))]),
    ("adapters/tools/floors", &[("plan", Place::Floor(1)), ("reader", Place::Floor(1))]),
    (
        "adapters/tools/seeded",
        &[
            ("bug", Place::Floor(1)),
            ("edit", Place::Floor(2)),
            ("tree", Place::Floor(2)),
            ("copy", Place::Floor(3)),
        ],
    ),
    ("adapters/recipes/zookeeper", zookeeper::PLAN),
    ("adapters/service/znode", znode::PLAN),
];

/// Uses that a plan forbids and that stand for now, by crate. One that is no longer there fails the test.
const STANDING: &[(&str, &[(&str, &str)])] = &[];

#[test]
fn every_crate_keeps_its_floors() {
    let mut complaints = Vec::new();
    let mut uses = 0;
    for folder in crates() {
        let name = folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let plan = PLANS.iter().find(|row| row.0 == name).map_or(&[] as &[_], |row| row.1);
        let standing = STANDING.iter().find(|row| row.0 == name).map_or(&[] as &[_], |row| row.1);
        let survey = survey(&sources(&folder.join("src")).unwrap(), plan, standing);
        uses += survey.uses;
        complaints.extend(survey.complaints.into_iter().map(|what| format!("{name}: {what}")));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    assert!(uses > 2_000, "only {uses} uses found");
}

#[test]
fn a_plan_names_nothing_that_is_not_there() {
    let crates: BTreeSet<PathBuf> = crates().into_iter().collect();
    for (name, plan) in PLANS {
        let folder = root().join(name);
        assert!(crates.contains(&folder), "there is no crate {name}");
        let modules = sources(&folder.join("src")).unwrap();
        for (module, _) in *plan {
            let path: Vec<_> = module.split("::").map(str::to_owned).collect();
            assert!(modules.contains_key(&path), "there is no module {module} in {name}");
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// Every folder with sources of a package, but for the fuzz targets: those take what the tests of others share by path.
fn crates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["core", "adapters", "benches"].iter().map(|name| root().join(name)).collect();
    while let Some(folder) = folders.pop() {
        if folder.join("Cargo.toml").exists() {
            if folder.join("src").exists() {
                found.push(folder);
            }
            continue;
        }
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}
