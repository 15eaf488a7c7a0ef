//! What each command tells: pure functions of what was looked at, in the order of ZooKeeper's fields.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use quorate_service::ConnectionView;
use quorate_tokio::core::address::HostPort;
use quorate_tokio::core::membership::{Member, Role};
use quorate_tokio::core::status::Phase;
use quorate_tokio::core::vote::ServerState;

use crate::admin::json::{Fields, Json};
use crate::admin::scene::{Known, Looked, Scene};
use crate::four_letter::{directories, size};
use crate::process;

/// The fields, or a status and what is wrong.
pub(super) type Outcome = Result<Fields, (u16, &'static str)>;

macro_rules! fields {
    ($($key:expr => $value:expr),* $(,)?) => {
        vec![$(($key.to_owned(), Json::from($value))),*]
    };
}

pub(super) fn nothing(_: &Scene<'_>) -> Outcome {
    Ok(Fields::new())
}

pub(super) fn configuration(scene: &Scene<'_>) -> Outcome {
    let cfg = scene.cfg;
    let [data, log] = directories(cfg).map(|path| path.display().to_string());
    let timeout = |set: Option<Duration>, ticks| {
        i64::try_from(set.unwrap_or(cfg.tick_time * ticks).as_millis()).unwrap_or(i64::MAX)
    };
    let port = scene.status()?.clients.first().map_or(-1, |at| i32::from(at.port()));
    Ok(fields! {
        "client_port" => port,
        "data_dir" => data,
        "data_log_dir" => log,
        "tick_time" => i64::try_from(cfg.tick_time.as_millis()).unwrap_or(i64::MAX),
        "max_client_cnxns" => cfg.clients.max_per_address,
        "min_session_timeout" => timeout(cfg.clients.session_timeout_min, 2),
        "max_session_timeout" => timeout(cfg.clients.session_timeout_max, 20),
        "server_id" => cfg.my_id.0,
        "client_port_listen_backlog" => -1,
    })
}

/// `ServerCnxn.getConnectionInfo`.
pub(super) fn connections(scene: &Scene<'_>) -> Outcome {
    let Looked::Connections(connections) = &scene.looked else { return Ok(Fields::new()) };
    let one = |connection: &ConnectionView| {
        let mut fields = fields! {
            "remote_socket_address" => connection.remote.to_string(),
            "interest_ops" => i32::from(connection.reads),
            "outstanding_requests" => connection.outstanding,
            "packets_received" => connection.received,
            "packets_sent" => connection.sent,
        };
        if let Some(session) = &connection.session {
            let [last, min, max, average] = session.latencies_ms;
            fields.extend(fields! {
                "session_id" => session.id,
                "last_operation" => session.last_operation,
                "established" => session.established_ms,
                "session_timeout" => session.timeout_ms,
                "last_cxid" => session.last_xid,
                "last_zxid" => session.last_zxid,
                "last_latency" => last,
                "min_latency" => min,
                "avg_latency" => average,
                "max_latency" => max,
            });
        }
        Json::Object(fields)
    };
    let those = |secure: bool| -> Vec<_> {
        connections.iter().filter(|connection| connection.secure == secure).map(one).collect()
    };
    Ok(fields! { "connections" => those(false), "secure_connections" => those(true) })
}

pub(super) fn dirs(scene: &Scene<'_>) -> Outcome {
    let [data, log] = directories(scene.cfg).map(|dir| size(&dir));
    Ok(fields! { "datadir_size" => data, "logdir_size" => log })
}

pub(super) fn dump(scene: &Scene<'_>) -> Outcome {
    let Looked::Sessions(expiries, owned) = &scene.looked else { return Ok(Fields::new()) };
    let expiries = expiries.iter().map(|(left, sessions)| {
        let sessions: Vec<_> = sessions.iter().copied().collect();
        ((scene.now_ms + left).to_string(), sessions.into())
    });
    let owned = owned.iter().map(|(session, paths)| (session.to_string(), paths.clone().into()));
    Ok(fields! {
        "expiry_time_to_session_ids" => Json::Object(expiries.collect()),
        "session_id_to_ephemeral_paths" => Json::Object(owned.collect()),
    })
}

/// What says nothing of who runs it and how: neither variables nor paths.
pub(super) fn environment(_: &Scene<'_>) -> Outcome {
    let mut fields = fields! { "zookeeper.version" => quorate_service::version() };
    let system = process::environment().into_iter().map(|(key, value)| (key, value.into()));
    fields.extend(system);
    Ok(fields)
}

pub(super) fn get_trace_mask(_: &Scene<'_>) -> Outcome {
    Ok(fields! { "tracemask" => TRACE_MASK })
}

pub(super) fn set_trace_mask(scene: &Scene<'_>) -> Outcome {
    match scene.request.value("traceMask").map(str::parse::<i64>) {
        Some(Ok(mask)) => Ok(fields! { "tracemask" => mask }),
        Some(Err(_)) | None => Err((200, "setTraceMask requires long traceMask argument")),
    }
}

pub(super) fn hash(scene: &Scene<'_>) -> Outcome {
    let Looked::Digests(digests) = &scene.looked else { return Ok(Fields::new()) };
    let one = |(zxid, digest): &(i64, u64)| {
        Json::Object(fields! { "zxid" => *zxid, "digest" => *digest, "digest_version" => 2 })
    };
    let digests: Vec<_> = digests.iter().map(one).collect();
    Ok(fields! { "digests" => digests })
}

pub(super) fn initial_configuration(_: &Scene<'_>) -> Outcome {
    Ok(fields! { "initial_configuration" => Json::Null })
}

pub(super) fn is_read_only(_: &Scene<'_>) -> Outcome {
    Ok(fields! { "read_only" => false })
}

/// That of the newest file; as ZooKeeper has it before there is one.
pub(super) fn last_snapshot(scene: &Scene<'_>) -> Outcome {
    let [data, _] = directories(scene.cfg);
    let files = std::fs::read_dir(data).into_iter().flatten().flatten();
    let labelled = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let label = name.strip_prefix("snapshot.")?.split('.').next()?.to_owned();
        Some((i64::from_str_radix(&label, 16).ok()?, file))
    });
    let newest = labelled.max_by_key(|(label, _)| *label);
    let (zxid, file) = newest.map_or((-1, None), |(label, file)| (label, Some(file)));
    let written = file.and_then(|file| file.metadata().ok()?.modified().ok());
    let written = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let seconds = written.and_then(|since| i64::try_from(since.as_secs()).ok());
    Ok(fields! { "zxid" => format!("{zxid:x}"), "timestamp" => seconds.unwrap_or(-1) })
}

