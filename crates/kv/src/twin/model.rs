//! A model of what is around the programs of a store, fitted to journals: how long inputs occupy
//! them, and how long answers take.

use crate::journal::Entry;
use crate::writes::joined;
use base::{Span, Time};
use runtime::moments::Loads;
use runtime::times::{Luck, Times};
use scalio::{
    ClientId, ClientIn, ClientOut, Extent, FlashAnswer, FlashOperation, Length, MemoryAnswer, Operation, Request,
    RequestBody, RequestId, ServerIn, ServerOut,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an answer to a question takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Answers that were there before the turn of the question had ended.
    pub at_once: u64,
    /// Answers that came later.
    pub later: u64,
    /// How long those took that came to a loop, or a helper, which slept until then. What waits
    /// for a busy one waits in a simulation too.
    pub later_ns: Times,
}

/// What is around the programs of a JBOF and its doors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// How long an input of a kind occupies a loop, or a helper. A kind says how many operations
    /// the input ends, and its place in a chain.
    pub takes_ns: BTreeMap<String, Times>,
    /// Answers of memory and flash, by questions.
    pub answers: BTreeMap<String, Answers>,
    /// From the end of a door's turn to the helper, and from the end of the helper's turn back, in
    /// nanoseconds.
    pub ways_ns: [Times; 2],
    /// How long before the end of a door's turn an update is at the helper: a turn has its end when
    /// the loop has dealt with all, and an update may be on its way by then.
    pub leads_ns: Times,
    /// The most bytes of values that a helper takes of one door in a turn: those of one read of its
    /// socket, or all that were ever there. 0 where it took none.
    pub piece_bytes: u64,
    /// From the time of a client's timer until it is woken.
    pub late_ns: Times,
    /// What was read and updated when, and how often a connection asked, where its times are of
    /// another run. A file does not say.
    #[serde(skip)]
    pub of_run: Option<Loads<3>>,
}

impl Model {
    /// How long an input occupies who gets it. What was never seen with so many answers, or at this
    /// place of a chain, takes as long as what is next to it: with fewer, then with more.
    pub(super) fn takes(&self, kind: &str, answers: u32, place: Place, luck: Luck) -> Span {
        let of = |place| {
            let fewer = (0..=rank(answers)).rev().chain(rank(answers) + 1..=RANKS);
            fewer.map(move |rank| (rank, place))
        };
        let mut alike = [place, ALONE, FOLLOWED].into_iter().flat_map(of);
        let known = alike.find_map(|(rank, place)| self.takes_ns.get(&name_of(kind, rank, place)));
        known.map_or(Span::ZERO, |times| times.draw(luck))
    }

    /// How long the answer to a question takes; `None`: it is there at once. What was never seen of
    /// this size takes as long as what is next to it in size.
    pub(super) fn answer(&self, question: &str, (now, part): Luck) -> Option<Span> {
        let front = question.split(' ').next().unwrap_or_default();
        let alike = || self.answers.iter().rev().find(|(name, _)| name.split(' ').next() == Some(front));
        let answers = self.answers.get(question).or_else(|| alike().map(|(_, answers)| answers))?;
        let at_once = answers.at_once as f64 / (answers.at_once + answers.later).max(1) as f64;
        (part >= at_once).then(|| answers.later_ns.draw((now, (part - at_once) / (1.0 - at_once))))
    }

    /// The way from a door to the helper (0), or back (1). One that sleeps has to be woken.
    pub(super) fn way(&self, way: usize, sleeps: bool, (now, part): Luck) -> Span {
        self.ways_ns[way].draw((now, if sleeps { part } else { 0.0 }))
    }

    /// When an answer that takes a loop which sleeps so long is there: waking is part of that.
    pub(super) fn early(&self, took: Span, luck: Luck) -> Span {
        let [awake, asleep] = [false, true].map(|sleeps| self.way(1, sleeps, luck));
        took.saturating_sub(asleep.saturating_sub(awake))
    }

