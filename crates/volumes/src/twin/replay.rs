//! A journal again, by the same role: its decisions are compared one by one.

use super::model::Fit;
use super::requests::Requests;
use super::{Anew, TwinError};
use crate::journal::{Entry, Reader};
use base::{NodeId, Time};
use plan::rack::Rack;
use serde::Serialize;
use std::collections::BTreeMap;

/// The first decision that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The input's place in the journal.
    pub input: u64,
    /// What the role did then.
    pub live: String,
    /// What it does now.
    pub twin: String,
}

/// What came of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replayed {
    /// The role.
    pub name: String,
    /// Packets, wake-ups and requests that came in.
    pub inputs: u64,
    /// Packets sent and requests ended.
    pub decisions: u64,
    /// Inputs after which something else was done. After the first, more are no surprise.
    pub differences: u64,
    /// The first of them.
    pub first: Option<Difference>,
    /// Whether the journal breaks off within an entry.
    pub is_cut: bool,
    /// The role's counters at its end, where it ended in order and they differ: live, and here.
    pub counters: Vec<(String, u64, u64)>,
    /// Its counters at the end of the replay.
    #[serde(skip)]
    pub numbers: BTreeMap<String, u64>,
    /// Whether it ended in order.
    pub is_whole: bool,
    /// When its last input came, by the clock of the rack.
    #[serde(skip)]
    pub end: Time,
}

impl Replayed {
    /// Whether the role decided otherwise than live.
    pub fn differs(&self) -> bool {
        self.differences > 0 || !self.counters.is_empty()
    }
}

/// Replays a journal. What is seen goes to `requests` and to `fit` too.
///
/// # Errors
/// When the journal cannot be read, or is not one of this rack.
pub fn replay(
    rack: &Rack,
    mut journal: Reader,
    since_ns: u64,
    requests: &mut Requests,
    fit: &mut Fit,
) -> Result<Replayed, TwinError> {
    let beginning = journal.beginning().clone();
    let node = NodeId(beginning.node);
    let offset = Time::ps(beginning.clock_ns.saturating_sub(since_ns).saturating_mul(1_000));
    let mut play = Play {
        anew: Anew::new(rack, &beginning).map_err(TwinError::Start)?,
        live: Vec::new(),
        asked: None,
        replayed: Replayed { name: beginning.name, ..Replayed::default() },
    };
    requests.begin(node, &beginning.state);
    fit.begin();
    let mut at = Time::ZERO;
    while let Some(entry) = journal.next()? {
        at = time_of(&entry).unwrap_or(at);
        let seen = at + (offset - Time::ZERO);
        play.replayed.end = seen;
        requests.see(seen, node, &entry);
        if let Entry::Wakeup { at } = entry {
            fit.due(node, at, play.anew.role.next_wakeup());
        }
        fit.see(seen, node, &entry);
        play.step(entry);
    }
    play.end();
    let Play { anew, mut replayed, .. } = play;
    (replayed.is_cut, replayed.numbers) = (journal.is_cut(), anew.counters());
    Ok(replayed)
}

/// When an input came.
fn time_of(entry: &Entry) -> Option<Time> {
    match entry {
        Entry::Packet { at, .. } | Entry::Wakeup { at } | Entry::Asked { at, .. } | Entry::Rested { at } => Some(*at),
        Entry::Sent { .. } | Entry::Ended { .. } | Entry::Rotted { .. } | Entry::Finished { .. } => None,
    }
}

struct Play {
    anew: Anew,
    /// What the role did after the last input.
    live: Vec<Entry>,
    /// When requests came that the role has not begun with. It begins with all that wait at once.
    asked: Option<Time>,
    replayed: Replayed,
}

impl Play {
    fn step(&mut self, entry: Entry) {
        if !entry.is_input() {
            return self.see(entry);
        }
        let is_more = matches!(entry, Entry::Asked { at, .. } if self.asked == Some(at) && self.live.is_empty());
        if !is_more {
            self.settle();
            self.compare();
        }
        self.replayed.inputs += 1;
        match entry {
            Entry::Packet { at, packet } => self.anew.take(at, packet),
            Entry::Wakeup { at } => self.anew.wake(at),
            Entry::Asked { at, volume, page, is_write } => {
                self.asked = Some(at);
                self.anew.ask(volume, page, is_write);
            }
            _ => {}
        }
    }

    fn see(&mut self, entry: Entry) {
        let numbers = match entry {
            Entry::Finished { numbers } => numbers,
            Entry::Rested { .. } => return,
            Entry::Rotted { vssd, page, named } => return self.anew.role.rot(vssd, page, named),
            done => return self.live.push(done),
        };
        self.settle();
        self.compare();
        self.replayed.is_whole = true;
        let here = self.anew.counters();
        let differ = numbers.into_iter().filter_map(|(name, live)| {
            let here = here.get(&name).copied().unwrap_or_default();
            (here != live).then_some((name, live, here))
        });
        self.replayed.counters = differ.collect();
    }

    /// Lets the role begin with what it was asked.
    fn settle(&mut self) {
        if let Some(at) = self.asked.take() {
            self.anew.begin(at);
        }
    }

    /// A role that was killed may have done more than its journal says.
    fn end(&mut self) {
        self.settle();
        let twin = &mut self.anew.done.0;
        if !self.replayed.is_whole && twin.starts_with(&self.live) {
            twin.truncate(self.live.len());
        }
        self.compare();
    }

    fn compare(&mut self) {
        let twin = &mut self.anew.done.0;
        self.replayed.decisions += self.live.len() as u64;
        if *twin != self.live {
            self.replayed.differences += 1;
            let place = twin.iter().zip(&self.live).take_while(|(twin, live)| twin == live).count();
            let told = |entries: &[Entry]| entries.get(place).map_or("nothing".into(), |entry| format!("{entry:?}"));
            let (input, live, twin) = (self.replayed.inputs, told(&self.live), told(twin));
            self.replayed.first.get_or_insert(Difference { input, live, twin });
        }
        twin.clear();
        self.live.clear();
    }
}
