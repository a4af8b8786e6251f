//! A tenant of a drive: its queue, its deficit and its virtual slots (Gimbal, 4.4).

use super::{GimbalConfig, GimbalIo};
use prefetch_index::prefetch_index;
use std::collections::VecDeque;
use std::slice;

/// A waiting I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting(pub(super) GimbalIo);

/// A group of I/Os that is released as one when all of them are done.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Weight of the I/Os that entered, in bytes of reads; 0 while the slot is free.
    weight: u64,
    started: u32,
    done: u32,
}

/// Two cache lines that hold nearly all hot state: the slots stored here are used first.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) waiting: VecDeque<Waiting>,
    /// Weight that may be started before the turn passes on.
    pub(super) deficit: u64,
    outstanding: u32,
    /// Number of slots in use.
    open: u32,
    /// I/Os in the slot that completed last; `None` before the first.
    pub(super) last_slot_ios: Option<u32>,
    /// The slot that accepts I/Os.
    current: Option<u8>,
    slot_count: u8,
    /// Whether the tenant is in the round-robin order.
    pub(super) has_turn: bool,
    /// The first slots, even if the tenant may use fewer.
    near: [Slot; NEAR],
    slot_weight: u64,
    /// The other slots, up to the highest one used.
    far: Vec<Slot>,
}

const NEAR: usize = 2;

const _: () = assert!(size_of::<Tenant>() == 128);

impl Tenant {
    pub(super) fn new(config: &GimbalConfig) -> Self {
        let slot_count = config.slots.clamp(1, 255) as u8;
        Tenant {
            waiting: VecDeque::new(),
            deficit: 0,
            has_turn: false,
            last_slot_ios: None,
            near: [Slot::default(); NEAR],
            far: Vec::new(),
            slot_count,
            slot_weight: config.slot_bytes.count().max(1),
            current: None,
            open: 0,
            outstanding: 0,
        }
    }

    /// Prefetches both cache lines of a tenant.
    #[inline]
    pub(super) fn prefetch(tenants: &[Tenant], tenant: u32) {
        let Some(tenant) = tenants.get(tenant as usize) else { return };
        prefetch_index(slice::from_ref(&tenant.waiting), 0);
        prefetch_index(slice::from_ref(&tenant.near), 0);
    }

    /// Returns whether nothing waits and nothing is at the drive.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.outstanding == 0
    }

    pub(super) fn open_slots(&self) -> u32 {
        self.open
    }

    /// Returns whether an I/O may be started: its slot is open, or another may be opened.
    pub(super) fn has_room(&self, slot_limit: u32) -> bool {
        self.current.is_some() || self.open < slot_limit.min(u32::from(self.slot_count))
    }

    fn slot_mut(&mut self, index: u8) -> &mut Slot {
        let index = usize::from(index);
        if index < NEAR {
            return &mut self.near[index];
        }
        if self.far.len() <= index - NEAR {
            self.far.resize(index - NEAR + 1, Slot::default());
        }
        &mut self.far[index - NEAR]
    }

    /// Returns the first free slot.
    fn free_slot(&self) -> Option<u8> {
        let known = self.near.iter().chain(&self.far);
        let free = known.zip(0..).find(|(slot, _)| slot.weight == 0).map(|(_, index)| index);
        let index = free.unwrap_or((NEAR + self.far.len()) as u8);
        (index < self.slot_count).then_some(index)
    }

    /// Counts a started I/O; returns its slot. The tenant must have room.
    pub(super) fn enter_slot(&mut self, weight: u64) -> u8 {
        let index = self.current.or_else(|| self.free_slot()).expect("an I/O is started only where a slot has room");
        let slot = self.slot_mut(index);
        let was_free = slot.weight == 0;
        slot.weight += weight.max(1);
        slot.started += 1;
        let filled = slot.weight;
        self.open += u32::from(was_free);
        self.outstanding += 1;
        self.current = (filled < self.slot_weight).then_some(index);
        index
    }

    /// Counts a completed I/O. Frees a full slot when all of its I/Os have completed.
    pub(super) fn leave_slot(&mut self, index: u8) {
        self.outstanding -= 1;
        let is_full = self.current != Some(index);
        let slot = self.slot_mut(index);
        slot.done += 1;
        if is_full && slot.done == slot.started {
            let ios = std::mem::take(slot).started;
            self.last_slot_ios = Some(ios);
            self.open -= 1;
        }
    }
}
