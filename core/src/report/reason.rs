//! Why something changed, for people: each reason, and its sentence.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::id::ServerId;
use crate::input::Cause;
use crate::status::Phase;
use crate::vote::{Better, Round};
use crate::zxid::{Epoch, Zxid};

/// Why something has changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The server has started.
    Started,
    /// A round begins with a vote for oneself.
    OwnVote,
    /// A round begins with an abstention: this server has no vote.
    NoVote,
    /// A peer's vote is better.
    BetterVote {
        /// Whose.
        from: ServerId,
        /// In which field.
        why: Better,
    },
    /// A peer votes for another server; ours is for ourselves, and fewer than a quorum hear it.
    HearsFew {
        /// Whose vote.
        from: ServerId,
    },
    /// A leader says that it leads, and we hear too few others to count who follows it.
    OnlyLeaderHeard {
        /// Who.
        leader: ServerId,
    },
    /// A peer's vote names a server that may be elected; ours named one of weight 0.
    MayBeElected {
        /// Whose vote.
        from: ServerId,
    },
    /// A peer votes for us, for a history that we have no more.
    Outlived {
        /// Who.
        from: ServerId,
        /// Where that history ended.
        zxid: Zxid,
    },
    /// A peer is in a later round.
    LaterRound {
        /// Who.
        from: ServerId,
        /// Its round.
        theirs: Round,
        /// Ours.
        ours: Round,
    },
    /// A quorum votes alike, and the wait for a better vote has passed.
    Quorum {
        /// Who.
        members: Vec<ServerId>,
        /// For whom.
        leader: ServerId,
    },
    /// A quorum votes alike, and no voter is left that could change that.
    Settled {
        /// Who.
        members: Vec<ServerId>,
        /// For whom.
        leader: ServerId,
        /// The voters that no dial of this round could reach.
        unreachable: Vec<ServerId>,
    },
    /// A quorum already has this leader, and the leader says so itself.
    Joined {
        /// Who.
        members: Vec<ServerId>,
        /// Whom they follow.
        leader: ServerId,
    },
    /// The arbiter of two servers has decided.
    Oracle {
        /// For whom.
        leader: ServerId,
    },
    /// A quorum of voters has connected; the epoch is one more than the highest that any promised.
    Connected {
        /// Who.
        members: Vec<ServerId>,
        /// The new epoch.
        epoch: Epoch,
    },
    /// A quorum has promised the epoch.
    Promised {
        /// Who.
        members: Vec<ServerId>,
    },
    /// A quorum has taken over the leader's history.
    Acknowledged {
        /// Who.
        members: Vec<ServerId>,
    },
    /// The leader has announced a new epoch.
    LeaderSaid {
        /// Who.
        leader: ServerId,
        /// The epoch.
        epoch: Epoch,
    },
    /// A learner's link ended.
    LinkEnded,
    /// The connection to the leader ended.
    LeaderLost {
        /// Who led.
        leader: ServerId,
        /// How.
        cause: Cause,
    },
    /// The leader was silent for too long.
    LeaderSilent {
        /// Who leads.
        leader: ServerId,
    },
    /// The leader could not be reached in time, or refuses both its ports.
    LeaderUnreachable {
        /// Who was to lead.
        leader: ServerId,
    },
    /// The server that we follow has moved on in the election.
    LeaderMovedOn {
        /// Who was to lead.
        leader: ServerId,
        /// Where it stands now.
        round: Round,
    },
    /// The leader announced an epoch that is older than our promise.
    OldEpoch {
        /// What it announced.
        announced: Epoch,
        /// What we have promised.
        accepted: Epoch,
    },
    /// Our disk does not keep up with what the leader sends, and we hold no more than we have room for.
    DiskBehind {
        /// How many bytes of transactions wait for the disk.
        bytes: usize,
        /// How many may.
        most: usize,
    },
    /// The leader did what the protocol does not allow at that point.
    LeaderMisbehaved {
        /// Who.
        leader: ServerId,
        /// What it sent.
        packet: &'static str,
    },
    /// The leader sent transactions that leave a hole.
    Hole {
        /// Who.
        leader: ServerId,
        /// What it sent.
        zxid: Zxid,
        /// Behind which.
        after: Zxid,
    },
    /// The leader sent another transaction than the one that we have under its number.
    Differs {
        /// Who.
        leader: ServerId,
        /// Under which.
        zxid: Zxid,
    },
    /// The leader wants a history cut where ours cannot be: we come back for a whole one.
    CannotCut {
        /// Where.
        zxid: Zxid,
    },
    /// A history ends here.
    EndsAt(Zxid),
    /// It was never proposed, or is not this learner's to acknowledge.
    NotProposed,
    /// The epoch has no number left for another transaction.
    CounterEnd(Zxid),
    /// Not enough voters came in time.
    NoQuorum {
        /// In which phase.
        phase: Phase,
        /// Who was there.
        members: Vec<ServerId>,
    },
    /// The disk here has owed something for so long that another should lead.
    DiskHangs {
        /// How long a write waits, at least.
        waits: Duration,
    },
    /// The disk here has failed: this server gives up its role until the disk works again.
    DiskFailed,
    /// A voter has newer history than this leader; the next election will find it.
    NewerHistory {
        /// Who.
        voter: ServerId,
        /// Its current epoch.
        current_epoch: Epoch,
        /// Its last zxid.
        last: Zxid,
    },
    /// A voter has promised a later epoch than this leader's.
    LaterPromise {
        /// Who.
        voter: ServerId,
        /// What it has promised.
        accepted: Epoch,
    },
    /// A voter's promise of this epoch was lost, and the quorum needs it.
    LostPromise {
        /// Who.
        voter: ServerId,
    },
    /// The voters that elected this leader are looking again; those that are left are no quorum.
    Deserted {
        /// The last one to go.
        voter: ServerId,
    },
    /// None of the voters that elected this leader has come to its quorum port, and their election links stand: they follow
    /// another by now, or something on the way drops what is for that port.
    NoneCame,
    /// The operator asked for it.
    Asked,
    /// The quorum port accepts no connections: no follower could connect.
    CannotAccept,
    /// The voters' promises to establish no other leader are over.
    LeaseOver,
    /// The leader gave its leadership to another server.
    Transferred {
        /// Who led.
        from: ServerId,
        /// Who leads now.
        to: ServerId,
    },
    /// The membership was changed.
    Reconfigured {
        /// The version of the new one.
        version: i64,
    },
    /// The leader does not know of a change that our history holds.
    OlderMembership {
        /// Who.
        leader: ServerId,
        /// The version of ours.
        version: i64,
    },
    /// A learner that does not take memberships with a snapshot is sent one while a change is under way: if it never
    /// hears of this version otherwise, it is not bound by it.
    Unprotected {
        /// Of what is in force.
        version: i64,
    },
    /// A peer knows a newer configuration.
    NewerConfiguration {
        /// Who.
        from: ServerId,
    },
    /// No leader is heard, so this server asks to be elected.
    NoLeaderHeard,
    /// A server asked for our vote, and is as new as we are.
    VoteGranted {
        /// Who.
        to: ServerId,
    },
    /// A leader was heard, which a quorum has elected.
    LeaderHeard {
        /// Who.
        leader: ServerId,
    },
    /// No quorum answers the leader's heartbeats.
    Unheard {
        /// Who does.
        members: Vec<ServerId>,
    },
}

