//! NVM Express over fabrics on TCP, without I/O, for the simulator and the live target.
//!
//! | to | look at |
//! | --- | --- |
//! | read and write queue entries | [`Sqe`], [`Cqe`] (bytes in place), [`Command`], [`Status`] (meanings) |
//! | frame a byte stream | [`pdu`]: [`pdu::Header`] the meaning, [`pdu::Framing`] writes, [`pdu::Reader`] reads bytes in any split |
//! | transfer data of a command | [`transfer`]: which side may send which bytes next, for reads and writes |
//! | number commands | [`queue`]: both ends of a queue pair |
//! | answer admin commands | [`identify`], [`log`], [`feature`], [`property`], [`ConnectData`], [`reservation`], [`range`], [`vendor`] |
//! | count bytes on the wire | [`wire`]: segments, frames, overhead |
//! | be a target | [`target`]: from a connection's first byte to requests for backends |
//! | be a host | [`initiator`]: from Connect to completions, safe against its target |
//! | authenticate hosts | [`auth`]: secrets and messages of DH-HMAC-CHAP |
//! | secure a connection | [`tls`]: pre-shared keys for TLS 1.3, from the form in which they are carried to identity and key |
//! | attack a target | [`attack`]: hostile hosts as scripts, with verdicts |
//! | replay a session | [`journal`]: inputs and decisions of a target |
//!
//! Nothing here allocates by a number from a peer, keeps a clock or panics on bytes from outside.
//! Clauses are those of NVM Express Base Specification 2.0, NVM Command Set Specification 1.0 and
//! NVMe/TCP Transport Specification 1.0 unless another is named. Figure numbers may be off by a
//! revision.

pub mod attack;
pub mod auth;
mod command;
mod connect;
mod entry;
mod error;
pub mod feature;
pub mod identify;
pub mod initiator;
mod interchange;
pub mod journal;
mod layout;
pub mod log;
mod name;
mod outgoing;
pub mod pdu;
mod pool;
pub mod property;
pub mod queue;
pub mod range;
pub mod reservation;
mod sgl;
mod status;
pub mod target;
pub mod tls;
pub mod transfer;
pub mod vendor;
pub mod wire;

pub use command::*;
pub use connect::ConnectData;
pub use entry::{Cqe, Sqe};
pub use error::CodecError;
pub use name::{HostId, Nqn, Text};
pub use sgl::Sgl;
pub use status::Status;
