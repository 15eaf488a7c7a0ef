//! What `prepare` returns around the longest transaction that there may be.

use std::iter;

use bytes::Bytes;
use quorate_core::config::Limits;
use quorate_core::rng::Rng;
use quorate_core::txn::Txn;
use quorate_core::zxid::Zxid;

use super::{Ensemble, Stage};
use crate::{
    ProposeError, Rejected, Replicated, RestoreError, Runtime, ServerConfig, StateMachine,
};

/// A request says how long its command is to be. Each command says how many came before it, of those applied
/// and of those prepared: a machine that counted on one that never comes would say too many, and panic.
#[derive(Debug, Default)]
pub struct Numbered {
    applied: usize,
    prepared: usize,
}

impl StateMachine for Numbered {
    type State = usize;

    fn prepare(&mut self, request: &Bytes, bytes_max: usize) -> Result<Bytes, Rejected> {
        assert!([MOST, RAISED].contains(&bytes_max), "it is told how much there is room for");
        let length = usize::from_be_bytes(request[..].try_into().unwrap());
        let number = self.applied + self.prepared;
        self.prepared += 1;
        let mut command = vec![0; length];
        command[..8].copy_from_slice(&number.to_be_bytes());
        Ok(command.into())
    }

    fn void(&mut self) {
        self.prepared -= 1;
    }

    fn apply(&mut self, _zxid: Zxid, command: &[u8]) -> Bytes {
        let number = usize::from_be_bytes(command[..8].try_into().unwrap());
        assert_eq!(number, self.applied, "what came before it was applied");
        self.applied += 1;
        self.prepared = self.prepared.saturating_sub(1);
        Bytes::copy_from_slice(&command.len().to_be_bytes())
    }

    fn abandon(&mut self) {
        self.prepared = 0;
    }

    fn save(&self) -> usize {
        self.applied
    }

    fn load(&mut self, state: usize) {
        *self = Self { applied: state, prepared: 0 };
    }

    fn write(state: usize) -> impl Iterator<Item = Bytes> + Send {
        iter::once(Bytes::copy_from_slice(&state.to_be_bytes()))
    }

    fn read(state: &mut usize, piece: &[u8]) -> Result<(), RestoreError> {
        *state = usize::from_be_bytes(piece.try_into()?);
        Ok(())
    }
}

type Machine = Replicated<Numbered>;

/// What is left for a command in the shortest transaction that may be the longest, below `/quorate/n`.
const MOST: usize = Limits::TXN_BYTES_MIN - Txn::HEADER_BYTES - 10 - 12;
/// The same where `jute.maxbuffer` is raised to 2 MiB.
const RAISED: usize = (4 << 20) - Txn::HEADER_BYTES - 10 - 12;

async fn ensemble<R: Runtime>(
    stage: &Stage<R>,
    adjust: fn(&mut ServerConfig),
) -> Ensemble<R, Machine> {
    let machine = |_| Replicated::new("n", Numbered::default());
    let mut ensemble = Ensemble::new(stage, "127.0.0.1", [3, 0], machine);
    ensemble.adjust = adjust;
    ensemble.start_all().await;
    ensemble.agreed().await;
    ensemble
}

/// ZOOKEEPER-4306: what no server can read ends one leader after another.
pub async fn what_is_prepared_too_long_is_refused_and_costs_nobody_else<R: Runtime>(
    stage: Stage<R>,
) {
    let shortest = |config: &mut ServerConfig| {
        config.core.limits.txn_bytes = Limits::TXN_BYTES_MIN;
    };
    let ensemble = ensemble(&stage, shortest).await;
    let first = ensemble.agreed().await;
    let mut rng = Rng::new(1);
    let mut lengths = vec![MOST - 1, MOST, MOST + 1, 3 << 20];
    lengths.extend((0..200).map(|_| match rng.below(4) {
        0 => MOST + 1 + usize::try_from(rng.below(40)).unwrap(),
        1 => MOST - usize::try_from(rng.below(40)).unwrap(),
        2 => MOST - 1 + usize::try_from(rng.below(3)).unwrap(),
        _ => 8 + usize::try_from(rng.below(2 << 10)).unwrap(),
    }));
    // All at once: each is prepared on top of others that do not come to pass.
    let servers: Vec<_> = ensemble.running().map(|(_, server)| server.clone()).collect();
    let asked = lengths.iter().enumerate().map(|(nth, length)| {
        let (server, length) = (servers[nth % servers.len()].clone(), *length);
        let request = Bytes::copy_from_slice(&length.to_be_bytes());
        stage.spawn(async move { (length, server.propose(request).await) })
    });
    let answers = stage.join_all("all answers", asked.collect()).await;
    let mut taken = 0;
    for (length, answer) in answers {
        if length <= MOST {
            assert_eq!(answer.unwrap().reply, length.to_be_bytes()[..], "{length}");
            taken += 1;
        } else {
            let error = answer.unwrap_err();
            let ProposeError::Rejected { reason, .. } = error else { panic!("{length}: {error}") };
            assert_eq!(reason, Rejected::TOO_LONG);
            assert!(error.to_string().contains("jute.maxbuffer"), "{error}");
        }
    }
    for server in servers {
        let applied = server.read(|machine| machine.machine().applied);
        assert_eq!(stage.within("a read", applied).await.unwrap(), taken);
    }
    assert_eq!(ensemble.agreed().await, first, "nobody has lost anybody");
}

/// ZOOKEEPER-3496: what one server writes because its `jute.maxbuffer` is raised, every other has to read: from its
/// leader, from its own log at start, and from the log of its leader when it comes back.
pub async fn what_is_longer_than_the_default_is_replicated_where_the_limit_is_raised<R: Runtime>(
    stage: Stage<R>,
) {
    let raised = |config: &mut ServerConfig| config.core.limits.txn_bytes = 4 << 20;
    let mut ensemble = ensemble(&stage, raised).await;
    let first = ensemble.agreed().await;
    let away = ensemble.running().map(|(id, _)| id).find(|id| *id != first.0).unwrap();
    for length in [3 << 20, RAISED, 8] {
        let server = ensemble.running().next().unwrap().1.clone();
        let request = Bytes::copy_from_slice(&length.to_be_bytes());
        let answer = stage.within("an answer", server.propose(request)).await.unwrap();
        assert_eq!(answer.reply, length.to_be_bytes()[..], "{length}");
        if length == 3 << 20 {
            ensemble.kill(away).await;
        }
    }
    ensemble.start(away).await;
    assert_eq!(ensemble.agreed().await, first, "the one that was away is back");
    for (id, server) in ensemble.running() {
        let applied = server.read(|machine| machine.machine().applied);
        assert_eq!(stage.within("a read", applied).await.unwrap(), 3, "{id}");
    }
}
