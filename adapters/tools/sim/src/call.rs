//! Calls on a modelled store and their replies.

use bytes::Bytes;
use quorate_core::recipe::SessionId;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What is in it.
    pub data: Bytes,
    /// The session with which it goes.
    pub owner: Option<SessionId>,
    /// Which write made it.
    pub created: u64,
    /// Which write wrote it last.
    pub version: u64,
}

/// What is asked of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Make the root.
    Root,
    /// Make a node.
    Create {
        /// Its name, or what it begins with.
        name: String,
        /// The store adds its counter.
        numbered: bool,
        /// It goes with this session.
        owner: Option<SessionId>,
        /// What is in it.
        data: Bytes,
    },
    /// Write a node, if it is of this version.
    Write {
        /// Which.
        name: String,
        /// What.
        data: Bytes,
        /// Of which version it has to be.
        version: u64,
    },
    /// Delete a node, if it is of this version.
    Delete {
        /// Which.
        name: String,
        /// Of which version it has to be, if that matters.
        version: Option<u64>,
        /// When it has to have been created, if that matters: there may be another of this name by now.
        created: Option<u64>,
    },
    /// Read a node.
    Read {
        /// Which.
        name: String,
        /// Leave a watch, if it is there.
        watch: bool,
    },
    /// List the children of the root.
    List {
        /// Behind everything that the store has done.
        fresh: bool,
    },
    /// Be heard where silent sessions are ended.
    Ping,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
    Done,
    /// The node that was made or written, and its name.
    Made(String, Node),
    /// The node that was read.
    Read(Node),
    /// The children of the root and when they were created.
    Listed(Vec<(String, u64)>),
}