/// Servers as a set: `{2,3}`.
struct Set<'a>(&'a [ServerId]);

impl fmt::Display for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, id) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{id}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => f.write_str("started"),
            Self::OwnVote => f.write_str("a round begins with one's own vote"),
            Self::NoVote => f.write_str("this server has no vote"),
            Self::BetterVote { from, why } => write!(f, "{why}, says {from}"),
            Self::HearsFew { from } => {
                write!(f, "too few are heard to insist on oneself, {from} votes otherwise")
            }
            Self::OnlyLeaderHeard { leader } => {
                write!(f, "{leader} says that it leads, and too few others are heard")
            }
            Self::MayBeElected { from } => {
                write!(f, "may be elected, unlike the one before, says {from}")
            }
            Self::Outlived { from, zxid } => {
                write!(f, "{from} votes for us as we were, with {zxid}: the round begins anew")
            }
            Self::LaterRound { from, theirs, ours } => {
                write!(f, "round {theirs} > {ours}, says {from}")
            }
            Self::Quorum { members, leader } => write!(f, "quorum {} for {leader}", Set(members)),
            Self::Settled { members, leader, unreachable } => {
                write!(f, "quorum {} for {leader}, ", Set(members))?;
                if unreachable.is_empty() {
                    f.write_str("everybody heard")
                } else {
                    write!(f, "{} unreachable", Set(unreachable))
                }
            }
            Self::Joined { members, leader } => {
                write!(f, "quorum {} already follows {leader}", Set(members))
            }
            Self::Oracle { leader } => write!(f, "the oracle decided for {leader}"),
            Self::Connected { members, epoch } => {
                write!(f, "quorum {} connected, epoch {epoch}", Set(members))
            }
            Self::Promised { members } => write!(f, "quorum {} promised", Set(members)),
            Self::Acknowledged { members } => write!(f, "quorum {} acknowledged", Set(members)),
            Self::LeaderSaid { leader, epoch } => write!(f, "leader {leader} begins epoch {epoch}"),
            Self::LinkEnded => f.write_str("its link ended"),
            Self::LeaderLost { leader, cause } => match cause {
                Cause::Closed => write!(f, "leader {leader} closed its link"),
                Cause::Reset => write!(f, "the link to leader {leader} broke"),
                Cause::Silent => write!(f, "leader {leader} acknowledges nothing any more"),
                Cause::Garbled => write!(f, "leader {leader} sent what cannot be read"),
            },
            Self::LeaderSilent { leader } => write!(f, "leader {leader} is silent"),
            Self::LeaderUnreachable { leader } => write!(f, "leader {leader} cannot be reached"),
            Self::LeaderMovedOn { leader, round } => {
                write!(f, "server {leader} no longer leads, it is in round {round}")
            }
            Self::OldEpoch { announced, accepted } => {
                write!(f, "leader announced epoch {announced}, but {accepted} is promised")
            }
            Self::DiskBehind { bytes, most } => {
                write!(f, "{bytes} bytes of transactions wait for the disk, {most} may")
            }
            Self::LeaderMisbehaved { leader, packet } => {
                write!(f, "leader {leader} sent {packet} out of turn")
            }
            Self::Hole { leader, zxid, after } => {
                write!(f, "leader {leader} sent {zxid} after {after}, which leaves a hole")
            }
            Self::Differs { leader, zxid } => {
                write!(f, "leader {leader} sent another transaction {zxid} than ours")
            }
            Self::CannotCut { zxid } => write!(f, "our log cannot be cut at {zxid}"),
            Self::EndsAt(zxid) => write!(f, "its history ends at {zxid}"),
            Self::NotProposed => {
                f.write_str("it was never proposed to it, or is not its to acknowledge")
            }
            Self::CounterEnd(zxid) => write!(f, "no transaction can follow {zxid} in its epoch"),
            Self::NoQuorum { phase, members } => {
                write!(f, "no quorum in {phase}, only {}", Set(members))
            }
            Self::DiskFailed => f.write_str("the disk here has failed"),
            Self::DiskHangs { waits } => {
                write!(f, "a write has waited for the disk for {} ms", waits.as_millis())
            }
            Self::NewerHistory { voter, current_epoch, last } => {
                write!(f, "voter {voter} is newer (epoch {current_epoch}, zxid {last})")
            }
            Self::LaterPromise { voter, accepted } => {
                write!(f, "voter {voter} has promised the later epoch {accepted}")
            }
            Self::LostPromise { voter } => write!(f, "the promise of voter {voter} was lost"),
            Self::Deserted { voter } => write!(f, "voter {voter} looks again, no quorum is left"),
            Self::NoneCame => f.write_str(
                "no quorum in discovery, none came to the quorum port, though election links stand",
            ),
            Self::Asked => f.write_str("asked to"),
            Self::CannotAccept => f.write_str("the quorum port accepts no connections"),
            Self::LeaseOver => f.write_str("the lease is over"),
            Self::Transferred { from, to } => {
                write!(f, "leader {from} gave its leadership to {to}")
            }
            Self::Reconfigured { version } => write!(f, "reconfigured, version {version:x}"),
            Self::OlderMembership { leader, version } => {
                write!(f, "leader {leader} does not know of the change of version {version:x}")
            }
            Self::Unprotected { version } => write!(
                f,
                "it is sent a snapshot while a change is under way, and may never be bound by version {version:x}"
            ),
            Self::NewerConfiguration { from } => write!(f, "server {from} knows a newer one"),
            Self::NoLeaderHeard => f.write_str("no leader is heard"),
            Self::VoteGranted { to } => write!(f, "{to} asked for it"),
            Self::LeaderHeard { leader } => write!(f, "leader {leader} is heard"),
            Self::Unheard { members } => write!(f, "no quorum hears it, only {}", Set(members)),
        }
    }
}
