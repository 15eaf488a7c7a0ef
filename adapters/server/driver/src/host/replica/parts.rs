//! What a replica begins with, and how it is put together.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_application::{Application, TxnTimes};
use quorate_core::zxid::Zxid;

use crate::disk::{DiskHandle, Stop};
use crate::host::callers::Requests;
use crate::host::reads::Reads;
use crate::host::replica::snapshots::Snapshots;
use crate::host::replica::words::Words;
use crate::host::replica::{Pace, Replica};
use crate::host::service::{Clock, Service};
use crate::host::stages::Stages;
use crate::host::worker::{Worker, WorkerReport};
use crate::inbox::Inbox;
use crate::task_group::KeepAlive;

/// What a replica begins with.
pub(crate) struct ReplicaParts<A: Application> {
    pub(crate) application: A,
    /// Its service.
    pub(crate) clients: A::Clients,
    /// When the service steps.
    pub(crate) clock: Clock,
    /// The newest snapshot on disk, restored.
    pub(crate) staged: Option<(Zxid, A::Staged)>,
    pub(crate) client: i64,
    /// The longest transaction that a leader makes.
    pub(crate) txn_bytes_max: usize,
    /// Whether there is no configuration that the application should know of.
    pub(crate) alone: bool,
    pub(crate) disk: DiskHandle,
    pub(crate) inbox: Arc<Inbox<WorkerReport<A>>>,
    pub(crate) keep_alive: KeepAlive,
}

impl<A: Application> Replica<A> {
    pub(crate) fn new(parts: ReplicaParts<A>) -> Self {
        let ReplicaParts { application, staged, client, disk, inbox, keep_alive, .. } = parts;
        let service = Service::new(parts.clients, parts.clock);
        let deadline = service.deadline();
        let stages = Stages::new(Arc::clone(disk.measures()), client);
        let base = staged.as_ref().map_or(Zxid::ZERO, |(label, _)| *label);
        let snapshots = Snapshots::new(base);
        let worker = Worker {
            application,
            service,
            heard: 0,
            client,
            applied: Zxid::ZERO,
            txn_bytes_max: parts.txn_bytes_max,
            alone: parts.alone,
            times: TxnTimes::new(),
            disk: disk.clone(),
            reader: None,
            halted: false,
        };
        Self {
            worker: Some(worker),
            thread: None,
            inbox,
            quick: true,
            pace: Pace::DRIVEN,
            orders: VecDeque::new(),
            planned: Zxid::ZERO,
            applied: Zxid::ZERO,
            told: Zxid::ZERO,
            base,
            least: Zxid::ZERO,
            staged,
            reception: None,
            receptions: Arc::default(),
            done: Vec::new(),
            reports: Vec::new(),
            disk,
            keep_alive,
            stop: Stop::default(),
            requests: Requests::new(client),
            reads: Reads::new(),
            told_service: 0,
            heard: 0,
            deadline,
            ticks: false,
            snapshots,
            looks: Vec::new(),
            words: Words::default(),
            halted: None,
            stages,
            unreadable: None,
        }
    }
}
