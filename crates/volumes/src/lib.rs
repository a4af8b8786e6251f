//! RackBlox live: the programs of [`blox`] behind UDP, files and timers.
//!
//! [`blox::Switch`], [`blox::StorageNode`], [`blox::Control`] and [`blox::Client`] decide
//! everything; the simulator runs the same. This crate moves bytes and keeps time.
//!
//! | part | function |
//! | --- | --- |
//! | [`switch`] | the switch: every packet of the rack passes it |
//! | [`storage`] | a storage server: its vSSDs in files, with the collection of emulated flash |
//! | [`control`] | the control plane: who is alive, and who has which replica; its state in a file |
//! | [`Volume`] | a replicated disk: [`blox::Client`] on a thread, as a `Storage` of the target |
//! | `wire` | packets in datagrams, sealed with the rack's secret (`seal`), to where nodes are now (`peers`) |
//! | `rows` | rows of the records of a storage server |
//! | [`journal`] | what came in at a role, and what it did |
//! | [`twin`] | the roles of journals again, each alone or all in virtual time |
//! | `configs` | from `rack.toml` to the configurations of the programs |
//!
//! A page has a [`blox::Value`] in the programs, and its bytes in `pages` beside them: a value
//! names one write for ever. Packets carry both.

#[cfg(test)]
extern crate self as volumes;

mod configs;
pub mod control;
mod flash;
pub mod journal;
mod kept;
mod kept_pages;
mod notes;
mod opening;
mod pages;
mod peers;
mod role;
mod rows;
mod seal;
pub mod storage;
pub mod switch;
pub mod twin;
mod volume;
mod wire;

pub use opening::{bytes_of, identity_of, open};
pub use role::{Running, Start, Stop};
pub use runtime::error::{RunError, StartError};
pub use volume::{Door, Volume};
