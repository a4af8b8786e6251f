//! The live host: the programs that the simulator plays, with sockets, files, threads and a real
//! clock.
//!
//! So far it has one role, the NVMe/TCP target. [`Server`] opens what a
//! [`plan::target::TargetPlan`] names and serves hosts; [`nvme::target::Target`] decides
//! everything, and this crate moves bytes, runs backends and keeps time.
//!
//! | to | look at |
//! | --- | --- |
//! | serve disks | [`Server`], [`ServerOptions`], [`Stopper`] |
//! | keep data | [`storage`]: memory, nothing, files |
//! | use disks of others | [`RemoteDisk`], [`Host`], [`discover`] |
//! | secure both | [`Proof`], [`entropy`], [`secret_in`]; TLS is there with the feature `tls` |
//! | write records | [`FileParts`] |

mod attacker;
mod backend;
mod common;
mod doors;
mod engine;
mod floods;
mod host;
mod identity;
mod machine;
mod manage;
mod metrics;
mod records;
mod remote;
mod secrets;
mod server;
mod serving;
mod setup;
mod socket;
mod state;
mod stream;
#[cfg_attr(not(feature = "tls"), path = "tls/absent.rs")]
mod tls;

use runtime::{clock, error, http, in_use, listen, timer};

pub use attacker::play;
pub use backend::storage;
pub use host::{Completed, Host, HostError, Proof, host_id_of};
pub use machine::JournalSink;
pub use remote::{Extent, RemoteDisk, discover, namespaces};
pub use runtime::clock::Clock;
pub use runtime::error::{RunError, StartError};
pub use runtime::parts::FileParts;
pub use runtime::stopper::Stopper;
pub use secrets::{entropy, long_secret_in, secret_in};
pub use server::{Reload, Server, ServerOptions};
pub use setup::OpenStorage;
