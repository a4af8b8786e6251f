//! Hardware models that know no design: each answers *when* an operation is done and decides
//! nothing.
//!
//! Units: all times are [`base::Time`] and [`base::Span`] in picoseconds; rates are line rates
//! above 64b/66b coding (a "100 Gb/s" link moves 100 Gb/s of Ethernet bytes, preamble and
//! inter-frame gap included).

mod cpu;
mod delay;
mod dram;
mod link;
mod pcie;
mod port;
mod rdma;
mod remote_flash;
pub mod ssd;
mod stack;

pub use cpu::Cpu;
pub use delay::{DelaySource, NetworkDelay, NetworkLatency};
pub use dram::{Dram, DramConfig, RemoteAccess};
pub use link::Link;
pub use pcie::{PcieDirection, PcieError, PcieLinkConfig, PciePlace, PcieTraffic, PcieTree};
pub use port::FifoPort;
pub use rdma::{RdmaAdapter, RdmaConfig, Verb};
pub use remote_flash::{TargetOffload, TargetOffloadConfig};
pub use stack::EthernetStack;
