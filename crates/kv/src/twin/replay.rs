//! A journal again, by the same program: its decisions are compared one by one.

use super::seen::Seen;
use crate::journal::{ClientEntry, Entry, Part, Put, Reader as Journal, ServerEntry, Take};
use crate::noted::{client_numbers, server_numbers};
use crate::reader::Reader;
use base::{Program, Time};
use runtime::journal::JournalError;
use runtime::replay::Replayed;
use scalio::{ClientIn, ClientOut, Length, Server, ServerIn, ServerOut};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Replays a journal. What it says goes to `seen` too.
///
/// # Errors
/// When it cannot be read, or says what no program was told.
pub(super) fn replay(journal: Journal, seen: Option<&mut Seen>) -> Result<Replayed, JournalError> {
    match journal.beginning().part {
        Part::Loop(_) => Play::<Again>::of(journal, seen),
        Part::Helper => Play::<Option<Server<Length>>>::of(journal, seen),
    }
}

/// A program without what is around it.
trait Anew: Default {
    type In: Take + Debug;
    type Out: Put + Take + Debug + PartialEq;
    /// Takes what is no decision. The program's time is `now`.
    ///
    /// # Errors
    /// Why no such program was told this.
    fn take(
        &mut self,
        now: Time,
        entry: Entry<Self::In, Self::Out>,
        out: &mut Vec<Self::Out>,
    ) -> Result<(), &'static str>;
    fn numbers(&self) -> BTreeMap<String, u64>;
    /// Tells what it is about to take.
    fn tell(&self, seen: &mut Seen, entry: &Entry<Self::In, Self::Out>);
}

/// The client of a loop.
type Again = Option<Reader<Length>>;

impl Anew for Again {
    type In = ClientIn<Length>;
    type Out = ClientOut<Length>;

    fn take(
        &mut self,
        now: Time,
        entry: ClientEntry<Length>,
        out: &mut Vec<ClientOut<Length>>,
    ) -> Result<(), &'static str> {
        match (entry, self) {
            (Entry::Met { welcome, .. }, _) if welcome.blocks == 0 => return Err("a JBOF without blocks"),
            (Entry::Met { at, welcome }, reader) => *reader = Some(Reader::new(at, &welcome)),
            (Entry::Lost { .. }, reader) => *reader = None,
            (Entry::Learnt { at, there }, Some(reader)) => reader.learn(at, there),
            (Entry::Input { input, .. }, Some(reader)) => {
                let there = reader.there(now);
                reader.program.on(there, input, out);
            }
            (Entry::Woke { .. }, Some(reader)) => {
                let there = reader.there(now);
                reader.program.on_wakeup(there, out);
            }
            (Entry::Gone { .. } | Entry::Began { .. }, _) => return Err("what a helper is told"),
            (_, None) => return Err("an input without a JBOF"),
            (Entry::Turn { .. } | Entry::Decided(_) | Entry::Rested { .. } | Entry::Finished { .. }, _) => {}
        }
        Ok(())
    }

    fn numbers(&self) -> BTreeMap<String, u64> {
        self.as_ref().map(|reader| client_numbers(&reader.program.counters())).unwrap_or_default()
    }

    fn tell(&self, seen: &mut Seen, entry: &ClientEntry<Length>) {
        seen.see_loop(entry, self.as_ref().and_then(Reader::next_wakeup));
    }
}

/// The helper of a JBOF.
impl Anew for Option<Server<Length>> {
    type In = ServerIn<Length>;
    type Out = ServerOut<Length>;

    fn take(
        &mut self,
        now: Time,
        entry: ServerEntry<Length>,
        out: &mut Vec<ServerOut<Length>>,
    ) -> Result<(), &'static str> {
        match (entry, self) {
            (Entry::Began { config, kept, .. }, server) => {
                let is_sound =
                    config.devices == 1 && config.device == 0 && config.blocks > 0 && config.zone_sectors > 0;
                // What it knows tells its size: memory is taken for no more than is there.
                let is_its = kept.pointers.len() == config.blocks as usize && kept.zones.len() == config.zones as usize;
                let begun = (is_sound && is_its).then(|| Server::resume(config, kept)).flatten();
                *server = Some(begun.ok_or("a beginning of no helper")?);
            }
            (Entry::Input { input, .. }, Some(server)) => server.on(now, input, out),
            (Entry::Woke { .. }, Some(server)) => server.on_wakeup(now, out),
            (Entry::Gone { client, .. }, Some(server)) => server.forget(client),
            (Entry::Met { .. } | Entry::Lost { .. } | Entry::Learnt { .. }, _) => return Err("what a loop is told"),
            (_, None) => return Err("an input before the beginning"),
            (Entry::Turn { .. } | Entry::Decided(_) | Entry::Rested { .. } | Entry::Finished { .. }, _) => {}
        }
        Ok(())
    }

    fn numbers(&self) -> BTreeMap<String, u64> {
        self.as_ref().map(server_numbers).unwrap_or_default()
    }

    fn tell(&self, seen: &mut Seen, entry: &ServerEntry<Length>) {
        seen.see_helper(entry);
    }
}

struct Play<A: Anew> {
    anew: A,
    now: Time,
    at: Time,
    live: Vec<A::Out>,
    twin: Vec<A::Out>,
    replayed: Replayed,
}

impl<A: Anew> Play<A> {
    fn of(mut journal: Journal, mut seen: Option<&mut Seen>) -> Result<Replayed, JournalError> {
        let replayed = Replayed::of(journal.beginning().name());
        let (at, anew) = (Time::ZERO, A::default());
        let mut play = Play { anew, now: at, at, live: Vec::new(), twin: Vec::new(), replayed };
        while let Some(entry) = journal.next()? {
            seen.iter_mut().for_each(|seen| play.anew.tell(seen, &entry));
            // A program has invariants that a journal can break, and nothing else does here.
            let stepped = catch_unwind(AssertUnwindSafe(|| play.step(entry)));
            let broken = stepped.unwrap_or(Err("it breaks an invariant of the program"));
            broken.map_err(|what| journal.damaged(&format!("input {}: {what}", play.replayed.inputs)))?;
        }
        play.replayed.compare_last(play.at, &mut play.live, &mut play.twin);
        (play.replayed.is_cut, play.replayed.numbers) = (journal.is_cut(), play.anew.numbers());
        play.replayed.end = play.at;
        Ok(play.replayed)
    }

    fn step(&mut self, entry: Entry<A::In, A::Out>) -> Result<(), &'static str> {
        match entry {
            Entry::Turn { now } => self.now = now,
            Entry::Decided(decision) => self.live.push(decision),
            Entry::Rested { .. } => {}
            Entry::Finished { numbers } => {
                self.compare();
                self.replayed.ended(numbers, &self.anew.numbers());
            }
            entry => {
                self.compare();
                self.replayed.inputs += 1;
                self.at = entry.at().unwrap_or(self.at);
                self.anew.take(self.now, entry, &mut self.twin)?;
            }
        }
        Ok(())
    }

    fn compare(&mut self) {
        self.replayed.compare(self.at, &mut self.live, &mut self.twin);
    }
}
