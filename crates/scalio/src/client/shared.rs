//! GETs of one key that wait at one client.
//!
//! A GET that finds the key's slot being filled asks again after a while. One GET asks for all that
//! wait then, and its answer is theirs: it is of a moment after it asked, when all of them were
//! open. A GET that comes later may not have that answer, and waits for the next.

use super::get::{Get, Wanted};
use super::tasks::{Task, Work};
use super::{Client, ClientOut, Outcome, Source};
use crate::{Key, Value};
use std::collections::BTreeMap;

/// A GET that waits for another's answer.
#[derive(Clone, Copy)]
struct Follower {
    index: usize,
    /// Attempts of the other when this one joined it.
    since: u32,
}

/// Who waits for whom.
#[derive(Clone, Default)]
pub(super) struct Shared {
    /// GETs that pause and will ask again.
    pausing: BTreeMap<(Key, Wanted), usize>,
    followers: BTreeMap<usize, Vec<Follower>>,
}

impl Shared {
    /// The GET asks: who has not joined it by now has to wait for another.
    pub fn asks(&mut self, index: usize, get: &Get) {
        if self.pausing.get(&get.name()) == Some(&index) {
            self.pausing.remove(&get.name());
        }
    }
}

impl<V: Value> Client<V> {
    /// Joins the GET to another that pauses for the same, with all that follow it. Returns whether
    /// there is another.
    pub(super) fn joins(&mut self, index: usize, get: &Get) -> bool {
        if !self.config.share_waits {
            return false;
        }
        match self.shared.pausing.get(&get.name()).copied() {
            Some(other) => {
                let since = self.open_get(other).attempts;
                let own = self.shared.followers.remove(&index).unwrap_or_default();
                self.count_attempts(get, &own);
                let joined = std::iter::once(index).chain(own.iter().map(|follower| follower.index));
                let joined = joined.map(|index| Follower { index, since });
                self.shared.followers.entry(other).or_default().extend(joined);
                true
            }
            None => {
                self.shared.pausing.insert(get.name(), index);
                false
            }
        }
    }

    /// Gives the answer of a GET that has ended to all that followed it. If it gave up, they go on,
    /// each as long as if it had asked by itself.
    pub(super) fn share(
        &mut self,
        index: usize,
        ended: &Task<V>,
        outcome: &Outcome<V>,
        source: Source,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let Some(followers) = self.shared.followers.remove(&index) else { return };
        let Work::Get(leader) = &ended.work else { return };
        if *outcome != Outcome::Unavailable {
            let count = followers.len() as u64;
            self.counters.shared += count;
            match (outcome, source) {
                (Outcome::Value(_) | Outcome::Described(_), Source::Cache) => self.counters.hits += count,
                (Outcome::Value(_) | Outcome::Described(_), _) => self.counters.misses += count,
                _ => {}
            }
            return followers.iter().for_each(|one| self.finish(one.index, outcome.clone(), source, out));
        }
        self.count_attempts(leader, &followers);
        let max = self.config.attempts_max;
        let (going, over): (Vec<Follower>, _) =
            followers.into_iter().partition(|one| self.open_get(one.index).attempts <= max);
        over.iter().for_each(|one| self.finish(one.index, Outcome::Unavailable, source, out));
        let Some((first, rest)) = going.split_first() else { return };
        let get = self.open_get(first.index);
        if !rest.is_empty() {
            let rest = rest.iter().map(|one| Follower { since: get.attempts, ..*one });
            self.shared.followers.insert(first.index, rest.collect());
        }
        self.get_woken(first.index, get, out);
    }

    /// Attempts of the leader since they joined it are theirs, too.
    fn count_attempts(&mut self, leader: &Get, followers: &[Follower]) {
        // Who gives up has counted an attempt that it does not make.
        let attempts = leader.attempts.min(self.config.attempts_max);
        for follower in followers {
            let mut get = self.open_get(follower.index);
            get.attempts += attempts - follower.since;
            self.tasks.resume(follower.index, Work::Get(get));
        }
    }

