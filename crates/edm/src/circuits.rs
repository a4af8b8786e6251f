//! Virtual circuits: what the grants of the scheduler let through the switch (paper 3.2.2).

use crate::message::MessageId;
use base::{NodeId, Span, Time};
use prefetch_index::prefetch_index;
use std::collections::VecDeque;

/// Bytes that may still pass from a source to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Circuit {
    target: NodeId,
    id: MessageId,
    bytes: u32,
    /// Whether the port of the target has died since.
    is_dead: bool,
    since: Time,
}

/// Where a chunk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// To the port of its target.
    Forwarded,
    /// Nowhere: it was granted, and the port of its target has died since.
    Swallowed,
    /// Nowhere: it was not granted.
    NoCircuit,
}

/// The circuits of a switch.
#[derive(Clone, Debug)]
pub struct Circuits {
    /// Of each source port, in the order of their grants. Data comes nearly in that order: an RREQ
    /// takes a cycle more than a /G/ until its chunk is ready.
    open: Vec<VecDeque<Circuit>>,
    /// A host that gave a message up leaves its circuit behind; nothing uses one that is older than
    /// the hosts' timeout.
    lapse_after: Span,
}

impl Circuits {
    /// None between `ports`; each lapses after this long.
    pub fn new(ports: u32, lapse_after: Span) -> Circuits {
        Circuits { open: vec![VecDeque::new(); ports as usize], lapse_after }
    }

    /// Ports of the switch.
    pub fn ports(&self) -> u32 {
        self.open.len() as u32
    }

    /// Opens the circuit of a grant for `bytes`, issued at `at`.
    #[inline]
    pub fn open(&mut self, at: Time, source: NodeId, target: NodeId, id: MessageId, bytes: u32) {
        self.open[source.index()].push_back(Circuit { target, id, bytes, is_dead: false, since: at });
    }

    /// Returns where a message with this many bytes of data goes, and takes them off its circuit.
    pub fn pass(&mut self, now: Time, source: NodeId, target: NodeId, id: MessageId, bytes: u32) -> Passage {
        let Some(circuits) = self.open.get_mut(source.index()) else { return Passage::NoCircuit };
        while circuits.front().is_some_and(|circuit| now.saturating_since(circuit.since) > self.lapse_after) {
            circuits.pop_front();
        }
        let matches = |circuit: &Circuit| circuit.target == target && circuit.id == id && circuit.bytes >= bytes;
        let Some(position) = circuits.iter().position(matches) else { return Passage::NoCircuit };
        let passage = if circuits[position].is_dead { Passage::Swallowed } else { Passage::Forwarded };
        circuits[position].bytes -= bytes;
        match (circuits[position].bytes, position) {
            (0, 0) => drop(circuits.pop_front()),
            (0, _) => drop(circuits.remove(position)),
            _ => {}
        }
        passage
    }

    /// Bytes that `source` has been granted for ports that are up, and whose first block has not
    /// come.
    pub fn granted(&self, source: NodeId) -> u64 {
        self.open[source.index()]
            .iter()
            .filter(|circuit| !circuit.is_dead)
            .map(|circuit| u64::from(circuit.bytes))
            .sum()
    }

    /// Closes those from a port that has died. What comes on those to it is swallowed.
    pub fn port_down(&mut self, port: NodeId) {
        self.open[port.index()].clear();
        let all = self.open.iter_mut().flatten();
        all.filter(|circuit| circuit.target == port).for_each(|circuit| circuit.is_dead = true);
    }

    /// Prefetches the circuits of a port: data will arrive there shortly.
    #[inline]
    pub(crate) fn prefetch(&self, port: NodeId) {
        if let Some(circuits) = self.open.get(port.index()) {
            prefetch_index(circuits.as_slices().0, 0);
        }
    }
}
