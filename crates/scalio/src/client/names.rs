//! All names of one block, which a walk through the store is made of.
//!
//! The segment is of a moment at which it was the block's, so every key that is there before the
//! walk begins and until it ends is found. Names of 16 bytes and more are in front of their values:
//! of each such record the first sectors are read. One that has moved meanwhile begins the block
//! anew.

use super::tasks::Work;
use super::{Client, ClientOut, Outcome, Source};
use crate::{Corrupt, FlashAnswer, FlashOperation, Item, MemoryAnswer, Name, Refusal, Segment, SegmentPointer, Value};
use base::Time;

/// An open listing.
#[derive(Clone, Debug)]
pub(super) struct Names {
    block: u32,
    step: Step,
    names: Vec<Name>,
    /// Items whose names are to be read.
    left: Vec<Item>,
    attempts: u32,
}

#[derive(Clone, Debug)]
enum Step {
    Block,
    Segment {
        pointer: SegmentPointer,
    },
    Head,
    /// The server restarts.
    Pause,
}

impl<V: Value> Client<V> {
    pub(super) fn begin_names(&mut self, ticket: u64, block: u32, out: &mut Vec<ClientOut<V>>) {
        let names = Names { block, step: Step::Block, names: Vec::new(), left: Vec::new(), attempts: 0 };
        let index = self.tasks.add(ticket, Work::Names(names));
        self.ask_block(index, block, out);
    }

    pub(super) fn names_memory(
        &mut self,
        now: Time,
        index: usize,
        mut names: Names,
        answer: MemoryAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match answer {
            MemoryAnswer::Block(block) => {
                self.note_epoch(names.block, block.header.epoch);
                let Some(pointer) = block.header.segment else { return self.names_end(index, names, out) };
                names.step = Step::Segment { pointer };
                let operation = FlashOperation::ReadSegment { block: names.block, pointer };
                self.ask_flash(index, names.block, operation, out);
            }
            _ => {
                names.step = Step::Pause;
                names.attempts += 1;
                if names.attempts > self.config.attempts_max {
                    return self.finish(index, Outcome::Unavailable, Source::Cache, out);
                }
                self.tasks.sleep_until(index, Some(now + self.config.retry_wait));
            }
        }
        self.tasks.resume(index, Work::Names(names));
    }

    pub(super) fn names_woken(&mut self, index: usize, names: Names, out: &mut Vec<ClientOut<V>>) {
        if matches!(names.step, Step::Pause) {
            self.names_anew(index, names, out);
        }
    }

    pub(super) fn names_flash(
        &mut self,
        now: Time,
        index: usize,
        mut names: Names,
        answer: FlashAnswer<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        match (&names.step, answer) {
            (Step::Segment { pointer }, FlashAnswer::Segment(answer)) => {
                let whole = answer.and_then(|segment| pointer.check(names.block, &segment).map(|()| segment));
                match whole {
                    Ok(segment) => self.names_of_segment(now, &mut names, &segment),
                    Err(error) => return self.names_not_whole(index, names, error, out),
                }
            }
            (Step::Head, FlashAnswer::Head(Ok(name))) => names.names.push(name),
            (Step::Head, FlashAnswer::Head(Err(error))) => {
                return self.names_not_whole(index, names, error, out);
            }
            _ => return self.finish(index, Outcome::Refused(Refusal::Device), Source::Flash, out),
        }
        let Some(item) = names.left.pop() else { return self.names_end(index, names, out) };
        names.step = Step::Head;
        self.ask_flash(index, names.block, FlashOperation::ReadHead { item }, out);
        self.tasks.resume(index, Work::Names(names));
    }

    fn names_of_segment(&self, now: Time, names: &mut Names, segment: &Segment) {
        let lives = |item: &&Item| !item.expiry.is_past(now, self.config.start_second);
        for item in segment.items.iter().filter(lives) {
            match Name::of_key(&item.key) {
                Some(name) => names.names.push(name),
                None => names.left.push(*item),
            }
        }
    }

    /// Its place was used again, or it is damaged: if it stays so, it is.
    fn names_not_whole(&mut self, index: usize, mut names: Names, error: Corrupt, out: &mut Vec<ClientOut<V>>) {
        /// Moves of one block that a listing meets at most, by far.
        const ATTEMPTS: u32 = 16;
        if matches!(error, Corrupt::Foreign { .. }) {
            self.counters.foreign += 1
        } else {
            self.counters.corrupt += 1
        }
        names.attempts += 1;
        if names.attempts > ATTEMPTS {
            return self.finish(index, Outcome::Refused(Refusal::Corrupt), Source::Flash, out);
        }
        self.names_anew(index, names, out);
    }

