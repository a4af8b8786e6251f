//! The target's end.

use crate::queue::{QueueError, QueueShape};
use crate::{Cqe, Status};

/// Commands of one queue that came and were not completed, each with what the target keeps for it.
#[derive(Clone, Debug)]
pub struct TargetQueue<T> {
    shape: QueueShape,
    /// By id. A sorted list and not a tree: as long as a queue is deep it is quicker, and it keeps
    /// its memory.
    commands: Vec<(u16, T)>,
    /// Entries that were taken, around the queue.
    head: u32,
}

impl<T> TargetQueue<T> {
    /// An empty queue.
    pub fn new(shape: QueueShape) -> Self {
        TargetQueue { shape, commands: Vec::new(), head: 0 }
    }

    /// Returns the number of outstanding commands.
    pub fn outstanding(&self) -> u32 {
        self.commands.len() as u32
    }

    /// A command came. Fails when its identifier is in use: answer it by [`Self::refuse`], since
    /// the entry was taken. Fails also when more commands are outstanding than the queue has
    /// entries: then drop the connection. In both cases nothing is kept.
    pub fn receive(&mut self, id: u16, command: T) -> Result<(), QueueError> {
        let (outstanding, most) = (self.outstanding(), self.shape.size());
        if outstanding >= most {
            return Err(QueueError::Full { outstanding, most });
        }
        self.head = self.shape.after(self.head);
        match self.place(id) {
            Ok(_) => Err(QueueError::InUse { id }),
            Err(place) => {
                self.commands.insert(place, (id, command));
                Ok(())
            }
        }
    }

    /// The data of the outstanding command `id`.
    pub fn get_mut(&mut self, id: u16) -> Option<&mut T> {
        let place = self.place(id).ok()?;
        Some(&mut self.commands[place].1)
    }

    /// Outstanding commands by id.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        self.commands.iter().map(|(id, command)| (*id, command))
    }

    /// Ends a command; the completion is to be sent. Fails when it is not outstanding: nothing is
    /// completed twice.
    pub fn complete(&mut self, id: u16, status: Status, result: u64) -> Result<(T, Cqe), QueueError> {
        let command = self.remove(id)?;
        Ok((command, self.refuse(id, status, result)))
    }

    /// Completes a command whose last C2HData reports success, without a completion. Only without
    /// flow control.
    pub fn complete_by_flag(&mut self, id: u16) -> Result<T, QueueError> {
        if self.shape.flow_control {
            return Err(QueueError::FlowControl { id: self.shape.id });
        }
        self.remove(id)
    }

    /// The completion of a command that was taken from the queue and not kept.
    pub fn refuse(&self, id: u16, status: Status, result: u64) -> Cqe {
        let sq_head = if self.shape.flow_control { self.head as u16 } else { 0 };
        // SQID is reserved on fabrics (NVMe over Fabrics 1.1, 2.2).
        Cqe { result, sq_head, sq_id: 0, id, status }
    }

    /// The connection is gone: every outstanding command, once, by id.
    pub fn abandon(&mut self) -> Vec<(u16, T)> {
        std::mem::take(&mut self.commands)
    }

    /// The place of `id`, or where it would be inserted.
    fn place(&self, id: u16) -> Result<usize, usize> {
        self.commands.binary_search_by_key(&id, |(id, _)| *id)
    }

    fn remove(&mut self, id: u16) -> Result<T, QueueError> {
        let place = self.place(id).map_err(|_| QueueError::Unknown { id })?;
        Ok(self.commands.remove(place).1)
    }
}
