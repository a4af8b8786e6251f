//! The multiplexer's timing without its blocks: the time at which each item's last block leaves.
//!
//! [`MuxLink`] decides exactly as [`super::multiplex::Multiplexer`] does, but advances from one
//! item's boundary to the next. A frame of a thousand blocks thus costs the same as one of ten. Its
//! items arrive whole, so no class runs dry inside one and no pass is ever sent. A block that
//! arrives at an idle line starts at once: the model has no phase of idle blocks, whose end a real
//! line would wait for.
//!
//! Submit in the order of time. [`MuxLink::next_completion`] is final only until the next
//! submission (memory may overtake a frame). [`MuxLink::pop_completed`] returns items that have
//! left.

use super::frame::FrameBlocks;
use super::multiplex::{Class, Policy};
use base::{Span, Time};
use std::collections::VecDeque;

/// A waiting or current message, notification, grant or frame.
#[derive(Clone, Copy, Debug)]
struct Item<T> {
    tag: T,
    left: u64,
    /// Of a frame: the gap that must follow it, in blocks.
    gap: u64,
    first_block_start: Option<Time>,
}

/// When an item left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed<T> {
    /// Memory (messages, notifications, grants) or frame.
    pub class: Class,
    /// The tag that was submitted with it.
    pub tag: T,
    /// Time at which its first block started.
    pub first_block_start: Time,
    /// Time at which its last block ended.
    pub last_block_end: Time,
}

/// One direction of a line that memory and frames share. `T` is the caller's name for an item.
#[derive(Clone, Debug)]
pub struct MuxLink<T> {
    block_time: Span,
    policy: Policy,
    /// Notifications and grants, which go between any two blocks.
    controls: VecDeque<Item<T>>,
    messages: VecDeque<Item<T>>,
    frames: VecDeque<Item<T>>,
    completed: VecDeque<Completed<T>>,
    /// Time at which the last block that was decided on ends: the next may start then.
    free_at: Time,
    /// Before this no frame may start.
    gap_until: Time,
    last: Class,
}

impl<T: Copy> MuxLink<T> {
    /// An idle line on which a block takes `block_time`, which must not be zero.
    pub fn new(block_time: Span, policy: Policy) -> MuxLink<T> {
        assert!(block_time > Span::ZERO, "a block must take time");
        MuxLink {
            block_time,
            policy,
            controls: VecDeque::new(),
            messages: VecDeque::new(),
            frames: VecDeque::new(),
            completed: VecDeque::new(),
            free_at: Time::ZERO,
            gap_until: Time::ZERO,
            last: Class::Frame,
        }
    }

    /// A memory message of this many blocks (at least one) waits from `now` on. Blocks that start
    /// at `now` take it into account.
    pub fn submit_memory(&mut self, now: Time, blocks: u64, tag: T) {
        self.advance(now);
        self.messages.push_back(Item { tag, left: blocks.max(1), gap: 0, first_block_start: None });
    }

    /// A notification or grant, one block, waits from `now` on.
    pub fn submit_control(&mut self, now: Time, tag: T) {
        self.advance(now);
        self.controls.push_back(Item { tag, left: 1, gap: 0, first_block_start: None });
    }

    /// A frame ([`super::frame::frame_blocks`]) waits from `now` on. Its completion does not count
    /// the gap behind it.
    pub fn submit_frame(&mut self, now: Time, blocks: FrameBlocks, tag: T) {
        self.advance(now);
        self.frames.push_back(Item { tag, left: blocks.frame.max(1), gap: blocks.gap, first_block_start: None });
    }

    /// Returns the time at which the next item leaves if nothing else is submitted; `None` when
    /// nothing waits.
    pub fn next_completion(&self) -> Option<Time> {
        match self.completed.front() {
            Some(completed) => Some(completed.last_block_end),
            None => self.heads().first_completion(),
        }
    }

    /// Returns the time at which the first block of the memory item at the head of its queue
    /// started, or will start if nothing else is submitted; `None` when no memory waits. While that
    /// item is alone in its class this is final: a frame that comes later finds its turn taken,
    /// unless it comes at the very time of that start.
    pub fn memory_start(&self) -> Option<Time> {
        let item = self.controls.front().or(self.messages.front())?;
        Some(item.first_block_start.unwrap_or_else(|| self.heads().memory_start()))
    }

