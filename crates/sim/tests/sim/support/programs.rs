//! Programs on EDM's memory: requests with addresses and words, their answers, and what came of
//! them.
#![allow(dead_code)]

use base::{Bytes, NodeId, Operation, Request, RequestId, Span, Time};
use edm::Access;
use record::metric::Meter;
use record::{Row, RunIdentity};
use sim::drive::{Context, Rig, Ticket, Unobserved, drive};
use sim::rigs::edm::{EdmEvent, EdmRig};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use workload::{Arrival, Source};

/// What a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Whose memory.
    pub target: NodeId,
    /// The access.
    pub access: Access,
}

/// A sequential program: one request after the other.
pub trait Program {
    /// What it does next, `answer` being that of its last request; `None` ends it.
    fn next(&mut self, now: Time, answer: Option<u64>) -> Option<Ask>;
}

/// A request and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The node that asked.
    pub node: NodeId,
    /// What it asked for.
    pub ask: Ask,
    /// Time of submission.
    pub asked: Time,
    /// When it had its answer, or its write had taken effect.
    pub ended: Time,
    /// The word of a read or read-modify-write; `None` for a write, and for NULL.
    pub answer: Option<u64>,
}

/// A request that is asked for at a fixed time.
pub type Timed = (Time, u32, Ask);

#[derive(Default)]
struct Shared {
    asks: Vec<(NodeId, Ask, Time)>,
    answers: BTreeMap<u64, u64>,
    done: Vec<Option<Done>>,
}

impl Shared {
    fn arrival(&mut self, at: Time, node: NodeId, ask: Ask) -> Arrival {
        let id = RequestId(self.asks.len() as u64);
        self.asks.push((node, ask, at));
        self.done.push(None);
        let (operation, bytes) = match ask.access {
            Access::Read { bytes, .. } => (Operation::Read, bytes),
            Access::Write { bytes, .. } => (Operation::Write, bytes),
            Access::Modify { .. } => (Operation::ReadModifyWrite, 8),
        };
        let bytes = Bytes::new(u64::from(bytes));
        Arrival { at, request: Request { id, operation, source: node, target: ask.target, address: 0, bytes } }
    }
    fn ended(&mut self, now: Time, id: RequestId) -> Done {
        let (node, ask, asked) = self.asks[id.0 as usize];
        let done = Done { node, ask, asked, ended: now, answer: self.answers.remove(&id.0) };
        self.done[id.0 as usize] = Some(done);
        done
    }
}

/// The rig, with accesses looked up by request and answers taken out by it.
struct Memory<'a> {
    rig: &'a mut EdmRig,
    shared: Rc<RefCell<Shared>>,
    tickets: BTreeMap<u32, u64>,
}

impl Memory<'_> {
    fn take_answers(&mut self) {
        let mut shared = self.shared.borrow_mut();
        self.tickets.retain(|ticket, id| match self.rig.take_answer(Ticket(*ticket)) {
            Some(word) => shared.answers.insert(*id, word).is_some(),
            None => true,
        });
    }
}

impl Rig for Memory<'_> {
    type Event = EdmEvent;
    fn start(&mut self, context: &mut Context<'_, EdmEvent>) {
        self.rig.start(context);
    }
    fn issue(&mut self, ticket: Ticket, request: &Request, _: Time, context: &mut Context<'_, EdmEvent>) {
        let (node, ask, _) = self.shared.borrow().asks[request.id.0 as usize];
        self.tickets.insert(ticket.0, request.id.0);
        self.rig.submit(ticket, node, ask.target, ask.access, context);
    }
    fn on(&mut self, event: EdmEvent, context: &mut Context<'_, EdmEvent>) {
        self.rig.on(event, context);
        self.take_answers();
    }
    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Option<Span> {
        self.rig.unloaded(operation, bytes)
    }
    fn link_busy(&self, out: &mut Vec<Span>) {
        self.rig.link_busy(out);
    }
    fn dropped_packets(&self) -> u64 {
        self.rig.dropped_packets()
    }
    fn measure(&self, now: Time, meter: &mut Meter) {
        self.rig.measure(now, meter);
    }
}

