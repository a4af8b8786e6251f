//! EDM's messages in place of verbs, for clients' operations on the index: every machine is a node,
//! the box another, and the rig of EDM is the network between.
//!
//! | operation | message |
//! | --- | --- |
//! | read of a block | RREQ, answered by RRES in chunks |
//! | check | three of them, in the order of the pair: the block, its header, the word |
//! | compare-and-swap | RMWREQ; its answer is one byte, whether it swapped |
//! | write of a payload, of flags, of a time | WREQ after its grant |
//!
//! Requests to servers and offloaded reads of flash stay with the adapters: EDM's paper has
//! messages for memory alone, and everything else goes in ordinary frames beside them (3.2.3),
//! which is where RPCs and NVMe-oF are. What both would share, the links, is each one's own here.
//!
//! EDM's host of the box keeps the words of slots, so that its own logic compares and swaps;
//! contents of more than a word are the index's. Whatever else changes a word is told to it, and
//! what EDM says of a swap has to be what the index says.

use super::remote::{RemoteOperation, Touched};
use super::torn_reads::Window;
use super::{InFlight, Now, ScalioEvent, ScalioRig, faults, sizes};
use crate::drive::{Ended, Rig, Ticket};
use crate::nested::Nested;
use crate::rigs::edm::{EdmRig, EdmRigConfig};
use crate::rigs::seat::Alarm;
use crate::sampler::Probe;
use crate::slab::Slab;
use base::{Bytes, NodeId, Span, Time};
use edm::{Access, Modify};
use plan::scalio::{Carrier, CarrierName, Scalio};
use record::Outcome;
use record::metric::Meter;
use scalio::layout::{block_bytes, offset};
use scalio::{Index, MemoryAnswer, MemoryOperation, Token};
use std::ops::Range;

/// The network, and what is on its way in it.
pub struct Fabric {
    network: Nested<EdmRig>,
    alarm: Alarm,
    carrier: Carrier,
    client_nodes: u32,
    slots: u8,
    parts: Slab<Part>,
    operations: Slab<OnItsWay>,
}

/// A message of EDM.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Which remote's.
    remote: u32,
    piece: Piece,
}

/// What of an operation it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// All of it; of a check, reading the block.
    First,
    /// Of a check, reading the header.
    Header,
    /// Of a check, reading the word.
    Word,
}

/// An operation whose messages are on their way.
struct OnItsWay {
    remote: RemoteOperation,
    parts_left: u32,
    touched: Option<Touched>,
}

impl Fabric {
    /// The plan's, if it has one. It begins with the words of all slots.
    pub fn of(plan: &Scalio, index: Option<&Index<Token>>, wire_check: bool) -> Option<Fabric> {
        let carrier = plan.carrier.filter(|carrier| carrier.name == CarrierName::Edm)?;
        let (options, index) = (plan.options?, index?);
        let mut rig = EdmRig::new(EdmRigConfig {
            edm: carrier.edm(),
            nodes: plan.store.client_nodes + 1,
            rate: carrier.rate,
            propagation: carrier.propagation,
            transceiver: carrier.transceiver,
            memory: carrier.memory(),
            redundant: false,
            faults: Vec::new(),
            background: None,
            wire_check,
        });
        rig.keep_answers();
        rig.watch_memory();
        let slots = if options.cache { options.slots as u8 } else { 0 };
        let (network, client_nodes) = (Nested::new(rig), plan.store.client_nodes);
        let (alarm, parts, operations) = (Alarm::OFF, Slab::new(), Slab::new());
        let mut fabric = Fabric { network, alarm, carrier, client_nodes, slots, parts, operations };
        (0..index.blocks()).for_each(|block| fabric.mirror(index, block, 0..u8::MAX));
        Some(fabric)
    }

    /// From a thread's call until EDM has it.
    pub fn post_takes(&self) -> Span {
        self.carrier.post
    }

    /// What the memory of the box takes for a word.
    pub fn memory_takes(&self) -> Span {
        self.carrier.memory_latency
    }

    /// How long each direction of each link was busy.
    pub fn busy(&self, out: &mut Vec<Span>) {
        self.network.rig().link_busy(out);
    }

    /// Reads the metrics of EDM.
    pub fn measure(&self, now: Time, meter: &mut Meter) {
        self.network.rig().measure(now, meter);
    }

    /// Reports the state of EDM.
    pub fn sample(&self, now: Time, probe: &mut Probe) {
        self.network.rig().sample(now, probe);
    }

