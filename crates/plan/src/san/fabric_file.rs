//! The written form of a SAN's fabric, drives and prices, and their defaults, each with its source.
//! "Paper" is the SAN study, NSDI'26; "ours" is what it does not say.

use super::Drives;
use crate::file::words;
use crate::quantity::Quantity;
use crate::table::table;
use base::Bytes;
use san::cost::Prices;
use topology::Placement;

words! {
    /// Topology of a SAN.
    FabricKindName {
        /// Switched: one top-of-rack switch.
        SingleSwitch,
        /// Switched: `switches` top-of-rack switches; every host and target is cabled to each.
        RedundantSwitches,
        /// Switched: `leaves` and `spines`, every leaf cabled to every spine.
        LeafSpine,
        /// Switched: a folded Clos network of `layers` of switches with `radix` ports.
        FatTree,
        /// Switchless: a row.
        DaisyChain,
        /// Switchless: a circle.
        Ring,
        /// Switchless: two circles with rungs between twins; three ports an adapter.
        DualRing,
        /// Switchless: a grid of `dimensions`.
        Mesh,
        /// Switchless: a grid of `dimensions`, each of which wraps round.
        Torus,
        /// Switchless: every adapter is cabled to every other one.
        FullMesh,
        /// Switchless: `groups` of `routers`, each with `global_cables` to other groups.
        Dragonfly,
        /// A graph of one's own, from `file`.
        Custom,
    }
}

words! {
    /// Placement of hosts and targets.
    PlacementName is Placement {
        /// One at each place, cyclically.
        Spread is Placement::Spread,
        /// Each place is filled before the next one.
        Packed is Placement::Packed,
    }
}

words! {
    /// State of a drive before the run.
    DriveStateName {
        /// Written once, in order.
        Clean,
        /// Full, and overwritten at random by 128 KiB (paper, 4.1) until garbage collection is
        /// steady.
        Fragmented,
    }
}

words! {
    /// Model of a drive.
    DriveModelName {
        /// Flash, translation and garbage collection.
        Whole,
        /// A few sums with the same latencies, for many drives: a fragmented one is slower by what
        /// the whole model has found.
        Quick,
    }
}

table! {
    /// The drives of every target. With the designs san and san-plain.
    DrivesFile => Drives {
        /// Drives of each target (paper, 5.1: four).
        per_target: u32 [1 to 64] = 4,
        /// Model of the drive (paper, 3.1: PM9A3).
        preset: crate::blox::PresetName = crate::blox::PresetName::Pm9a3,
        /// State before the run.
        state: DriveStateName = DriveStateName::Clean,
        /// Model of a drive.
        model: DriveModelName = DriveModelName::Whole,
        /// Capacity of a drive. Flash has whole blocks, so that a drive may have a little more.
        /// Ours: enough for every effect of the paper's 960 GB that a run of seconds can show.
        capacity: Quantity<Bytes> = Bytes::kib(2 << 20),
        /// Write buffer of a drive. Ours: 8 MiB. Writes that all fit never wait for flash, which is
        /// warned of. Drives of a `[flash]` table have its buffer.
        buffer: Quantity<Bytes> ["256KiB" to "1GiB"] where [model = "quick"] = Bytes::kib(8 << 10),
    }
}

table! {
    /// Prices of parts, in US dollars. With the designs san and san-plain.
    PricesFile => Prices {
        /// Ports of an adapter in a switched SAN (paper, Table 1: 2).
        switched_adapter_ports: u32 [1 to 1_024] = 2,
        /// An adapter of a switched SAN (paper, Table 1).
        switched_adapter: f64 [0.0 to 1e9] = 900.0,
        /// Ports of a switch that is bought (paper, Table 1: 32). A larger switch of the fabric
        /// counts as several.
        switch_ports: u32 [1 to 65_536] = 32,
        /// A switch (paper, Table 1).
        switch: f64 [0.0 to 1e9] = 23_000.0,
        /// Ports of an adapter in a switchless SAN (paper, Table 1: 4).
        switchless_adapter_ports: u32 [1 to 1_024] = 4,
        /// An adapter of a switchless SAN (paper, Table 1).
        switchless_adapter: f64 [0.0 to 1e9] = 2_600.0,
        /// A cable, both transceivers included. The paper leaves cables out, and so does 0.
        cable: f64 [0.0 to 1e9] = 0.0,
        /// A metre of cable.
        cable_metre: f64 [0.0 to 1e9] = 0.0,
    }
}

impl FabricKindName {
    /// Whether endpoints are cabled to switches.
    pub(crate) const fn is_switched(self) -> bool {
        use FabricKindName::{FatTree, LeafSpine, RedundantSwitches, SingleSwitch};
        matches!(self, SingleSwitch | RedundantSwitches | LeafSpine | FatTree)
    }
}
