//! What remote requests take of the memories at their ends, besides the read that a target serves.

use super::{Ctx, EdmEvent, EdmRig, Flight};
use base::{Bytes, NodeId, Operation, Time};
use edm::{Access, HostIn, Tag};
use std::collections::VecDeque;

/// Reads of one node's memory for its own writes, in the order of their begin, which is that of
/// their end: when each began and ends.
#[derive(Clone, Debug, Default)]
pub struct Fetches(VecDeque<(Time, Time)>);

impl Fetches {
    /// When all that began by `begin` are over, as far as any of them lasts beyond `now`.
    fn over(&mut self, begin: Time, now: Time) -> Time {
        while self.0.front().is_some_and(|(_, end)| *end <= now) {
            self.0.pop_front();
        }
        self.0.iter().take_while(|(began, _)| *began <= begin).last().map_or(now, |(_, end)| *end)
    }
}

/// The operation of an access, with the size of its data.
fn moved(access: &Access) -> (Operation, Bytes) {
    match access {
        Access::Read { bytes, .. } => (Operation::Read, Bytes::new(u64::from(*bytes))),
        Access::Write { bytes, .. } => (Operation::Write, Bytes::new(u64::from(*bytes))),
        Access::Modify { modify, .. } => (Operation::ReadModifyWrite, Bytes::new(modify.response_bytes().into())),
    }
}

impl EdmRig {
    /// The data of a write are read as soon as it is submitted, while it is announced.
    #[inline(never)]
    pub(super) fn fetch_data(&mut self, tag: u32, source: NodeId, access: &Access, now: Time) {
        let (operation, bytes) = moved(access);
        if self.remote.stores(operation) {
            self.tracks.keep_bytes(Tag(tag), bytes);
        }
        if self.remote.fetches(operation) {
            let node = &mut self.nodes[source.index()];
            let end = node.memory.submit(now, bytes);
            node.fetches.0.push_back((now, end));
        }
    }

    /// A grant is at its host. Its chunk is made when the memory has delivered what was asked of it
    /// by the time of the notification: the data of the write, and of all writes of its batch.
    #[inline(never)]
    pub(super) fn granted(&mut self, grant: Flight, context: Ctx) {
        let (node, tag) = (grant.node(), grant.tag());
        let ready = match grant.is_for_write() {
            true => self.nodes[node.index()].fetches.over(self.tracks.taken_up(tag), context.now),
            false => context.now,
        };
        if grant.is_for_write() {
            self.tracks.memory_read(tag, ready - context.now);
        }
        if ready == context.now {
            return self.tell_host(node, HostIn::Granted(grant.grant()), context);
        }
        let flight = self.flights.add(grant);
        context.at(ready, EdmEvent::Fetched(flight));
    }

    /// The data of a granted chunk are in the buffer.
    pub(super) fn fetched(&mut self, index: u32, context: Ctx) {
        let grant = self.flights.remove(index);
        if !self.paces[grant.node().index()].up {
            return self.lose(grant, context);
        }
        self.tell_host(grant.node(), HostIn::Granted(grant.grant()), context);
    }

    /// The last data of a request have arrived at `node`; returns when its memory has taken them,
    /// if it takes them at all.
    #[inline(never)]
    pub(super) fn store(&mut self, tag: Tag, node: NodeId, now: Time) -> Time {
        let bytes = self.tracks.kept_bytes(tag);
        if bytes == Bytes::ZERO {
            return now;
        }
        let end = self.nodes[node.index()].memory.submit(now, bytes);
        self.tracks.stored(tag, end - now);
        end
    }
}