    /// The warm-up ends.
    pub fn end_warm_up(&mut self, now: Time) {
        self.network.rig_mut().end_warm_up(now);
    }

    /// The words of some of a block's slots have changed otherwise than by EDM, or as EDM knows
    /// already.
    pub fn mirror(&mut self, index: &Index<Token>, block: u32, slots: Range<u8>) {
        let base = offset::block(block, self.slots);
        let the_box = NodeId(self.client_nodes);
        let memory = self.network.rig_mut().host_mut(the_box).memory_mut();
        for (at, slot) in (0u8..).zip(index.slots(block)).filter(|(at, _)| slots.contains(at)) {
            memory.write(base + offset::word(at) as u64, slot.word.0);
        }
    }

    /// Hands an operation to its client's machine. How many messages it makes.
    fn submit(&mut self, now: Time, remote: RemoteOperation) -> u64 {
        let source = NodeId(remote.client % self.client_nodes);
        let target = NodeId(self.client_nodes);
        let (first, more) = accesses(&remote, self.slots);
        let parts_left = 1 + more.map_or(0, |more| more.len() as u32);
        let remote = self.operations.insert(OnItsWay { remote, parts_left, touched: None });
        let pieces = [(Piece::First, first)].into_iter().chain(more.into_iter().flatten());
        for (piece, access) in pieces {
            let ticket = Ticket(self.parts.insert(Part { remote, piece }));
            self.network.act(now, |rig, context| rig.submit(ticket, source, target, access, context));
        }
        u64::from(parts_left)
    }

    /// How long the box's memory gives out a block, or a word of it.
    fn reading(&self, piece: Piece) -> Span {
        let bytes = match piece {
            Piece::First => block_bytes(self.slots),
            Piece::Header => block_bytes(0),
            Piece::Word => sizes::WORD as usize,
        };
        self.carrier.memory_bandwidth.span_of(Bytes::new(bytes as u64))
    }
}

/// What an operation asks of the box's memory; of a check, what follows besides.
fn accesses(remote: &RemoteOperation, slots: u8) -> (Access, Option<[(Piece, Access); 2]>) {
    let base = offset::block(remote.block, slots);
    let read = |at: usize, bytes: usize| Access::Read { address: base + at as u64, bytes: bytes as u32 };
    let write = |at: usize, bytes: u32, word| Access::Write { address: base + at as u64, bytes, word };
    let access = match &remote.operation {
        MemoryOperation::ReadBlock => read(0, block_bytes(slots)),
        MemoryOperation::Check { slot } => {
            let header = (Piece::Header, read(0, block_bytes(0)));
            let word = (Piece::Word, read(offset::word(*slot), sizes::WORD as usize));
            return (read(0, block_bytes(slots)), Some([header, word]));
        }
        MemoryOperation::Swap { slot, expected, new } => {
            let modify = Modify::CompareAndSwap { expected: expected.0, new: new.0 };
            Access::Modify { address: base + offset::word(*slot) as u64, modify }
        }
        MemoryOperation::WritePayload { slot, payload } => {
            write(offset::payload(*slot), sizes::payload_bytes(scalio::Value::bytes(&payload.value)), 0)
        }
        MemoryOperation::Touch { slot, at } => write(offset::last_use(*slot), sizes::WORD, at.as_ps()),
        // EDM's host writes whole words; what the word then is, the index knows.
        MemoryOperation::StoreFlags { slot, .. } => write(offset::word(*slot), sizes::WORD, 0),
        MemoryOperation::Publish { .. } | MemoryOperation::Close | MemoryOperation::Reset { .. } => {
            unreachable!("only a server changes headers, in its own memory")
        }
    };
    (access, None)
}

impl ScalioRig {
    /// EDM's logic at a client has an operation.
    pub(super) fn submit_remote(&mut self, remote: RemoteOperation, context: Now<'_, '_>) {
        let Some(fabric) = &mut self.fabric else { return };
        self.counts.verbs += fabric.submit(context.now, remote);
        self.after_fabric(context);
    }

    /// Something in the network is due.
    pub(super) fn fabric_is_due(&mut self, context: Now<'_, '_>) {
        if let Some(fabric) = &mut self.fabric {
            fabric.alarm.ring(context.now);
        }
        while self.fabric.as_mut().is_some_and(|fabric| fabric.network.step(context.now)) {
            self.take_from_fabric(context);
        }
        self.after_fabric(context);
    }

