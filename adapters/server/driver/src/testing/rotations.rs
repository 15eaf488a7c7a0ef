//! Stores that are replaced while their server runs, in each way in which operators and their tools do it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_core::id::ServerId;
use quorate_tls::{Settings, StorePassword};

use super::Stage;
use super::certificates::Authority;
use super::ensemble::Ensemble;
use super::tls::{figure, secure, shown};
use crate::Runtime;

/// Has links of its stores, as Kubernetes has: a folder that is swapped, behind a link.
fn linked(dir: &Path, settings: &mut Settings) {
    let version = dir.join("..1");
    fs::create_dir(&version).unwrap();
    for store in [&mut settings.key_store, &mut settings.trust_store] {
        let name = store.path.file_name().unwrap().to_owned();
        fs::rename(&store.path, version.join(&name)).unwrap();
        symlink(Path::new("..data").join(&name), &store.path).unwrap();
    }
    symlink("..1", dir.join("..data")).unwrap();
}

/// Swaps that folder for one with another key.
fn swap(dir: &Path, number: usize, own: &str) {
    let (before, version) = (dir.join("..data"), format!("..{number}"));
    fs::create_dir(dir.join(&version)).unwrap();
    fs::copy(before.join("trusted.pem"), dir.join(&version).join("trusted.pem")).unwrap();
    fs::write(dir.join(&version).join("own.pem"), own).unwrap();
    symlink(&version, dir.join("..next")).unwrap();
    fs::rename(dir.join("..next"), before).unwrap();
}

pub async fn stores_are_read_again_however_they_are_replaced<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = secure(&ensemble, &authority, id);
    let settings = config.tls.as_mut().unwrap();
    settings.reload = Some(Duration::from_millis(20));
    let (own, dir) =
        (settings.key_store.path.clone(), ensemble.data_dir(id).with_extension("stores"));
    linked(&dir, settings);
    ensemble.start_as(config).await;
    let first = fs::read_to_string(&own).unwrap();
    let others = [(); 3].map(|()| authority.for_server(id).own());
    let [second, third, fourth] = &others;
    let mut before = shown(&stage, &ensemble, &authority).await;
    let of_first = before.clone();
    let mut swaps = 1;
    // A, B, and A again, too.
    for (how, text) in [
        ("swapped", second),
        ("swapped", &first),
        ("in place", third),
        ("renamed over", fourth),
        ("in halves", second),
        ("renamed over", &first),
    ] {
        match how {
            "swapped" => {
                swaps += 1;
                swap(&dir, swaps, text);
            }
            "in place" => fs::write(&own, text).unwrap(),
            "in halves" => {
                let half = text.len() / 2;
                fs::write(&own, &text[..half]).unwrap();
                assert_eq!(shown(&stage, &ensemble, &authority).await, before, "{how}");
                fs::write(&own, text).unwrap();
            }
            _ => {
                let new = own.with_extension("new");
                fs::write(&new, text).unwrap();
                fs::rename(&new, &own).unwrap();
            }
        }
        let changed = async {
            loop {
                let now = shown(&stage, &ensemble, &authority).await;
                if now != before {
                    return now;
                }
                stage.runtime(0).sleep(Duration::from_millis(5)).await;
            }
        };
        before = stage.within(how, changed).await;
        assert_eq!(before == of_first, *text == first, "{how}");
    }
}

/// What has come half is not good, and the old stores stay until the rest is there.
pub async fn a_password_that_comes_behind_its_store_is_waited_for<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = secure(&ensemble, &authority, id);
    let settings = config.tls.as_mut().unwrap();
    settings.reload = Some(Duration::from_millis(20));
    let own = settings.key_store.path.clone();
    let password = own.with_extension("password");
    fs::write(&password, "not needed").unwrap();
    settings.key_store.password = Some(StorePassword::File(password.clone()));
    ensemble.start_as(config).await;
    let before = shown(&stage, &ensemble, &authority).await;
    let reloads = || figure(ensemble.server(id), "quorate_tls_reloads_total");
    fs::write(&own, include_bytes!("../../../keystore/tests/fixtures/openssl-rsa.p12")).unwrap();
    for _ in 0..5 {
        assert_eq!(shown(&stage, &ensemble, &authority).await, before);
    }
    assert!(reloads() < 0.5);
    fs::write(&password, "changeit\n").unwrap();
    stage.until("both", || reloads() > 0.5).await;
}

/// A server that looks at its stores when it is asked to and at no other time, and its key store.
async fn looks_when_asked<R: Runtime>(
    stage: &Stage<R>,
    authority: &Authority,
) -> (Ensemble<R>, ServerId, PathBuf) {
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = secure(&ensemble, authority, id);
    let settings = config.tls.as_mut().unwrap();
    settings.reload = None;
    let own = settings.key_store.path.clone();
    ensemble.start_as(config).await;
    (ensemble, id, own)
}

pub async fn stores_are_looked_at_when_an_operator_asks<R: Runtime>(stage: Stage<R>) {
    let authority = Authority::new("ours");
    let (ensemble, id, own) = looks_when_asked(&stage, &authority).await;
    fs::write(&own, authority.for_server(ServerId(1)).own()).unwrap();
    let server = ensemble.server(id);
    server.look_at_stores();
    stage.until("a look", || figure(server, "quorate_tls_reloads_total") > 0.5).await;
}

/// As where a tool makes room for all of a store before it writes, and sets the time of its source.
pub async fn a_store_that_was_not_good_is_tried_again_though_it_looks_the_same<R: Runtime>(
    stage: Stage<R>,
    has_failed: impl Fn() -> bool,
) {
    let authority = Authority::new("ours");
    let (ensemble, id, own) = looks_when_asked(&stage, &authority).await;
    let (server, text) = (ensemble.server(id), authority.for_server(id).own());
    fs::write(&own, vec![0; text.len()]).unwrap();
    let modified = fs::metadata(&own).unwrap().modified().unwrap();
    server.look_at_stores();
    stage.until("a failure", has_failed).await;
    fs::write(&own, text).unwrap();
    File::options().write(true).open(&own).unwrap().set_modified(modified).unwrap();
    server.look_at_stores();
    stage.until("another look", || figure(server, "quorate_tls_reloads_total") > 0.5).await;
}
