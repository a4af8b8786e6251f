//! What Scalio is compared with (6.1), on the same segments, records and flash: [LEED](leed), in
//! which a server does everything, and LEED behind [Ditto](ditto), a cache that its clients run on
//! memory of the storage node with one-sided reads, writes and compare-and-swaps. Besides,
//! [NVMe over Fabrics](nvme_of) without any store: the bound for reads.
//!
//! Facts about both are from the published sources that the paper's artifact carries and from their
//! papers (LEED: Guo et al., SIGCOMM 2023; Ditto: Shen et al., SOSP 2023). Where ours differs, the
//! module says so.

pub mod ditto;
pub mod leed;
pub mod nvme_of;