    fn after_fabric(&mut self, context: Now<'_, '_>) {
        self.take_from_fabric(context);
        let Some(fabric) = &mut self.fabric else { return };
        if let Some(at) = fabric.alarm.arm(fabric.network.next()) {
            context.at(at, ScalioEvent::Fabric);
        }
    }

    /// What an event of the network has brought: one message at its memory, or at its end.
    fn take_from_fabric(&mut self, context: Now<'_, '_>) {
        while let Some(ticket) = self.fabric.as_mut().and_then(|fabric| fabric.network.rig_mut().take_reached()) {
            self.part_reached(ticket, context.now);
        }
        while let Some(ended) = self.fabric.as_mut().and_then(|fabric| fabric.network.pop_ended()) {
            self.part_ended(&ended, context);
        }
    }

    /// A request is at the box's memory: its operation takes effect, or its read begins.
    fn part_reached(&mut self, ticket: Ticket, now: Time) {
        let Some(fabric) = &mut self.fabric else { return };
        // The late message of one that was given up finds nobody.
        let Some(Part { remote, piece }) = fabric.parts.get(ticket.0).copied() else { return };
        match piece {
            Piece::First => self.reach_memory(remote, now),
            Piece::Header | Piece::Word => {
                let span = fabric.reading(piece);
                follow(&mut fabric.operations[remote].touched, piece, now, span);
            }
        }
    }

    fn reach_memory(&mut self, number: u32, now: Time) {
        let Some(fabric) = &mut self.fabric else { return };
        let (remote, span) = (fabric.operations[number].remote.clone(), fabric.reading(Piece::First));
        self.claim_awaited_way(remote.owner, remote.request, remote.since, now);
        let touched = self.touch(now, &remote, span);
        if let Some(fabric) = &mut self.fabric {
            (fabric.operations[number].touched, fabric.operations[number].remote.since) = (Some(touched), now);
        }
    }

    /// A message has ended: its answer is back, or its data is in memory.
    fn part_ended(&mut self, ended: &Ended, context: Now<'_, '_>) {
        let Some(fabric) = &mut self.fabric else { return };
        let Part { remote: number, .. } = fabric.parts.remove(ended.ticket.0);
        let word = fabric.network.rig_mut().take_answer(ended.ticket);
        let way = &mut fabric.operations[number];
        way.parts_left -= 1;
        let is_last = way.parts_left == 0;
        if ended.outcome != Outcome::Finished {
            // EDM gives a NULL for an answer that did not come in time.
            let before = way.touched.replace(Touched::Answer(MemoryAnswer::Unreachable));
            before.map(|touched| self.settled(touched));
        } else if way.touched.is_none() {
            self.reach_memory(number, context.now);
        }
        if is_last {
            self.remote_ended(number, word, context);
        }
    }

    fn remote_ended(&mut self, number: u32, word: Option<u64>, context: Now<'_, '_>) {
        let Some(fabric) = &mut self.fabric else { return };
        let seen = fabric.carrier.completion;
        let OnItsWay { remote, touched, .. } = fabric.operations.remove(number);
        let RemoteOperation { owner, client, request: Some(request), operation, since, .. } = remote else { return };
        let touched = touched.expect("an operation that has ended was at its memory");
        check_swap(&operation, &touched, word);
        let is_refused = matches!(touched, Touched::Answer(MemoryAnswer::Unreachable));
        let at = context.now + if is_refused { faults::GIVE_UP } else { seen };
        self.post(at, InFlight::Answer { owner, client, request, touched, since }, context);
    }
}

/// EDM's logic and the index agree whether a word was swapped.
fn check_swap(operation: &MemoryOperation<Token>, touched: &Touched, word: Option<u64>) {
    if let (MemoryOperation::Swap { expected, .. }, Touched::Answer(MemoryAnswer::Found(found))) = (operation, touched)
    {
        assert_eq!(word, Some(u64::from(found == expected)), "EDM's memory and the index hold the same words");
    }
}

/// Of a check, one more read begins, when the one before has ended.
fn follow(touched: &mut Option<Touched>, piece: Piece, now: Time, span: Span) {
    let Some(Touched::Read { read, .. }) = touched else { return };
    match piece {
        Piece::First => {}
        Piece::Header => read.header = Some(Window::after(now, Some(read.lines), span)),
        Piece::Word => read.word = Some(Window::after(now, read.header, span)),
    }
}
