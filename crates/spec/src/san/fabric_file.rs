//! The written form of a SAN's fabric, drives and prices, and their defaults, each with its source. "Paper" is the SAN study, NSDI'26; "ours" is what it
//! does not say.

use crate::file::{words, written};
use crate::quantity::Quantity;
use base::{Bytes, Length, Rate, Span};

words! {
    /// What joins hosts and targets of a SAN.
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
    /// Where hosts and targets go.
    PlacementName {
        /// One a place, round and round.
        Spread,
        /// Each place is filled before the next one.
        Packed,
    }
}

words! {
    /// How a drive was used before the run.
    DriveStateName {
        /// Written once, in order.
        Clean,
        /// Full, and overwritten at random by 128 KiB (paper, 4.1) until garbage collection is steady.
        Fragmented,
    }
}

words! {
    /// How much of a drive is simulated.
    DriveModelName {
        /// Flash, translation and garbage collection.
        Whole,
        /// A few sums with the same latencies, for many drives: a fragmented one is slower by what the whole model has found.
        Quick,
    }
}

written! {
    /// The drives of every target. With the designs san and san-plain.
    DrivesFile {
        /// Drives of each target (paper, 5.1: four).
        #[schemars(range(min = 1, max = 64), extend("default" = 4))]
        per_target: u32,
        /// Whose geometry and times (paper, 3.1: PM9A3).
        #[schemars(extend("default" = "pm9a3"))]
        preset: crate::blox::PresetName,
        /// How it was used before.
        #[schemars(extend("default" = "clean"))]
        state: DriveStateName,
        /// How much of it is simulated.
        #[schemars(extend("default" = "whole"))]
        model: DriveModelName,
        /// What a host sees of a drive, its addresses running from 0. Flash behind it comes in whole blocks, so that a drive may have a little more. Ours: enough
        /// for every effect of the paper's 960 GB that a run of seconds can show.
        #[schemars(extend("default" = "2GiB"))]
        capacity: Quantity<Bytes>,
    }
}

written! {
    /// What parts cost, in US dollars. With the designs san and san-plain.
    PricesFile {
        /// Ports of an adapter in a switched SAN (paper, Table 1: 2).
        #[schemars(range(min = 1, max = 1_024), extend("default" = 2))]
        switched_adapter_ports: u32,
        /// An adapter of a switched SAN (paper, Table 1).
        #[schemars(range(min = 0.0, max = 1e9), extend("default" = 900.0))]
        switched_adapter: f64,
        /// Ports of a switch that is bought (paper, Table 1: 32). A larger switch of the fabric counts as several.
        #[schemars(range(min = 1, max = 65_536), extend("default" = 32))]
        switch_ports: u32,
        /// A switch (paper, Table 1).
        #[schemars(range(min = 0.0, max = 1e9), extend("default" = 23_000.0))]
        switch: f64,
        /// Ports of an adapter in a switchless SAN (paper, Table 1: 4).
        #[schemars(range(min = 1, max = 1_024), extend("default" = 4))]
        switchless_adapter_ports: u32,
        /// An adapter of a switchless SAN (paper, Table 1).
        #[schemars(range(min = 0.0, max = 1e9), extend("default" = 2_600.0))]
        switchless_adapter: f64,
        /// A cable, both transceivers included. The paper leaves cables out, and so does 0.
        #[schemars(range(min = 0.0, max = 1e9), extend("default" = 0.0))]
        cable: f64,
        /// A metre of cable.
        #[schemars(range(min = 0.0, max = 1e9), extend("default" = 0.0))]
        cable_metre: f64,
    }
}

/// The keys of `[fabric]` that a SAN reads, for the schema and for messages.
pub(crate) const OF_SAN: [&str; 32] = [
    "kind",
    "hosts",
    "targets",
    "placement",
    "dimensions",
    "switches",
    "leaves",
    "spines",
    "endpoints_per_leaf",
    "radix",
    "layers",
    "routers",
    "global_cables",
    "groups",
    "file",
    "file_digest",
    "switch_ports",
    "adapter_ports",
    "endpoint_ports",
    "board_rate",
    "trunk",
    "fabric_cables",
    "endpoint_cables",
    "endpoint_length",
    "near_length",
    "far_length",
    "adapter_latency",
    "switch_latency",
    "board_latency",
    "detection",
    "queue",
    "mtu",
];

