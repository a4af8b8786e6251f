//! A model of what is around the programs of a store, fitted to journals: how long inputs occupy
//! them, and how long answers take.

use crate::journal::Entry;
use crate::writes::joined;
use base::{Span, Stream, Time};
use scalio::{
    ClientIn, ClientOut, Extent, FlashAnswer, FlashOperation, Length, MemoryAnswer, Operation, RequestId, ServerIn,
    ServerOut,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Times of a kind that are looked at.
const SEEN_MAX: usize = 1_000_000;
/// Times that a model keeps of a distribution: every so many thousandth of it.
const KEPT: usize = 1_000;

/// What an answer to a question takes. All times are in nanoseconds, rising, evenly spaced in their
/// distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Answers that were there before the turn of the question had ended.
    pub at_once: u64,
    /// Answers that came later.
    pub later: u64,
    /// How long those took that came to a loop, or a helper, which slept until then. What waits
    /// for a busy one waits in a simulation too.
    pub later_ns: Vec<u64>,
}

/// What is around the programs of a JBOF and its doors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// How long an input of a kind occupies a loop, or a helper, in nanoseconds. What ends an
    /// operation is of another kind than what does not.
    pub takes_ns: BTreeMap<String, Vec<u64>>,
    /// Answers of memory and flash, by questions.
    pub answers: BTreeMap<String, Answers>,
    /// From a door to the helper, and back, in nanoseconds.
    pub ways_ns: [Vec<u64>; 2],
    /// From the time of a client's timer until it is woken.
    pub late_ns: Vec<u64>,
}

/// One of these times by chance.
fn drawn(times: &[u64], stream: &mut Stream) -> Span {
    at(times, stream.unit())
}

/// The time at this part of their distribution, from 0 to 1.
fn at(times: &[u64], part: f64) -> Span {
    let place = (part * times.len() as f64) as usize;
    times.get(place.min(times.len().saturating_sub(1))).map_or(Span::ZERO, |time| Span::ns(*time))
}

impl Model {
    /// How long an input occupies who gets it. What was never seen to end an operation, or to do
    /// something else, takes as long as the other.
    pub(super) fn takes(&self, kind: &str, ends: bool, stream: &mut Stream) -> Span {
        let known = [ends, !ends].into_iter().find_map(|ends| self.takes_ns.get(&name_of(kind, ends)));
        known.map_or(Span::ZERO, |times| drawn(times, stream))
    }

    /// How long the answer to a question takes; `None`: it is there at once.
    pub(super) fn answer(&self, question: &str, stream: &mut Stream) -> Option<Span> {
        self.answer_of(question, stream.unit())
    }

    /// The same, of the answer that is slower than this part of all, from 0 to 1. What was never
    /// seen of this size takes as long as what is next to it in size.
    pub(super) fn answer_of(&self, question: &str, part: f64) -> Option<Span> {
        let front = question.split(' ').next().unwrap_or_default();
        let alike = || self.answers.iter().rev().find(|(name, _)| name.split(' ').next() == Some(front));
        let answers = self.answers.get(question).or_else(|| alike().map(|(_, answers)| answers))?;
        let at_once = answers.at_once as f64 / (answers.at_once + answers.later).max(1) as f64;
        (part >= at_once).then(|| at(&answers.later_ns, (part - at_once) / (1.0 - at_once)))
    }

    /// The way from a door to the helper (0), or back (1).
    pub(super) fn way(&self, way: usize, stream: &mut Stream) -> Span {
        drawn(&self.ways_ns[way], stream)
    }

    /// How late a timer is.
    pub(super) fn late(&self, stream: &mut Stream) -> Span {
        drawn(&self.late_ns, stream)
    }
}

/// What an input is called in a model.
fn name_of(kind: &str, ends: bool) -> String {
    if ends { format!("{kind}, with an answer") } else { kind.into() }
}

/// Sectors in steps of powers of two.
fn sized(what: &str, sectors: u32) -> String {
    format!("{what} of up to {} sectors", sectors.max(1).next_power_of_two())
}