/// Fixed requests and sequential programs, the n-th program on node n.
struct Players<'a> {
    shared: Rc<RefCell<Shared>>,
    timed: Vec<Timed>,
    programs: Vec<Option<&'a mut dyn Program>>,
}

impl Source for Players<'_> {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        let mut shared = self.shared.borrow_mut();
        out.extend(self.timed.iter().map(|(at, node, ask)| shared.arrival(*at, NodeId(*node), *ask)));
        for (node, program) in self.programs.iter_mut().enumerate() {
            let first = program.as_mut().and_then(|program| program.next(Time::ZERO, None));
            out.extend(first.map(|ask| shared.arrival(Time::ZERO, NodeId(node as u32), ask)));
        }
    }
    fn after_arrival(&mut self, _: &Arrival) -> Option<Arrival> {
        None
    }
    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival> {
        let mut shared = self.shared.borrow_mut();
        let done = shared.ended(now, finished.id);
        if finished.id.0 < self.timed.len() as u64 {
            return None;
        }
        let program = self.programs[finished.source.index()].as_mut().expect("it has asked");
        program.next(now, done.answer).map(|ask| shared.arrival(now, finished.source, ask))
    }
}

/// Runs fixed requests and one program a node (`None`: the node only serves) to the end. Gives what
/// came of every request, the fixed ones first, in the order in which they were asked for, and the
/// rows.
pub fn run(rig: &mut EdmRig, timed: Vec<Timed>, programs: Vec<Option<&mut dyn Program>>) -> (Vec<Done>, Vec<Row>) {
    rig.keep_answers();
    let shared = Rc::new(RefCell::new(Shared::default()));
    let mut players = Players { shared: shared.clone(), timed, programs };
    let mut memory = Memory { rig, shared: shared.clone(), tickets: BTreeMap::new() };
    let mut rows = Vec::new();
    let limits = super::limits(Span::ZERO);
    drive(&mut memory, &mut players, &mut rows, RunIdentity::default(), &limits, &mut Unobserved)
        .expect("a vector takes every row");
    let done = shared.borrow().done.iter().map(|done| done.expect("every request has ended")).collect();
    (done, rows)
}

/// Whether the operations on one word, zero at first, could have happened one after the other, each
/// between its call and its end (Herlihy and Wing 1990). Searches for such an order. Every
/// operation that was called before any other of the rest ended may be the next one. Combinations
/// that failed are not tried again.
pub fn is_linearizable(history: &[Done]) -> bool {
    let mut tried = std::collections::BTreeSet::new();
    let mut stack = vec![(vec![false; history.len()], 0u64)];
    while let Some((done, word)) = stack.pop() {
        if !tried.insert((done.clone(), word)) {
            continue;
        }
        let left = || (0..history.len()).filter(|index| !done[*index]);
        let Some(first_end) = left().map(|index| history[index].ended).min() else { return true };
        for next in left().filter(|index| history[*index].asked <= first_end) {
            if let Some(after) = effect(&history[next], word) {
                let mut done = done.clone();
                done[next] = true;
                stack.push((done, after));
            }
        }
    }
    false
}

/// The word after an operation on `word`, if its answer is what it would be.
fn effect(operation: &Done, word: u64) -> Option<u64> {
    use edm::Modify::{CompareAndSwap, FetchAndAdd, Swap};
    let (answer, after) = match operation.ask.access {
        Access::Read { .. } => (word, word),
        Access::Write { word: new, .. } => return Some(new),
        Access::Modify { modify: CompareAndSwap { expected, new }, .. } if word == expected => (1, new),
        Access::Modify { modify: CompareAndSwap { .. }, .. } => (0, word),
        Access::Modify { modify: FetchAndAdd { addend }, .. } => (word, word.wrapping_add(addend)),
        Access::Modify { modify: Swap { new }, .. } => (word, new),
    };
    (operation.answer == Some(answer)).then_some(after)
}
