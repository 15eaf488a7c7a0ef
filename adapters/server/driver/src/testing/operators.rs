//! What an operator may get wrong, and what the system may take away: the server refuses to start, or
//! ends, and says what is in the way.

use std::net::TcpListener;
use std::time::Duration;

use futures_lite::future::zip;
use quorate_core::config::ConfigError;
use quorate_core::id::ServerId;
use quorate_core::input::Plane;
use quorate_core::membership::Membership;

use super::Stage;
use crate::{Runtime, ServerError, StartError};

pub async fn a_port_in_use_is_named<R: Runtime>(stage: Stage<R>) {
    let ensemble = stage.electors(3, 0);
    let id = ensemble.ids()[0];
    for plane in [Plane::Election, Plane::Quorum] {
        let taken = ensemble.port(id, plane);
        let holder = TcpListener::bind((taken.host.as_str(), taken.port)).unwrap();
        let error = ensemble.try_start(ensemble.config(id)).await.unwrap_err();
        let shown = error.to_string();
        let StartError::Bind { plane: found, address, tries: 1, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!((found, &address), (plane, &taken.to_string()));
        assert!(shown.contains(&taken.to_string()), "{shown}");
        drop(holder);
    }
    // Nothing was left behind: the same directory and ports can be used.
    let server = ensemble.try_start(ensemble.config(id)).await.unwrap();
    stage.within("shutdown", server.shutdown()).await.unwrap();
}

pub async fn a_port_that_is_freed_in_time_is_taken<R: Runtime>(stage: Stage<R>) {
    let ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let taken = ensemble.port(id, Plane::Election);
    let holder = TcpListener::bind((taken.host.as_str(), taken.port)).unwrap();
    let mut config = ensemble.config(id);
    config.bind_tries = 3;
    let freed = async {
        // After the first try, or the test is easy.
        stage.runtime(0).sleep(Duration::from_millis(200)).await;
        drop(holder);
    };
    let (server, ()) = zip(ensemble.try_start(config), freed).await;
    stage.within("a leader", server.unwrap().leaders().led()).await.unwrap();
}

pub async fn a_data_directory_that_cannot_be_used_is_named<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = ensemble.config(id);
    // A file stands where the directory should be; root may write wherever modes forbid it.
    let file = ensemble.data_dir(id);
    std::fs::write(&file, "").unwrap();
    config.data_dir = file.join("data");
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(matches!(error, StartError::Log(_)), "{error:?}");
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    std::fs::remove_file(&file).unwrap();

    ensemble.start(id).await;
    let error = ensemble.try_start(ensemble.config(id)).await.unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    assert_eq!(ensemble.agreed().await.0, id);
}

pub async fn a_disk_that_is_lost_ends_the_server_and_is_named<R: Runtime>(stage: Stage<R>) {
    let mut ensemble = stage.electors(3, 0);
    ensemble.adjust = |config| config.disk_retry = Duration::from_millis(50);
    ensemble.start_all().await;
    let (leader, _) = ensemble.agreed().await;
    let follower = ensemble.other_than(&[leader]);
    let server = ensemble.take(follower);
    let dir = ensemble.data_dir(follower);
    std::fs::remove_dir_all(&dir).unwrap();
    // The next leadership has to be promised, and that cannot be written.
    ensemble.kill(leader).await;
    stage.until("its fault", || server.status().metrics.disk_fault.is_some()).await;
    // It waits for the one that is gone, and another in its place has forgotten what this server promised.
    std::fs::create_dir_all(dir.join("version-2")).unwrap();
    let error = stage.within("the end", server.finished()).await.unwrap_err();
    assert!(matches!(error, ServerError::Disk { .. }), "{error:?}");
    assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
    assert_eq!(server.leader(), None);
    // It may begin anew there.
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::create_dir_all(&dir).unwrap();
    ensemble.start(follower).await;
    ensemble.agreed().await;
}

pub async fn a_configuration_that_cannot_work_is_named<R: Runtime>(stage: Stage<R>) {
    let ensemble = stage.electors(1, 0);
    let id = ensemble.ids()[0];
    let mut config = ensemble.config(id);
    config.core.id = ServerId(9);
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(error.to_string().contains("server.9"), "{error}");

    let mut config = ensemble.config(id);
    config.core.timing.tick = Duration::ZERO;
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(matches!(error, StartError::Config(ConfigError::TooShort { .. })), "{error:?}");

    let name = "no-such-host.invalid";
    let line = format!("server.1={name}:2888:3888");
    let mut config = ensemble.config(id);
    config.core.membership = Membership::parse(line).unwrap();
    let error = ensemble.try_start(config).await.unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
}
