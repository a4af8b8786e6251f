//! Programs of a store with their journals: nothing reaches a program, and nothing leaves it,
//! beside them.

use crate::frames::Welcome;
use crate::journal::{Bare, Put, Writer};
use crate::reader::Reader;
use base::{Program, Time};
use bytes::Bytes;
use scalio::{
    ClientCounters, ClientId, ClientIn, ClientOut, Kept, Server, ServerConfig, ServerCounters, ServerIn, ServerOut,
    Value,
};
use std::collections::BTreeMap;
use std::ops::Deref;

/// The client of a loop, where its JBOF is there.
pub struct NotedReader {
    reader: Option<Reader<Bytes>>,
    journal: Option<Writer>,
}

impl NotedReader {
    /// One whose JBOF is away.
    pub fn new(journal: Option<Writer>) -> NotedReader {
        NotedReader { reader: None, journal }
    }

    /// Whether the JBOF is there.
    pub fn is_there(&self) -> bool {
        self.reader.is_some()
    }

    /// What the client has counted since the JBOF is there.
    pub fn counters(&self) -> ClientCounters {
        self.reader.as_ref().map_or_else(ClientCounters::default, |reader| reader.program.counters())
    }

    /// When the client wants to be woken, by the time of the loop.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.reader.as_ref().and_then(Reader::next_wakeup)
    }

    /// The JBOF is there since `at`: what the client knows begins anew.
    pub fn meet(&mut self, at: Time, welcome: &Welcome) {
        self.journal.iter_mut().for_each(|journal| journal.write(&Bare::Met { at, welcome: *welcome }));
        self.reader = Some(Reader::new(at, welcome));
    }

    /// The JBOF is away.
    pub fn lose(&mut self) {
        if self.reader.take().is_some() {
            self.journal.iter_mut().for_each(|journal| journal.note(|at| Bare::Lost { at }));
        }
    }

    /// The JBOF's time is `there`, and that of the loop `at`.
    pub fn learn(&mut self, at: Time, there: Time) {
        if let Some(reader) = &mut self.reader {
            self.journal.iter_mut().for_each(|journal| journal.write(&Bare::Learnt { at, there }));
            reader.learn(at, there);
        }
    }

    /// Tells the client something. Without a JBOF there is none, and `false` is returned.
    pub fn tell(&mut self, now: Time, input: ClientIn<Bytes>, out: &mut Vec<ClientOut<Bytes>>) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let there = reader.there(now);
        note_input(&mut self.journal, now, &input);
        let before = out.len();
        reader.program.on(there, input, out);
        note(&mut self.journal, &out[before..]);
        true
    }

    /// Lets time pass for the client. Where it waits for nothing that is due, that changes nothing,
    /// and is not noted.
    pub fn wake(&mut self, now: Time, out: &mut Vec<ClientOut<Bytes>>) {
        let Some(reader) = &mut self.reader else { return };
        if reader.program.next_wakeup().is_some_and(|due| due <= reader.at(now)) {
            self.journal.iter_mut().for_each(|journal| journal.woke(now));
            let (there, before) = (reader.there(now), out.len());
            reader.program.on_wakeup(there, out);
            note(&mut self.journal, &out[before..]);
        }
    }

    /// The turn of the loop has ended.
    pub fn rest(&mut self) {
        self.journal.iter_mut().for_each(Writer::rests);
    }

    /// The loop ends in order.
    pub fn finish(&mut self) {
        let numbers = || self.reader.as_ref().map(|reader| client_numbers(&reader.program.counters()));
        if let Some(journal) = &mut self.journal {
            journal.write(&Bare::Finished { numbers: numbers().unwrap_or_default() });
        }
    }
}

/// The helper of a JBOF.
pub struct NotedHelper {
    program: Server<Bytes>,
    journal: Option<Writer>,
}

impl NotedHelper {
    /// One that is yet to recover. That is not noted: its journal begins with what it then knows.
    pub fn new(program: Server<Bytes>) -> NotedHelper {
        NotedHelper { program, journal: None }
    }

