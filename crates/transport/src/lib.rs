//! Network control shared by the designs and their rivals.

pub mod common;
pub mod config;
pub mod cost;
pub mod credit_based;
pub mod dcqcn;
pub mod dctcp;
pub mod fastpass;
pub mod framing;
mod outgoing;
mod packet;
pub mod pfabric;
pub mod receiver_driven;
mod sp_pifo;
mod token_bucket;
pub mod uncontrolled;
mod wrr;

pub use packet::{Allowance, Host, HostIn, HostOut, Message, Packet, PacketKind, Switch, SwitchIn, SwitchOut};
pub use sp_pifo::SpPifo;
pub use token_bucket::TokenBucket;
pub use wrr::WeightedRoundRobin;