    fn open_get(&self, index: usize) -> Get {
        match &self.tasks.get(index).work {
            Work::Get(get) => *get,
            _ => unreachable!("only GETs wait for one another"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BlockHeader, ClientConfig, ClientId, ClientIn, Extent, FlashAnswer, Index, MemoryOperation, Operation,
        Protocol, RequestId, Segment, SegmentPointer, Sequence, SlotWord, Token,
    };
    use base::{Program, Span, Time};
    use std::sync::Arc;

    const POINTER: SegmentPointer = SegmentPointer { extent: Extent { sector: 5, sectors: 1 }, tag: 9 };
    const RETRY: Span = Span::us(10);
    const ATTEMPTS: u32 = 10;

    /// A client of a block in which no key is, and flash that answers when it is told to.
    struct Bench {
        now: Time,
        client: Client<Token>,
        index: Index<Token>,
        /// Reads of the block since it was last asked.
        looks: u32,
        /// Reads of flash without an answer.
        reads: Vec<RequestId>,
        /// Tickets of GETs that have ended, and whether they gave up.
        ended: Vec<(u64, bool)>,
    }

    impl Bench {
        fn new(share_waits: bool) -> Bench {
            let client = Client::new(ClientConfig {
                client: ClientId(1),
                blocks: 1,
                devices: 1,
                protocol: Protocol::Linearizable,
                lease: Span::ms(10),
                retry_wait: RETRY,
                attempts_max: ATTEMPTS,
                share_waits,
                reply_timeout: Span::ms(1),
                sends_max: 2,
                touch: true,
                start_second: 0,
            });
            let mut index = Index::new(1, 2);
            let header = BlockHeader { epoch: 0, segment: Some(POINTER) };
            index.carry_out(0, MemoryOperation::Reset { header });
            Bench { now: Time::ZERO, client, index, looks: 0, reads: Vec::new(), ended: Vec::new() }
        }

        fn key() -> Key {
            Key::new(b"absent").expect("six bytes")
        }

        fn get(&mut self, ticket: u64) {
            self.tell(ClientIn::Issue { ticket, operation: Operation::Get { key: Bench::key() } });
        }

        fn tell(&mut self, input: ClientIn<Token>) {
            let mut out = Vec::new();
            self.client.on(self.now, input, &mut out);
            self.carry_out(out);
        }

        /// Memory answers at once.
        fn carry_out(&mut self, out: Vec<ClientOut<Token>>) {
            for action in out {
                match action {
                    ClientOut::Memory { request, block, operation } => {
                        self.looks += u32::from(operation == MemoryOperation::ReadBlock);
                        let answer = self.index.carry_out(block, operation);
                        if let Some(request) = request {
                            self.tell(ClientIn::Memory { request, answer });
                        }
                    }
                    ClientOut::Flash { request, .. } => self.reads.push(request),
                    ClientOut::Done { ticket, outcome, .. } => {
                        assert!([Outcome::Value(None), Outcome::Unavailable].contains(&outcome));
                        self.ended.push((ticket, outcome == Outcome::Unavailable));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }

        fn pass(&mut self, span: Span) {
            self.now += span;
            let mut out = Vec::new();
            self.client.on_wakeup(self.now, &mut out);
            self.carry_out(out);
        }

        /// Flash answers its only read: there is no key.
        fn answer_flash(&mut self) {
            let [request] = std::mem::take(&mut self.reads)[..] else { panic!("one reads flash at a time") };
            let segment = Segment { sequence: Sequence(9), ..Segment::empty(0) };
            self.tell(ClientIn::Flash { request, answer: FlashAnswer::Segment(Ok(Arc::new(segment))) });
        }

        fn take_ended(&mut self) -> Vec<u64> {
            let mut tickets: Vec<_> = std::mem::take(&mut self.ended).into_iter().map(|(ticket, _)| ticket).collect();
            tickets.sort_unstable();
            tickets
        }

        /// Somebody else fills the key, and takes longer than any GET waits.
        fn lock(&mut self) {
            let fill = SlotWord::fresh(0).fill(Bench::key().place(1).fingerprint, Time::ZERO + Span::ms(9));
            let swap = MemoryOperation::Swap { slot: 0, expected: SlotWord::fresh(0), new: fill };
            self.index.carry_out(0, swap);
        }
    }

    #[test]
    fn one_asks_for_all_that_wait_and_who_comes_later_has_the_next_answer() {
        let mut bench = Bench::new(true);
        (0..10).for_each(|ticket| bench.get(ticket));
        assert_eq!((bench.looks, bench.reads.len()), (10, 1), "the first reads flash");
        bench.looks = 0;
        (0..5).for_each(|_| bench.pass(RETRY));
        assert_eq!(bench.looks, 5, "one of nine polls");
        bench.answer_flash();
        assert_eq!(bench.take_ended(), [0]);
        bench.pass(RETRY);
        assert_eq!(bench.reads.len(), 1, "one of nine reads flash");
        // It may have been stored meanwhile, and what is read now would not be known to it.
        bench.get(10);
        bench.pass(RETRY);
        bench.get(11);
        bench.answer_flash();
        assert_eq!(bench.take_ended(), Vec::from_iter(1..10));
        bench.pass(RETRY);
        bench.answer_flash();
        assert_eq!(bench.take_ended(), [10, 11]);
        assert_eq!((bench.client.counters().shared, bench.client.counters().misses), (9, 12));
        assert_eq!(bench.client.unfinished(), 0);
    }

    #[test]
    fn without_sharing_each_polls_and_reads_flash() {
        let mut bench = Bench::new(false);
        (0..10).for_each(|ticket| bench.get(ticket));
        bench.looks = 0;
        bench.pass(RETRY);
        assert_eq!(bench.looks, 9);
        for ticket in 0..10 {
            bench.answer_flash();
            assert_eq!(bench.take_ended(), [ticket]);
            bench.pass(RETRY);
        }
        assert_eq!(bench.client.counters().shared, 0);
    }

    /// When each of three GETs that begin one after another gives up.
    fn patience(share_waits: bool) -> Vec<(u64, u64)> {
        let mut bench = Bench::new(share_waits);
        bench.lock();
        let mut times = Vec::new();
        for poll in 0..40 {
            if poll % 4 == 0 && poll < 12 {
                bench.get(poll / 4);
            }
            times.extend(std::mem::take(&mut bench.ended).into_iter().map(|(ticket, gave_up)| {
                assert!(gave_up);
                (ticket, poll)
            }));
            bench.pass(RETRY);
        }
        assert_eq!(bench.client.unfinished(), 0);
        times
    }

    #[test]
    fn who_shares_has_as_much_patience_as_who_asks_alone() {
        assert_eq!(patience(true), patience(false));
        assert_eq!(patience(true).len(), 3);
    }

    #[test]
    fn descriptions_and_values_do_not_answer_one_another() {
        let mut bench = Bench::new(true);
        bench.lock();
        bench.get(0);
        bench.get(1);
        bench.tell(ClientIn::Describe { ticket: 2, key: Bench::key() });
        bench.looks = 0;
        bench.pass(RETRY);
        assert_eq!(bench.looks, 2, "one for two values, one for a description");
    }
}
