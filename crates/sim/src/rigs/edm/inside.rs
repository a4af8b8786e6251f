//! For tests, and for those who run programs on this memory: what is inside, what answers say, and
//! when memory is touched.

use super::EdmRig;
use crate::drive::Ticket;
use base::{NodeId, Span};
use edm::{Host, Switch};
use std::collections::BTreeMap;

/// What those who run programs on this memory want to know.
#[derive(Debug, Default)]
pub struct Probes {
    /// Words that answers carried, by ticket.
    pub answers: Option<BTreeMap<u32, u64>>,
    /// Tickets of reads and read-modify-writes that have reached their memory.
    pub reached: Option<Vec<u32>>,
}

impl EdmRig {
    /// Keeps the words of answers from now on; [`take_answer`](EdmRig::take_answer) gives them out.
    pub fn keep_answers(&mut self) {
        self.probes.answers = Some(Default::default());
    }
    /// The word of the answer to the request with this ticket, if it has one and they are kept.
    pub fn take_answer(&mut self, ticket: Ticket) -> Option<u64> {
        self.probes.answers.as_mut()?.remove(&ticket.0)
    }
    /// Notes from now on which reads and read-modify-writes reach memory;
    /// [`take_reached`](EdmRig::take_reached) gives them out. (A write reaches it when it ends.)
    pub fn watch_memory(&mut self) {
        self.probes.reached = Some(Vec::new());
    }
    /// The last request that has reached its memory and was not asked for yet.
    pub fn take_reached(&mut self) -> Option<Ticket> {
        self.probes.reached.as_mut()?.pop().map(Ticket)
    }
    /// A node's host program.
    pub fn host(&self, node: NodeId) -> &Host {
        &self.nodes[node.index()].host
    }
    /// A node's host program, to fill its memory before a run.
    pub fn host_mut(&mut self, node: NodeId) -> &mut Host {
        &mut self.nodes[node.index()].host
    }
    /// The longest that granted data ever waited for a downlink.
    pub fn longest_data_wait(&self) -> Span {
        self.counts.longest_data_wait
    }
    /// The switch of a plane.
    pub fn switch(&self, plane: usize) -> &Switch {
        &self.planes[plane].switch
    }
    /// Messages that came in when nobody waited for them.
    pub fn unexpected(&self) -> u64 {
        self.counts.unexpected
    }
}