    /// When an update of a turn that ends at `end` is at the helper, not before `now`: of all that
    /// were seen, either the way or the lead is none.
    pub(super) fn comes(&self, (now, end): (Time, Time), sleeps: bool, (like, part): Luck) -> Time {
        let lead = self.leads_ns.draw((like, if sleeps { 1.0 - part } else { 1.0 }));
        let earliest = end.max(now + lead) - lead;
        earliest + self.way(0, sleeps, (like, part))
    }

    /// How late a timer is.
    pub(super) fn late(&self, luck: Luck) -> Span {
        self.late_ns.draw(luck)
    }
}

/// Where an input is in its chain: [`FOLLOWED`], or how many the chain has, up to a power of two.
pub(super) type Place = u32;

/// The place of an input after which the chain goes on.
const FOLLOWED: Place = 0;
/// The place of an input that is no chain.
const ALONE: Place = 1;
/// The most that is told apart: 2 to the power of one less, of answers and of a chain.
const RANKS: u32 = 9;

/// Inputs of one turn that a program takes one after another: what a connection asks at once, or
/// answers. What they decide is carried out when the chain ends. That occupies the program as well,
/// and is part of what the last of them takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    before: u32,
}

impl Chain {
    /// The place of an input, before this one of the same turn.
    pub fn place(&mut self, done: &str, next: Option<&str>) -> Place {
        let goes_on = next.is_some_and(|next| is_asked(next) == is_asked(done));
        let before = std::mem::take(&mut self.before);
        if goes_on {
            self.before = before + 1;
            return FOLLOWED;
        }
        1 << (rank(before + 1) - 1)
    }
}

/// Zero for none, and one more for each doubling: 1, 2, 3 to 4, 5 to 8.
fn rank(count: u32) -> u32 {
    (u32::BITS - (count.next_power_of_two()).leading_zeros()).min(RANKS) * u32::from(count > 0)
}

/// What an input is called in a model.
fn name_of(kind: &str, rank: u32, place: Place) -> String {
    let answers = match rank {
        0 => String::new(),
        1 => ", with an answer".into(),
        _ => format!(", with up to {} answers", 1 << (rank - 1)),
    };
    match place {
        FOLLOWED => format!("{kind}{answers}, others follow"),
        ALONE => format!("{kind}{answers}"),
        count => format!("{kind}{answers}, last of up to {count}"),
    }
}