pub(super) fn leader(scene: &Scene<'_>) -> Outcome {
    let Known { status, membership, .. } = scene.status()?;
    if scene.cfg.alone {
        return Err((200, "server is not initialized"));
    }
    let id = status.peer.leader.map_or(-1, |id| id.0);
    let member = status.peer.leader.and_then(|id| membership.member(id));
    let host = member.map(|member| member.quorum_address().host.clone()).unwrap_or_default();
    Ok(fields! {
        "is_leader" => status.peer.state == ServerState::Leading,
        "leader_id" => id,
        "leader_ip" => host,
    })
}

pub(super) fn monitor(scene: &Scene<'_>) -> Outcome {
    let Looked::Figures(lines) = &scene.looked else { return Ok(Fields::new()) };
    // `mntr` and ZooKeeper's fields: nothing but the name differs.
    Ok(lines.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect())
}

/// A follower serves no observers.
pub(super) fn observers(scene: &Scene<'_>) -> Outcome {
    let learners = &scene.status()?.status.peer.learners;
    let synced = learners.iter().filter(|at| !at.follower && at.synced);
    let one = |id: i64| Json::Object(fields! { "sid" => id });
    let observers: Vec<_> = synced.map(|learner| one(learner.id.0)).collect();
    Ok(fields! { "synced_observers" => observers.len(), "observers" => observers })
}

pub(super) fn restore(_: &Scene<'_>) -> Outcome {
    Err((405, "Nothing is restored over HTTP: stop the server, and use `quorate restore`"))
}

pub(super) fn snapshot(_: &Scene<'_>) -> Outcome {
    Err((503, "Snapshot command is disabled"))
}

pub(super) fn system_properties(_: &Scene<'_>) -> Outcome {
    Err((200, "There are no system properties, and none are told"))
}

pub(super) fn server_stats(scene: &Scene<'_>) -> Outcome {
    let Known { status, .. } = scene.status()?;
    let [data, log] = directories(scene.cfg).map(|dir| size(&dir));
    let figure = |name: &'static str| scene.figure(name).map(|value| (name, value));
    let named = |name: &str, as_name: &'static str| Some((as_name, scene.figure(name)?));
    let sizes = || {
        let parts = ["last", "min", "max"].into_iter().filter_map(|part| {
            let size = scene.figure(&format!("{part}_client_response_size"))?;
            Some((format!("{part}_buffer_size"), size))
        });
        Json::Object(parts.collect())
    };
    let processed = status.peer.processed.0;
    let uptime = status.metrics.serving_for.unwrap_or_default().as_millis();
    let stats = [
        figure("packets_sent"),
        figure("packets_received"),
        figure("fsync_threshold_exceed_count"),
        Some(("client_response_stats", sizes())),
        Some(("provider_null", false.into())),
        figure("server_state"),
        figure("outstanding_requests"),
        figure("min_latency"),
        figure("avg_latency"),
        figure("max_latency"),
        Some(("data_dir_size", data.into())),
        Some(("log_dir_size", log.into())),
        Some(("last_processed_zxid", processed.into())),
        named("num_alive_connections", "num_alive_client_connections"),
        figure("auth_failed_count"),
        Some(("uptime", i64::try_from(uptime).unwrap_or(i64::MAX).into())),
    ];
    let stats = stats.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut fields = Fields::new();
    fields.extend(scene.figure("version").map(|version| ("version".to_owned(), version)));
    fields.extend(fields! {
        "read_only" => false,
        "server_stats" => Json::Object(stats),
        "client_response" => sizes(),
    });
    fields.extend(scene.figure("znode_count").map(|count| ("node_count".to_owned(), count)));
    Ok(fields)
}

