//! A plan: an experiment in which nothing is left to choose.

use crate::blox::Blox;
use crate::design_file::{DesignName, StackName};
use crate::file::{FaultFile, FaultName, LoadBasis};
use crate::idle::with_first_names;
pub use crate::rivals::Protocol;
use crate::san::{San, SanLoad};
use crate::scalio::Scalio;
use crate::schema::shared_schema;
use crate::sdirect::SDirect;
use crate::table::variants;
use crate::wear::Wear;
use base::{Bytes, NodeId, Rate, Span, Time};
use hardware::{DramConfig, EthernetStack, RemoteAccess};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use workload::block_trace::Inversions;

/// One run, wholly specified and checked. Made by [`crate::parse`] only.
///
/// Serializes as the experiment file that says all of it, with every default and with quantities as
/// text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// What the experiment is about.
    pub title: String,
    /// Decides every random draw.
    pub seed: u64,
    /// The seeds of the file, [`Self::seed`] first.
    pub seeds: Vec<u64>,
    /// The folder that names of files are relative to, from that of the experiment file; `None`:
    /// that one, or no file is named.
    pub files: Option<String>,
    /// What is played.
    pub scene: Scene,
    /// Interval at which the state of the run is sampled; of no influence on its results.
    pub series: Option<Span>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<String>,
}

/// What a run plays, by the kind of rack that its design lives in.
#[derive(Clone, Debug, PartialEq)]
pub enum Scene {
    /// Messages between nodes around a switch: EDM and its rivals.
    Messages(Box<Messages>),
    /// Volumes on storage servers: RackBlox and its rivals.
    Blox(Box<Blox>),
    /// Hosts and drives on a switched or switchless network.
    San(Box<San>),
    /// Wear levelling of drives over years: RackBlox without its requests.
    Wear(Box<Wear>),
    /// Access to a machine's devices: S-Direct and its rivals.
    SDirect(Box<SDirect>),
    /// A key-value store on a JBOF: Scalio and its rivals.
    Scalio(Box<Scalio>),
}

/// Messages between nodes around a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The rack.
    pub fabric: Fabric,
    /// What moves the messages.
    pub design: Design,
    /// The memory behind every node.
    pub memory: Memory,
    /// Sources, targets, sizes and arrivals of requests; rates are computed from `load`.
    pub workload: workload::Config,
    /// Offered load; `None` in a closed loop and with a trace.
    pub load: Option<PlannedLoad>,
    /// Where the workload's trace comes from, if it has one.
    pub trace: Option<TraceSource>,
    /// Ordinary frames on the same links; with [`Design::Edm`] only.
    pub background: Option<Background>,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
    /// What breaks, in order of time.
    pub faults: Vec<Fault>,
}

/// The memory behind every node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Latency and bandwidth.
    pub dram: DramConfig,
    /// What remote requests take of it.
    pub remote: RemoteAccess,
}

/// The rack: nodes around a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// How many nodes; ids run from 0.
    pub nodes: u32,
    /// Line rate of every link.
    pub rate: Rate,
    /// Light in the fibre between node and switch.
    pub propagation: Span,
    /// PMA, PMD and transceiver, each crossing.
    pub transceiver: Span,
}

/// What moves the messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Design {
    /// EDM.
    Edm(Edm),
    /// A packet-switched rival.
    Packet(Packet),
}

/// EDM and what surrounds its programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edm {
    /// The programs' parameters.
    pub config: edm::Config,
    /// Whether every message also goes to a backup switch.
    pub redundant: bool,
    /// How memory blocks and frames share a link.
    pub preemption: edm::pcs::multiplex::Policy,
    /// Random demand matrices on which the time to a maximal matching is measured besides the run;
    /// zero measures none.
    pub matching_trials: u32,
}

/// A packet-switched rival and its stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// The protocol with its parameters.
    pub protocol: Protocol,
    /// The name of the stack.
    pub stack_name: StackName,
    /// Its latencies; the transceiver is the fabric's.
    pub stack: EthernetStack,
}

/// The offered load of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedLoad {
    /// As a fraction of the busiest link direction.
    pub fraction: f64,
    /// What it counts.
    pub basis: LoadBasis,
    /// What the busiest link direction carries then, every byte on the wire counted, as a fraction
    /// of its rate.
    pub busiest_link: f64,
}

/// Where a trace comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSource {
    /// Treatment of messages that follow a later one.
    pub inversions: Inversions,
    /// How many did, and were put in order.
    pub inverted: u64,
    /// The file, as written.
    pub file: String,
    /// SHA-256 of its messages, hex.
    pub digest: String,
}

