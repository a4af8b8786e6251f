//! Bursts of other traffic for each server, which no program sees. In a burst one frame follows the
//! other at line rate.

use base::{Bytes, Seed, Span, Stream, Time};
use blox::Body;
use plan::blox::Blox;

/// The class of background traffic, which priority scheduling sends first (RackBlox, 4.5.2).
const CLASS: u8 = 6;
/// Payload of a frame, a jumbo one.
const PAYLOAD: u32 = 8_972;
/// Its size on the wire with Ethernet, IPv4 and UDP headers, preamble and gap.
const WIRE: Bytes = Bytes::new(9_038);

/// Sources of background traffic.
pub struct Background {
    /// Time of a frame on the wire.
    frame: Span,
    /// Mean length of a burst, in picoseconds.
    mean_burst_ps: f64,
    /// Mean length of a gap between bursts, in picoseconds.
    mean_gap_ps: f64,
    /// For each server its draws, and the end of its burst.
    servers: Vec<(Stream, Time)>,
    sent: u64,
}

impl Background {
    /// The sources of a plan, if it has any.
    pub fn new(plan: &Blox, seed: Seed) -> Option<Background> {
        let load = plan.rack.background_load;
        let burst_ps = plan.rack.background_burst.as_ps() as f64;
        let stream = |server: u32| seed.stream(&format!("background/server/{server}"));
        (load > 0.0).then(|| Background {
            frame: plan.rack.rate.span_of(WIRE),
            mean_burst_ps: burst_ps,
            mean_gap_ps: burst_ps * (1.0 - load) / load,
            servers: (0..plan.rack.servers).map(|server| (stream(server), Time::ZERO)).collect(),
            sent: 0,
        })
    }

    /// Draws the time of the next frame for a server.
    pub fn next(&mut self, now: Time, server: u32) -> Time {
        let (stream, burst_ends) = &mut self.servers[server as usize];
        let mut next = now + self.frame;
        if next >= *burst_ends {
            next += Span::from_ps_f64(stream.exponential(self.mean_gap_ps));
            *burst_ends = next + Span::from_ps_f64(stream.exponential(self.mean_burst_ps));
        }
        next
    }

    /// Sends a frame.
    pub fn frame(&mut self) -> Body {
        self.sent += 1;
        Body::Background { bytes: PAYLOAD, priority: CLASS }
    }

    /// Frames sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }
}