    /// The next item whose last block has ended by `now`, in the order of those ends.
    pub fn pop_completed(&mut self, now: Time) -> Option<Completed<T>> {
        self.advance(now);
        let has_ended = self.completed.front().is_some_and(|completed| completed.last_block_end <= now);
        if has_ended { self.completed.pop_front() } else { None }
    }

    /// Returns whether nothing waits and nothing that has left is still to be taken.
    pub fn is_empty(&self) -> bool {
        self.controls.is_empty() && self.messages.is_empty() && self.frames.is_empty() && self.completed.is_empty()
    }

    /// Decides on every block that starts before `now`.
    fn advance(&mut self, now: Time) {
        while self.free_at < now {
            let fitting = (now - self.free_at).as_ps().div_ceil(self.block_time.as_ps());
            match self.heads().next_run() {
                Run::Nothing => self.stay_idle(now),
                Run::Gap => self.stay_idle(self.gap_until.min(now)),
                Run::Alone(class, blocks) => self.send_alone(class, blocks.min(fitting)),
                Run::Turns(blocks) => self.send_turns(blocks.min(fitting)),
            }
        }
    }

    fn stay_idle(&mut self, until: Time) {
        self.free_at = until;
        self.last = Class::Frame;
    }

    fn send_alone(&mut self, class: Class, blocks: u64) {
        let start = self.free_at;
        self.free_at += self.block_time * blocks;
        self.last = class;
        self.send(class, blocks, start);
    }

    /// An item that ends, ends with the last of these blocks: [`Run::Turns`] never reaches beyond.
    fn send_turns(&mut self, blocks: u64) {
        let (start, first, second) = (self.free_at, self.last.other(), self.last);
        self.free_at += self.block_time * blocks;
        self.last = if blocks % 2 == 1 { first } else { second };
        self.send(first, blocks.div_ceil(2), start);
        self.send(second, blocks / 2, start + self.block_time);
    }

    /// Takes blocks from the head of a class; if that ends it, its last block ends at `free_at`.
    fn send(&mut self, class: Class, blocks: u64, start: Time) {
        let queue = match class {
            Class::Frame => &mut self.frames,
            Class::Memory if self.controls.is_empty() => &mut self.messages,
            Class::Memory => &mut self.controls,
        };
        let Some(item) = queue.front_mut().filter(|_| blocks > 0) else { return };
        let first_block_start = *item.first_block_start.get_or_insert(start);
        item.left -= blocks;
        if item.left > 0 {
            return;
        }
        if class == Class::Frame {
            self.gap_until = self.free_at + self.block_time * item.gap;
        }
        let (tag, last_block_end) = (item.tag, self.free_at);
        queue.pop_front();
        self.completed.push_back(Completed { class, tag, first_block_start, last_block_end });
    }

    fn heads(&self) -> Heads {
        let begun = |item: Option<&Item<T>>| item.is_some_and(|item| item.first_block_start.is_some());
        let left = |item: Option<&Item<T>>| item.map_or(0, |item| item.left);
        Heads {
            policy: self.policy,
            block_time: self.block_time,
            at: self.free_at,
            gap_until: self.gap_until,
            last: self.last,
            memory_left: left(self.controls.front().or(self.messages.front())),
            message_open: begun(self.messages.front()),
            frame_left: left(self.frames.front()),
            frame_open: begun(self.frames.front()),
        }
    }
}

/// What comes next on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// Nothing waits.
    Nothing,
    /// Only a frame waits, and it must wait for the gap after the one before.
    Gap,
    /// Only this class for this many blocks: to the end of its item, or until the other one may
    /// start.
    Alone(Class, u64),
    /// Both in turn, this many blocks together: until the first of the two items ends.
    Turns(u64),
}

/// The items at the heads of the queues: enough to see what comes next and which of them ends
/// first.
#[derive(Clone, Copy, Debug)]
struct Heads {
    policy: Policy,
    block_time: Span,
    at: Time,
    gap_until: Time,
    last: Class,
    memory_left: u64,
    message_open: bool,
    frame_left: u64,
    frame_open: bool,
}