/// Ordinary frames between random nodes. How they share a link with memory messages is in
/// [`Edm::preemption`].
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Frames that a switch port can hold for its downlink; no smaller than the largest frame.
    pub egress_queue: Bytes,
    /// What every node sends; at least one.
    pub streams: Vec<BackgroundStream>,
}

impl Background {
    /// Share of every node's uplink that all streams together offer; may be above 1.
    pub fn load(&self) -> f64 {
        self.streams.iter().map(|stream| stream.load).sum()
    }
}

/// One kind of ordinary traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundStream {
    /// Its name, unique: letters, digits, `-` and `_`.
    pub name: String,
    /// Of one frame, check sequence included: 64 to 9,018 bytes.
    pub frame: Bytes,
    /// Share of every node's uplink, preamble and gap included; above 0, at most 1.
    pub load: f64,
    /// Frames that are handed to the MAC together, for one target: 1 to 1,000.
    pub burst_frames: u32,
}

/// What is measured, and how long stragglers are waited for. When the workload ends is in
/// [`workload::Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What is not measured.
    pub warm_up: WarmUp,
    /// How long after the last arrival unfinished requests are waited for.
    pub drain_limit: Span,
}

/// When a workload ends, and what of it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLimits {
    /// After this many requests.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Span>,
    /// What is measured.
    pub run: Run,
}

/// The part of a run that is simulated but not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Requests that are intended before this much time has passed.
    Time(Span),
    /// The first so many requests.
    Requests(u64),
    /// What a first simulation of the run shows to be a transient.
    Auto,
}

/// A fault or a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time from the start of the run.
    pub at: Time,
    /// The fault.
    pub kind: FaultKind,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A link stops carrying anything.
    LinkDown {
        /// The node at its end.
        node: NodeId,
        /// The switch at its end: 0, or 1 for the backup.
        switch: u32,
    },
    /// A link damages what it carries until it is noticed and disabled.
    LinkCorrupt {
        /// The node at its end.
        node: NodeId,
        /// The switch at its end.
        switch: u32,
    },
    /// A switch stops.
    SwitchDown {
        /// 0, or 1 for the backup.
        switch: u32,
    },
    /// A node stops answering.
    NodeDown {
        /// The node that fails.
        node: NodeId,
    },
    /// A link carries again.
    LinkUp {
        /// The node at its end.
        node: NodeId,
    },
    /// A switch comes back with empty tables.
    SwitchUp,
    /// A node comes back with its old data.
    NodeUp {
        /// The node that returns.
        node: NodeId,
    },
}

variants! {
    FaultFile.kind: FaultName => FaultKind by rack_kind, write_rack_kind {
        LinkDown(node) { switch },
        LinkCorrupt(node) { switch },
        SwitchDown { switch },
        NodeDown(node),
        LinkUp(node),
        SwitchUp,
        NodeUp(node),
    } else AdapterDown | AdapterUp | DriveDown | DriveUp
}

impl Plan {
    /// Which design is played.
    pub fn design(&self) -> DesignName {
        match &self.scene {
            Scene::Messages(messages) => messages.design.name(),
            Scene::Blox(blox) => blox.design,
            Scene::San(san) => san.design,
            Scene::Wear(_) => DesignName::WearLevelling,
            Scene::SDirect(sdirect) => sdirect.design,
            Scene::Scalio(scalio) => scalio.design,
        }
    }

    /// What of it is not measured. There is none where nothing but wear is played.
    pub fn warm_up(&self) -> Option<WarmUp> {
        self.run_part().map(|run| run.warm_up)
    }

    fn run_part(&self) -> Option<&Run> {
        match &self.scene {
            Scene::Messages(messages) => Some(&messages.run),
            Scene::Blox(blox) => Some(&blox.run),
            Scene::San(san) => Some(&san.run),
            Scene::Wear(_) => None,
            Scene::SDirect(sdirect) => Some(&sdirect.run),
            Scene::Scalio(scalio) => Some(&scalio.run),
        }
    }

    /// When something breaks for the first time.
    pub fn first_fault(&self) -> Option<Time> {
        let earliest = |faults: &[Fault]| faults.iter().map(|fault| fault.at).min();
        match &self.scene {
            Scene::Messages(messages) => earliest(&messages.faults),
            Scene::Blox(blox) => earliest(&blox.faults),
            Scene::San(san) => san.faults.iter().map(|fault| fault.at).min(),
            Scene::Scalio(scalio) => earliest(&scalio.faults),
            Scene::Wear(_) | Scene::SDirect(_) => None,
        }
    }