/// Whether it is what hosts ask.
pub(super) fn is_asked(kind: &str) -> bool {
    matches!(kind, "loop: GET" | "loop: update" | "loop: look at a key" | "loop: walk")
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

/// An update that a helper is told.
pub(super) const REQUEST: &str = "helper: request";
/// A client's wake-up.
pub(super) const WOKE: &str = "loop: timer";

/// What a helper's input is; `None` for answers of its own memory, which are part of what caused
/// them.
pub(super) fn kind_of_request(input: &ServerIn<Length>) -> Option<&'static str> {
    match input {
        ServerIn::Request(_) => Some(REQUEST),
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

/// What so many reads of a turn are, of which the longest has so many sectors.
pub(super) fn question_of_reads(count: usize, sectors: u32) -> String {
    sized(&format!("{HELPER}reads, up to {} at a time", count.next_power_of_two()), sectors)
}

/// Sectors that a helper reads: what it reads in one turn waits for the same disk.
pub(super) fn read_sectors(operation: &FlashOperation<Length>) -> Option<u32> {
    match operation {
        FlashOperation::ReadSegment { .. } | FlashOperation::ReadRecord { .. } => {
            operation.extent().map(|extent| extent.sectors)
        }
        _ => None,
    }
}

/// Bytes of values that a turn of a helper has taken of each door.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken(BTreeMap<ClientId, u64>);

impl Taken {
    /// Takes a request. Returns how many bytes that are of its door.
    pub fn take(&mut self, request: &Request<Length>) -> u64 {
        let value = match &request.body {
            RequestBody::Put { value, .. } => *value,
            RequestBody::CompareAndSwap { new, .. } => *new,
            RequestBody::Delete { .. } | RequestBody::Take { .. } | RequestBody::Expire { .. } => Length(0),
        };
        let taken = self.0.entry(request.client).or_default();
        *taken = taken.saturating_add(value.0.into());
        *taken
    }

    /// How many bytes it has taken of a door.
    pub fn of(&self, client: ClientId) -> u64 {
        self.0.get(&client).copied().unwrap_or(0)
    }
}

/// Reads of one turn.
#[derive(Clone, Debug)]
struct Reads {
    question: String,
    since: Time,
    left: usize,
}

/// What a program does now, within one journal.
#[derive(Clone, Debug, Default)]
struct Doing {
    /// Its last input, and since when.
    input: Option<(&'static str, Time)>,
    /// What that has answered, and its chain.
    answers: u32,
    chain: Chain,
    turn: u64,
    at: Time,
    asked: BTreeMap<RequestId, (String, Time, u64)>,
    /// Writes and reads of this turn, and sectors of the longest read. They go to flash when it
    /// ends.
    writes: Vec<(Extent, RequestId)>,
    reads: Vec<RequestId>,
    sectors: u32,
    /// When the turn began, and bytes of values that it has taken of each door.
    began: Time,
    taken: Taken,
    /// Reads of earlier turns, by the number of the turn, and whose a read is.
    reading: BTreeMap<u64, Reads>,
    turns: BTreeMap<RequestId, u64>,
}

/// What came of a question.
#[derive(Clone, Debug, Default)]
struct Asked {
    at_once: u64,
    later: u64,
    /// Of answers that came to one that slept until then.
    took: Times,
    /// Of those that came to a busy one, where there are no others.
    crowded: Times,
}

/// An input, by what it is, how many operations it ended up to a power of two, and where it is.
type Kind = (&'static str, u32, Place);

/// Takes a [`Model`] from what is seen in journals of one JBOF and its doors.
#[derive(Clone, Debug, Default)]
pub struct Fit {
    takes: BTreeMap<Kind, Times>,
    /// When loops were told something, for a helper that is inside.
    told: Vec<Time>,
    answers: BTreeMap<String, Asked>,
    late: Times,
    piece_bytes: u64,
    doing: Doing,
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
                self.told.extend(at);
                if let ClientIn::Memory { request, .. } | ClientIn::Flash { request, .. } = input {
                    self.answered(*request);
                }
                self.next(Some(kind_of_input(input)));
            }
            Entry::Woke { .. } => self.next(Some(WOKE)),
            Entry::Decided(out) => {
                self.doing.answers += u32::from(matches!(out, ClientOut::Done { .. }));
                self.asks(question(out));
            }
            Entry::Rested { .. } | Entry::Finished { .. } => self.next(None),
            _ => self.doing.input = None,
        }
    }

    /// A helper was told or decided something. Where it is in the thread of a loop, the time of an
    /// update is part of what the loop is asked, and it has dealt with flash when the loop goes on.
    pub(super) fn see_helper(
        &mut self,
        (at, is_inside): (Option<Time>, bool),
        entry: &Entry<ServerIn<Length>, ServerOut<Length>>,
    ) {
        self.doing.at = at.unwrap_or(self.doing.at);
        match entry {
            Entry::Turn { .. } => {
                self.doing.turn += 1;
                self.doing.began = self.doing.at;
                self.doing.taken = Taken::default();
            }
            Entry::Input { input, .. } => {
                if let ServerIn::Request(request) = input {
                    self.piece_bytes = self.piece_bytes.max(self.doing.taken.take(request));
                }
                if let ServerIn::Flash { request, .. } = input {
                    self.read(*request);
                    self.answered(*request);
                }
                let is_part = is_inside && matches!(input, ServerIn::Request(_));
                if let Some(kind) = kind_of_request(input) {
                    self.next_of_helper(is_inside, (!is_part).then_some(kind));
                }
            }
            Entry::Decided(ServerOut::Flash { request, operation: FlashOperation::Write { extent, .. } }) => {
                self.doing.writes.push((*extent, *request));
            }
            Entry::Decided(ServerOut::Flash { request, operation }) => match read_sectors(operation) {
                Some(sectors) => {
                    self.doing.reads.push(*request);
                    self.doing.sectors = self.doing.sectors.max(sectors);
                }
                None => self.asks(Some((*request, question_of_flash(HELPER, operation)))),
            },
            Entry::Decided(ServerOut::Reply(_)) => self.doing.answers += 1,
            Entry::Rested { .. } => {
                self.wrote();
                self.reads();
                self.next_of_helper(is_inside, None);
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

    /// The reads of a turn go to flash.
    fn reads(&mut self) {
        let (reads, sectors) = (std::mem::take(&mut self.doing.reads), std::mem::take(&mut self.doing.sectors));
        if reads.is_empty() {
            return;
        }
        let Doing { at, turn, .. } = self.doing;
        let question = question_of_reads(reads.len(), sectors);
        self.doing.reading.insert(turn, Reads { question, since: at, left: reads.len() });
        self.doing.turns.extend(reads.into_iter().map(|read| (read, turn)));
    }

    /// A read has come. How long the last of a turn took tells of all: they wait for each other. It
    /// was there when its turn began.
    fn read(&mut self, request: RequestId) {
        let Some(turn) = self.doing.turns.remove(&request) else { return };
        let Some(reads) = self.doing.reading.get_mut(&turn) else { return };
        reads.left -= 1;
        if reads.left > 0 {
            return;
        }
        let Some(reads) = self.doing.reading.remove(&turn) else { return };
        let answers = self.answers.entry(reads.question).or_default();
        answers.later += 1;
        answers.took.note(self.doing.at, self.doing.began.saturating_since(reads.since));
    }

    /// A client is woken at `at` by its loop's time, and had to be at `due`.
    pub(super) fn due(&mut self, at: Time, due: Time) {
        if due <= at && self.doing.input.is_none() {
            self.late.note(self.doing.at, at - due);
        }
    }

    /// What came last has been dealt with, and the next thing comes.
    fn next(&mut self, kind: Option<&'static str>) {
        self.next_at(self.doing.at, kind);
    }

    /// The same, of a helper. Where it is in the thread of the only loop, the next thing may be the
    /// loop's.
    fn next_of_helper(&mut self, is_inside: bool, kind: Option<&'static str>) {
        let since = self.doing.input.map_or(Time::ZERO, |(_, since)| since);
        let next = self.told.partition_point(|told| *told < since);
        match self.told.get(next).filter(|told| is_inside && **told < self.doing.at) {
            Some(told) => self.next_at(*told, None),
            None => self.next_at(self.doing.at, kind),
        }
        self.doing.input = kind.map(|kind| (kind, self.doing.at));
    }

    fn next_at(&mut self, at: Time, kind: Option<&'static str>) {
        let answers = std::mem::take(&mut self.doing.answers);
        if let Some((done, since)) = self.doing.input.take() {
            let place = self.doing.chain.place(done, kind);
            let took = at.saturating_since(since);
            self.takes.entry((done, rank(answers), place)).or_default().note(since, took);
        }
        self.doing.input = kind.map(|kind| (kind, self.doing.at));
    }

    fn asks(&mut self, question: Option<(RequestId, String)>) {
        let Doing { at, turn, .. } = self.doing;
        self.doing.asked.extend(question.map(|(request, question)| (request, (question, at, turn))));
    }

    fn answered(&mut self, request: RequestId) {
        let Some((question, since, turn)) = self.doing.asked.remove(&request) else { return };
        let (took, is_later) = (self.doing.at.saturating_since(since), turn != self.doing.turn);
        let has_slept = self.doing.input.is_none();
        let answers = self.answers.entry(question).or_default();
        answers.at_once += u64::from(!is_later);
        answers.later += u64::from(is_later);
        match (is_later, has_slept) {
            (true, true) => answers.took.note(since, took),
            (true, false) => answers.crowded.note(since, took),
            (false, _) => {}
        }
    }

    /// The model of what was seen, with the ways between doors and helper.
    pub(super) fn model(self, [forth, back, lead]: [Times; 3]) -> Model {
        let answers = |Asked { at_once, later, took, crowded }| {
            let later_ns = if took.is_empty() { crowded } else { took }.settled();
            Answers { at_once, later, later_ns }
        };
        let takes = filled(self.takes.into_iter().map(|(kind, times)| (kind, times.settled())).collect());
        Model {
            takes_ns: takes.map(|((kind, answers, place), times)| (name_of(kind, answers, place), times)).collect(),
            answers: self.answers.into_iter().map(|(name, asked)| (name, answers(asked))).collect(),
            ways_ns: [forth, back].map(Times::settled),
            leads_ns: lead.settled(),
            piece_bytes: self.piece_bytes,
            late_ns: self.late.settled(),
            of_run: None,
        }
    }
}

/// Where little of an input was seen, times of what is most like it are taken too: with nearly as
/// many answers, then at a place nearby. Else one of three that was slow would be slow for every
/// third.
fn filled(seen: BTreeMap<Kind, Times>) -> impl Iterator<Item = (Kind, Times)> {
    let alike = |(kind, answers, place): Kind, times: &Times| {
        let is_like = |other: &&Kind| other.0 == kind && (other.2 == FOLLOWED) == (place == FOLLOWED);
        let mut others: Vec<&Kind> = seen.keys().filter(is_like).collect();
        others.sort_by_key(|other| (other.1.abs_diff(answers), rank(other.2).abs_diff(rank(place))));
        others.into_iter().skip(1).fold(times.clone(), |times, other| times.filled(&seen[other]))
    };
    let all: Vec<(Kind, Times)> = seen.iter().map(|(kind, times)| (*kind, alike(*kind, times))).collect();
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scalio::{Condition, Key, Reply, RequestResult};

    #[test]
    fn counts_are_told_apart_by_doublings() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 1_000].map(rank), [0, 1, 2, 3, 3, 4, 9, 9]);
    }

    #[test]
    fn the_last_of_a_chain_knows_how_many_were_before_it() {
        let kinds = ["loop: GET", "loop: update", "loop: GET", "loop: block", "loop: word", "loop: GET"];
        let mut chain = Chain::default();
        let places = kinds.iter().zip(kinds[1..].iter().copied().map(Some).chain([None]));
        let places: Vec<Place> = places.map(|(done, next)| chain.place(done, next)).collect();
        assert_eq!(places, [FOLLOWED, FOLLOWED, 4, FOLLOWED, 2, ALONE]);
    }

    #[test]
    fn an_update_is_at_the_helper_before_the_end_of_its_turn_or_after_but_never_before_now() {
        let (ways, leads) = (vec![0, 0, 10_000], vec![0, 20_000, 30_000]);
        let model = Model { ways_ns: [ways.into(), Times::default()], leads_ns: leads.into(), ..Model::default() };
        let at = |us| Time::ZERO + Span::us(us);
        let comes = |now, part| model.comes((at(now), at(100)), true, (at(now), part));
        assert_eq!([0.0, 0.34, 0.99].map(|part| comes(0, part)), [at(70), at(80), at(110)]);
        assert_eq!(comes(95, 0.0), at(95));
        assert_eq!(model.comes((at(0), at(100)), false, (at(0), 0.99)), at(70), "the soonest of all, where it is busy");
    }

    /// A loop that sleeps has an answer after 30 us, of which it needs what the helper's answers
    /// need more than to a busy one.
    #[test]
    fn what_comes_to_a_busy_loop_does_not_wait_for_it_to_wake_up() {
        let early = |asleep: u64| {
            let ways_ns = [Times::default(), vec![5_000, asleep].into()];
            Model { ways_ns, ..Model::default() }.early(Span::us(30), (Time::ZERO, 0.9))
        };
        assert_eq!([early(20_000), early(5_000), early(90_000)], [15, 30, 0].map(Span::us));
    }

    /// A helper is told that flash has written, and answers; a loop is told so, and rests.
    fn takes_of_a_helper(is_inside: bool) -> BTreeMap<String, Vec<u64>> {
        let at = |us| Some(Time::ZERO + Span::us(us));
        let reply = Reply { client: ClientId(0), number: 1, epoch: 1, result: RequestResult::Stored };
        let mut fit = Fit::default();
        let input = ClientIn::Reply(reply.clone());
        fit.see_loop(at(10), &Entry::Input { at: Time::ZERO, input });
        fit.see_loop(at(30), &Entry::Rested { at: Time::ZERO });
        fit.begin();
        let input = ServerIn::Flash { request: RequestId(1), answer: FlashAnswer::Done };
        fit.see_helper((at(4), is_inside), &Entry::Turn { now: Time::ZERO });
        fit.see_helper((at(5), is_inside), &Entry::Input { at: Time::ZERO, input });
        fit.see_helper((None, is_inside), &Entry::Decided(ServerOut::Reply(reply)));
        fit.see_helper((at(30), is_inside), &Entry::Rested { at: Time::ZERO });
        let takes = fit.model(Default::default()).takes_ns.into_iter();
        takes.filter(|(kind, _)| kind.starts_with("helper")).map(|(kind, times)| (kind, times.into())).collect()
    }

    #[test]
    fn a_helper_that_is_inside_has_ended_when_its_loop_goes_on() {
        let name = || "helper: written, with an answer".to_owned();
        assert_eq!(takes_of_a_helper(true), [(name(), vec![5_000])].into());
        assert_eq!(takes_of_a_helper(false), [(name(), vec![25_000])].into());
    }

    #[test]
    fn one_of_few_that_was_slow_is_not_slow_for_as_many() {
        let times = |count: u64, us| {
            let mut times = Times::default();
            (0..count).for_each(|at| times.note(Time::ZERO + Span::us(at), Span::us(us)));
            times.settled()
        };
        let seen = [(("a", 3, 4), times(1, 90)), (("a", 3, 8), times(2, 9)), (("a", 2, 4), times(40, 3))];
        let more = [(("a", 3, FOLLOWED), times(40, 1)), (("b", 3, 4), times(40, 1))];
        let all: BTreeMap<Kind, Times> = filled(seen.into_iter().chain(more).collect()).collect();
        let expected = [vec![3_000; 13], vec![9_000; 2], vec![90_000]].concat();
        assert_eq!(all[&("a", 3, 4)].rising(), expected);
    }

    /// A turn takes 4 and 3 bytes of a door and 5 of another one, the next one 6 of the first.
    #[test]
    fn a_piece_is_the_most_that_a_turn_has_taken_of_a_door() {
        let (mut fit, at) = (Fit::default(), Some(Time::ZERO));
        for turn in [&[(0, 4), (1, 5), (0, 3)][..], &[(0, 6)]] {
            fit.see_helper((at, false), &Entry::Turn { now: Time::ZERO });
            for (client, bytes) in turn {
                let (key, value) = (Key::new(b"k").expect("it is short"), Length(*bytes));
                let body = RequestBody::Put { key, value, time_to_live: None, condition: Condition::Always };
                let request = Request { client: ClientId(*client), number: 1, settled: 0, epoch: 1, body };
                let input = ServerIn::Request(request);
                fit.see_helper((at, false), &Entry::Input { at: Time::ZERO, input });
            }
        }
        assert_eq!(fit.model(Default::default()).piece_bytes, 7);
    }
}
