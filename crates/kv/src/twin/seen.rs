//! What the journals of a JBOF and its doors say together.

use super::flash::Contents;
use super::model::{self, Fit, Model, kind_of_input};
use super::requests::Requests;
use crate::frames::Welcome;
use crate::journal::{Beginning, ClientEntry, Entry, Part, ServerEntry};
use base::{Span, Time};
use runtime::clocks::Axis;
use runtime::moments::{Loads, SOON};
use scalio::{ClientIn, ClientOut, FlashOperation, Kept, Length, RequestId, ServerConfig, ServerOut};
use std::collections::{BTreeMap, BTreeSet};

/// Slots that are simulated at most: as many as an experiment may have.
const SLOTS_MAX: u64 = 200_000_000;

/// A JBOF and its doors, by the names of their roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The role with the helper: a JBOF, or the store that has it inside.
    pub jbof: String,
    /// The stores that reach it, it among them if it has one inside.
    pub doors: Vec<String>,
}

impl Site {
    /// Whether the program is one of its own.
    pub(super) fn has(&self, beginning: &Beginning) -> bool {
        match beginning.part {
            Part::Helper => self.jbof == beginning.role,
            Part::Loop(_) => self.doors.contains(&beginning.role),
        }
    }
}

/// A loop of a door.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopSeen {
    pub name: String,
    pub welcome: Option<Welcome>,
    /// What it was asked.
    pub asked: Vec<Batch>,
    /// Whether the last batch goes on.
    in_batch: bool,
    /// Walks, which are not simulated, and those that have no end.
    walks: u64,
    walking: BTreeSet<u64>,
    /// Other operations that have ended, and when the last one did.
    ended: u64,
    ended_at: Time,
    at: Time,
    was_away: bool,
}

/// What a connection asked a loop at once.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// When the loop began to take it.
    pub at: Time,
    /// It comes when so many earlier operations of its loop have ended, and not before its time.
    pub ended: u64,
    /// It comes so long after the last of these has ended, whenever that is.
    pub soon: Option<Span>,
    pub inputs: Vec<ClientIn<Length>>,
}

/// The helper, when it began.
#[derive(Clone, Debug)]
pub(super) struct HelperSeen {
    pub config: ServerConfig,
    pub kept: Kept,
    /// Its time zero by the clock of the rack.
    pub zero: Time,
}

/// What the journals of a [`Site`] say.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Whose they are.
    pub site: Site,
    /// The operations of its doors, live.
    pub requests: Requests,
    pub(super) fit: Fit,
    pub(super) contents: Contents,
    pub(super) loops: Vec<LoopSeen>,
    pub(super) helpers: Vec<HelperSeen>,
    /// Whether its programs have one clock, or how theirs are apart is known.
    has_one_clock: bool,
    boot: Option<String>,
    /// The times of the journal that is seen now.
    axis: Axis,
    asked: BTreeMap<RequestId, FlashOperation<Length>>,
}

impl Seen {
    pub(super) fn new(site: Site) -> Seen {
        Seen {
            site,
            requests: Requests::default(),
            fit: Fit::default(),
            contents: Contents::default(),
            loops: Vec::new(),
            helpers: Vec::new(),
            has_one_clock: true,
            boot: None,
            axis: Axis::SAME,
            asked: BTreeMap::new(),
        }
    }

    /// A journal begins, whose times are these by the clock of the rack. `are_known` says whether
    /// the clocks of all machines are.
    pub(super) fn begin(&mut self, beginning: &Beginning, axis: Axis, are_known: bool) {
        self.fit.begin();
        self.asked.clear();
        self.axis = axis;
        let is_of_first = self.boot.get_or_insert_with(|| beginning.boot.clone()) == &beginning.boot;
        self.has_one_clock &= is_of_first || are_known;
        if let Part::Loop(_) = beginning.part {
            self.loops.push(LoopSeen { name: beginning.name(), ..LoopSeen::default() });
        }
    }

    /// Whether there is a journal of one of its programs.
    pub fn has_journals(&self) -> bool {
        self.boot.is_some()
    }

    /// All journals were seen.
    pub(super) fn finish(&mut self) {
        self.requests.finish();
    }

    /// The time of an entry by the clock of the rack.
    fn seen_at<I, O>(&self, entry: &Entry<I, O>) -> Option<Time> {
        entry.at().map(|at| self.axis.at(at))
    }

    pub(super) fn see_loop(&mut self, entry: &ClientEntry<Length>, due: Option<Time>) {
        let at = self.seen_at(entry);
        let number = self.loops.len() - 1;
        self.requests.see_loop(number, at, entry);
        if let (Entry::Woke { at }, Some(due)) = (entry, due) {
            self.fit.due(*at, due);
        }
        self.fit.see_loop(at, entry);
        match entry {
            Entry::Decided(ClientOut::Flash { request, operation, .. }) => {
                self.asked.insert(*request, operation.clone());
            }
            Entry::Input { input: input @ ClientIn::Flash { request, .. }, .. } => {
                let operation = self.asked.remove(request);
                self.contents.saw_client(operation.as_ref(), input);
            }
            _ => {}
        }
        self.loops[number].see(at, entry);
    }

