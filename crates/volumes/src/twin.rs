//! The twin of a live rack: its roles run again without sockets, files and threads.
//!
//! Journals say what came in at each role ([`crate::journal`]). [`replay`] passes it to
//! the same role again and compares what it does. [`simulate`] lets all roles of the
//! rack run together in virtual time, with the requests that doors were asked. Between them is a
//! [`Model`] of links, processors and timers, which [`Fit`] takes from journals. Both give
//! [`Requests`], whose spans have one definition.

mod model;
mod planned;
mod replay;
mod requests;
mod run;
mod simulate;

pub use model::{Fit, Host, Kind, Link, Machine, Model, Pause, SLEEPS};
pub use planned::{first_lives, planned_load};
pub use replay::replay;
pub use requests::{Parts, Request, Requests, Served};
pub use run::{Journals, Life, Told, TwinError};
pub use runtime::replay::{Difference, Replayed};
pub use runtime::times::Times;
pub use simulate::{Load, PageAsk, Simulated, simulate};

use crate::configs;
use crate::control::ControlRole;
use crate::journal::{Beginning, End, Entry, State};
use crate::role::{Carrier, Role};
use crate::storage::StorageRole;
use crate::switch::SwitchRole;
use crate::volume::{Ask, DoorRole};
use base::{NodeId, Time};
use blox::{PAGE_BYTES, Packet, Page, Tag, Value, VssdId};
use bytes::Bytes;
use plan::rack::Rack;
use runtime::error::StartError;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What a role did: [`Entry::Sent`] and [`Entry::Ended`].
#[derive(Default)]
struct Done(Vec<Entry>);

impl Carrier for Done {
    fn send(&mut self, to: NodeId, packet: &Packet, _: Option<&Bytes>) {
        self.0.push(Entry::Sent { to, packet: *packet });
    }
    fn asked(&mut self, _: Time, _: u32, _: Page, _: bool) {}
    fn ended(&mut self, tag: Tag, end: End) {
        self.0.push(Entry::Ended { tag, end });
    }
    fn rotted(&mut self, _: VssdId, _: Page, _: Option<Value>) {}
}

/// A role without files and sockets, as it was when its journal began.
struct Anew {
    role: Box<dyn Role>,
    asks: Sender<Ask>,
    /// Answers for nobody.
    answers: Receiver<(usize, std::io::Result<Bytes>)>,
    answer: Sender<(usize, std::io::Result<Bytes>)>,
    page: Bytes,
    done: Done,
}

/// The largest first tag or sign of life: from it a role counts up for as long as it lives.
const FIRST_MAX: u64 = u64::MAX / 2;

impl Anew {
    fn new(rack: &Rack, beginning: &Beginning) -> Result<Anew, StartError> {
        if !is_possible(rack, beginning) {
            return Err(StartError::plan(format!("the journal of `{}` begins as no role of the rack", beginning.name)));
        }
        let (asks, asked) = channel();
        let (answer, answers) = channel();
        let role: Box<dyn Role> = match beginning.state.clone() {
            State::Switch { hello } => Box::new(SwitchRole::new(rack, hello)?),
            State::Control { state } => Box::new(ControlRole::new(rack, state.map(|state| *state), None)?),
            State::Storage { server, starts, adopted, values } => {
                Box::new(StorageRole::twin(rack, server, (starts, adopted), values)?)
            }
            State::Door { door, start } => Box::new(DoorRole::new(rack, door, start, asked)?),
        };
        let page = Bytes::from(vec![0; PAGE_BYTES as usize]);
        Ok(Anew { role, asks, answers, answer, page, done: Done::default() })
    }

    /// A packet comes in.
    fn take(&mut self, now: Time, packet: Packet) {
        let data = if packet.body.value().is_some() { self.page.clone() } else { Bytes::new() };
        self.role.on_packet(now, packet, &data, &mut self.done);
    }

    /// A host asks for a page. The role begins with it when it is [woken](Self::begin).
    fn ask(&mut self, volume: u32, page: Page, is_write: bool) {
        let data = is_write.then(|| self.page.clone());
        // The role has the other end.
        let _ = self.asks.send(Ask { volume, page, data, place: 0, is_left: None, answer: self.answer.clone() });
    }

    fn begin(&mut self, now: Time) {
        self.role.on_waker(now, &mut self.done);
        while self.answers.try_recv().is_ok() {}
    }

    fn leave(&mut self, now: Time, tag: Tag) {
        self.role.leave(now, tag, &mut self.done);
        while self.answers.try_recv().is_ok() {}
    }

    fn wake(&mut self, now: Time) {
        self.role.on_wakeup(now, &mut self.done);
        while self.answers.try_recv().is_ok() {}
    }

    /// How many packets it has just sent, and whether one has a page of data.
    fn sends(&self) -> (u32, bool) {
        let sent = self.done.0.iter().filter_map(|done| match done {
            Entry::Sent { packet, .. } => Some(packet.body.value().is_some()),
            _ => None,
        });
        sent.fold((0, false), |(count, any), has_data| (count + 1, any || has_data))
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        self.role.numbers().iter().map(|number| (number.name.to_owned(), number.value)).collect()
    }
}

/// Whether a role of the rack can have begun so.
fn is_possible(rack: &Rack, beginning: &Beginning) -> bool {
    let node = NodeId(beginning.node);
    match &beginning.state {
        State::Switch { hello } => node == configs::switch_node(rack) && *hello <= FIRST_MAX,
        State::Control { .. } => node == configs::control_node(rack),
        State::Storage { server, starts, .. } => {
            *server < rack.storage.len() && node.index() == *server && *starts < u32::MAX
        }
        State::Door { door, start } => {
            *door < rack.doors.len() && node == configs::door_node(rack, *door) && *start <= FIRST_MAX
        }
    }
}
