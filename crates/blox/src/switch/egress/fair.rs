//! Deficit round robin (Shreedhar and Varghese, SIGCOMM'95). A full port loses the last packet of
//! the longest flow (McKenney, 1990): with a plain limit the flow that floods would fill the
//! buffer, and fair turns would be turns of nobody else.

use super::Queued;
use base::Bytes;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(in crate::switch) struct Fair {
    flows: Vec<Flow>,
    /// Flows with packets, the one whose turn it is first.
    turns: VecDeque<u32>,
    /// Whether the first has had its quantum in this turn.
    served: bool,
    quantum: u64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: VecDeque<Queued>,
    bytes: u64,
    deficit: u64,
}

impl Fair {
    pub fn new(quantum: Bytes, flows: u32) -> Fair {
        let flows = vec![Flow::default(); flows as usize];
        Fair { flows, turns: VecDeque::new(), served: false, quantum: quantum.count() }
    }

    pub fn push(&mut self, queued: Queued) {
        let flow = &mut self.flows[queued.flow as usize];
        if flow.packets.is_empty() {
            self.turns.push_back(queued.flow);
        }
        flow.bytes += u64::from(queued.bytes);
        flow.packets.push_back(queued);
    }

    pub fn pop(&mut self) -> Option<Queued> {
        loop {
            let index = *self.turns.front()?;
            let flow = &mut self.flows[index as usize];
            if !self.served {
                flow.deficit += self.quantum;
                self.served = true;
            }
            let needed = flow.packets.front().map(|queued| u64::from(queued.bytes));
            if needed.is_some_and(|needed| needed <= flow.deficit) {
                return self.take(index);
            }
            self.end_turn();
        }
    }

    fn take(&mut self, index: u32) -> Option<Queued> {
        let flow = &mut self.flows[index as usize];
        let queued = flow.packets.pop_front()?;
        flow.deficit -= u64::from(queued.bytes);
        flow.bytes -= u64::from(queued.bytes);
        if flow.packets.is_empty() {
            self.end_turn();
        }
        Some(queued)
    }

    /// A flow without packets leaves the round and saves nothing.
    fn end_turn(&mut self) {
        self.served = false;
        let Some(index) = self.turns.pop_front() else { return };
        let flow = &mut self.flows[index as usize];
        if flow.packets.is_empty() {
            flow.deficit = 0;
        } else {
            self.turns.push_back(index);
        }
    }

    pub fn evict_for(&mut self, newcomer: &Queued) -> Option<Queued> {
        let longest = self.turns.iter().copied().max_by_key(|index| self.flows[*index as usize].bytes)?;
        let own = self.flows[newcomer.flow as usize].bytes + u64::from(newcomer.bytes);
        let flow = &mut self.flows[longest as usize];
        if longest == newcomer.flow || flow.bytes <= own {
            return None;
        }
        let evicted = flow.packets.pop_back()?;
        flow.bytes -= u64::from(evicted.bytes);
        if flow.packets.is_empty() {
            self.forget(longest);
        }
        Some(evicted)
    }

    fn forget(&mut self, index: u32) {
        self.flows[index as usize].deficit = 0;
        self.served &= self.turns.front() != Some(&index);
        self.turns.retain(|turn| *turn != index);
    }
}
