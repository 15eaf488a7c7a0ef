//! A story among real servers.

use quorate_core::id::{ReadId, ServerId};
use quorate_core::input::Plane;
use quorate_core::message::{Message, Packet};
use quorate_core::output::{Output, Write};
use quorate_core::txn::RequestId;
use quorate_core::zxid::Zxid;

use super::command::{self, Outcome, Point, Trap};
use super::condition::Place;
use crate::disk::Contents;
use crate::ledger::{Answer, Outcome as Became};
use crate::world::{Brief, World};

/// A world, and what was asked for last.
#[derive(Debug)]
pub(super) struct Worldly {
    pub(super) world: World,
    pub(super) write: Option<RequestId>,
    pub(super) read: Option<(i64, ReadId)>,
}

impl Worldly {
    pub(super) fn new(world: World) -> Self {
        Self { world, write: None, read: None }
    }

    /// Crashes a server when it comes to a point.
    pub(super) fn trap(&mut self, id: i64, trap: Trap) {
        let at: fn(&Output) -> bool = match trap.at {
            Point::AcceptedEpoch => {
                |output| matches!(output, Output::Persist { write: Write::AcceptedEpoch(_), .. })
            }
            Point::CurrentEpoch => {
                |output| matches!(output, Output::Persist { write: Write::CurrentEpoch(_), .. })
            }
            Point::Append => {
                |output| matches!(output, Output::Persist { write: Write::Append(_), .. })
            }
            Point::LeaderInfo => |output| {
                matches!(
                    output,
                    Output::Send { message: Message::Packet(Packet::LeaderInfo { .. }), .. }
                )
            },
            Point::Ack => |output| {
                matches!(output, Output::Send { message: Message::Packet(Packet::Ack(_)), .. })
            },
            Point::NewLeader => |output| {
                matches!(
                    output,
                    Output::Send { message: Message::Packet(Packet::NewLeader { .. }), .. }
                )
            },
        };
        if trap.after {
            self.world.crash_after(id, at);
        } else {
            self.world.crash_before(id, at);
        }
    }
}

impl Place for Worldly {
    fn brief(&self, id: i64) -> Option<Brief> {
        self.world.brief(id)
    }

    fn contents(&self, id: i64) -> Option<&Contents> {
        self.world.durable(id)
    }

    fn applied(&self, id: i64) -> Option<u64> {
        self.world.applied(id).map(|state| state.count)
    }

    fn committed(&self) -> Zxid {
        self.world.checker().committed()
    }

    fn leader(&self) -> Option<i64> {
        self.world.leader().map(|id| id.0)
    }

    fn is_settled(&self, ids: &[i64]) -> bool {
        if ids.is_empty() {
            return self.world.is_settled();
        }
        self.world.is_settled_among(ids.iter().copied().map(command::id))
    }

    fn is_level(&self) -> bool {
        self.world.is_level()
    }

    fn links(&self, a: i64, b: i64, plane: Plane) -> usize {
        self.world.links_between(a, b, plane)
    }

    fn outcome(&self, write: bool) -> Outcome {
        let checker = self.world.checker();
        if write {
            return match self.write.and_then(|id| checker.outcome(id)) {
                None | Some(Became::Asked) => Outcome::Open,
                Some(Became::Accepted) => Outcome::Accepted,
                Some(Became::Applied(zxid)) => Outcome::Done(Some(zxid)),
                Some(Became::Refused) => Outcome::Refused,
                Some(Became::Lost) => Outcome::Lost,
            };
        }
        match self.read.and_then(|(id, read)| checker.answer(id, read)) {
            None | Some(Answer::Asked) => Outcome::Open,
            Some(Answer::Read(zxid)) => Outcome::Done(Some(zxid)),
            Some(Answer::Refused) => Outcome::Refused,
        }
    }
}

/// The servers of a list that are in a world.
pub(super) fn known(world: &World, ids: &[i64]) -> Result<(), super::Problem> {
    let unknown = ids.iter().find(|id| world.servers().all(|known| known != ServerId(**id)));
    match unknown {
        Some(id) => Err(super::Problem::Impossible(format!("there is no server {id}"))),
        None => Ok(()),
    }
}
