//! Requests that backends have yet to take.

use crate::target::io::{IoRequest, IoTag};
use std::collections::VecDeque;

/// Requests of a backend in memory that gather before it has to answer: so few that they, their
/// commands and their answers stay in the processor's first cache.
const PROMPT_MAX: usize = 8;

/// The requests, in the order in which they are to be carried out.
#[derive(Debug, Default)]
pub(super) struct Requests {
    queue: VecDeque<IoRequest>,
    /// Requests that a backend in memory answers before more input is taken.
    prompt: usize,
}

impl Requests {
    /// Adds one behind the others.
    pub(super) fn push(&mut self, request: IoRequest) {
        self.prompt += usize::from(request.operation.is_prompt());
        self.queue.push_back(request);
    }

    /// Adds one that precedes all others.
    pub(super) fn push_first(&mut self, request: IoRequest) {
        self.prompt += usize::from(request.operation.is_prompt());
        self.queue.push_front(request);
    }

    pub(super) fn first(&self) -> Option<&IoRequest> {
        self.queue.front()
    }

    pub(super) fn take(&mut self) -> Option<IoRequest> {
        let request = self.queue.pop_front()?;
        self.prompt -= usize::from(request.operation.is_prompt());
        Some(request)
    }

    /// Those for one command.
    pub(super) fn of(&self, tag: IoTag) -> impl Iterator<Item = &IoRequest> {
        self.queue.iter().filter(move |request| request.tag == tag)
    }

    /// Takes back those for one command, of which none holds input.
    pub(super) fn withdraw(&mut self, tag: IoTag) {
        self.queue.retain(|request| request.tag != tag);
    }

    /// Whether requests may refer to bytes of the last input: they are taken before other input.
    pub(super) fn hold_input(&self) -> bool {
        self.prompt > 0
    }

    /// Whether a backend in memory has enough to do.
    pub(super) fn suffice(&self) -> bool {
        self.prompt >= PROMPT_MAX
    }
}