    /// The same with a warm-up of `span`.
    #[must_use]
    pub fn with_warm_up(&self, span: Span) -> Plan {
        let mut plan = self.clone();
        let run = match &mut plan.scene {
            Scene::Messages(messages) => &mut messages.run,
            Scene::Blox(blox) => &mut blox.run,
            Scene::San(san) => {
                if let SanLoad::Stores(stores) = &mut san.io.load {
                    (stores.warm_up, stores.warm_up_requests) = (span, 0);
                }
                &mut san.run
            }
            Scene::Wear(_) => return plan,
            Scene::SDirect(sdirect) => &mut sdirect.run,
            Scene::Scalio(scalio) => &mut scalio.run,
        };
        run.warm_up = WarmUp::Time(span);
        plan
    }

    /// Messages between nodes, if that is what is played.
    pub fn messages(&self) -> Option<&Messages> {
        match &self.scene {
            Scene::Messages(messages) => Some(messages),
            Scene::Blox(_) | Scene::San(_) | Scene::Wear(_) | Scene::SDirect(_) | Scene::Scalio(_) => None,
        }
    }

    /// Volumes on storage servers, if that is what is played.
    pub fn blox(&self) -> Option<&Blox> {
        match &self.scene {
            Scene::Blox(blox) => Some(blox),
            Scene::Messages(_) | Scene::San(_) | Scene::Wear(_) | Scene::SDirect(_) | Scene::Scalio(_) => None,
        }
    }

    /// Hosts and drives on a network, if that is what is played.
    pub fn san(&self) -> Option<&San> {
        match &self.scene {
            Scene::San(san) => Some(san),
            Scene::Messages(_) | Scene::Blox(_) | Scene::Wear(_) | Scene::SDirect(_) | Scene::Scalio(_) => None,
        }
    }

    /// How many requests a run makes, where the plan says so.
    pub fn requests(&self) -> Option<u64> {
        match &self.scene {
            Scene::Messages(messages) => match &messages.workload.arrivals {
                workload::Arrivals::Trace { messages } => Some(messages.len() as u64),
                _ => messages.workload.requests,
            },
            Scene::Blox(blox) => match &blox.replay {
                Some(replay) => Some(replay.trace.requests.len() as u64),
                None => blox.io.requests,
            },
            Scene::San(san) => san.requests(),
            Scene::Wear(_) => Some(0),
            Scene::SDirect(sdirect) => sdirect.io.requests,
            Scene::Scalio(scalio) => scalio.io.requests,
        }
    }

    /// The plan as an experiment file with every default, which parses back to an equal plan (given
    /// the same trace file).
    pub fn to_toml(&self) -> String {
        toml::to_string(&crate::print::file_of(self)).expect("every value of a plan can be written in TOML")
    }

    /// SHA-256, in hex, of everything that decides a result except the seed, and of nothing else.
    ///
    /// The text that is hashed is the experiment file of [`to_toml`](Plan::to_toml) without
    /// `title`, `seed` and `record`, as JSON without white space, keys sorted by their bytes,
    /// numbers as serde_json prints them (shortest decimal that reads back), quantities in the
    /// largest unit that keeps them whole. A key that was renamed counts by its first name. A trace
    /// counts by the digest of its messages, and a graph and recorded delays by theirs, not by
    /// their file names.
    pub fn hash(&self) -> String {
        let mut file = crate::print::file_of(self);
        file.title = None;
        (file.seed, file.seeds, file.files, file.record) = (None, None, None, None);
        if let Some(workload) = &mut file.workload {
            workload.file = None;
        }
        if let Some(io) = &mut file.io {
            (io.trace, io.job) = (None, None);
        }
        if let Some(fabric) = &mut file.fabric {
            fabric.file = None;
        }
        if let Some(rack) = &mut file.rack {
            (rack.network_file, rack.network_unit) = (None, None);
        }
        let mut value = serde_json::to_value(&file).expect("every value of a plan can be written in JSON");
        with_first_names(shared_schema(), &mut value);
        let mut text = String::new();
        write_canonical(&value, &mut text);
        hex(&Sha256::digest(text))
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::print::file_of(self).serialize(serializer)
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON without white space and with sorted keys, whatever order the map type keeps.
fn write_canonical(value: &serde_json::Value, out: &mut String) {
    use serde_json::Value;
    match value {
        Value::Array(items) => write_list(out, ['[', ']'], items, write_canonical),
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_bytes());
            write_list(out, ['{', '}'], &entries, |(key, value), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
            });
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_list<T>(out: &mut String, brackets: [char; 2], items: &[T], write: impl Fn(&T, &mut String)) {
    out.push(brackets[0]);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(brackets[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_does_not_depend_on_the_order_of_keys() {
        let mut text = String::new();
        write_canonical(&serde_json::json!({"b": [1, 0.5, "x\"y"], "a": {"d": null, "c": true}}), &mut text);
        assert_eq!(text, r#"{"a":{"c":true,"d":null},"b":[1,0.5,"x\"y"]}"#);
    }
}