/// The same. Its connections are told by `connections`, to those who may see them.
pub(super) fn stats(scene: &Scene<'_>) -> Outcome {
    server_stats(scene)
}

pub(super) fn voting_view(scene: &Scene<'_>) -> Outcome {
    let membership = &scene.status()?.membership;
    let one = |member: &Member| {
        let own = member.id == scene.cfg.my_id;
        let quorum: Vec<_> = member.addresses.iter().map(|at| at.quorum.to_string()).collect();
        let election: Vec<_> = member.addresses.iter().map(|at| at.election.to_string()).collect();
        let view = fields! {
            "server_addresses" => quorum,
            "election_addresses" => election,
            "client_address" => if own { scene.client_address() } else { String::new() },
            "learner_type" => "participant",
        };
        (member.id.to_string(), Json::Object(view))
    };
    let voters = membership.members().iter().filter(|member| member.role == Role::Participant);
    Ok(fields! { "current_config" => Json::Object(voters.map(one).collect()) })
}

pub(super) fn watch_summary(scene: &Scene<'_>) -> Outcome {
    let Looked::WatchSummary(connections, paths, watches) = scene.looked else {
        return Ok(Fields::new());
    };
    Ok(fields! {
        "num_connections" => connections,
        "num_paths" => paths,
        "num_total_watches" => watches,
    })
}

pub(super) fn watches(scene: &Scene<'_>) -> Outcome {
    let Looked::Watches(by_path) = &scene.looked else { return Ok(Fields::new()) };
    let mut by_session: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (path, sessions) in by_path {
        for session in sessions {
            by_session.entry(*session).or_default().push(path.clone());
        }
    }
    let by_session = by_session.into_iter().map(|(id, paths)| (id.to_string(), paths.into()));
    Ok(fields! { "session_id_to_watched_paths" => Json::Object(by_session.collect()) })
}

pub(super) fn watches_by_path(scene: &Scene<'_>) -> Outcome {
    let Looked::Watches(by_path) = &scene.looked else { return Ok(Fields::new()) };
    let by_path = by_path.iter().map(|(path, ids)| (path.clone(), ids.clone().into()));
    Ok(fields! { "path_to_session_ids" => Json::Object(by_path.collect()) })
}

/// Also without a leader, where ZooKeeper tells nothing.
pub(super) fn zabstate(scene: &Scene<'_>) -> Outcome {
    let Some(Known { status, .. }) = &scene.server else {
        return Ok(fields! { "voting" => false, "zabstate" => "" });
    };
    let peer = &status.peer;
    let mut fields = fields! {
        "myid" => peer.id.0,
        "is_leader" => peer.state == ServerState::Leading,
    };
    if !scene.cfg.alone {
        let own = scene.cfg.own();
        let at = |each: fn(&quorate_tokio::core::membership::ServerAddress) -> &HostPort| {
            addresses(&own.addresses.iter().map(each).collect::<Vec<_>>())
        };
        fields.push(("quorum_address".to_owned(), at(|address| &address.quorum)));
        fields.push(("election_address".to_owned(), at(|address| &address.election)));
    }
    let state = match peer.phase {
        Phase::Election => "election",
        Phase::Discovery => "discovery",
        Phase::Synchronization => "synchronization",
        Phase::Broadcast => "broadcast",
    };
    fields.extend(fields! {
        "client_address" => scene.client_address(),
        "voting" => peer.voter && peer.state != ServerState::Observing,
        "last_zxid" => peer.processed.to_string(),
        "zab_epoch" => peer.processed.0 >> 32,
        "zab_counter" => peer.processed.0 & 0xffff_ffff,
        "zabstate" => state,
    });
    Ok(fields)
}

/// `MultipleAddresses`, of which all count as reachable.
fn addresses(all: &[&HostPort]) -> Json {
    let texts: Vec<_> = all.iter().map(ToString::to_string).collect();
    let one = texts.first().cloned().unwrap_or_default();
    let wildcards: Vec<_> = all.iter().map(|at| format!("0.0.0.0:{}", at.port)).collect();
    let ports: Vec<_> = all.iter().map(|at| at.port).collect();
    let hosts: Vec<_> = all.iter().map(|at| at.host.clone()).collect();
    Json::Object(fields! {
        "empty" => all.is_empty(),
        "all_addresses" => texts.clone(),
        "wildcard_addresses" => wildcards,
        "all_ports" => ports,
        "all_host_strings" => hosts,
        "reachable_address" => one.clone(),
        "all_reachable_addresses" => texts.clone(),
        "all_reachable_addresses_or_all" => texts,
        "reachable_or_one" => one.clone(),
        "one" => one,
    })
}

/// ZooKeeper's default (`ZooTrace`).
const TRACE_MASK: i64 = 306;
