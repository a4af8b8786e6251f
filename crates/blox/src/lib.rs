//! RackBlox (SOSP'23): a rack whose switch and software-defined flash are designed together.
//!
//! * `packet`: messages and their bytes.
//! * `switch`: replica and destination tables, Algorithm 1, network scheduling, in-band telemetry.
//! * `schedule`, `predict`: coordinated I/O scheduling over FIFO, Deadline and Kyber; return
//!   latency and idle time.
//! * `node`: a storage server: Algorithm 2, write cache, garbage-collection monitor, channel
//!   groups.
//! * `hermes`, `control`: replication; membership, failures and rebuilding.
//! * `client`: requests and retries.
//! * `placement`: replicas, their servers, drives and channels.
//! * `wear`: local and global wear levelling.
//! * `own`: decisions that a policy of a user's own may take.
//! * `baseline`: virtual datacenters, and RackBlox in software.

pub mod baseline;
mod cache;
mod client;
mod collect;
mod control;
mod emulate;
mod groups;
mod hermes;
mod id;
mod isolate;
mod node;
mod own;
mod packet;
mod placement;
mod predict;
mod schedule;
mod scrub;
mod switch;
mod timeouts;
mod wear;

pub use cache::{CacheConfig, CacheScope};
pub use client::{Client, ClientConfig, ClientCounters, ClientError, ClientIn, ClientOut, ClientOutcome, LimitConfig};
pub use collect::{CollectionConfig, CollectionStep, CollectionStream, Coordination, Grain, Urgency};
pub use control::{
    Control, ControlConfig, ControlError, ControlIn, ControlOut, ControlState, Event, Lease, ServerPlace,
};
pub use emulate::{Emulation, Leg, NetworkMode, Passed};
pub use groups::{BlockMove, BorrowConfig};
pub use hermes::{Contents, Membership, Reading, Replica, ReplicaConfig, ReplicaOut, Standing, Ticket, Writing};
pub use id::{Origin, Page, Tag, Value, VssdId, WriteId};
pub use isolate::TokenBucket;
pub use node::{
    ControlLink, DeviceJob, IsolationConfig, NodeConfig, NodeCounters, NodeError, NodeIn, NodeOut, ReplicationConfig,
    Stage, StorageNode, VssdConfig, WriteAck,
};
pub use own::{Candidate, CollectionCheck, Policies, QueuedJob, ReadPath};
pub use packet::{
    Body, CodecError, CollectionNote, ControlMessage, PAGE_BYTES, Packet, RACKBLOX_PORT, REPLICAS_MAX, Refusal,
    ReplicaMessage, Session, Timestamp, decode, decode_datagram, encode, encode_datagram,
};
pub use placement::{Placement, PlacementConfig, VssdPlace, first_fit};
pub use predict::{AlphaError, IdleConfig, IdlePredictor, RETURN_WINDOW, ReturnPredictor};
pub use schedule::{Job, JobId, JobKind, Policy, Scheduler, SchedulerConfig, SchedulingKey};
pub use switch::{
    DropReason, NetworkScheduling, Redirect, Redirects, Switch, SwitchConfig, SwitchCounters, SwitchError, SwitchIn,
    SwitchOut, TableBytes, table_bytes,
};
pub use wear::{
    Admission, Assignment, CarrierConfig, CarrierCounters, CarrierIn, CarrierOut, DriveFlash, GlobalBalancer,
    GlobalConfig, Lifetime, LocalBalancer, LocalConfig, RateMeter, Replacement, Seat, Side, SsdPlace, SsdWear, Swap,
    SwapAction, SwapBlock, SwapCarrier, SwapCopy, SwapCounts, SwapEvent, SwapPlan, SwapProgress, SwapStage,
    SwapTrigger, WearArm, WearConfig, WearError, WearModel, WearReport, WearSample, WearSnapshot, WearWorkload,
    imbalance,
};