impl Heads {
    fn next_run(&self) -> Run {
        let whole_items = self.policy == Policy::None;
        let memory_ready = self.memory_left > 0 && !(whole_items && self.frame_open);
        let gap_is_over = self.frame_open || self.at >= self.gap_until;
        let frame_ready = self.frame_left > 0 && gap_is_over && !(whole_items && self.message_open);
        match (memory_ready, frame_ready) {
            (false, false) if self.frame_left > 0 => Run::Gap,
            (false, false) => Run::Nothing,
            (false, true) => Run::Alone(Class::Frame, self.frame_left),
            (true, false) => Run::Alone(Class::Memory, self.memory_before_frame(gap_is_over)),
            (true, true) => self.contention(),
        }
    }

    /// Memory blocks that start before the gap is over, when only the gap keeps a frame back that
    /// could then have a turn.
    fn memory_before_frame(&self, gap_is_over: bool) -> u64 {
        if self.policy != Policy::Fair || self.frame_left == 0 || gap_is_over {
            return self.memory_left;
        }
        self.memory_left.min((self.gap_until - self.at).as_ps().div_ceil(self.block_time.as_ps()))
    }

    fn contention(&self) -> Run {
        match (self.policy, self.last) {
            (Policy::Strict, _) | (Policy::None, Class::Frame) => Run::Alone(Class::Memory, self.memory_left),
            (Policy::None, Class::Memory) => Run::Alone(Class::Frame, self.frame_left),
            (Policy::Fair, Class::Frame) => Run::Turns((2 * self.memory_left - 1).min(2 * self.frame_left)),
            (Policy::Fair, Class::Memory) => Run::Turns((2 * self.frame_left - 1).min(2 * self.memory_left)),
        }
    }

    /// Returns the time at which the next memory block starts if no other item comes. Memory must
    /// wait for something to be sent.
    fn memory_start(&self) -> Time {
        match self.next_run() {
            Run::Turns(_) if self.last == Class::Memory => self.at + self.block_time,
            Run::Alone(Class::Frame, blocks) => self.at + self.block_time * blocks,
            Run::Nothing | Run::Gap | Run::Alone(Class::Memory, _) | Run::Turns(_) => self.at,
        }
    }

