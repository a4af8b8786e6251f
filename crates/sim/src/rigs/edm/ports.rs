//! Links that memory messages share with ordinary frames, in place of the plain FIFO links of a rig
//! without frames.
//!
//! A node's uplink carries one message at a time, as the host's arbitration hands them over. Chunks
//! are cut through: the downlink gets a chunk when its first block is there. [`MuxLink`] takes
//! every message as if it were there whole, so what it says is only a lower bound for a chunk whose
//! blocks came interleaved. A chunk's last block leaves at the latest of three times: that of the
//! downlink's multiplexer, its arrival from the uplink, and the chunk's own length after the
//! previous message. Messages never mix. Two lines that alternate cost a chunk its doubled length
//! once, as in the real multiplexer, where the uplink's pauses are just the downlink's turns. The
//! model has one simplification: while a chunk trickles in, the blocks that it waits for count as
//! sent. A frame between them may thus leave up to the chunk's length too late or too early.

use crate::rigs::seat::Alarm;
use base::{Bytes, NodeId, Rate, Span, Time};
use edm::pcs::frame::FrameBlocks;
use edm::pcs::multiplex::Policy;
use edm::pcs::mux_model::{Completed, MuxLink};
use edm::pcs::timing::block_time;
use std::collections::VecDeque;

/// Which way a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Node to switch.
    Up,
    /// Switch to node.
    Down,
}

/// One direction of one node's link to one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkId {
    /// The switch.
    pub plane: u8,
    /// Which way.
    pub direction: Direction,
    /// The node.
    pub node: NodeId,
}

/// What a shared link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A message or, upwards, a notification: the flight.
    Message(u32),
    /// A grant.
    Grant {
        /// The flight.
        flight: u32,
        /// When it was put in.
        submitted: Time,
    },
    /// A frame, by its number.
    Frame(u32),
}

/// The message that an uplink carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Its flight, unless the switch has thrown its first block away.
    pub flight: Option<u32>,
    /// When the host handed it over.
    pub submitted: Time,
    /// Its length on a line of its own.
    pub serialization: Span,
}

/// A message on, or before, a downlink.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    flight: u32,
    serialization: Span,
    /// When its last block could leave if nothing else were there; of a chunk, known when its
    /// uplink has sent it.
    earliest: Option<Time>,
    /// When the multiplexer has sent its last block.
    sent: Option<Time>,
}

/// A message whose last block leaves the downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its flight.
    pub flight: u32,
    /// When; up to a hop ahead of now.
    pub at: Time,
    /// How much later than on an empty line.
    pub waited: Span,
}

/// One direction of a shared link and the receiver at its end.
pub struct SharedLink {
    mux: MuxLink<Item>,
    block: Span,
    policy: Policy,
    alarm: Alarm,
    busy: Span,
    /// When the receiver has handed the last frame and its gap to the decoder.
    decoder_free_at: Time,
    queued: Bytes,
    queued_highest: Bytes,
    /// Upwards: the one message on the line.
    sending: Option<Sending>,
    /// Downwards: messages in the order in which they were put in.
    leaving: VecDeque<Leaving>,
    left_at: Time,
}

impl SharedLink {
    /// An idle link.
    pub fn new(rate: Rate, policy: Policy) -> SharedLink {
        let block = block_time(rate);
        SharedLink {
            mux: MuxLink::new(block, policy),
            block,
            policy,
            alarm: Alarm::OFF,
            busy: Span::ZERO,
            decoder_free_at: Time::ZERO,
            queued: Bytes::ZERO,
            queued_highest: Bytes::ZERO,
            sending: None,
            leaving: VecDeque::new(),
            left_at: Time::ZERO,
        }
    }

