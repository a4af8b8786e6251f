//! The name of a cause, from where the extra time goes and what slow requests have in common.

use super::{Common, SpanTime, Trait};
use serde::Serialize;

/// Why slow requests are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Cause {
    /// No request is slower than the usual ones.
    Even,
    /// A fault: slow requests waited across it.
    Fault,
    /// Garbage collection or wear levelling holds the flash.
    Collection,
    /// Requests wait for one key or address.
    HotAddress {
        /// The first byte, or the key.
        address: u64,
    },
    /// Data from many nodes converge on one receiver.
    Incast {
        /// The receiver.
        node: u32,
    },
    /// Requests of or for one node wait.
    HotNode {
        /// The node.
        node: u32,
    },
    /// Flash dies, channels, device links or the queues before them.
    Device,
    /// Links, windows, grants and retransmissions of the network, at no node in particular.
    Network,
    /// The source: closed slots, full queues, limits for each pair.
    Source,
    /// Replicas.
    Replication,
    /// No group of spans has half of the extra time.
    Mixed,
}

/// The share of a group that makes it the cause.
const SHARE_MIN: f64 = 0.5;

pub(super) fn cause(spans: &[SpanTime], common: &[Common]) -> Cause {
    let share = |names: &[&str]| -> f64 {
        spans.iter().filter(|span| names.contains(&span.span)).map(|span| span.extra_share).sum()
    };
    let has = |of: Trait| common.iter().find(|common| common.of == of).map(|common| common.value);
    if spans.iter().all(|span| span.extra_share <= 0.0) {
        return Cause::Even;
    }
    if has(Trait::Fault).is_some() {
        return Cause::Fault;
    }
    if share(&["collection_wait"]) >= SHARE_MIN {
        return Cause::Collection;
    }
    if let Some(address) = has(Trait::Address) {
        return Cause::HotAddress { address };
    }
    let network = share(&["nic_queue", "switch_queue", "schedule", "network", "return"]);
    let source = share(&["wait"]);
    if network + source >= SHARE_MIN {
        let node = |value: u64| value as u32;
        if let Some(receiver) = has(Trait::Receiver) {
            return Cause::Incast { node: node(receiver) };
        }
        if let Some(busy) = has(Trait::Target).or_else(|| has(Trait::Source)) {
            return Cause::HotNode { node: node(busy) };
        }
    }
    let device = share(&["storage_queue", "flash_wait", "collection_wait", "flash", "memory"]);
    let groups = [
        (device, Cause::Device),
        (network, Cause::Network),
        (source, Cause::Source),
        (share(&["replication"]), Cause::Replication),
    ];
    let found = groups.into_iter().find(|(share, _)| *share >= SHARE_MIN);
    found.map_or(Cause::Mixed, |(_, cause)| cause)
}

impl Cause {
    /// Returns the cause in a sentence.
    pub fn sentence(self) -> String {
        match self {
            Cause::Even => "no request is slower than the usual ones".into(),
            Cause::Fault => "a fault: slow requests waited across it".into(),
            Cause::Collection => "garbage collection: requests wait for flash that it holds".into(),
            Cause::HotAddress { address } => format!("a hot key or address: {address}"),
            Cause::Incast { node } => format!("an incast: data from many nodes converge on node {node}"),
            Cause::HotNode { node } => format!("a hot node: requests of or for node {node} wait"),
            Cause::Device => "busy devices: requests wait for flash, channels or the queues before them".into(),
            Cause::Network => "a busy network: links, windows, grants or retransmissions, at no single node".into(),
            Cause::Source => "the source: requests wait before they are sent, by its own limits".into(),
            Cause::Replication => "replication: requests wait for other replicas".into(),
            Cause::Mixed => "several: no group of spans has half of the extra time".into(),
        }
    }
}