    fn names_anew(&mut self, index: usize, names: Names, out: &mut Vec<ClientOut<V>>) {
        let names = Names { step: Step::Block, names: Vec::new(), left: Vec::new(), ..names };
        self.ask_block(index, names.block, out);
        self.tasks.resume(index, Work::Names(names));
    }

    fn names_end(&mut self, index: usize, names: Names, out: &mut Vec<ClientOut<V>>) {
        self.finish(index, Outcome::Names(names.names), Source::Flash, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Block, BlockHeader, ClientConfig, ClientId, ClientIn, Expiry, Extent, Key, Protocol, RecordPlace, RequestId,
        Sequence,
    };
    use base::{Program, Span};
    use bytes::Bytes;
    use std::sync::Arc;

    const POINTER: SegmentPointer = SegmentPointer { extent: Extent { sector: 5, sectors: 1 }, tag: 9 };

    fn client() -> Client<Bytes> {
        Client::new(ClientConfig {
            client: ClientId(1),
            blocks: 4,
            devices: 1,
            protocol: Protocol::Linearizable,
            lease: Span::ms(1),
            retry_wait: Span::us(1),
            attempts_max: 10,
            share_waits: false,
            reply_timeout: Span::ms(1),
            sends_max: 2,
            touch: true,
            start_second: 0,
        })
    }

    fn item(key: Key, expiry: u32) -> Item {
        let (record, sequence) = (RecordPlace(64), Sequence(3));
        Item { key, record, sequence, value_bytes: 100, expiry: Expiry(expiry), is_fresh: false }
    }

    /// Carries on until it is done, or a head is to be read.
    fn carry(client: &mut Client<Bytes>, input: ClientIn<Bytes>, items: &[Item]) -> Result<RequestId, Outcome<Bytes>> {
        let mut inputs = vec![input];
        loop {
            let mut out = Vec::new();
            inputs.drain(..).for_each(|input| client.on(Time::secs(5), input, &mut out));
            let [action] = &out[..] else { panic!("{out:?}") };
            inputs.push(match action {
                ClientOut::Memory { request: Some(request), block: 2, .. } => {
                    let block = Block { header: BlockHeader { epoch: 0, segment: Some(POINTER) }, slots: Vec::new() };
                    ClientIn::Memory { request: *request, answer: MemoryAnswer::Block(block) }
                }
                ClientOut::Flash { request, operation: FlashOperation::ReadSegment { block, pointer }, .. } => {
                    assert_eq!((*block, *pointer), (2, POINTER));
                    let items = items.to_vec();
                    let segment = Segment { sequence: Sequence(9), items, ..Segment::empty(2) };
                    ClientIn::Flash { request: *request, answer: FlashAnswer::Segment(Ok(Arc::new(segment))) }
                }
                ClientOut::Flash { request, operation: FlashOperation::ReadHead { .. }, .. } => return Ok(*request),
                ClientOut::Done { ticket: 7, outcome, .. } => return Err(outcome.clone()),
                other => panic!("{other:?}"),
            });
        }
    }

    #[test]
    fn a_record_that_has_moved_begins_the_block_anew_and_one_that_never_comes_ends_it() {
        let name = Name::new(Bytes::from_static(b"longer than sixteen bytes")).expect("it is short");
        let short = Key::new(b"k").expect("a byte");
        let items = [item(short, 0), item(name.key(), 0), item(Key::new(b"past").expect("four bytes"), 5)];
        let mut client = client();
        let mut head = carry(&mut client, ClientIn::Names { ticket: 7, block: 2 }, &items).expect("a name is read");
        for _ in 0..3 {
            let answer = FlashAnswer::Head(Err(Corrupt::Foreign { what: "record" }));
            head = carry(&mut client, ClientIn::Flash { request: head, answer }, &items).expect("it is read again");
        }
        let answer = FlashAnswer::Head(Ok(name.clone()));
        let done = carry(&mut client, ClientIn::Flash { request: head, answer }, &items).expect_err("all is known");
        // Each once, and not what has expired.
        assert_eq!(done, Outcome::Names(vec![Name::of_key(&short).expect("it is its own"), name]));

        let mut head = carry(&mut client, ClientIn::Names { ticket: 7, block: 2 }, &items).expect("a name is read");
        let refused = loop {
            let answer = FlashAnswer::Head(Err(Corrupt::Foreign { what: "record" }));
            match carry(&mut client, ClientIn::Flash { request: head, answer }, &items) {
                Ok(next) => head = next,
                Err(outcome) => break outcome,
            }
        };
        assert_eq!(refused, Outcome::Refused(Refusal::Corrupt));
        assert_eq!(client.counters().foreign, 3 + 17);
    }
}
