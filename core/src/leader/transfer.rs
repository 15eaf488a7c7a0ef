//! Leadership transfer: a leader lets a follower lead that has everything.
//!
//! ```text
//!   asked ─► catching up ──► releasing ─────► holding ────────────► offered ───────────► over
//!            it is sent      none does        requests wait; what   TRANSFER to it; it    TRANSFER to all
//!            what it lacks,  here what only   is under way becomes  leads, and closes     others; we follow
//!            and says that   a leader may     committed             its link
//!            it hears a
//!            quorum
//!              └─────────────── too late, or it is lost ────────────────┘──► the leadership goes on
//! ```
//!
//! Requests wait no longer than the last of those under way takes to be committed, and the new leadership to
//! begin. Nothing rests on the transfer: the next leader's leadership begins with discovery and synchronisation
//! like any other, and if what was promised here did not hold, it would not begin.
//!
//! The follower closes its link when it leads, so that no learner comes to it before. From the offer on, what it
//! has promised counts for nothing: it may take its leadership at any time, also after it was called off.
//!
//! [`plan`] chooses the follower, [`steps`] carries the transfer through; what is kept of one on its way is a
//! [`Transfer`](super::pending::Transfer).

pub mod plan;
pub mod steps;