    /// Returns the time at which the first of the items at the heads ends if no other comes.
    fn first_completion(mut self) -> Option<Time> {
        loop {
            match self.next_run() {
                Run::Nothing => return None,
                Run::Gap => (self.at, self.last) = (self.gap_until, Class::Frame),
                Run::Turns(blocks) => return Some(self.at + self.block_time * blocks),
                Run::Alone(class, blocks) => {
                    self.at += self.block_time * blocks;
                    self.last = class;
                    if class == Class::Frame || blocks == self.memory_left {
                        return Some(self.at);
                    }
                    self.memory_left -= blocks;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Grant, Message, MessageId};
    use crate::pcs::block::{Block, Content};
    use crate::pcs::frame::{encode_frame, frame_blocks};
    use crate::pcs::memory::{encode_grant, encode_message, response_blocks};
    use crate::pcs::multiplex::{Multiplexer, OfferError};
    use base::NodeId;
    use proptest::prelude::*;

    const BLOCK: Span = Span::ps(2_560);
    const POLICIES: [Policy; 3] = [Policy::Fair, Policy::Strict, Policy::None];

    fn at(blocks: u64) -> Time {
        Time::ZERO + BLOCK * blocks
    }

    fn drained(link: &mut MuxLink<usize>) -> Vec<Completed<usize>> {
        let mut completed = Vec::new();
        while let Some(time) = link.next_completion() {
            completed.push(link.pop_completed(time).expect("the announced completion"));
        }
        completed
    }

    #[test]
    fn alone_on_an_idle_line_an_item_starts_at_once_and_takes_its_blocks() {
        for policy in POLICIES {
            let mut link = MuxLink::new(BLOCK, policy);
            let odd = Time::ps(1_001);
            link.submit_memory(odd, 9, 5);
            assert_eq!(link.next_completion(), Some(odd + BLOCK * 9));
            assert_eq!(link.pop_completed(odd + BLOCK * 9 - Span::ps(1)), None);
            let expected =
                Completed { class: Class::Memory, tag: 5, first_block_start: odd, last_block_end: odd + BLOCK * 9 };
            assert_eq!(link.pop_completed(odd + BLOCK * 9), Some(expected));
            assert!(link.is_empty());
            assert_eq!(link.next_completion(), None);
        }
    }

    #[test]
    fn a_message_that_meets_a_long_frame_waits_as_the_policy_says() {
        // 1,500 bytes of payload are 191 blocks. The message of 9 blocks comes during the frame's
        // first block.
        assert_eq!(frame_blocks(1_514).frame, 191);
        let ends = [(Policy::Fair, 18, 200), (Policy::Strict, 10, 200), (Policy::None, 200, 191)];
        for (policy, message_end, frame_end) in ends {
            let mut link = MuxLink::new(BLOCK, policy);
            link.submit_frame(at(0), frame_blocks(1_514), 0);
            link.submit_memory(at(0) + Span::ps(1), 9, 1);
            let ends: Vec<_> = drained(&mut link).iter().map(|done| (done.tag, done.last_block_end)).collect();
            let mut expected = vec![(1, at(message_end)), (0, at(frame_end))];
            expected.sort_by_key(|(_, end)| *end);
            assert_eq!(ends, expected, "{policy:?}");
        }
    }

    #[test]
    fn the_start_of_a_message_is_known_when_it_is_submitted() {
        for policy in POLICIES {
            for (later, filler) in (0..30).flat_map(|later| [(later, false), (later, true)]) {
                let mut link = MuxLink::new(BLOCK, policy);
                assert_eq!(link.memory_start(), None);
                link.submit_frame(at(0), FrameBlocks { frame: 10, gap: 1 }, 0);
                link.submit_frame(at(0), FrameBlocks { frame: 10, gap: 1 }, 0);
                // A message that ends when the next comes leaves the turn to the frames.
                let now = if filler {
                    link.submit_memory(at(later), 3, 0);
                    drained_up_to_memory(&mut link)
                } else {
                    at(later) + Span::ps(1)
                };
                link.submit_memory(now, 4, 1);
                let announced = link.memory_start();
                link.submit_frame(now + Span::ps(1), FrameBlocks { frame: 10, gap: 1 }, 0);
                let message = drained(&mut link).into_iter().find(|done| done.tag == 1).unwrap();
                assert_eq!(announced, Some(message.first_block_start), "{policy:?}, {later} blocks later, {filler}");
            }
        }
    }

    fn drained_up_to_memory(link: &mut MuxLink<usize>) -> Time {
        loop {
            let time = link.next_completion().expect("a message waits");
            if link.pop_completed(time).expect("the announced completion").class == Class::Memory {
                return time;
            }
        }
    }

    #[test]
    fn the_gap_holds_frames_apart_and_memory_may_have_it() {
        let mut link = MuxLink::new(BLOCK, Policy::Fair);
        link.submit_frame(at(0), FrameBlocks { frame: 10, gap: 1 }, 0);
        link.submit_frame(at(0), FrameBlocks { frame: 10, gap: 1 }, 1);
        assert_eq!(link.next_completion(), Some(at(10)));
        let mut with_memory = link.clone();
        let apart: Vec<_> = drained(&mut link).iter().map(|done| (done.tag, done.last_block_end)).collect();
        assert_eq!(apart, [(0, at(10)), (1, at(21))]);
        with_memory.submit_memory(at(10), 1, 2);
        let filled: Vec<_> = drained(&mut with_memory).iter().map(|done| (done.tag, done.last_block_end)).collect();
        assert_eq!(filled, [(0, at(10)), (2, at(11)), (1, at(21))]);
    }

    #[test]
    fn off_the_grid_a_frame_waits_for_the_memory_block_that_its_gap_ends_in() {
        let mut link = MuxLink::new(BLOCK, Policy::Fair);
        let half = Span::ps(BLOCK.as_ps() / 2);
        link.submit_frame(at(0), FrameBlocks { frame: 10, gap: 2 }, 0);
        link.submit_frame(at(0), FrameBlocks { frame: 10, gap: 2 }, 1);
        link.submit_memory(at(11) + half, 3, 2);
        let starts: Vec<_> = drained(&mut link).iter().map(|done| (done.tag, done.first_block_start)).collect();
        assert_eq!(starts, [(0, at(0)), (2, at(11) + half), (1, at(12) + half)]);
    }

    /// Arrivals at the line.
    #[derive(Clone, Copy, Debug)]
    enum Kind {
        Message { bytes: u32 },
        Grant,
        Frame { bytes: usize },
    }

    /// What comes, and how many cycles after the one before.
    fn arrivals() -> impl Strategy<Value = Vec<(u64, Kind)>> {
        let kind = prop_oneof![
            (0u32..200).prop_map(|bytes| Kind::Message { bytes }),
            Just(Kind::Grant),
            (60usize..200).prop_map(|bytes| Kind::Frame { bytes }),
        ];
        proptest::collection::vec((prop_oneof![Just(0u64), 0u64..40], kind), 1..24)
    }

    fn by_model(policy: Policy, arrivals: &[(u64, Kind)]) -> Vec<Completed<usize>> {
        let mut link = MuxLink::new(BLOCK, policy);
        let mut cycle = 0;
        for (tag, (later, kind)) in arrivals.iter().enumerate() {
            cycle += later;
            match *kind {
                Kind::Message { bytes } => link.submit_memory(at(cycle), response_blocks(bytes), tag),
                Kind::Grant => link.submit_control(at(cycle), tag),
                Kind::Frame { bytes } => link.submit_frame(at(cycle), frame_blocks(bytes), tag),
            }
        }
        drained(&mut link)
    }

    /// The real multiplexer, with frame blocks held by back pressure, and the items that wait.
    struct Stepped {
        multiplexer: Multiplexer,
        held_back: VecDeque<Block>,
        /// Tags of controls, messages and frames that have not ended.
        waiting: [VecDeque<usize>; 3],
        started: [Option<Time>; 3],
        completed: Vec<Completed<usize>>,
    }

    const MESSAGE_DATA: u8 = 0x11;
    const FRAME_DATA: u8 = 0x22;

    impl Stepped {
        fn submit(&mut self, kind: Kind, tag: usize) {
            let id = MessageId(0);
            let mut blocks = Vec::new();
            match kind {
                Kind::Message { bytes } => {
                    let body = Body::ReadResponse { bytes, last: true };
                    let message = Message { source: NodeId(0), target: NodeId(1), id, body };
                    encode_message(&message, &vec![MESSAGE_DATA; bytes as usize], &mut blocks).unwrap();
                    blocks.iter().for_each(|block| self.multiplexer.offer_memory(*block).unwrap());
                    self.waiting[1].push_back(tag);
                }
                Kind::Grant => {
                    let grant = Grant { target: NodeId(1), id, bytes: 64 };
                    self.multiplexer.offer_memory(encode_grant(&grant).unwrap()).unwrap();
                    self.waiting[0].push_back(tag);
                }
                Kind::Frame { bytes } => {
                    encode_frame(&vec![FRAME_DATA; bytes], &mut blocks).unwrap();
                    self.held_back.extend(blocks);
                    self.waiting[2].push_back(tag);
                }
            }
        }

        fn step(&mut self, cycle: u64) {
            while let Some(block) = self.held_back.front() {
                match self.multiplexer.offer_frame(*block) {
                    Ok(()) => self.held_back.pop_front(),
                    Err(OfferError::Full(_)) => break,
                    Err(other) => panic!("{other}"),
                };
            }
            let (lane, ends) = match self.multiplexer.next_block().content().unwrap() {
                Content::Idle => return,
                Content::Grant(_) => (0, true),
                Content::MemoryStart(_) => (1, false),
                Content::MemoryEnd(_) | Content::MemorySingle(_) => (1, true),
                Content::Data(bytes) => (if bytes == [MESSAGE_DATA; 8] { 1 } else { 2 }, false),
                Content::Terminate(_) => (2, true),
                _ => (2, false),
            };
            let first_block_start = *self.started[lane].get_or_insert(at(cycle));
            if ends {
                self.started[lane] = None;
                let tag = self.waiting[lane].pop_front().unwrap();
                let class = if lane == 2 { Class::Frame } else { Class::Memory };
                self.completed.push(Completed { class, tag, first_block_start, last_block_end: at(cycle + 1) });
            }
        }
    }

    fn by_stepping(policy: Policy, arrivals: &[(u64, Kind)]) -> Vec<Completed<usize>> {
        let mut stepped = Stepped {
            multiplexer: Multiplexer::new(policy),
            held_back: VecDeque::new(),
            waiting: Default::default(),
            started: [None; 3],
            completed: Vec::new(),
        };
        let (mut cycle, mut due) = (0, 0);
        for (tag, (later, kind)) in arrivals.iter().enumerate() {
            due += later;
            (cycle..due).for_each(|cycle| stepped.step(cycle));
            cycle = due;
            stepped.submit(*kind, tag);
        }
        while stepped.completed.len() < arrivals.len() {
            stepped.step(cycle);
            cycle += 1;
        }
        stepped.completed
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_model_is_the_multiplexer_block_for_block(arrivals in arrivals()) {
            for policy in POLICIES {
                prop_assert_eq!(by_model(policy, &arrivals), by_stepping(policy, &arrivals), "{:?}", policy);
            }
        }

        #[test]
        fn asking_and_taking_in_between_changes_nothing(arrivals in arrivals()) {
            for policy in POLICIES {
                let mut link = MuxLink::new(BLOCK, policy);
                let (mut cycle, mut taken) = (0, Vec::new());
                for (tag, (later, kind)) in arrivals.iter().enumerate() {
                    let submit_at = cycle + later;
                    for asked in cycle..submit_at {
                        let announced = link.next_completion().filter(|time| *time <= at(asked));
                        let popped = link.pop_completed(at(asked));
                        prop_assert_eq!(announced, popped.map(|done| done.last_block_end));
                        taken.extend(popped);
                    }
                    cycle = submit_at;
                    match *kind {
                        Kind::Message { bytes } => link.submit_memory(at(cycle), response_blocks(bytes), tag),
                        Kind::Grant => link.submit_control(at(cycle), tag),
                        Kind::Frame { bytes } => link.submit_frame(at(cycle), frame_blocks(bytes), tag),
                    }
                }
                taken.extend(drained(&mut link));
                prop_assert_eq!(taken, by_model(policy, &arrivals));
            }
        }

        #[test]
        fn off_the_grid_too_the_line_sends_one_block_at_a_time(
            arrivals in proptest::collection::vec((0u64..20_000, any::<bool>(), 1u64..30), 1..30),
        ) {
            for policy in POLICIES {
                let mut link = MuxLink::new(BLOCK, policy);
                let (mut now, mut blocks, mut gaps) = (Time::ZERO, 0, 0);
                for (tag, (later, memory, size)) in arrivals.iter().enumerate() {
                    now += Span::ps(*later);
                    blocks += size;
                    if *memory {
                        link.submit_memory(now, *size, tag);
                    } else {
                        link.submit_frame(now, FrameBlocks { frame: *size, gap: 2 }, tag);
                        gaps += 2;
                    }
                }
                let completed = drained(&mut link);
                let end = completed.last().unwrap().last_block_end;
                prop_assert_eq!(completed.len(), arrivals.len());
                prop_assert!(completed.is_sorted_by_key(|done| done.last_block_end));
                prop_assert!(end >= at(blocks), "the line sent {} blocks by {:?}", blocks, end);
                prop_assert!(end <= now + BLOCK * (blocks + gaps + 1), "the line was idle while something waited");
                let frames: Vec<_> = completed.iter().filter(|done| done.class == Class::Frame).collect();
                let apart = |pair: &[&Completed<usize>]| {
                    pair[0].last_block_end + BLOCK * 2 <= pair[1].first_block_start
                };
                prop_assert!(frames.windows(2).all(apart), "two frames without their gap");
            }
        }
    }
}
