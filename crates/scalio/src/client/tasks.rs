//! Open operations, each waiting for one answer or for a time.

use super::Outcome;
use super::get::Get;
use super::names::Names;
use super::paper::{PaperGet, PaperInvalidation};
use super::update::Update;
use crate::RequestId;
use base::Time;
use slab::Slab;
use std::collections::BTreeSet;

/// What a task does.
#[derive(Clone)]
pub(super) enum Work<V> {
    /// A GET of our protocol.
    Get(Get),
    /// A listing of a block.
    Names(Names),
    /// A GET of the paper's.
    PaperGet(PaperGet),
    /// Something that the server does.
    Update(Update<V>),
    /// What the paper's client does after it.
    Invalidate(PaperInvalidation),
}

/// One operation.
#[derive(Clone)]
pub(super) struct Task<V> {
    /// The application's name.
    pub ticket: u64,
    /// The work.
    pub work: Work<V>,
    awaited: Option<RequestId>,
    wake: Option<Time>,
    /// How it will have ended, where that is known already.
    promised: Option<Outcome<V>>,
}

/// All of them.
#[derive(Clone)]
pub(super) struct Tasks<V> {
    tasks: Slab<Task<V>>,
    wakes: BTreeSet<(Time, usize)>,
    serial: u32,
}

impl<V> Default for Tasks<V> {
    fn default() -> Tasks<V> {
        Tasks { tasks: Slab::new(), wakes: BTreeSet::new(), serial: 0 }
    }
}

impl<V> Tasks<V> {
    pub fn len(&self) -> usize {
        self.tasks.len()
    }
    pub fn add(&mut self, ticket: u64, work: Work<V>) -> usize {
        self.tasks.insert(Task { ticket, work, awaited: None, wake: None, promised: None })
    }
    pub fn get(&self, index: usize) -> &Task<V> {
        &self.tasks[index]
    }
    /// The task continues with `work`, unless it has ended.
    pub fn resume(&mut self, index: usize, work: Work<V>) {
        if let Some(task) = self.tasks.get_mut(index) {
            task.work = work;
        }
    }
    /// Ends the task; later answers to it are ignored.
    pub fn end(&mut self, index: usize) -> Task<V> {
        self.sleep_until(index, None);
        self.tasks.remove(index)
    }
    pub fn promise(&mut self, index: usize, outcome: Outcome<V>) {
        self.tasks[index].promised = Some(outcome);
    }
    pub fn promised(&mut self, index: usize) -> Option<Outcome<V>> {
        self.tasks[index].promised.take()
    }
    /// The name of the request that the task waits for next.
    pub fn await_answer(&mut self, index: usize) -> RequestId {
        self.serial = self.serial.wrapping_add(1);
        let request = RequestId(u64::from(self.serial) << 32 | index as u64);
        self.tasks[index].awaited = Some(request);
        request
    }
    /// The task that waits for this answer; each is given once.
    pub fn answered(&mut self, request: RequestId) -> Option<usize> {
        let index = (request.0 & 0xffff_ffff) as usize;
        let task = self.tasks.get_mut(index).filter(|task| task.awaited == Some(request))?;
        task.awaited = None;
        Some(index)
    }
    /// The task waits for this moment, too; `None`: for none any more.
    pub fn sleep_until(&mut self, index: usize, wake: Option<Time>) {
        let task = &mut self.tasks[index];
        if let Some(before) = std::mem::replace(&mut task.wake, wake) {
            self.wakes.remove(&(before, index));
        }
        if let Some(wake) = wake {
            self.wakes.insert((wake, index));
        }
    }
    pub fn next_wake(&self) -> Option<Time> {
        self.wakes.first().map(|(wake, _)| *wake)
    }
    /// A task whose moment has come.
    pub fn due(&mut self, now: Time) -> Option<usize> {
        let (wake, index) = *self.wakes.first()?;
        if wake > now {
            return None;
        }
        self.wakes.remove(&(wake, index));
        self.tasks[index].wake = None;
        Some(index)
    }
}
