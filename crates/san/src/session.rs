//! Rules that both ends of a session share: associations, their order, and the detection of late
//! copies of commands.
//!
//! A session reaches its drive over *lanes*, one for each uplink of the host, at most
//! [`LANES_MAX`]. Each lane carries one association at a time (an NVMe/TCP connection and its queue
//! pair): when it fails, the next *generation* replaces it. Within an association a command may be
//! *sent* several times under the same identifier, as TCP repeats segments, and is executed once.
//! Under another association it is a new command to the target, as in NVMe. Only the rules of
//! [`crate::retry`] prevent that it is executed twice with another command in between.

/// Maximum number of uplinks of a host.
pub const LANES_MAX: usize = 8;

const SEND_BITS: u32 = 5;
const GENERATION_BITS: u32 = 8;
const SEND_MASK: u16 = (1 << SEND_BITS) - 1;
const GENERATION_MASK: u16 = (1 << GENERATION_BITS) - 1;

/// Association and send of a command. [`crate::Tag::attempt`] holds it in 16 bits: the upper three
/// are the lane, the next eight the generation, the lower five the send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// The uplink of the host that the association uses.
    pub lane: u8,
    /// Generation of the association within its lane, wrapping.
    pub generation: u8,
    /// Number of sends before this one, wrapping at 32.
    pub send: u8,
}

impl Attempt {
    /// Encodes the attempt for a tag.
    pub const fn bits(self) -> u16 {
        (self.lane as u16) << (SEND_BITS + GENERATION_BITS)
            | (self.generation as u16) << SEND_BITS
            | self.send as u16 & SEND_MASK
    }

    /// Decodes an attempt; every bit pattern is valid.
    pub const fn of_bits(bits: u16) -> Self {
        Attempt {
            lane: (bits >> (SEND_BITS + GENERATION_BITS)) as u8,
            generation: (bits >> SEND_BITS & GENERATION_MASK) as u8,
            send: (bits & SEND_MASK) as u8,
        }
    }

    /// Returns the first send of the same association.
    pub const fn first(self) -> Self {
        Attempt { send: 0, ..self }
    }

    /// Returns the next send of the same association.
    pub const fn again(self) -> Self {
        Attempt { send: (self.send + 1) & SEND_MASK as u8, ..self }
    }
}

/// Returns whether `send` is later than `other`: less than half the number range ahead, with
/// wrapping.
pub const fn is_later_send(send: u8, other: u8) -> bool {
    let ahead = send.wrapping_sub(other) & SEND_MASK as u8;
    ahead != 0 && ahead <= SEND_MASK as u8 / 2
}

/// Returns whether `generation` is earlier than `other`, with wrapping.
pub const fn is_earlier_generation(generation: u8, other: u8) -> bool {
    (generation.wrapping_sub(other) as i8) < 0
}

/// Returns whether command identifier `id` of a queue slot was issued before `other` of the same
/// slot: [`nvme::queue::HostQueue`] counts uses of a slot in the upper bits.
pub const fn is_earlier_command(id: u16, other: u16) -> bool {
    (id.wrapping_sub(other) as i16) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sends_and_generations_are_ordered_over_their_wrap() {
        assert!(is_later_send(0, 31) && !is_later_send(31, 0) && !is_later_send(4, 4));
        assert!(is_later_send(19, 4) && !is_later_send(20, 4));
        assert!(is_earlier_generation(255, 0) && !is_earlier_generation(0, 255) && !is_earlier_generation(9, 9));
        assert!(is_earlier_command(0xff03, 0x0003) && !is_earlier_command(0x0003, 0xff03));
    }

    proptest! {
        #[test]
        fn every_sixteen_bits_are_an_attempt(bits: u16) {
            prop_assert_eq!(Attempt::of_bits(bits).bits(), bits);
            prop_assert_eq!(Attempt::of_bits(bits).again().first(), Attempt::of_bits(bits).first());
        }
    }
}
