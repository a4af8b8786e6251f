//! The live key-value store: the programs of [`scalio`] behind the protocol of Redis.
//!
//! [`scalio::Client`] and [`scalio::Server`] decide everything about keys and values. This crate
//! moves bytes and keeps time.
//!
//! | part | function |
//! | --- | --- |
//! | [`Store`] | its loops, each in a thread: sockets, timers, signals |
//! | [`protocol`] | requests and replies as bytes, RESP2 and RESP3 |
//! | [`Session`](session::Session) | one connection: its commands in order, without a socket |
//! | [`Output`](output::Output) | bytes on their way to a client, long values uncopied |
//! | `transport` | what carries operations to the JBOF: verbs, reads of flash, requests |
//! | `jbof` | the JBOF: registered memory, flash in a file, and the helper, [`scalio::Server`] |
//! | `near` | the JBOF in a thread of its own, for several loops |
//! | [`JbofRole`] | the JBOF in a process of its own, and `remote`, its doors' way to it |
//! | `far` | memory of a JBOF that a door accesses by libfabric; `order` keeps verbs in order |
//! | `disk` | flash of a JBOF that a door reads by NVMe/TCP; `pieces` has reads as commands |
//! | `rows` | rows of the records, which [`Records`] asks for |
//! | [`journal`] | what came in at a program, and what it decided; `noted` keeps it |
//! | [`twin`] | the programs of journals again |
//! | [`frames`] | what these say to each other, as bytes; [`channel`] seals them |

mod alarm;
mod attempts;
pub mod channel;
mod command;
mod common;
mod config;
mod connection;
mod direct;
mod disk;
mod far;
mod flash;
pub mod frames;
mod jbof;
pub mod journal;
mod metrics;
mod near;
mod noted;
mod order;
pub mod output;
mod pieces;
pub mod protocol;
mod reader;
mod remote;
mod role;
mod rows;
mod serving;
pub mod session;
mod slowlog;
mod socket;
mod store;
mod superblock;
mod transport;
pub mod twin;
mod writes;

pub use config::{
    Config, FabricPlace, FlashPeer, JbofConfig, JbofPlace, JbofRoleConfig, Journal, Limits, Peer, PeerAddress, Secret,
    TlsFiles,
};
pub use jbof::{COMPACT_BELOW, GROUP_UPDATES, GROUPS, RESERVE_ZONES};
pub use reader::{ATTEMPTS_MAX, LEASE, REPLY_TIMEOUT, RETRY, SENDS_MAX};
pub use role::JbofRole;
pub use runtime::error::{RunError, StartError};
pub use runtime::records::Records;
pub use runtime::stopper::Stopper;
pub use scalio::Protocol;
pub use serving::Reload;
pub use store::Store;
