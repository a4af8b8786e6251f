//! RackBlox (SOSP'23): a rack whose switch and software-defined flash are designed together.
//!
//! * `packet`: what travels, and its bytes.
//! * `switch`: replica and destination tables, Algorithm 1, network scheduling, in-band telemetry.
//! * `schedule`, `predict`: coordinated I/O scheduling over FIFO, Deadline and Kyber; return latency and idle time.
//! * `node`: a storage server: Algorithm 2, write cache, garbage-collection monitor, channel groups.
//! * `hermes`, `control`: replicas that agree; membership, failures and rebuilding.
//! * `client`: who asks, and tries again.
//! * `wear`: local and global wear levelling.
//! * `baseline`: virtual datacenters, and RackBlox in software.

mod id;
mod packet;

pub use id::{Page, Tag, Value, VssdId};
pub use packet::{Body, CollectionNote, ControlMessage, Packet, REPLICAS_MAX, Refusal, ReplicaMessage, Timestamp};
