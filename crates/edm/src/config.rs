//! Parameters of EDM. Plain structs with every field given; defaults and checks are in `plan`.

use base::{Bytes, Clock, Rate, Span};
use serde::{Deserialize, Serialize};

/// Priority among messages that compete for a port (paper 3.1.1, property 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Shortest remaining processing time: the fewest bytes left. Best for heavy-tailed sizes.
    Srpt,
    /// First come, first served by the time of notification. Best for light-tailed sizes; never
    /// starves.
    Fcfs,
}

/// What "in order" covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// Nothing: messages of one pair overtake each other as the policy says. Not EDM as published:
    /// it shows what order costs.
    None,
    /// Each direction of a compute-memory pair for itself: a read may overtake an earlier write.
    Channel,
    /// Reads and writes of one compute node at one memory node take effect in the order in which
    /// they were issued (paper 3.1.1, property 5).
    Pair,
}

/// When the scheduler forms a matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matching {
    /// Round after round, as ports become free: the chunks of different pairs begin at any time.
    Continuous,
    /// Once a chunk time, for all ports together. The next matching is formed while the chunks of
    /// the last one pass (paper 3.1.3, "the link remains busy while forming the next maximal
    /// matching").
    Slotted,
}

/// The whole design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Most bytes that one grant lets through (the paper's c).
    pub chunk: Bytes,
    /// Most active notifications an ordered pair may have (the paper's X).
    pub active_per_pair: u8,
    /// Whether reads and writes of a pair count together towards `active_per_pair`; each apart
    /// otherwise.
    pub active_together: bool,
    /// The priority policy.
    pub policy: Policy,
    /// What is kept in order.
    pub ordering: Ordering,
    /// When the scheduler forms a matching.
    pub matching: Matching,
    /// Matching iterations between a snapshot of the demand and the grants. 1 issues grants after
    /// every iteration, as the paper does; more delay the grants until the round is over.
    pub iterations_per_round: u32,
    /// How many scheduler cycles before a port is free its next grant may be issued. With zero a
    /// port that becomes free waits for the end of the round after, half a round on average: 6 % of
    /// the line at 64 B and 100 Gb/s. With the three cycles of an iteration it does not; a chunk
    /// then waits up to so long at its egress port, inside the buffer that the clock-domain
    /// crossing of 3.2.2 needs anyway.
    pub look_ahead_cycles: u32,
    /// Clock of host and switch PHY logic. 100 GbE bundles four 25 GbE lanes, so it stays at
    /// 390.625 MHz (paper 4.1).
    pub phy_clock: Clock,
    /// Clock of the scheduler's pipeline (3 GHz as an ASIC, paper 4.1; the PHY's own on the FPGA
    /// testbed).
    pub scheduler_clock: Clock,
    /// Most bytes of small writes that share one notification while the pair is at its limit; zero
    /// batches none. Never more than `chunk`, so that one grant covers a batch.
    pub batch: Bytes,
    /// After this long without an answer a read is answered with NULL, and a write that got no
    /// grant fails.
    pub timeout: Span,
}

impl Config {
    /// The paper's testbed (4.1, 4.2): every clock at 2.56 ns, chunks of 256 B, X = 3. What the
    /// paper leaves open is chosen as `plan` chooses it. Not a default: experiments get theirs from
    /// `plan`.
    pub const TESTBED: Config = Config {
        chunk: Bytes::new(256),
        active_per_pair: 3,
        active_together: false,
        policy: Policy::Srpt,
        ordering: Ordering::Pair,
        matching: Matching::Continuous,
        iterations_per_round: 1,
        look_ahead_cycles: 3,
        phy_clock: Clock::hz(390_625_000),
        scheduler_clock: Clock::hz(390_625_000),
        batch: Bytes::new(256),
        timeout: Span::ms(1),
    };
}

/// What the programs need to know of the place they run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Nodes (and so switch ports), at most 512.
    pub nodes: u32,
    /// The line: 64 payload bits of a 66-bit block at this rate.
    pub rate: Rate,
}

impl Place {
    /// How long `blocks` 66-bit blocks are on the wire (2.56 ns each at 25 Gb/s).
    pub fn blocks(&self, blocks: u64) -> Span {
        self.rate.span_of_bits(64) * blocks
    }
}