    pub(super) fn see_helper(&mut self, entry: &ServerEntry<Length>) {
        let at = self.seen_at(entry);
        let turn = if let Entry::Turn { now } = entry { Some(self.axis.at(*now)) } else { None };
        self.requests.see_helper(at.or(turn), entry);
        self.fit.see_helper((at.or(turn), self.is_inside()), entry);
        match entry {
            Entry::Began { config, kept, .. } => {
                self.helpers.push(HelperSeen { config: *config, kept: kept.clone(), zero: self.axis.zero() });
            }
            Entry::Decided(ServerOut::Flash { request, operation }) => {
                self.asked.insert(*request, operation.clone());
            }
            Entry::Input { input: input @ scalio::ServerIn::Flash { request, .. }, .. } => {
                let operation = self.asked.remove(request);
                self.contents.saw_helper(operation.as_ref(), input);
            }
            _ => {}
        }
    }

    /// Whether the helper is in the thread of the only loop.
    pub(super) fn is_inside(&self) -> bool {
        self.site.doors == [self.site.jbof.as_str()] && self.loops_of_jbof() == 1
    }

    /// Loops of the role with the helper. Those of a store are seen before its helper.
    fn loops_of_jbof(&self) -> usize {
        self.loops.iter().filter(|one| one.name.starts_with(&format!("{}.loop-", self.site.jbof))).count()
    }

    /// The model of what was between its programs.
    pub fn model(&self) -> Model {
        self.fit.clone().model(self.requests.ways())
    }

    /// The same for another run.
    pub fn model_for_another_run(&self) -> Model {
        Model { of_run: Some(self.loads()), ..self.model() }
    }

    /// What its doors were asked.
    pub(super) fn loads(&self) -> Loads<3> {
        let mut loads = Loads::default();
        for batch in self.loops.iter().flat_map(|one| &one.asked) {
            let updates = batch.inputs.iter().map(|input| kind_of_input(input) == "loop: update");
            updates.for_each(|is_update| loads.note(batch.at, usize::from(is_update)));
            loads.note(batch.at, 2);
        }
        loads
    }

    /// Blocks of the index that its doors asked for names of. They are not simulated.
    pub fn walks(&self) -> u64 {
        self.loops.iter().map(|one| one.walks).sum()
    }

    /// Why it cannot be simulated.
    pub(super) fn lacks(&self) -> Option<String> {
        let jbof = &self.site.jbof;
        let [helper] = &self.helpers[..] else {
            let why = if self.helpers.is_empty() { "has no journal" } else { "was started more than once" };
            return Some(format!("the helper of `{jbof}` {why}"));
        };
        let mut names: Vec<&str> = self.loops.iter().map(|one| &*one.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
            return Some(format!("`{}` was started more than once", twice[0]));
        }
        if let Some(away) = self.loops.iter().find(|one| one.was_away) {
            return Some(format!("the JBOF of `{}` was away meanwhile", away.name));
        }
        let fits = |one: &LoopSeen| one.welcome.is_some_and(|welcome| welcome.blocks == helper.config.blocks);
        if let Some(odd) = self.loops.iter().find(|one| !fits(one)) {
            return Some(format!("`{}` had another JBOF than `{jbof}`", odd.name));
        }
        if !self.has_one_clock {
            return Some(format!(
                "the journals of `{jbof}` and its doors are of several machines, and no updates and answers of a store \
                 tell how their clocks differ"
            ));
        }
        let slots = self.loops.iter().filter_map(|one| one.welcome).map(|welcome| u64::from(welcome.slots)).max();
        match slots {
            None => Some(format!("no door of `{jbof}` has a journal")),
            Some(slots) if slots.saturating_mul(helper.config.blocks.into()) > SLOTS_MAX => {
                Some(format!("`{jbof}` has more than {SLOTS_MAX} slots"))
            }
            Some(_) => None,
        }
    }
}

impl LoopSeen {
    fn see(&mut self, at: Option<Time>, entry: &ClientEntry<Length>) {
        self.at = at.unwrap_or(self.at);
        // Decisions follow each input.
        self.in_batch &= matches!(entry, Entry::Decided(_)) || is_asked(entry);
        match entry {
            Entry::Met { welcome, .. } => {
                self.was_away |= self.welcome.is_some_and(|known| known.epoch != welcome.epoch);
                self.welcome = Some(*welcome);
            }
            // A loop that begins meets its JBOF twice.
            Entry::Lost { .. } => self.was_away |= !self.asked.is_empty(),
            Entry::Input { input: input @ (ClientIn::Issue { .. } | ClientIn::Describe { .. }), .. } => {
                if !std::mem::replace(&mut self.in_batch, true) {
                    let (at, ended) = (self.at, self.ended);
                    let gap = (ended > 0).then(|| at.saturating_since(self.ended_at));
                    let soon = gap.filter(|gap| *gap <= SOON);
                    self.asked.push(Batch { at, ended, soon, inputs: Vec::new() });
                }
                self.asked.last_mut().into_iter().for_each(|batch| batch.inputs.push(input.clone()));
            }
            Entry::Input { input: ClientIn::Names { ticket, .. }, .. } => {
                self.walks += 1;
                self.walking.insert(*ticket);
            }
            Entry::Decided(ClientOut::Done { ticket, .. }) if !self.walking.remove(ticket) => {
                (self.ended, self.ended_at) = (self.ended + 1, self.at);
            }
            _ => {}
        }
    }
}

/// Whether a host asks a loop for something.
fn is_asked(entry: &ClientEntry<Length>) -> bool {
    matches!(entry, Entry::Input { input, .. } if model::is_asked(kind_of_input(input)))
}

/// How long after the last thing that happened live a simulation goes on.
pub(super) const GRACE: Span = Span::secs(10);
