//! The host's end.

use crate::Cqe;
use crate::queue::{QueueError, QueueShape};
use smallvec::SmallVec;

/// Commands of one queue that the host has sent and not seen completed, each with what the host
/// keeps for it.
#[derive(Clone, Debug)]
pub struct HostQueue<T> {
    shape: QueueShape,
    /// Those that were ever used: of most queues a few are.
    slots: SmallVec<[Slot<T>; SLOTS_NEAR]>,
    /// The slot that was freed last, [`NONE`] without one, and how many are free again. Free slots
    /// form a list, so that a command touches its slot and no other memory.
    free: u32,
    free_count: u32,
    /// Low bits of an id that are its slot; the others change with every use of the slot.
    slot_bits: u32,
    /// Commands that were sent, and those of them that the controller is known to have taken, since
    /// the connection.
    sent: u64,
    taken: u64,
    /// A head that could not be came: it was passed over.
    had_odd_head: bool,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    id: u16,
    /// Commands that were sent before it; of a free slot the one that was freed before it, or
    /// [`NONE`].
    place: u64,
    command: Option<T>,
}

/// No slot: a queue has fewer.
const NONE: u32 = u32::MAX;
/// Slots that lie in the queue itself: most queues of a large network use no more.
const SLOTS_NEAR: usize = 4;

impl<T> HostQueue<T> {
    /// An empty queue. Takes memory for a slot when that is first used.
    pub fn new(shape: QueueShape) -> Self {
        // One entry stays free, or full would look like empty (3.3.1.5); without flow control the
        // bound is the same (NVMe over Fabrics).
        let slot_bits = (shape.size() - 2).checked_ilog2().map_or(0, |bits| bits + 1);
        HostQueue {
            shape,
            slots: SmallVec::new(),
            free: NONE,
            free_count: 0,
            slot_bits,
            sent: 0,
            taken: 0,
            had_odd_head: false,
        }
    }

    /// Returns the number of outstanding commands.
    pub fn outstanding(&self) -> u32 {
        self.slots.len() as u32 - self.free_count
    }

    /// Whether a command may be sent now.
    pub fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Returns the number of commands that may be sent now.
    pub fn room(&self) -> u32 {
        let free = self.shape.size() - 1 - self.outstanding();
        if !self.shape.flow_control {
            return free;
        }
        // One entry stays free, or full would look like empty.
        free.min(self.shape.size() - 1 - self.waiting())
    }

    /// What is kept for outstanding commands, in no order that means anything but always the same.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.command.as_ref())
    }

    /// Takes a command and returns the id to send it with; fails while the queue is full, and gives
    /// the command back.
    pub fn submit(&mut self, command: T) -> Result<u16, (T, QueueError)> {
        let full = QueueError::Full { outstanding: self.outstanding(), most: self.shape.size() - 1 };
        if !self.has_room() {
            return Err((command, full));
        }
        if self.free == NONE {
            self.add_slot();
        }
        let slot = &mut self.slots[self.free as usize];
        (self.free, self.free_count) = (slot.place as u32, self.free_count - 1);
        (slot.command, slot.place) = (Some(command), self.sent);
        self.sent += 1;
        Ok(slot.id)
    }

    /// Frees a slot that was never used; there is one while there is room and none is free again.
    fn add_slot(&mut self) {
        let index = self.slots.len() as u32;
        self.slots.push(Slot { id: index as u16, place: u64::from(NONE), command: None });
        (self.free, self.free_count) = (index, 1);
    }

    /// The data of the outstanding command `id`, read-only.
    pub fn get(&self, id: u16) -> Result<&T, QueueError> {
        let index = self.index(id)?;
        self.slots[index].command.as_ref().ok_or(QueueError::Unknown { id })
    }

    /// The data of the outstanding command `id`.
    pub fn get_mut(&mut self, id: u16) -> Result<&mut T, QueueError> {
        let index = self.index(id)?;
        self.slots[index].command.as_mut().ok_or(QueueError::Unknown { id })
    }

    /// A completion came: its command is over. Fails, and changes nothing, when the command is not
    /// outstanding: such a controller is not to be trusted, drop the connection.
    ///
    /// SQID is reserved on fabrics and not read (NVMe over Fabrics 1.1, 2.2). A head that cannot be
    /// is passed over: what has completed was taken, and that is all that the host needs to know.
    pub fn complete(&mut self, completion: &Cqe) -> Result<T, QueueError> {
        self.get(completion.id)?;
        if self.shape.flow_control {
            self.advance(completion.sq_head);
        }
        self.release(completion.id)
    }

    /// C2HData reported success: its command is completed.
    pub fn complete_by_flag(&mut self, id: u16) -> Result<T, QueueError> {
        self.release(id)
    }

    /// Whether a completion has brought a head that cannot be.
    pub fn had_odd_head(&self) -> bool {
        self.had_odd_head
    }

    /// The connection is gone: every outstanding command, once, in no order that means anything but
    /// always the same.
    pub fn abandon(&mut self) -> Vec<(u16, T)> {
        let ids: Vec<u16> = self.slots.iter().filter(|slot| slot.command.is_some()).map(|slot| slot.id).collect();
        let all = ids.into_iter().filter_map(|id| self.release(id).ok().map(|command| (id, command))).collect();
        (self.sent, self.taken) = (0, 0);
        all
    }

    /// Commands of which the controller is not known to have taken them: fewer than the queue has
    /// entries.
    fn waiting(&self) -> u32 {
        (self.sent - self.taken) as u32
    }

    /// The controller has taken entries up to `head`.
    fn advance(&mut self, head: u16) {
        let size = self.shape.size();
        let taken = self.shape.distance((self.taken % u64::from(size)) as u32, u32::from(head) % size);
        if u32::from(head) < size && taken <= self.waiting() {
            self.taken += u64::from(taken);
        } else {
            self.had_odd_head = true;
        }
    }

    fn index(&self, id: u16) -> Result<usize, QueueError> {
        let index = usize::from(id) & ((1 << self.slot_bits) - 1);
        self.slots.get(index).filter(|slot| slot.id == id).map(|_| index).ok_or(QueueError::Unknown { id })
    }

    fn release(&mut self, id: u16) -> Result<T, QueueError> {
        let index = self.index(id)?;
        let slot = &mut self.slots[index];
        let command = slot.command.take().ok_or(QueueError::Unknown { id })?;
        slot.id = slot.id.wrapping_add((1u32 << self.slot_bits) as u16);
        self.taken = self.taken.max(slot.place + 1);
        slot.place = u64::from(self.free);
        (self.free, self.free_count) = (index as u32, self.free_count + 1);
        Ok(command)
    }
}
