//! The host's end.

use crate::Cqe;
use crate::queue::{QueueError, QueueShape};

/// Commands of one queue that the host has sent and not seen completed, each with what the host keeps for it.
#[derive(Clone, Debug)]
pub struct HostQueue<T> {
    shape: QueueShape,
    slots: Vec<Slot<T>>,
    free: Vec<u16>,
    /// Low bits of an id that are its slot; the others change with every use of the slot.
    slot_bits: u32,
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    id: u16,
    command: Option<T>,
}

impl<T> HostQueue<T> {
    /// An empty queue. Takes memory for all of its slots.
    pub fn new(shape: QueueShape) -> Self {
        // One entry stays free, or full would look like empty (3.3.1.5); without flow control the bound is the same (NVMe over Fabrics).
        let count = shape.size() - 1;
        let slots = (0..count).map(|slot| Slot { id: slot as u16, command: None }).collect();
        let slot_bits = (count - 1).checked_ilog2().map_or(0, |bits| bits + 1);
        HostQueue { shape, slots, free: (0..count as u16).rev().collect(), slot_bits, head: 0, tail: 0 }
    }

    /// How many commands are outstanding.
    pub fn outstanding(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Whether a command may be sent now.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() && (!self.shape.flow_control || self.shape.after(self.tail) != self.head)
    }

    /// How many commands may be sent now.
    pub fn room(&self) -> u32 {
        let free = self.free.len() as u32;
        if !self.shape.flow_control {
            return free;
        }
        // One entry stays free, or full would look like empty.
        free.min(self.shape.size() - 1 - self.shape.distance(self.head, self.tail))
    }

    /// What is kept for outstanding commands, in no order that means anything but always the same.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.command.as_ref())
    }

    /// Takes a command and returns the id to send it with; fails while the queue is full, and gives the command back.
    pub fn submit(&mut self, command: T) -> Result<u16, (T, QueueError)> {
        let full = QueueError::Full { outstanding: self.outstanding(), most: self.shape.size() - 1 };
        if !self.has_room() {
            return Err((command, full));
        }
        let Some(index) = self.free.pop() else { return Err((command, full)) };
        let slot = &mut self.slots[usize::from(index)];
        slot.command = Some(command);
        self.tail = self.shape.after(self.tail);
        Ok(slot.id)
    }

    /// What is kept for the outstanding command `id`, to look at.
    pub fn get(&self, id: u16) -> Result<&T, QueueError> {
        let index = self.index(id)?;
        self.slots[index].command.as_ref().ok_or(QueueError::Unknown { id })
    }

    /// What is kept for the outstanding command `id`.
    pub fn get_mut(&mut self, id: u16) -> Result<&mut T, QueueError> {
        let index = self.index(id)?;
        self.slots[index].command.as_mut().ok_or(QueueError::Unknown { id })
    }

    /// A completion came: its command is over. Fails, and changes nothing, when it is of another queue, of a command that is not outstanding, or
    /// has a head that cannot be. Such a controller is not to be trusted: drop the connection.
    pub fn complete(&mut self, completion: &Cqe) -> Result<T, QueueError> {
        if completion.sq_id != self.shape.id {
            return Err(QueueError::Queue { got: completion.sq_id, expected: self.shape.id });
        }
        self.get_mut(completion.id)?;
        if self.shape.flow_control {
            self.advance(completion.sq_head)?;
        }
        self.release(completion.id)
    }

    /// C2HData said success: its command is over. Only without flow control.
    pub fn complete_by_flag(&mut self, id: u16) -> Result<T, QueueError> {
        if self.shape.flow_control { Err(QueueError::FlowControl { id: self.shape.id }) } else { self.release(id) }
    }

    /// The connection is gone: every outstanding command, once, in no order that means anything but always the same.
    pub fn abandon(&mut self) -> Vec<(u16, T)> {
        let ids: Vec<u16> = self.slots.iter().filter(|slot| slot.command.is_some()).map(|slot| slot.id).collect();
        (self.head, self.tail) = (0, 0);
        ids.into_iter().filter_map(|id| self.release(id).ok().map(|command| (id, command))).collect()
    }

    /// The controller has taken entries up to `head`.
    fn advance(&mut self, head: u16) -> Result<(), QueueError> {
        let wrong = QueueError::Head { got: head, head: self.head, tail: self.tail, size: self.shape.size() };
        let to = u32::from(head);
        let sent = self.shape.distance(self.head, self.tail);
        if to >= self.shape.size() || self.shape.distance(self.head, to) > sent {
            return Err(wrong);
        }
        self.head = to;
        Ok(())
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
        self.free.push(index as u16);
        Ok(command)
    }
}
