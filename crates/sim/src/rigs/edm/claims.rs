//! The spans of a request that has finished, from the moments on the path of its last chunk.

use super::track::{BY_GRANT, Ends, IS_WRITE, Rare, Track};
use base::{NodeId, Span, Time};
use edm::Place;
use edm::budget::Delays;
use record::{Ledger, Place as At, SpanKind};

/// What every finished request pays alike.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    delays: Delays,
    /// Both crossings of a hop.
    pcs: Span,
    /// Both crossings of a hop.
    transceiver: Span,
    /// The fibre of a hop.
    propagation: Span,
    /// One block on a wire.
    block: Span,
}

impl Costs {
    /// Of a rack whose transceivers (one crossing) and fibres (one hop) take so long.
    pub fn new(delays: &Delays, place: &Place, transceiver: Span, propagation: Span) -> Costs {
        let (pcs, transceiver) = (delays.pcs * 2, transceiver * 2);
        Costs { delays: *delays, pcs, transceiver, propagation, block: place.blocks(1) }
    }

    /// What a hop takes, bits aside.
    fn hop(&self) -> Span {
        self.pcs + self.transceiver + self.propagation
    }

    /// The parts of that.
    fn crossed(&self) -> [(SpanKind, Span); 3] {
        let (pcs, transceiver) = ((SpanKind::Pcs, self.pcs), (SpanKind::Transceiver, self.transceiver));
        [pcs, transceiver, (SpanKind::Propagation, self.propagation)]
    }
}

impl Track {
    /// The path of a request that has finished, from when its host took it up.
    pub(super) fn claim_path(&self, rare: &Rare, ends: Ends, costs: &Costs, ledger: &mut Ledger) {
        let moments = Moments::of(self, rare, costs);
        let mut waits = Waits {
            schedule: moments.matched.saturating_since(moments.demanded),
            nic_control: self.control_sent.saturating_since(moments.made),
            nic_data: self.data_sent.saturating_since(moments.ready),
            switch: self.switch_wait,
            grant: self.grant_wait,
        };
        // A chunk whose grant came before the memory was read waited for the memory, not for the
        // link.
        let memory = if self.has(BY_GRANT) { rare.memory.min(waits.nic_data) } else { Span::ZERO };
        waits.nic_data -= memory;
        let own = waits.give(costs.block * u64::from(self.blocks.data - u32::from(self.blocks.last)));
        // Whoever sends the data, and whoever gets it.
        let (from, to) = if self.has(IS_WRITE) { (ends.source, ends.target) } else { (ends.target, ends.source) };
        self.claim_demand(ends.source, &moments, rare, (&waits, &own), costs, ledger);
        self.claim_grant(from, &moments, rare, (&waits, &own), costs, ledger);
        let ready = [(SpanKind::Memory, memory), (SpanKind::NicQueue, waits.nic_data)];
        let ready = [ready[0], ready[1], (SpanKind::Serialization, own.nic_data)];
        ledger.claim_parts(moments.ready, At::Host(from.0), ready);
        self.claim_data((from, to), &moments, rare, (&waits, &own), costs, ledger);
    }

    /// Its /N/ or request, up to the scheduler's decision.
    fn claim_demand(
        &self,
        source: NodeId,
        moments: &Moments,
        rare: &Rare,
        (waits, own): (&Waits, &Waits),
        costs: &Costs,
        ledger: &mut Ledger,
    ) {
        use SpanKind::{NicQueue, Schedule, Serialization, Stack};
        let (host, delays, [pcs, transceiver, propagation]) = (At::Host(source.0), &costs.delays, costs.crossed());
        ledger.claim_parts(self.start, host, [(Stack, delays.make_request)]);
        ledger.claim_parts(moments.made, host, [(NicQueue, waits.nic_control), (Serialization, own.nic_control)]);
        let control = (Serialization, costs.block * u64::from(self.blocks.control));
        let (on_link, insert) = ((NicQueue, rare.control_on_link), (Stack, delays.insert));
        let way = [control, on_link, pcs, transceiver, propagation, insert];
        ledger.claim_parts(self.control_sent, At::Link(source.0), way);
        let wait = [(Schedule, waits.schedule), (Serialization, own.schedule)];
        ledger.claim_parts(moments.demanded, At::Switch(0), wait);
        ledger.claim_parts(moments.matched, At::Switch(0), [(Stack, delays.iteration + delays.emit)]);
    }