/// What a loop's input is, for the time that it occupies the loop.
pub(super) fn kind_of_input(input: &ClientIn<Length>) -> &'static str {
    match input {
        ClientIn::Issue { operation: Operation::Get { .. }, .. } => "loop: GET",
        ClientIn::Issue { operation: Operation::Update(_), .. } => "loop: update",
        ClientIn::Describe { .. } => "loop: look at a key",
        ClientIn::Names { .. } => "loop: walk",
        ClientIn::Memory { answer: MemoryAnswer::Block(_) | MemoryAnswer::Unreachable, .. } => "loop: block",
        ClientIn::Memory { answer: MemoryAnswer::Checked { .. }, .. } => "loop: block checked",
        ClientIn::Memory { answer: MemoryAnswer::Found(_) | MemoryAnswer::Done, .. } => "loop: word",
        ClientIn::Flash { answer: FlashAnswer::Record(_) | FlashAnswer::Failed, .. } => "loop: record",
        ClientIn::Flash { .. } => "loop: segment",
        ClientIn::Reply(_) => "loop: reply",
    }
}

/// A client's wake-up.
pub(super) const WOKE: &str = "loop: timer";

/// What a helper's input is; `None` for answers of its own memory, which are part of what caused
/// them.
pub(super) fn kind_of_request(input: &ServerIn<Length>) -> Option<&'static str> {
    match input {
        ServerIn::Request(_) => Some("helper: request"),
        ServerIn::Flash { answer: FlashAnswer::Done | FlashAnswer::Failed, .. } => Some("helper: written"),
        ServerIn::Flash { .. } => Some("helper: read"),
        ServerIn::Memory { .. } => None,
    }
}

/// What a question of a client to memory or flash is.
pub(super) fn question(out: &ClientOut<Length>) -> Option<(RequestId, String)> {
    match out {
        ClientOut::Memory { request: Some(request), .. } => Some((*request, "verbs".into())),
        ClientOut::Flash { request, operation, .. } => Some((*request, question_of_flash("", operation))),
        _ => None,
    }
}

/// What an operation on flash is.
pub(super) fn question_of_flash(who: &str, operation: &FlashOperation<Length>) -> String {
    let sectors = operation.extent().map_or(0, |extent| extent.sectors);
    let what = match operation {
        FlashOperation::ReadSegment { .. } => "segment",
        FlashOperation::ReadRecord { .. } => "record",
        FlashOperation::ReadHead { .. } => "name",
        FlashOperation::Write { .. } => "write",
        FlashOperation::Flush => "flush",
        FlashOperation::ReadKind { .. } => "kind",
        FlashOperation::Scan { .. } | FlashOperation::List { .. } => "list",
        FlashOperation::Trim { .. } => "trim",
    };
    sized(&format!("{who}{what}"), sectors)
}

/// Who asks flash, in front of a question of the helper.
pub(super) const HELPER: &str = "helper:";

/// What a row of the helper's writes is.
pub(super) fn question_of_row(row: Extent) -> String {
    sized(&format!("{HELPER}write"), row.sectors)
}

/// What a program does now, within one journal.
#[derive(Clone, Debug, Default)]
struct Doing {
    /// Its last input, and since when.
    input: Option<(&'static str, Time)>,
    /// Whether that has ended an operation.
    ends: bool,
    turn: u64,
    at: Time,
    asked: BTreeMap<RequestId, (String, Time, u64)>,
    /// Writes of this turn. They go to flash when it ends.
    writes: Vec<(Extent, RequestId)>,
}

/// Takes a [`Model`] from what is seen in journals of one JBOF and its doors.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    takes: BTreeMap<(&'static str, bool), Vec<u64>>,
    answers: BTreeMap<String, Answers>,
    /// Times of answers that came to a busy program, for questions without others.
    crowded: BTreeMap<String, Vec<u64>>,
    late: Vec<u64>,
    doing: Doing,
}

fn note(times: &mut Vec<u64>, time: Span) {
    if times.len() < SEEN_MAX {
        times.push(time.as_ps() / 1_000);
    }
}

/// Sorts times, and keeps as many as a model needs.
fn thin(mut times: Vec<u64>) -> Vec<u64> {
    times.sort_unstable();
    if times.len() <= KEPT {
        return times;
    }
    (0..KEPT).map(|place| times[(place * 2 + 1) * times.len() / (KEPT * 2)]).collect()
}

impl Fit {
    /// Another journal begins.
    pub(super) fn begin(&mut self) {
        self.doing = Doing::default();
    }

