//! One tenant of a drive: its queue, its deficit and its virtual slots (Gimbal, 4.4).

use super::{GimbalConfig, GimbalIo};
use std::collections::VecDeque;

/// An I/O that waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting(pub(super) GimbalIo);

/// A group of I/Os that is given back as one when all of them are done.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Weight of the I/Os that went in, in bytes of reads; 0 while the slot is free.
    weight: u64,
    started: u32,
    done: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) waiting: VecDeque<Waiting>,
    /// Weight that may be started before the turn passes on.
    pub(super) deficit: u64,
    /// Whether it stands in the order of turns.
    pub(super) has_turn: bool,
    /// I/Os in the slot that completed last; `None` before the first.
    pub(super) last_slot_ios: Option<u32>,
    slots: Vec<Slot>,
    slot_weight: u64,
    /// The slot that takes I/Os.
    current: Option<u8>,
    /// Slots that are not free.
    open: u32,
    outstanding: u32,
}

impl Tenant {
    pub(super) fn new(config: &GimbalConfig) -> Self {
        Tenant {
            waiting: VecDeque::new(),
            deficit: 0,
            has_turn: false,
            last_slot_ios: None,
            slots: vec![Slot::default(); config.slots.clamp(1, 255) as usize],
            slot_weight: config.slot_bytes.count().max(1),
            current: None,
            open: 0,
            outstanding: 0,
        }
    }

    /// Nothing waits and nothing is at the drive.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.outstanding == 0
    }

    pub(super) fn open_slots(&self) -> u32 {
        self.open
    }

    /// Whether an I/O may be started: its slot is open, or another may be opened.
    pub(super) fn has_room(&self, slot_limit: u32) -> bool {
        self.current.is_some() || self.open < slot_limit.min(self.slots.len() as u32)
    }

    /// Counts a started I/O; returns its slot. Call only with room.
    pub(super) fn enter_slot(&mut self, weight: u64) -> u8 {
        let index = self.current.or_else(|| self.slots.iter().position(|slot| slot.weight == 0).map(|free| free as u8));
        let index = index.expect("an I/O is started only where a slot has room");
        let slot = &mut self.slots[usize::from(index)];
        self.open += u32::from(slot.weight == 0);
        slot.weight += weight.max(1);
        slot.started += 1;
        self.outstanding += 1;
        self.current = (slot.weight < self.slot_weight).then_some(index);
        index
    }

    /// Counts an I/O that is over; a full slot whose I/Os are all over is free again.
    pub(super) fn leave_slot(&mut self, index: u8) {
        self.outstanding -= 1;
        let slot = &mut self.slots[usize::from(index)];
        slot.done += 1;
        if self.current != Some(index) && slot.done == slot.started {
            self.last_slot_ios = Some(slot.started);
            *slot = Slot::default();
            self.open -= 1;
        }
    }
}
