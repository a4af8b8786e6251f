//! How long blocks take. Rates are those of the payload: the two synchronisation bits ride on the
//! line's 66/64 surplus.

use base::{Rate, Span};

/// Bits of a block on the line.
pub const BLOCK_BITS: u32 = 66;

/// Bits of a block that count towards the nominal rate.
pub const PAYLOAD_BITS: u32 = 64;

/// The time of one block, rounded up to a picosecond. The rate must not be zero.
pub const fn block_time(rate: Rate) -> Span {
    blocks_time(rate, 1)
}

/// The time of `blocks` blocks back to back, rounded up once. The rate must not be zero.
pub const fn blocks_time(rate: Rate, blocks: u64) -> Span {
    rate.span_of_bits(blocks * PAYLOAD_BITS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_is_the_cycle_of_table_1_at_25_gigabits() {
        assert_eq!(block_time(Rate::gbps(25)), Span::ps(2_560));
        assert_eq!(block_time(Rate::gbps(100)), Span::ps(640));
        assert_eq!(block_time(Rate::gbps(400)), Span::ps(160));
    }

    #[test]
    fn many_blocks_round_once() {
        let odd = Rate::bps(30_000_000_000);
        assert_eq!(block_time(odd), Span::ps(2_134));
        assert_eq!(blocks_time(odd, 3), Span::ps(6_400));
    }

    #[test]
    fn a_block_is_a_synchronisation_header_wider_than_its_payload() {
        assert_eq!(BLOCK_BITS - PAYLOAD_BITS, 2);
        // 25 Gb/s of payload are the 25.78125 GBd of 802.3 clause 107.
        assert_eq!(25_000_000_000 * BLOCK_BITS as u64 / PAYLOAD_BITS as u64, 25_781_250_000);
    }
}