impl FabricKindName {
    /// Whether endpoints are cabled to switches.
    pub(crate) const fn is_switched(self) -> bool {
        use FabricKindName::{FatTree, LeafSpine, RedundantSwitches, SingleSwitch};
        matches!(self, SingleSwitch | RedundantSwitches | LeafSpine | FatTree)
    }

    /// The keys that give its shape.
    pub(crate) const fn keys(self) -> &'static [&'static str] {
        match self {
            FabricKindName::SingleSwitch => &[],
            FabricKindName::RedundantSwitches => &["switches"],
            FabricKindName::LeafSpine => &["leaves", "spines", "endpoints_per_leaf"],
            FabricKindName::FatTree => &["radix", "layers"],
            FabricKindName::DaisyChain | FabricKindName::Ring | FabricKindName::DualRing | FabricKindName::FullMesh => {
                &["nodes"]
            }
            FabricKindName::Mesh | FabricKindName::Torus => &["dimensions"],
            FabricKindName::Dragonfly => &["routers", "global_cables", "groups"],
            FabricKindName::Custom => &["file"],
        }
    }
}

/// Every key that gives some kind's shape.
pub(crate) const SHAPE_KEYS: [&str; 13] = [
    "nodes",
    "dimensions",
    "switches",
    "leaves",
    "spines",
    "endpoints_per_leaf",
    "radix",
    "layers",
    "routers",
    "global_cables",
    "groups",
    "file",
    "file_digest",
];

/// Defaults of the fabric's times and sizes.
pub(crate) mod defaults {
    use super::{Bytes, Length, Rate, Span};

    /// Ports that are 100 GbE (paper, 3.1).
    pub const RATE: Rate = Rate::gbps(100);
    /// One pass of a packet through an adapter. Fitted to the calibration claims san.fig2c.hop.4k and san.fig2c.hop.256k alone: a hop adds 2.9 us and 3.1 us to a
    /// read, which passes it twice; twice this, one frame of 1,500 B and one command sent once more, and 2 m of cable there and back are 2.96 us.
    pub const ADAPTER_LATENCY: Span = Span::ns(1_400);
    /// One pass of a packet through a high-radix switch. Ours: data sheets of 100 GbE switches of the paper's generation give 0.4 us to 0.8 us
    /// from port to port.
    pub const SWITCH_LATENCY: Span = Span::ns(600);
    /// One crossing of PCIe between a target and its adapter, which the paper's adapter pays (3.2). Fitted to the calibration claim san.fig2a.adapter alone: an
    /// adapter costs a read 3.6 us more than a switch, twice (1.4 us + this - 0.6 us).
    pub const BOARD_LATENCY: Span = Span::us(1);
    /// From the failure of a link until the parts at its ends notice. Ours: a link is down when its PCS has lost the signal (IEEE 802.3, 49 and 91: tens of
    /// microseconds), and a driver polls that.
    pub const DETECTION: Span = Span::us(100);
    /// Of every output queue. Ours: what a 100 GbE switch of the paper's generation (16 MiB for 32 ports) has a port.
    pub const QUEUE: Bytes = Bytes::kib(512);
    /// Of an Ethernet frame's payload: IP, TCP and NVMe/TCP. Ours: the standard one.
    pub const MTU: Bytes = Bytes::new(1_500);
    /// Within a rack. Ours.
    pub const ENDPOINT_LENGTH: Length = Length::m(2);
    /// To a neighbour in the rack. Ours.
    pub const NEAR_LENGTH: Length = Length::m(2);
    /// Back round, or between racks. Ours.
    pub const FAR_LENGTH: Length = Length::m(5);
    /// What a host sees of a drive. Ours.
    pub const CAPACITY: Bytes = Bytes::kib(2 << 20);
}