    /// One that has recovered, and begins with what it knows, as its twin does. `false` where it
    /// cannot.
    pub fn begin(&mut self, config: ServerConfig, mut journal: Option<Writer>) -> bool {
        let kept: Kept = self.program.kept();
        journal.iter_mut().for_each(|journal| journal.note(|at| Bare::Began { at, config, kept: kept.clone() }));
        let Some(program) = Server::resume(config, kept) else { return false };
        *self = NotedHelper { program, journal };
        true
    }

    /// Tells the helper something.
    pub fn tell(&mut self, now: Time, input: ServerIn<Bytes>, out: &mut Vec<ServerOut<Bytes>>) {
        note_input(&mut self.journal, now, &input);
        let before = out.len();
        self.program.on(now, input, out);
        note(&mut self.journal, &out[before..]);
    }

    /// Lets time pass for the helper, if it waits for a time that has come.
    pub fn wake(&mut self, now: Time, out: &mut Vec<ServerOut<Bytes>>) {
        if self.program.next_wakeup().is_some_and(|due| due <= now) {
            self.journal.iter_mut().for_each(|journal| journal.woke(now));
            let before = out.len();
            self.program.on_wakeup(now, out);
            note(&mut self.journal, &out[before..]);
        }
    }

    /// A door is gone.
    pub fn forget(&mut self, client: ClientId) {
        self.journal.iter_mut().for_each(|journal| journal.note(|at| Bare::Gone { at, client }));
        self.program.forget(client);
    }

    /// The turn of the JBOF has ended.
    pub fn rest(&mut self) {
        self.journal.iter_mut().for_each(Writer::rests);
    }

    /// The JBOF ends in order.
    pub fn finish(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.write(&Bare::Finished { numbers: server_numbers(&self.program) });
        }
    }
}

impl Deref for NotedHelper {
    type Target = Server<Bytes>;
    fn deref(&self) -> &Server<Bytes> {
        &self.program
    }
}

fn note_input(journal: &mut Option<Writer>, now: Time, input: &impl Put) {
    journal.iter_mut().for_each(|journal| journal.told(now, input));
}

fn note(journal: &mut Option<Writer>, decided: &[impl Put]) {
    journal.iter_mut().for_each(|journal| journal.decided(decided));
}

/// The counters of a client, by name.
pub fn client_numbers(counters: &ClientCounters) -> BTreeMap<String, u64> {
    let ClientCounters {
        hits,
        misses,
        bypasses,
        waits,
        shared,
        lost_races,
        evictions,
        ties,
        torn,
        foreign,
        corrupt,
        fills,
        repeats,
    } = *counters;
    let all = [
        ("hits", hits),
        ("misses", misses),
        ("bypasses", bypasses),
        ("waits", waits),
        ("shared", shared),
        ("lost_races", lost_races),
        ("evictions", evictions),
        ("ties", ties),
        ("torn", torn),
        ("foreign", foreign),
        ("corrupt", corrupt),
        ("fills", fills),
        ("repeats", repeats),
    ];
    named(all)
}

/// The counters of a helper, by name, and what it has on flash.
pub fn server_numbers<V: Value>(server: &Server<V>) -> BTreeMap<String, u64> {
    let ServerCounters {
        updates,
        groups,
        invalidations,
        invalidation_retries,
        repeats,
        handed_over,
        corrupt,
        sectors_written,
        sectors_moved,
        zones_reclaimed,
    } = server.counters();
    let all = [
        ("updates", updates),
        ("groups", groups),
        ("invalidations", invalidations),
        ("invalidation_retries", invalidation_retries),
        ("repeats", repeats),
        ("handed_over", handed_over),
        ("corrupt", corrupt),
        ("sectors_written", sectors_written),
        ("sectors_moved", sectors_moved),
        ("zones_reclaimed", zones_reclaimed),
        ("keys", server.keys()),
        ("live_bytes", server.live_bytes()),
    ];
    named(all)
}

fn named(all: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    all.into_iter().map(|(name, value)| (name.into(), value)).collect()
}
