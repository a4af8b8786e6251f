//! A journal again, by the same role: its decisions are compared one by one.

use super::model::Fit;
use super::requests::Requests;
use super::{Anew, TwinError};
use crate::journal::{Beginning, Entry, Reader};
use base::{NodeId, Time};
use plan::rack::Rack;
use runtime::clocks::Axis;
use runtime::replay::Replayed;

/// Replays a journal. What is seen goes to `requests` and to `fit` too.
///
/// # Errors
/// When the journal cannot be read, or is not one of this rack.
pub fn replay(
    rack: &Rack,
    mut journal: Reader,
    axis: Axis,
    requests: &mut Requests,
    fit: &mut Fit,
) -> Result<Replayed, TwinError> {
    let beginning = journal.beginning().clone();
    let node = NodeId(beginning.node);
    let mut play = Play {
        anew: Anew::new(rack, &beginning).map_err(TwinError::Start)?,
        live: Vec::new(),
        asked: None,
        at: Time::ZERO,
        replayed: Replayed::of(beginning.name),
    };
    requests.begin(node, &beginning.state);
    fit.begin(node, &beginning.boot, beginning.processors);
    let mut at = Time::ZERO;
    while let Some(entry) = journal.next()? {
        at = time_of(&entry).unwrap_or(at);
        let seen = axis.at(at);
        play.replayed.end = seen;
        requests.see(seen, node, &entry);
        if let Entry::Wakeup { .. } = entry {
            // What is due at its own time zero is due when it starts.
            let due = play.anew.role.next_wakeup().filter(|due| *due > Time::ZERO);
            fit.due(node, seen, due.map(|due| axis.at(due)));
        }
        fit.see(seen, node, &entry);
        play.step(entry);
    }
    play.end();
    let Play { anew, mut replayed, .. } = play;
    (replayed.is_cut, replayed.numbers) = (journal.is_cut(), anew.counters());
    Ok(replayed)
}

/// Has a model see all of a journal, without a role.
///
/// # Errors
/// When the journal cannot be read.
pub fn look(mut journal: Reader, axis: Axis, fit: &mut Fit) -> Result<(), TwinError> {
    let Beginning { node, boot, processors, .. } = journal.beginning();
    let node = NodeId(*node);
    fit.begin(node, boot, *processors);
    let mut at = Time::ZERO;
    while let Some(entry) = journal.next()? {
        at = time_of(&entry).unwrap_or(at);
        fit.see(axis.at(at), node, &entry);
    }
    Ok(())
}

/// When an input came.
fn time_of(entry: &Entry) -> Option<Time> {
    match entry {
        Entry::Packet { at, .. }
        | Entry::Wakeup { at }
        | Entry::Asked { at, .. }
        | Entry::HostLeft { at, .. }
        | Entry::Rested { at }
        | Entry::Left { at } => Some(*at),
        Entry::Sent { .. }
        | Entry::Ended { .. }
        | Entry::Rotted { .. }
        | Entry::Processor { .. }
        | Entry::Machine { .. }
        | Entry::Finished { .. } => None,
    }
}

struct Play {
    anew: Anew,
    /// What the role did after the last input.
    live: Vec<Entry>,
    /// When requests came that the role has not begun with. It begins with all that wait at once.
    asked: Option<Time>,
    /// When the last input came, by the role's clock.
    at: Time,
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
        self.at = time_of(&entry).unwrap_or(self.at);
        match entry {
            Entry::Packet { at, packet } => self.anew.take(at, packet),
            Entry::Wakeup { at } => self.anew.wake(at),
            Entry::Asked { at, volume, page, is_write } => {
                self.asked = Some(at);
                self.anew.ask(volume, page, is_write);
            }
            Entry::HostLeft { at, tag } => self.anew.leave(at, tag),
            _ => {}
        }
    }

    fn see(&mut self, entry: Entry) {
        let numbers = match entry {
            Entry::Finished { numbers } => numbers,
            Entry::Rested { .. } | Entry::Left { .. } | Entry::Processor { .. } | Entry::Machine { .. } => return,
            Entry::Rotted { vssd, page, named } => return self.anew.role.rot(vssd, page, named),
            done => return self.live.push(done),
        };
        self.settle();
        self.compare();
        let here = self.anew.counters();
        self.replayed.ended(numbers, &here);
    }

    /// Lets the role begin with what it was asked.
    fn settle(&mut self) {
        if let Some(at) = self.asked.take() {
            self.anew.begin(at);
        }
    }

    fn end(&mut self) {
        self.settle();
        self.replayed.compare_last(self.at, &mut self.live, &mut self.anew.done.0);
    }

    fn compare(&mut self) {
        self.replayed.compare(self.at, &mut self.live, &mut self.anew.done.0);
    }
}
