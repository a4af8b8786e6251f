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

pub mod baseline;
mod control;
mod hermes;
mod cache;
mod collect;
mod groups;
mod id;
mod isolate;
mod packet;
mod predict;
mod schedule;

pub use control::{Control, ControlConfig, ControlError, ControlIn, ControlOut, Event, Lease, ServerPlace};
pub use hermes::{Contents, Membership, Reading, Replica, ReplicaConfig, ReplicaOut, Standing, Ticket, Writing};
pub use cache::{CacheConfig, CacheScope, Flush, WriteCache};
pub use collect::{CollectionConfig, Collector, CollectorAction, Coordination, Urgency, urgency};
pub use groups::{BlockMove, BorrowConfig, Ledger};
pub use id::{Page, Tag, Value, VssdId};
pub use isolate::TokenBucket;
pub use packet::{Body, CollectionNote, ControlMessage, Packet, REPLICAS_MAX, Refusal, ReplicaMessage, Timestamp};
pub use predict::{AlphaError, IdleConfig, IdlePredictor, RETURN_WINDOW, ReturnPredictor};
pub use schedule::{Job, JobId, JobKind, Policy, Scheduler, SchedulerConfig, SchedulingKey};
