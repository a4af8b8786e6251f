//! The cycle budget of EDM's logic (paper 3.2.1, 3.2.2 and Figure 5), in cycles of the PHY or
//! scheduler clock.
//!
//! The figures marked *inferred* are not printed; they are the ones with which the sums of Table 1
//! come out (see the tests below).

use crate::config::{Config, Matching, Place};
use crate::pcs::memory as encoded;
use base::Span;

/// One crossing of the physical coding sublayer, either way.
pub const PCS_CROSSING: u64 = 2;
/// Compute node: read the message queue and make an RREQ or /N/.
pub const MAKE_REQUEST: u64 = 2;
/// Compute or memory node: parse a /G/ and put it into the grant queue.
pub const TAKE_GRANT: u64 = 2;
/// Read the grant queue, which crosses from the receive to the transmit clock.
pub const READ_GRANT_QUEUE: u64 = 4;
/// Read the state table and the data buffer and make the first /M*/ block of a WREQ or RRES.
pub const MAKE_DATA: u64 = 3;
/// Parse an /M*/ block of a WREQ or RRES, find the address, hand the data over.
pub const TAKE_DATA: u64 = 3;
/// Memory node: parse an RREQ, queue it, hand it to the memory controller.
pub const TAKE_REQUEST: u64 = 3;
/// Switch: detect a block's kind.
pub const IDENTIFY: u64 = 1;
/// Scheduler: insert into a notification queue (*inferred* to be on the path; 3.1.2 gives the 2
/// cycles).
pub const INSERT: u64 = 2;
/// Scheduler: one iteration of priority PIM.
pub const ITERATION: u64 = 3;
/// Switch: make a /G/, or send the buffered RREQ on.
pub const EMIT: u64 = 1;
/// Switch: move a block from the receive to the transmit clock of another port.
pub const FORWARD: u64 = 4;

/// The fixed delays between two places, transceivers and fibre left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Application to transmit arbitration, for RREQ, RMWREQ and /N/.
    pub make_request: Span,
    /// One PCS crossing.
    pub pcs: Span,
    /// Switch receive side to the notification queue.
    pub insert: Span,
    /// From the start of an iteration to its grants.
    pub iteration: Span,
    /// From the grants to the egress port.
    pub emit: Span,
    /// Switch receive side to the egress port along a virtual circuit.
    pub forward: Span,
    /// Memory node: RREQ from the PCS to the memory controller.
    pub take_request: Span,
    /// Memory node: from the data to the transmit arbitration.
    pub make_response: Span,
    /// /G/ from the PCS to the transmit arbitration with the chunk.
    pub take_grant: Span,
    /// RRES or WREQ from the PCS to the application or memory.
    pub take_data: Span,
}

impl Delays {
    /// The delays at the clocks of `config`.
    pub fn new(config: &Config) -> Delays {
        let phy = |cycles| config.phy_clock.cycles(cycles);
        let scheduler = |cycles| config.scheduler_clock.cycles(cycles);
        Delays {
            make_request: phy(MAKE_REQUEST),
            pcs: phy(PCS_CROSSING),
            insert: phy(IDENTIFY) + scheduler(INSERT),
            iteration: scheduler(ITERATION * u64::from(config.iterations_per_round)),
            emit: phy(EMIT),
            forward: phy(FORWARD),
            take_request: phy(TAKE_REQUEST),
            make_response: phy(READ_GRANT_QUEUE + MAKE_DATA),
            take_grant: phy(TAKE_GRANT + READ_GRANT_QUEUE + MAKE_DATA),
            take_data: phy(TAKE_DATA),
        }
    }

    /// EDM's own logic on the path of a read, PCS crossings left out.
    pub fn read_logic(&self) -> Span {
        self.make_request
            + self.insert
            + self.iteration
            + self.emit
            + self.take_request
            + self.make_response
            + self.forward
            + self.take_data
    }

    /// EDM's own logic on the path of a write, PCS crossings left out.
    pub fn write_logic(&self) -> Span {
        self.make_request + self.insert + self.iteration + self.emit + self.take_grant + self.forward + self.take_data
    }
}

/// The time from one slotted matching to the next; `None` if matching is continuous.
///
/// A slot lets a whole chunk and the grant on its port pass. It is never shorter than the round
/// that forms the next matching: the least chunk of 3.1.3.
pub fn slot(config: &Config, place: &Place) -> Option<Span> {
    let chunk = config.chunk.count() as u32;
    let blocks = encoded::write_blocks(chunk).max(encoded::response_blocks(chunk)) + encoded::GRANT_BLOCKS;
    let round = Delays::new(config).iteration;
    (config.matching == Matching::Slotted).then(|| place.blocks(blocks).max(round))
}

/// PCS crossings on the path of a read or a write: four hops, two ends each.
pub const CROSSINGS: u64 = 8;
/// Hops on the path of a read or a write.
pub const HOPS: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use base::Clock;

    /// Table 1 of the paper, EDM's columns: 42 cycles a read, 41 a write, at 2.56 ns.
    #[test]
    fn the_network_stack_rows_of_table_1_come_out_to_the_digit() {
        let delays = Delays::new(&Config::TESTBED);
        assert_eq!(delays.read_logic() + delays.pcs * CROSSINGS, Span::ps(107_520));
        assert_eq!(delays.write_logic() + delays.pcs * CROSSINGS, Span::ps(104_960));
        let transceivers_and_fibre = Span::ns(19) * CROSSINGS + Span::ns(10) * HOPS;
        assert_eq!(delays.read_logic() + delays.pcs * CROSSINGS + transceivers_and_fibre, Span::ps(299_520));
        assert_eq!(delays.write_logic() + delays.pcs * CROSSINGS + transceivers_and_fibre, Span::ps(296_960));
    }

    /// Table 1 by place: compute 5 and 11 cycles, switch 11 and 11, memory 10 and 3.
    #[test]
    fn the_rows_by_place_come_out_too() {
        assert_eq!(MAKE_REQUEST + TAKE_DATA, 5);
        assert_eq!(MAKE_REQUEST + TAKE_GRANT + READ_GRANT_QUEUE + MAKE_DATA, 11);
        assert_eq!(IDENTIFY + INSERT + ITERATION + EMIT + FORWARD, 11);
        assert_eq!(TAKE_REQUEST + READ_GRANT_QUEUE + MAKE_DATA, 10);
        assert_eq!(TAKE_DATA, 3);
    }

    #[test]
    fn faster_clocks_scale_the_logic() {
        let fast = Config { scheduler_clock: Clock::mhz(3_000), ..Config::TESTBED };
        let saved = Delays::new(&Config::TESTBED).read_logic() - Delays::new(&fast).read_logic();
        assert_eq!(
            saved,
            Config::TESTBED.phy_clock.cycles(INSERT + ITERATION) - Clock::mhz(3_000).cycles(2) - Span::ns(1)
        );
    }
}
