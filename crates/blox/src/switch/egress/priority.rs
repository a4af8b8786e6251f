//! The most urgent class first. A full port makes room for the more urgent by losing the last of the least urgent.

use super::{CLASSES, Queued};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(in crate::switch) struct Priority {
    classes: [VecDeque<Queued>; CLASSES as usize],
}

impl Priority {
    pub fn push(&mut self, queued: Queued) {
        self.classes[usize::from(queued.class.min(CLASSES - 1))].push_back(queued);
    }

    pub fn pop(&mut self) -> Option<Queued> {
        self.classes.iter_mut().rev().find_map(VecDeque::pop_front)
    }

    pub fn evict_for(&mut self, newcomer: &Queued) -> Option<Queued> {
        let below = usize::from(newcomer.class.min(CLASSES - 1));
        self.classes[..below].iter_mut().find_map(VecDeque::pop_back)
    }
}