    /// Its last grant, or its request, on the way to whoever sends the data.
    fn claim_grant(
        &self,
        from: NodeId,
        moments: &Moments,
        rare: &Rare,
        (waits, own): (&Waits, &Waits),
        costs: &Costs,
        ledger: &mut Ledger,
    ) {
        use SpanKind::{Memory, Serialization, Stack, SwitchQueue};
        let (delays, [pcs, transceiver, propagation]) = (&costs.delays, costs.crossed());
        let wait = [(SwitchQueue, waits.grant), (Serialization, own.grant)];
        ledger.claim_parts(self.granted_at, At::Port(from.0), wait);
        let grant = (Serialization, costs.block * u64::from(self.blocks.grant));
        let way = [grant, pcs, transceiver, propagation];
        ledger.claim_parts(self.granted_at + self.grant_wait, At::Link(from.0), way);
        if self.has(BY_GRANT) {
            return ledger.claim_parts(moments.granted, At::Host(from.0), [(Stack, delays.take_grant)]);
        }
        let served = [(Stack, delays.take_request), (Memory, rare.memory), (Stack, delays.make_response)];
        ledger.claim_parts(moments.granted, At::Target(from.0), served);
    }

    /// Its last chunk.
    fn claim_data(
        &self,
        (from, to): (NodeId, NodeId),
        moments: &Moments,
        rare: &Rare,
        (waits, own): (&Waits, &Waits),
        costs: &Costs,
        ledger: &mut Ledger,
    ) {
        use SpanKind::{NicQueue, Serialization, Stack, SwitchQueue};
        let (delays, [pcs, transceiver, propagation]) = (&costs.delays, costs.crossed());
        let chunk = (Serialization, costs.block * u64::from(self.blocks.last));
        let (on_link, forward) = ((NicQueue, rare.data_on_link), (Stack, delays.forward));
        let way = [chunk, on_link, pcs, transceiver, propagation, forward];
        ledger.claim_parts(self.data_sent, At::Link(from.0), way);
        let wait = [(SwitchQueue, waits.switch), (Serialization, own.switch)];
        ledger.claim_parts(moments.forwarded, At::Port(to.0), wait);
        let way = [pcs, transceiver, propagation, (Stack, delays.take_data)];
        ledger.claim_parts(moments.forwarded + self.switch_wait, At::Link(to.0), way);
    }
}

/// Moments on a request's path that follow from what was measured and what pipelines and wires
/// take.
struct Moments {
    /// Its /N/ or request could leave its host.
    made: Time,
    /// That was in its notification queue.
    demanded: Time,
    /// The iteration began that has granted it.
    matched: Time,
    /// The grant, or the request, was at the PCS of whoever sends the data.
    granted: Time,
    /// The last chunk could leave.
    ready: Time,
    /// It was at the egress port of the switch.
    forwarded: Time,
}

impl Moments {
    fn of(track: &Track, rare: &Rare, costs: &Costs) -> Moments {
        let (delays, hop, blocks) = (&costs.delays, costs.hop(), |blocks: u64| costs.block * blocks);
        let control = blocks(track.blocks.control.into()) + rare.control_on_link;
        let granted = track.granted_at + track.grant_wait + blocks(track.blocks.grant.into()) + hop;
        let served = delays.take_request + rare.memory + delays.make_response;
        let chunk = blocks(track.blocks.last.into()) + rare.data_on_link;
        Moments {
            made: track.start + delays.make_request,
            demanded: track.control_sent + control + hop + delays.insert,
            matched: track.granted_at - (delays.iteration + delays.emit),
            granted,
            ready: granted + if track.has(BY_GRANT) { delays.take_grant } else { served },
            forwarded: track.data_sent + chunk + hop + delays.forward,
        }
    }
}

/// The waits on a request's path.
struct Waits {
    schedule: Span,
    nic_control: Span,
    nic_data: Span,
    switch: Span,
    grant: Span,
}

impl Waits {
    /// Of the waits of a last chunk what its own earlier chunks were being sent is their
    /// serialization. Mostly that is in the wait for its grant. Grants of one request come a little
    /// faster than its chunks leave (look-ahead, and RREQ against /G/). Its last chunk thus waits
    /// behind its own earlier ones too.
    fn give(&mut self, serialization: Span) -> Waits {
        let mut left = serialization;
        let mut of = |wait: &mut Span| {
            let given = left.min(*wait);
            *wait -= given;
            left -= given;
            given
        };
        Waits {
            schedule: of(&mut self.schedule),
            nic_data: of(&mut self.nic_data),
            nic_control: of(&mut self.nic_control),
            switch: of(&mut self.switch),
            grant: of(&mut self.grant),
        }
    }
}
