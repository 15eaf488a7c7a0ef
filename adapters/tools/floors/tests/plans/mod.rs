//! Where each module stands, crate by crate. Moving a wall is one line here.
//!
//! Floors inside a folder are its own and are counted from 1; a module stands above all that is in its folder, and its
//! folder does not know it.
#![allow(dead_code, reason = "each program of tests uses some of it")]

pub(crate) mod application;
pub(crate) mod cli;
pub(crate) mod core;
pub(crate) mod doctor;
pub(crate) mod driver;
pub(crate) mod etcd;
pub(crate) mod http;
pub(crate) mod keystore;
pub(crate) mod leadership;
pub(crate) mod metrics;
pub(crate) mod recipes;
pub(crate) mod rescue;
pub(crate) mod sasl;
pub(crate) mod servers;
pub(crate) mod service;
pub(crate) mod sim;
pub(crate) mod storage;
pub(crate) mod timeline;
pub(crate) mod tls;
pub(crate) mod znode;
pub(crate) mod zookeeper;
