//! The live key-value store: the programs of [`scalio`] behind the protocol of Redis.
//!
//! [`scalio::Client`] and [`scalio::Server`] decide everything about keys and values. This crate
//! moves bytes and keeps time.
//!
//! | part | function |
//! | --- | --- |
//! | [`Store`] | the event loop: sockets, timers, signals |
//! | [`protocol`] | requests and replies as bytes, RESP2 and RESP3 |
//! | [`Session`](session::Session) | one connection: its commands in order, without a socket |
//! | `transport` | what carries operations to the JBOF: verbs, reads of flash, requests |
//! | `jbof` | the JBOF: registered memory, flash in a file, and the helper, [`scalio::Server`] |

mod command;
mod config;
mod connection;
mod flash;
mod jbof;
mod metrics;
pub mod protocol;
pub mod session;
mod slowlog;
mod socket;
mod store;
mod superblock;
mod transport;

pub use config::{Config, Limits, TlsFiles};
pub use runtime::error::{RunError, StartError};
pub use runtime::stopper::Stopper;
pub use store::{Reload, Store};
