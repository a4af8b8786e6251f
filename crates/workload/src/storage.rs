//! Loads of block storage: clients, volumes, blocks and arrival times.
//!
//! Clients are the nodes `0..clients`, volume `v` is the node `clients + v`, and a request's
//! `address` is the first byte in its volume. [`Config`] describes a load, [`Config::problems`]
//! lists what is impossible about it, and [`Generator`] runs it. [`PROFILES`] has the applications
//! of RackBlox's evaluation and YCSB's core workloads.
//!
//! Every client has one random stream per purpose (`workload/node/3/arrivals`, `.../volume`,
//! `.../action`, `.../address`, `.../length`). A request draws exactly one number from `volume`,
//! `action` and `address`, whatever their use, so that another mix or another distribution of
//! addresses changes nothing else.

mod address;
mod generator;
mod problem;
mod profiles;
mod zipfian;

use base::{Bytes, NodeId, Span};
use serde::Serialize;

pub use generator::Generator;
pub use profiles::{AUCTION_MARK_WRITE_RUN, PROFILES, Profile, YCSB_SCAN_BLOCKS_MAX, YCSB_THETA, profile};
pub use zipfian::{YCSB_ITEMS, YCSB_ZETA, Zipfian, scramble, zeta};

/// A whole load of block storage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Number of clients; their nodes are `0..clients`.
    pub clients: u32,
    /// Number of volumes; their nodes follow the clients'.
    pub volumes: u32,
    /// The client uses which volumes.
    pub assignment: Assignment,
    /// The unit of every request and of every address.
    pub block: Bytes,
    /// Number of blocks of a volume that are used, from its first one on. The caller checks
    /// [`working_set`](Config::working_set) against the capacity of the volumes.
    pub working_set_blocks: u64,
    /// The operations.
    pub mix: Mix,
    /// Distribution of addresses.
    pub addresses: Addresses,
    /// The arrival process.
    pub arrivals: Arrivals,
    /// The load ends after this many requests of all clients together...
    pub requests: Option<u64>,
    /// ...or with the last request whose intended start lies before this time, whichever comes
    /// first. At least one of the two is given.
    pub duration: Option<Span>,
}

/// Which client uses which volumes. A client with several draws one of them uniformly for each
/// request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Every client uses every volume.
    All,
    /// Volumes are dealt to the clients like cards; where there are more clients than volumes,
    /// clients are dealt to the volumes.
    RoundRobin,
    /// As listed.
    Fixed {
        /// One list of volumes a client, in order of client.
        lists: Vec<Vec<u32>>,
    },
}

/// The operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Every request is drawn anew.
    Independent {
        /// Actions with weights that need not sum to 1.
        classes: Vec<Class>,
    },
    /// Runs of writes and runs of reads take turns at each client. Lengths are geometric, so that a
    /// load needs no time to settle.
    Runs {
        /// Share of writes in the long run, between 0 and 1, both excluded.
        write_share: f64,
        /// Mean length of a run of writes, in requests, at least 1; that of the reads follows from
        /// the share.
        write_run: f64,
    },
}

/// One class of actions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The operation.
    pub action: Action,
    /// Its share.
    pub weight: f64,
}

/// What a client does with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Writes the block after the newest one of the volume, which becomes the newest; after the
    /// last comes the first.
    Insert,
    /// Reads it and the following blocks in one request, as far as the working set reaches.
    Scan {
        /// Number of blocks at most; the number is uniform from 1 on.
        blocks_max: u32,
    },
    /// Reads it and, when the answer is there, writes it: two requests, the second of which starts
    /// when the first has ended, in an open loop too.
    ReadThenWrite,
}

/// Where in the working set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// Every block alike.
    Uniform,
    /// The first block most often, then the second and so on (Gray et al., SIGMOD 1994).
    Zipfian {
        /// The exponent, above 0 and not 1.
        theta: f64,
    },
    /// Zipfian over YCSB's ten billion items, each hashed to some block: hot blocks lie scattered,
    /// and how hot they are hardly depends on the size of the working set.
    ScrambledZipfian {
        /// The exponent, above 0 and not 1; 0.99 in YCSB.
        theta: f64,
    },
    /// Zipfian backwards from the newest block of the volume, as [`Action::Insert`] moves it.
    Latest {
        /// The exponent, above 0 and not 1.
        theta: f64,
    },
    /// One block after the other, over and over; clients of one volume share its position.
    Sequential,
}

/// The arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Open loop: independent exponential gaps at each client.
    Poisson {
        /// Mean gap at one client, in picoseconds (not rounded: loads would drift).
        mean_gap_ps: f64,
    },
    /// Open loop: equal gaps, each client starting at a random phase.
    Deterministic {
        /// Gap at one client, in picoseconds.
        gap_ps: f64,
    },
    /// Closed loop: each client keeps `depth` actions outstanding.
    Closed {
        /// Actions outstanding at each client.
        depth: u32,
        /// From an answer to the next action of that slot.
        think: Span,
    },
}

impl Config {
    /// How much of each volume is used, from its first byte on.
    pub fn working_set(&self) -> Bytes {
        Bytes::new(self.working_set_blocks.saturating_mul(self.block.count()))
    }

    /// The node of a volume.
    pub fn node_of(&self, volume: u32) -> NodeId {
        NodeId(self.clients + volume)
    }

    /// The volumes that `client` uses, in rising order unless they are listed otherwise.
    pub fn volumes_of(&self, client: u32) -> Vec<u32> {
        match &self.assignment {
            Assignment::All => (0..self.volumes).collect(),
            Assignment::RoundRobin if self.clients > self.volumes => vec![client % self.volumes],
            Assignment::RoundRobin => (client..self.volumes).step_by(self.clients as usize).collect(),
            Assignment::Fixed { lists } => lists[client as usize].clone(),
        }
    }
}

impl Mix {
    /// Reads and writes in random order, with a share of writes from 0 to 1.
    pub fn with_write_share(write_share: f64) -> Mix {
        let read = Class { action: Action::Read, weight: 1.0 - write_share };
        let write = Class { action: Action::Write, weight: write_share };
        Mix::Independent { classes: vec![read, write] }
    }

    /// The share of writes among the requests that this makes. [`Action::ReadThenWrite`] is two
    /// requests.
    pub fn write_share(&self) -> f64 {
        match self {
            Mix::Runs { write_share, .. } => *write_share,
            Mix::Independent { classes } => {
                let total = |count: fn(Action) -> f64| -> f64 {
                    classes.iter().map(|class| class.weight * count(class.action)).sum()
                };
                total(Action::writes) / total(Action::requests)
            }
        }
    }
}

impl Action {
    fn requests(self) -> f64 {
        if self == Action::ReadThenWrite { 2.0 } else { 1.0 }
    }

    fn writes(self) -> f64 {
        match self {
            Action::Read | Action::Scan { .. } => 0.0,
            Action::Write | Action::Insert | Action::ReadThenWrite => 1.0,
        }
    }
}
