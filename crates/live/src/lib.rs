//! The live host: the programs that the simulator plays, behind sockets, files, threads and a real clock.
//!
//! So far it has one role, the NVMe/TCP target. [`Server`] opens what a [`spec::target::TargetPlan`] names and serves hosts;
//! [`nvme::target::Target`] decides everything, and this crate moves bytes, runs backends and keeps time.
//!
//! | to | look at |
//! | --- | --- |
//! | serve disks | [`Server`], [`ServerOptions`], [`Stopper`] |
//! | keep data | [`storage`]: memory, nothing, files |
//! | use disks of others | [`RemoteDisk`], [`Host`], [`discover`] |
//! | write records | [`FileParts`] |

mod attacker;
mod backend;
mod clock;
mod engine;
mod error;
mod host;
mod http;
mod listen;
mod machine;
mod manage;
mod metrics;
mod parts;
mod records;
mod remote;
mod server;
mod setup;
mod socket;
mod state;
mod timer;

pub use attacker::play;
pub use backend::storage;
pub use clock::Clock;
pub use error::{RunError, StartError};
pub use host::{Completed, Host, HostError};
pub use machine::JournalSink;
pub use parts::FileParts;
pub use remote::{Extent, RemoteDisk, discover, namespaces};
pub use server::{Reload, Server, ServerOptions, Stopper};
pub use setup::OpenStorage;
