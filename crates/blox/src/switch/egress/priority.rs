//! The most urgent class first. A full port makes room for the more urgent by losing the last of
//! the least urgent.

use super::{CLASSES, Queued};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(in crate::switch) struct Priority {
    classes: [VecDeque<Queued>; CLASSES as usize],
    /// A bit for each class in which something waits.
    waiting: u8,
}

impl Priority {
    pub fn push(&mut self, queued: Queued) {
        let class = usize::from(queued.class.min(CLASSES - 1));
        self.classes[class].push_back(queued);
        self.waiting |= 1 << class;
    }

    pub fn pop(&mut self) -> Option<Queued> {
        let most_urgent = self.waiting.checked_ilog2()? as usize;
        let queued = self.classes[most_urgent].pop_front();
        self.note(most_urgent);
        queued
    }

    pub fn evict_for(&mut self, newcomer: &Queued) -> Option<Queued> {
        let least_urgent = self.waiting.trailing_zeros() as usize;
        if least_urgent >= usize::from(newcomer.class.min(CLASSES - 1)) {
            return None;
        }
        let queued = self.classes[least_urgent].pop_back();
        self.note(least_urgent);
        queued
    }

    fn note(&mut self, class: usize) {
        if self.classes[class].is_empty() {
            self.waiting &= !(1 << class);
        }
    }
}
