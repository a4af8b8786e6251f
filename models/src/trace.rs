//! An execution as text: a row a step, a column for each client and the server, and what the step
//! left in memory.

mod client;
mod memory;

use crate::judge::Answer;
use crate::model::{CacheModel, Step};
use crate::reduced::{Folded, Reduced};
use crate::scenario::{ABSENT, FOREIGN, Key, Operation, Value};
use crate::server::{Order, Stage};
use crate::state::{Fault, State};
use crate::variant::Flaw;
use stateright::Path;

/// An execution, step by step, with the state after each.
pub struct Trace {
    model: CacheModel,
    first: State,
    steps: Vec<(Step, State)>,
}

/// A row: by column, then memory.
type Row = Vec<String>;

impl Trace {
    /// What the checker has found.
    pub(crate) fn new(model: CacheModel, path: Path<State, Step>) -> Trace {
        let (states, steps): (Vec<State>, Vec<Option<Step>>) = path.into_vec().into_iter().unzip();
        let mut states = states.into_iter();
        let first = states.next().expect("a path has a first state");
        Trace { model, first, steps: steps.into_iter().flatten().zip(states).collect() }
    }

    /// What the checker has found in fewer states, in single steps.
    pub(crate) fn of_reduced(model: CacheModel, reduced: &Reduced, path: Path<Folded, Step>) -> Trace {
        let path = path.into_vec();
        let first = path.first().expect("a path has a first state").0.state.clone();
        let taken = path.into_iter().filter_map(|(folded, step)| Some(reduced.steps(&folded.state, step?)));
        Trace { model, first, steps: taken.flatten().collect() }
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// What is wrong at its end.
    pub fn fault(&self) -> Option<Fault> {
        self.steps.last().and_then(|(_, state)| state.fault)
    }

    fn clients(&self) -> usize {
        self.first.clients.len()
    }

    fn header(&self) -> Row {
        let clients = (0..self.clients()).map(|client| format!("client {}", client_name(client)));
        clients.chain(["server".to_owned()]).chain(memory::header(&self.first)).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let columns = self.clients() + 1;
        let mut rows =
            vec![self.header(), [vec![String::new(); columns], memory::cells(&self.model, &self.first)].concat()];
        let mut before = &self.first;
        for (step, after) in &self.steps {
            let mut row = vec![String::new(); columns];
            self.tell(*step, before, after, &mut row);
            let (old, new) = (memory::cells(&self.model, before), memory::cells(&self.model, after));
            row.extend(new.into_iter().zip(old).map(|(new, old)| if new == old { String::new() } else { new }));
            rows.push(row);
            before = after;
        }
        rows
    }

    fn tell(&self, step: Step, before: &State, after: &State, row: &mut Row) {
        let server = self.clients();
        match step {
            Step::Client { client, .. } => row[client] = client::tell(&self.model, before, after, client),
            Step::Death { client } => row[client] = "dies".to_owned(),
            Step::Take { order } => row[server] = self.tell_take(before, order),
            Step::Advance { lane } => row[server] = self.tell_batch(before, lane),
            Step::ServeGet { client } => row[server] = format!("answers {} from the index", client_name(client)),
            Step::Recover { step } => row[server] = self.tell_recovery(step),
            Step::Lapse { slot } => row[server] = format!("(the lease of slot {slot} runs out)"),
            Step::Crash { loses_cached: true } => row[server] = "crashes; unflushed records are lost".to_owned(),
            Step::Crash { loses_cached: false } => row[server] = "crashes; unflushed records survive".to_owned(),
            Step::Overwrite { place } => row[server] = format!("uses place {place} again for another block"),
            Step::OverwriteValue { place } => row[server] = format!("uses value {place} again for another block"),
            Step::Move => row[server] = "moves the record".to_owned(),
        }
        self.tell_answers(before, after, row);
    }

    /// The answer of a step is in the column of its client.
    fn tell_answers(&self, before: &State, after: &State, row: &mut Row) {
        for (client, cell) in row.iter_mut().enumerate().take(self.clients()) {
            let (old, new) = (&before.clients[client], &after.clients[client]);
            let was_told = !old.is_answered && (new.is_answered || new.done > old.done);
            let Some(answer) = new.told.0.filter(|_| was_told && !new.is_dead) else { continue };
            let key = self.model.operation(before, client).key();
            let gap = if cell.is_empty() { "" } else { " " };
            cell.push_str(&format!("{gap}=> {}", answer_text(key, answer)));
        }
    }

    fn tell_take(&self, before: &State, order: Order) -> String {
        let taken = order.into_iter().flatten().map(usize::from);
        let requests: Vec<String> = taken.map(|client| operation_text(self.model.operation(before, client))).collect();
        format!("appends record {}: {}", before.server.sequence + 1, requests.join(", "))
    }

    fn tell_batch(&self, before: &State, lane: usize) -> String {
        let batch = before.server.lanes[lane].as_ref().expect("a step is of a batch");
        let sequence = batch.header.sequence;
        let is_late = sequence < before.memory.header.sequence && !self.model.variant.has(Flaw::OffsetOfAnyBatch);
        match batch.stage {
            Stage::Flush => format!("flushes record {sequence}"),
            Stage::Store if is_late => format!("leaves the offset: {sequence} is older"),
            Stage::Store => format!("stores offset {sequence}"),
            Stage::Invalidate { slot, .. } => format!("invalidates slot {slot}"),
            Stage::Acknowledge => "answers".to_owned(),
        }
    }

    fn tell_recovery(&self, step: usize) -> String {
        let slots = self.model.scenario.slots;
        let header_step = if self.model.variant.has(Flaw::RecoversSlotsFirst) { slots } else { 0 };
        match step == header_step {
            true => "recovers the offset by a scan".to_owned(),
            false if header_step == 0 => format!("empties slot {}", step - 1),
            false => format!("empties slot {step}"),
        }
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows = self.rows();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        for (number, row) in rows.iter().enumerate() {
            let number = if number < 2 { String::new() } else { (number - 1).to_string() };
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = format!("{number:>2}  {}", cells.collect::<Vec<_>>().join("  "));
            writeln!(out, "{}", line.trim_end())?;
        }
        write!(out, "    {}", self.fault().map_or("nothing is wrong".to_owned(), |fault| fault.to_string()))
    }
}

/// A client's letter.
fn client_name(client: usize) -> char {
    char::from(b'A' + client as u8)
}

fn key_name(key: Key) -> char {
    if key == 0 { 'x' } else { 'y' }
}

fn value_text(key: Key, value: Value) -> String {
    match value {
        ABSENT => format!("no {}", key_name(key)),
        FOREIGN => format!("{}=foreign bytes", key_name(key)),
        value => format!("{}={value}", key_name(key)),
    }
}

fn operation_text(operation: Operation) -> String {
    match operation {
        Operation::Get(key) => format!("GET {}", key_name(key)),
        Operation::ServerGet(key) => format!("server's read of {}", key_name(key)),
        Operation::Put(key, value) => format!("PUT {}={value}", key_name(key)),
        Operation::Delete(key) => format!("DELETE {}", key_name(key)),
        Operation::CompareAndSwap { key, expected, new } => format!("CAS {} {expected}->{new}", key_name(key)),
    }
}

fn answer_text(key: Key, answer: Answer) -> String {
    match answer {
        Answer::Value(value) => value_text(key, value),
        Answer::Done => "done".to_owned(),
        Answer::Deleted(true) => "deleted".to_owned(),
        Answer::Deleted(false) => "nothing to delete".to_owned(),
        Answer::Swapped(true) => "swapped".to_owned(),
        Answer::Swapped(false) => "not swapped".to_owned(),
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Fault::NotLinearizable => "not linearizable: no order of the operations explains the answers",
            Fault::ForeignBytes => "foreign bytes: a read returned what was never written to its key",
            Fault::DeletedKeyBack => "a deleted key is back",
            Fault::LostWrite => "an acknowledged write is lost: the index does not show it",
            Fault::StaleForEver => "stale for ever: all is quiet, and the cache shows another value than the index",
            Fault::WaitsForEver => "waits for ever: a client lives, and nothing will wake it",
            Fault::Livelock => "livelock: clients give way to each other again and again",
        })
    }
}