    /// A loop was told or decided something.
    pub(super) fn see_loop(&mut self, at: Option<Time>, entry: &Entry<ClientIn<Length>, ClientOut<Length>>) {
        self.doing.at = at.unwrap_or(self.doing.at);
        match entry {
            Entry::Turn { .. } => self.doing.turn += 1,
            Entry::Input { input, .. } => {
                if let ClientIn::Memory { request, .. } | ClientIn::Flash { request, .. } = input {
                    self.answered(*request);
                }
                self.next(Some(kind_of_input(input)));
            }
            Entry::Woke { .. } => self.next(Some(WOKE)),
            Entry::Decided(out) => {
                self.doing.ends |= matches!(out, ClientOut::Done { .. });
                self.asks(question(out));
            }
            Entry::Rested { .. } | Entry::Finished { .. } => self.next(None),
            _ => self.doing.input = None,
        }
    }

    /// A helper was told or decided something. Where it is in the thread of a loop, the loop's
    /// inputs have the time that its own take.
    pub(super) fn see_helper(
        &mut self,
        (at, is_inside): (Option<Time>, bool),
        entry: &Entry<ServerIn<Length>, ServerOut<Length>>,
    ) {
        self.doing.at = at.unwrap_or(self.doing.at);
        match entry {
            Entry::Turn { .. } => self.doing.turn += 1,
            Entry::Input { input, .. } => {
                if let ServerIn::Flash { request, .. } = input {
                    self.answered(*request);
                }
                match kind_of_request(input) {
                    Some(kind) if !is_inside => self.next(Some(kind)),
                    _ => {}
                }
            }
            Entry::Decided(ServerOut::Flash { request, operation: FlashOperation::Write { extent, .. } }) => {
                self.doing.writes.push((*extent, *request));
            }
            Entry::Decided(ServerOut::Flash { request, operation }) => {
                self.asks(Some((*request, question_of_flash(HELPER, operation))));
            }
            Entry::Decided(ServerOut::Reply(_)) => self.doing.ends = true,
            Entry::Rested { .. } => {
                self.wrote();
                if !is_inside {
                    self.next(None);
                }
            }
            _ => {}
        }
    }

    /// The turn of a helper has ended. All writes of a row are answered together: one of them tells
    /// what that took.
    fn wrote(&mut self) {
        let Doing { at, turn, .. } = self.doing;
        for (row, requests) in joined(std::mem::take(&mut self.doing.writes)) {
            let asked = requests.first().map(|request| (*request, (question_of_row(row), at, turn)));
            self.doing.asked.extend(asked);
        }
    }

    /// A client is woken at `at` by its loop's time, and had to be at `due`.
    pub(super) fn due(&mut self, at: Time, due: Time) {
        if due <= at && self.doing.input.is_none() {
            note(&mut self.late, at - due);
        }
    }

    /// What came last has been dealt with, and the next thing comes.
    fn next(&mut self, kind: Option<&'static str>) {
        let (at, ends) = (self.doing.at, std::mem::take(&mut self.doing.ends));
        if let Some((done, since)) = self.doing.input.take() {
            note(self.takes.entry((done, ends)).or_default(), at.saturating_since(since));
        }
        self.doing.input = kind.map(|kind| (kind, at));
    }

    fn asks(&mut self, question: Option<(RequestId, String)>) {
        let Doing { at, turn, .. } = self.doing;
        self.doing.asked.extend(question.map(|(request, question)| (request, (question, at, turn))));
    }

    fn answered(&mut self, request: RequestId) {
        let Some((question, since, turn)) = self.doing.asked.remove(&request) else { return };
        let (took, is_later) = (self.doing.at.saturating_since(since), turn != self.doing.turn);
        let has_slept = self.doing.input.is_none();
        let answers = self.answers.entry(question.clone()).or_default();
        answers.at_once += u64::from(!is_later);
        answers.later += u64::from(is_later);
        match (is_later, has_slept) {
            (true, true) => note(&mut answers.later_ns, took),
            (true, false) => note(self.crowded.entry(question).or_default(), took),
            (false, _) => {}
        }
    }

    /// The model of what was seen, with the ways between doors and helper.
    pub(super) fn model(mut self, ways: [Vec<u64>; 2]) -> Model {
        for (question, answers) in self.answers.iter_mut().filter(|(_, answers)| answers.later_ns.is_empty()) {
            answers.later_ns = self.crowded.remove(question).unwrap_or_default();
        }
        let takes = self.takes.into_iter();
        let thinned = |answers: Answers| Answers { later_ns: thin(answers.later_ns), ..answers };
        Model {
            takes_ns: takes.map(|((kind, ends), times)| (name_of(kind, ends), thin(times))).collect(),
            answers: self.answers.into_iter().map(|(name, answers)| (name, thinned(answers))).collect(),
            ways_ns: ways.map(thin),
            late_ns: thin(self.late),
        }
    }
}