    /// Puts the uplink's next message in; returns when its first block starts.
    pub fn send_up(&mut self, now: Time, blocks: u64, sending: Sending) -> Time {
        let flight = sending.flight.expect("a message has its flight when it starts");
        self.sending = Some(sending);
        self.busy += sending.serialization;
        self.mux.submit_memory(now, blocks, Item::Message(flight));
        // The only memory on this line: frames that come later can move its start no more.
        self.mux.memory_start().expect("a message waits")
    }
    /// Whether the uplink carries a message.
    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }
    /// The uplink has sent its message.
    pub fn take_sending(&mut self) -> Sending {
        self.sending.take().expect("an uplink has sent the message that it carried")
    }
    /// The switch has thrown away the first block of a message that may still be on the uplink.
    pub fn forget(&mut self, flight: u32) {
        if let Some(sending) = self.sending.as_mut().filter(|sending| sending.flight == Some(flight)) {
            sending.flight = None;
        }
    }

    /// Puts a message on the downlink. `earliest` is when its last block could leave if nothing
    /// else were there, if that is known already.
    pub fn send_down(&mut self, now: Time, blocks: u64, serialization: Span, flight: u32, earliest: Option<Time>) {
        self.busy += serialization;
        self.leaving.push_back(Leaving { flight, serialization, earliest, sent: None });
        self.mux.submit_memory(now, blocks, Item::Message(flight));
    }
    /// The downlink's multiplexer has sent a message.
    pub fn sent_down(&mut self, flight: u32, at: Time) {
        self.leaving_mut(flight).expect("a downlink sends what was put in").sent = Some(at);
    }
    /// The last block of a message cannot leave before `at`. Nothing happens if it is not on this
    /// downlink.
    pub fn not_before(&mut self, flight: u32, at: Time) {
        if let Some(leaving) = self.leaving_mut(flight) {
            leaving.earliest = Some(at);
        }
    }
    fn leaving_mut(&mut self, flight: u32) -> Option<&mut Leaving> {
        self.leaving.iter_mut().find(|leaving| leaving.flight == flight)
    }
    /// The next message whose end is known.
    pub fn pop_left(&mut self) -> Option<Left> {
        let Leaving { flight, serialization, earliest, sent } = *self.leaving.front()?;
        let (earliest, sent) = (earliest?, sent?);
        self.leaving.pop_front();
        let at = sent.max(earliest).max(self.left_at + serialization);
        self.left_at = at;
        Some(Left { flight, at, waited: at - earliest })
    }

    /// Puts a grant between the blocks of whatever the downlink carries.
    pub fn send_grant(&mut self, now: Time, flight: u32) {
        self.busy += self.block;
        self.mux.submit_control(now, Item::Grant { flight, submitted: now });
    }

    /// Queues a frame of so many bytes.
    pub fn send_frame(&mut self, now: Time, blocks: FrameBlocks, bytes: Bytes, frame: u32) {
        self.queued += bytes;
        self.queued_highest = self.queued_highest.max(self.queued);
        self.mux.submit_frame(now, blocks, Item::Frame(frame));
    }
    /// A frame has left the queue; returns when its last block has left the receiver's buffer for
    /// the decoder, if the line took no time. With preemption the buffer holds a frame until its
    /// /T/ is in. From that cycle on it releases a block a cycle. Without preemption, blocks of a
    /// frame arrive in consecutive cycles anyway (paper 3.2.3).
    pub fn sent_frame(&mut self, at: Time, blocks: FrameBlocks, bytes: Bytes) -> Time {
        self.queued = self.queued - bytes;
        self.busy += self.block * blocks.frame;
        if self.policy == Policy::None {
            return at;
        }
        let released = at.max(self.decoder_free_at + self.block) + self.block * (blocks.frame - 1);
        self.decoder_free_at = released + self.block * blocks.gap;
        released
    }
    /// Whether the queue takes so many bytes more.
    pub fn has_room(&self, bytes: Bytes, capacity: Bytes) -> bool {
        self.queued + bytes <= capacity
    }
    /// Bytes of frames that wait, those on the line included.
    pub fn queued(&self) -> Bytes {
        self.queued
    }
    /// The most bytes of frames that ever waited, those on the line included, or since
    /// [`restart_queued_highest`](SharedLink::restart_queued_highest).
    pub fn queued_highest(&self) -> Bytes {
        self.queued_highest
    }
    /// Takes the most that waits from now on.
    pub fn restart_queued_highest(&mut self) {
        self.queued_highest = self.queued;
    }

    /// When an event must be scheduled for this link, if it must.
    pub fn arm(&mut self) -> Option<Time> {
        self.alarm.arm(self.mux.next_completion())
    }
    /// Whether an event of this link is the one that it waits for; then it waits for none until it
    /// is armed again.
    pub fn disarm(&mut self, now: Time) -> bool {
        self.alarm.ring(now)
    }
    /// The next thing that it has sent.
    pub fn pop_completed(&mut self, now: Time) -> Option<Completed<Item>> {
        self.mux.pop_completed(now)
    }
    /// How long it has been sending frames, and has been or will be sending memory.
    pub fn busy(&self) -> Span {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edm::pcs::block::{Block, Content};
    use edm::pcs::frame::{append_gap, encode_frame, frame_blocks};
    use edm::pcs::multiplex::Demultiplexer;

    const BLOCK: Span = Span::ps(640);

    fn link(policy: Policy) -> SharedLink {
        SharedLink::new(Rate::gbps(100), policy)
    }

    fn at(blocks: u64) -> Time {
        Time::ZERO + BLOCK * blocks
    }

    /// When the decoder has had the last block of each frame, cycle by cycle.
    fn released_by_the_real_one(frames: &[usize]) -> Vec<Time> {
        let mut blocks = Vec::new();
        for bytes in frames {
            encode_frame(&vec![7; *bytes], &mut blocks).unwrap();
            append_gap(&mut blocks);
        }
        blocks.resize(blocks.len() * 3, Block::IDLE);
        let mut demultiplexer = Demultiplexer::new(Policy::Fair);
        let cycles = blocks.iter().zip(1..).map(|(block, cycle)| (demultiplexer.push(*block).frame, cycle));
        let ends = cycles.filter(|(block, _)| matches!(block.content(), Ok(Content::Terminate(_))));
        ends.map(|(_, cycle)| at(cycle)).collect()
    }

    #[test]
    fn frames_leave_the_receive_buffer_when_they_leave_the_real_one() {
        for frames in [[1_514, 60, 60, 9_000], [60, 1_514, 61, 300], [64, 65, 66, 67]] {
            let mut link = link(Policy::Fair);
            for (tag, bytes) in frames.iter().enumerate() {
                link.send_frame(Time::ZERO, frame_blocks(*bytes), Bytes::new(*bytes as u64), tag as u32);
            }
            let mut released = Vec::new();
            while let Some(time) = link.arm() {
                assert!(link.disarm(time));
                let done = link.pop_completed(time).unwrap();
                let bytes = frames[released.len()];
                released.push(link.sent_frame(done.last_block_end, frame_blocks(bytes), Bytes::new(bytes as u64)));
            }
            assert_eq!(released, released_by_the_real_one(&frames), "{frames:?}");
            assert_eq!(link.queued_highest(), Bytes::new(frames.iter().sum::<usize>() as u64));
        }
    }

    #[test]
    fn without_preemption_no_frame_is_held() {
        let blocks = frame_blocks(1_514);
        let mut link = link(Policy::None);
        link.send_frame(Time::ZERO, blocks, Bytes::new(1_518), 0);
        assert_eq!(link.sent_frame(at(191), blocks, Bytes::new(1_518)), at(191));
    }

    #[test]
    fn a_queue_takes_what_fits_and_not_a_byte_more() {
        let mut link = link(Policy::Fair);
        link.send_frame(Time::ZERO, frame_blocks(60), Bytes::new(64), 0);
        assert!(link.has_room(Bytes::new(64), Bytes::new(128)));
        assert!(!link.has_room(Bytes::new(65), Bytes::new(128)));
    }

    #[test]
    fn a_chunk_leaves_at_the_latest_of_its_three_times() {
        let mut link = link(Policy::Fair);
        let left = |flight, blocks: u64, waited: u64| Some(Left { flight, at: at(blocks), waited: BLOCK * waited });
        for flight in 0..3 {
            link.send_down(Time::ZERO, 10, BLOCK * 10, flight, (flight == 2).then_some(at(10)));
            link.sent_down(flight, at(10 * (u64::from(flight) + 1)));
        }
        // Its uplink is slow: those behind wait with it, for no message may pass another.
        assert_eq!(link.pop_left(), None);
        link.not_before(1, at(12));
        assert_eq!(link.pop_left(), None);
        link.not_before(0, at(19));
        assert_eq!(link.pop_left(), left(0, 19, 0));
        assert_eq!(link.pop_left(), left(1, 29, 17));
        assert_eq!(link.pop_left(), left(2, 39, 29));
        link.send_down(at(100), 10, BLOCK * 10, 3, Some(at(110)));
        link.sent_down(3, at(120));
        assert_eq!(link.pop_left(), left(3, 120, 10));
    }
}
