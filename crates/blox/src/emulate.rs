//! The emulated data-centre network around the rack (RackBlox, 3.7).
//!
//! The paper's testbed has no data centre: a delay is drawn for each request and "stored in the LAT
//! field when the packet is generated", and "the end-to-end latency is computed by adding the time
//! spent at the storage server and the final LAT value in the return packet". No packet waits for
//! it ([`NetworkMode::Label`]). [`NetworkMode::Delay`] has packets really wait.

use crate::packet::{Body, ControlMessage};
use base::Span;

/// What becomes of an emulated delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkMode {
    /// It is added to the latency of its request, with the predicted way back. Packets that belong
    /// to no request, and cross the network, wait for it: nothing would count it otherwise.
    Label,
    /// Packets wait for it, on both ways.
    Delay,
}

/// How packets cross the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// What becomes of a delay.
    pub mode: NetworkMode,
    /// Whether packets that RackBlox itself makes cross the network as well: those between the
    /// software controller and others, and reads that a server redirects.
    pub redirects: bool,
}

/// Part of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// From a client.
    FromClient,
    /// To a client.
    ToClient,
    /// From a node that is not a client towards one that is not either.
    Between,
}

/// What a leg costs a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Emulated delay that the packet waits for.
    pub waits: Span,
    /// Emulated delay that is added to the latency of its request.
    pub label: Span,
    /// What the leg adds to LAT.
    pub counted: Span,
}

impl Emulation {
    /// A packet takes a leg on which it really waits for `real`; `draw` draws the delay of the
    /// emulated network, and is called only when the packet crosses that.
    pub fn pass(self, leg: Leg, body: &Body, real: Span, draw: impl FnOnce() -> Span) -> Passed {
        let delay = if self.crosses(leg, body) { draw() } else { Span::ZERO };
        if self.mode == NetworkMode::Label && is_of_request(body) {
            // The client adds LAT to what its clock shows, which has `real` already.
            Passed { waits: Span::ZERO, label: delay, counted: delay }
        } else {
            Passed { waits: delay, label: Span::ZERO, counted: delay + real }
        }
    }

    /// Whether LAT of an answer contains the predicted way back, and clients add LAT.
    pub fn adds_labels(self) -> bool {
        self.mode == NetworkMode::Label
    }

    fn crosses(self, leg: Leg, body: &Body) -> bool {
        match (leg, body) {
            (
                Leg::Between,
                Body::Read { .. } | Body::Control(ControlMessage::Ask(_) | ControlMessage::Answer { .. }),
            ) => self.redirects,
            (Leg::Between, _) => false,
            _ if self.mode == NetworkMode::Delay => true,
            (Leg::FromClient, Body::Read { .. } | Body::Write { .. }) => true,
            // The server has added its prediction.
            (Leg::ToClient, Body::ReadReply { .. } | Body::WriteReply { .. }) => false,
            _ => self.redirects,
        }
    }
}

/// Whether a packet is a client's request or the answer to it.
fn is_of_request(body: &Body) -> bool {
    matches!(body, Body::Read { .. } | Body::Write { .. } | Body::ReadReply { .. } | Body::WriteReply { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::CollectionNote;
    use crate::{Page, Tag, Value};

    const READ: Body = Body::Read { tag: Tag(0), page: Page(0) };
    const REPLY: Body = Body::ReadReply { tag: Tag(0), value: Ok(Value(0)) };
    const ASK: Body = Body::Control(ControlMessage::Ask(CollectionNote::Soft));
    const DEMAND: Body = Body::Control(ControlMessage::Demand { requests: 1, writes: 0 });
    const REAL: Span = Span::us(1);
    const DRAWN: Span = Span::us(100);

    /// Waits, label and what is counted, in microseconds.
    fn pass(mode: NetworkMode, redirects: bool, leg: Leg, body: &Body) -> [u64; 3] {
        let Passed { waits, label, counted } = Emulation { mode, redirects }.pass(leg, body, REAL, || DRAWN);
        [waits, label, counted].map(|span| span.as_ps() / 1_000_000)
    }

    #[test]
    fn a_label_makes_nothing_wait_and_is_counted_once() {
        use NetworkMode::Label;
        assert_eq!(pass(Label, false, Leg::FromClient, &READ), [0, 100, 100]);
        assert_eq!(pass(Label, false, Leg::Between, &READ), [0, 0, 0]);
        assert_eq!(pass(Label, false, Leg::ToClient, &REPLY), [0, 0, 0]);
        assert_eq!(pass(Label, false, Leg::FromClient, &DEMAND), [0, 0, 1]);
    }

    #[test]
    fn a_delay_is_waited_for_on_both_ways() {
        use NetworkMode::Delay;
        assert_eq!(pass(Delay, false, Leg::FromClient, &READ), [100, 0, 101]);
        assert_eq!(pass(Delay, false, Leg::ToClient, &REPLY), [100, 0, 101]);
        assert_eq!(pass(Delay, false, Leg::FromClient, &DEMAND), [100, 0, 101]);
        assert_eq!(pass(Delay, false, Leg::Between, &READ), [0, 0, 1]);
    }

    #[test]
    fn redirects_and_the_controllers_packets_cross_the_network_where_they_should() {
        use NetworkMode::{Delay, Label};
        assert_eq!(pass(Label, true, Leg::Between, &READ), [0, 100, 100]);
        assert_eq!(pass(Delay, true, Leg::Between, &READ), [100, 0, 101]);
        for mode in [Label, Delay] {
            assert_eq!(pass(mode, true, Leg::Between, &ASK), [100, 0, 101]);
            assert_eq!(pass(mode, false, Leg::Between, &ASK), [0, 0, 1]);
            assert_eq!(pass(mode, true, Leg::FromClient, &DEMAND), [100, 0, 101]);
        }
        assert_eq!(pass(Label, true, Leg::Between, &REPLY), [0, 0, 0]);
    }
}
