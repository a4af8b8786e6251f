//! The time ledger of a request: every instant is claimed by one span, when it happens.
//!
//! A ledger has a mark: every instant before it is accounted for. A claim states its own begin and
//! end. Time between the mark and the begin of a claim is a gap, and becomes
//! [`SpanKind::Unattributed`]. Time that a claim shares with earlier ones is claimed twice, and is
//! counted as an error of the design. So the measurement can fail, and it reports where.
//!
//! Parts of one request may run in parallel: chunks, copies, attempts. After [`fork`](Ledger::fork)
//! claims may overlap, and each instant counts for the claim made first. Each part has to claim its
//! own time without gaps.

use crate::entries::Entries;
use crate::row::{SpanKind, Spans};
use base::{Span, Time};

const KINDS: usize = SpanKind::ALL.len();

/// The order of kinds in a ledger: those that every link of a network uses come first, in one cache
/// line.
const ORDER: [SpanKind; KINDS] = [
    SpanKind::Serialization,
    SpanKind::Propagation,
    SpanKind::Forwarding,
    SpanKind::NicQueue,
    SpanKind::SwitchQueue,
    SpanKind::Stack,
    SpanKind::Schedule,
    SpanKind::StorageQueue,
    SpanKind::FlashWait,
    SpanKind::CollectionWait,
    SpanKind::Flash,
    SpanKind::Wait,
    SpanKind::Memory,
    SpanKind::Network,
    SpanKind::Return,
    SpanKind::Mac,
    SpanKind::Pcs,
    SpanKind::Transceiver,
    SpanKind::Replication,
    SpanKind::Unattributed,
];

/// Number of kinds in the first cache line of the sums. The others are not accessed if nothing is
/// added to them.
const NEAR: usize = 8;

/// The index of each kind in [`ORDER`].
const PLACE: [u8; KINDS] = {
    let mut place = [u8::MAX; KINDS];
    let mut index = 0;
    while index < KINDS {
        assert!(place[ORDER[index] as usize] == u8::MAX, "every kind has one place");
        place[ORDER[index] as usize] = index as u8;
        index += 1;
    }
    place
};

/// Returns the index of a kind's sum in a ledger and in [`Spans`].
#[inline]
pub(crate) fn place_of(kind: SpanKind) -> usize {
    usize::from(PLACE[kind as usize])
}

/// Generates the places, their names and their documentation from one table.
macro_rules! places {
    ($($kind:ident $name:literal $doc:literal;)+) => {
        /// The location of a request during a span.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Place {
            /// Not located, or unknown.
            Nowhere,
            $(#[doc = $doc] $kind(u32),)+
        }

        /// The kinds of place, to number them.
        enum PlaceKind {
            $($kind,)+
        }

        impl Place {
            /// The names of all kinds of place, in the order of their numbers.
            pub const NAMES: [&str; 1 + [$($name),+].len()] = ["nowhere", $($name),+];
            /// Returns the number of the kind, and the index of the place within it.
            #[inline]
            pub fn numbers(self) -> (u8, u32) {
                match self {
                    Place::Nowhere => (0, 0),
                    $(Place::$kind(index) => (1 + PlaceKind::$kind as u8, index),)+
                }
            }
            /// Returns the place with these numbers, if there is one.
            pub fn of(kind: u8, index: u32) -> Option<Place> {
                let places = [Place::Nowhere, $(Place::$kind(index)),+];
                places.get(usize::from(kind)).copied()
            }
        }
    };
}

places! {
    Host "host" "A compute node, client or initiator, by its node number.";
    Link "link" "A link, by its number in the rack: of a node's own link, the node's.";
    Switch "switch" "A switch or an adapter that forwards, by its number among them.";
    Port "port" "A port of a switch, by the number of the node behind it.";
    Target "target" "A memory or storage node, by its node number.";
    Core "core" "A core of the server.";
    Nic "nic" "The network adapter of the server, or its logic.";
    Bus "bus" "The server's PCIe tree, by the device whose transfer it is.";
    Memory "memory" "The memory of a node, by its node number.";
    Drive "drive" "A drive, by its number in the rack.";
}

/// One claimed span of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the span.
    pub kind: SpanKind,
    /// The part of the rack that the request occupied or waited at.
    pub place: Place,
    /// Start of the span.
    pub begin: Time,
    /// End of the span.
    pub end: Time,
    /// Duration that counts in the sum of its kind; the rest ran in parallel with other parts.
    pub counted: Span,
}

/// The ledger of one request. The memory order is fixed: what every claim uses, then the sums.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// Everything before it is accounted for.
    mark: Time,
    /// The claims in order, if they are kept.
    entries: Entries,
    /// In the order of [`place_of`].
    sums: [Span; KINDS],
    /// Time claimed twice.
    twice: Span,
    /// The span that followed the longest gap; `None` for the end of the request.
    gap_before: Option<SpanKind>,
    longest_gap: Span,
    is_forked: bool,
}

/// The time account of a request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The sums by kind: exactly the time from the start to the end.
    pub spans: Spans,
    /// Time claimed twice, or claimed beyond the end: an error of the design.
    pub twice: Span,
    /// The span that followed the longest gap; `None` if it was the end of the request.
    pub gap_before: Option<SpanKind>,
    /// The claims in order, if they were kept.
    pub entries: Entries,
}

impl Ledger {
    /// Opens the ledger of a request that starts now. Keeps its claims in order if `keeps_entries`.
    #[inline]
    pub fn open(now: Time, keeps_entries: bool) -> Ledger {
        Ledger {
            mark: now,
            entries: Entries::open(now, keeps_entries),
            sums: [Span::ZERO; KINDS],
            twice: Span::ZERO,
            gap_before: None,
            longest_gap: Span::ZERO,
            is_forked: false,
        }
    }

    /// Moves the ledger out of memory that is used again by [`open`](Self::open).
    #[inline]
    pub fn take(&mut self) -> Ledger {
        Ledger { entries: std::mem::take(&mut self.entries), ..*self }
    }

    /// Claims the time from `begin` to `end` for `kind`.
    #[inline]
    pub fn claim(&mut self, kind: SpanKind, begin: Time, end: Time, place: Place) {
        if begin != self.mark {
            self.meet(Some(kind), begin, end);
        }
        let counted = end.saturating_since(self.mark);
        self.sums[place_of(kind)] += counted;
        if self.entries.is_kept() && begin < end {
            self.entries.keep(self.mark, Entry { kind, place, begin, end, counted });
        }
        self.mark = self.mark.max(end);
    }

    /// Claims consecutive parts from `begin` on.
    #[inline(always)]
    pub fn claim_parts<const PARTS: usize>(&mut self, begin: Time, place: Place, parts: [(SpanKind, Span); PARTS]) {
        if begin != self.mark {
            // A copy of its own, so that the parts need no memory otherwise.
            return self.claim_each(begin, place, &std::array::from_fn::<_, PARTS, _>(|index| parts[index]));
        }
        if self.entries.is_kept() {
            return self.claim_parts_kept(place, &std::array::from_fn::<_, PARTS, _>(|index| parts[index]));
        }
        for (kind, span) in parts {
            let place = place_of(kind);
            if place < NEAR || span > Span::ZERO {
                self.sums[place] += span;
            }
            self.mark += span;
        }
    }

    /// Claims and keeps parts from the mark on. Apart, so that nobody else pays for it.
    #[inline(never)]
    fn claim_parts_kept<const PARTS: usize>(&mut self, place: Place, parts: &[(SpanKind, Span); PARTS]) {
        self.entries.keep_parts(self.mark, place, parts);
        for (kind, span) in parts {
            self.sums[place_of(*kind)] += *span;
            self.mark += *span;
        }
    }

    /// Returns the sums so far in internal order, to prefetch them.
    pub fn sums(&self) -> &[Span] {
        &self.sums
    }

    #[inline(never)]
    fn claim_each(&mut self, begin: Time, place: Place, parts: &[(SpanKind, Span)]) {
        let mut begin = begin;
        for (kind, span) in parts.iter().filter(|(_, span)| *span > Span::ZERO) {
            self.claim(*kind, begin, begin + *span, place);
            begin += *span;
        }
    }

    /// Allows overlapping claims: from now on, parts of the request run in parallel.
    pub fn fork(&mut self) {
        self.is_forked = true;
    }

    /// Handles a claim that does not begin at the mark: a gap before it, or time claimed already.
    #[cold]
    fn meet(&mut self, kind: Option<SpanKind>, begin: Time, end: Time) {
        let gap = begin.saturating_since(self.mark);
        if gap > Span::ZERO {
            self.sums[place_of(SpanKind::Unattributed)] += gap;
            if gap > self.longest_gap {
                (self.longest_gap, self.gap_before) = (gap, kind);
            }
            let (kind, place) = (SpanKind::Unattributed, Place::Nowhere);
            self.entries.keep(self.mark, Entry { kind, place, begin: self.mark, end: begin, counted: gap });
            self.mark = begin;
        } else if !self.is_forked {
            self.twice += self.mark.min(end).saturating_since(begin);
        }
    }

    /// Ends the request. Unclaimed time up to `end` is a gap. A ledger with claims beyond `end` is
    /// void: all of its time is unattributed, and the excess counts as claimed twice.
    #[inline]
    pub fn settle(&mut self, end: Time) -> Settled {
        let beyond = self.mark.saturating_since(end);
        if beyond > Span::ZERO {
            self.void(beyond);
        } else if self.mark < end {
            self.meet(None, end, end);
        }
        let entries = std::mem::take(&mut self.entries);
        Settled { spans: Spans::of(self.sums), twice: self.twice, gap_before: self.gap_before, entries }
    }

    #[cold]
    fn void(&mut self, beyond: Span) {
        let total: Span = self.sums.iter().copied().sum();
        self.sums = [Span::ZERO; KINDS];
        self.sums[place_of(SpanKind::Unattributed)] = total.saturating_sub(beyond);
        self.twice += beyond;
        self.gap_before = None;
        self.entries.void();
    }
}

/// The errors in the ledgers of a run: gaps by the span that followed them, and time claimed twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Unattributed time of requests in the statistics, by the span that followed their longest
    /// gap. The last entry is for gaps before the end of a request.
    gaps: [Span; KINDS + 1],
    /// Requests with time that was claimed twice.
    pub requests_twice: u64,
    /// Total time claimed twice.
    pub twice: Span,
}

impl Audit {
    /// Adds the ledger of a request; `counts` if the request is in the statistics.
    #[inline]
    pub fn add(&mut self, settled: &Settled, counts: bool) {
        let unattributed = settled.spans.get(SpanKind::Unattributed);
        if unattributed > Span::ZERO && counts {
            self.gaps[settled.gap_before.map_or(KINDS, |kind| kind as usize)] += unattributed;
        }
        if settled.twice > Span::ZERO {
            self.requests_twice += 1;
            self.twice += settled.twice;
        }
    }

    /// Returns the span that followed most of the unattributed time, or the end of the request.
    pub(crate) fn worst_gap(&self) -> &'static str {
        let worst = (0..self.gaps.len()).max_by_key(|kind| self.gaps[*kind]);
        worst.and_then(|kind| SpanKind::ALL.get(kind)).map_or("the end", |kind| kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: u64) -> Time {
        Time::ns(ns)
    }

    fn parts(spans: &Spans) -> Vec<(SpanKind, u64)> {
        spans.iter().filter(|(_, span)| *span > Span::ZERO).map(|(kind, span)| (kind, span.as_ps() / 1_000)).collect()
    }

    #[test]
    fn claims_that_follow_each_other_are_the_whole_time() {
        let mut ledger = Ledger::open(at(10), false);
        ledger.claim(SpanKind::Wait, at(10), at(12), Place::Host(0));
        ledger.claim_parts(at(12), Place::Link(0), [(SpanKind::NicQueue, Span::ns(3)), (SpanKind::Stack, Span::ns(1))]);
        ledger.claim(SpanKind::Flash, at(16), at(20), Place::Drive(1));
        let settled = ledger.settle(at(20));
        let expected = [(SpanKind::Wait, 2), (SpanKind::Stack, 1), (SpanKind::NicQueue, 3), (SpanKind::Flash, 4)];
        assert_eq!((parts(&settled.spans), settled.twice), (expected.to_vec(), Span::ZERO));
        assert!(settled.entries.is_empty(), "nobody asked for them");
    }

    #[test]
    fn parts_are_kept_as_if_each_were_claimed_alone() {
        let parts = [(SpanKind::NicQueue, Span::ns(3)), (SpanKind::Stack, Span::ZERO), (SpanKind::Flash, Span::ns(2))];
        let [mut together, mut alone] = [true, true].map(|keeps| Ledger::open(at(1), keeps));
        for begin in [at(1), at(6), at(13)] {
            together.claim_parts(begin, Place::Link(7), parts);
            alone.claim_each(begin, Place::Link(7), &parts);
        }
        // A link between two hops, two with an end, and one with a part too long for a word.
        for (first, last, long) in [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 1_000_000)] {
            let ends = [(SpanKind::Stack, Span::ns(first)), (SpanKind::Stack, Span::ns(last))];
            let parts = [ends[0], parts[0], parts[1], (SpanKind::Wait, Span::ns(long)), parts[2], ends[1]];
            together.claim_parts(together.mark, Place::Link(8), parts);
            alone.claim_each(alone.mark, Place::Link(8), &parts);
        }
        let end = together.mark;
        let [together, alone] = [together, alone].map(|mut ledger| ledger.settle(end));
        assert_eq!(together.spans, alone.spans);
        let [entries, expected] = [&together, &alone].map(|settled| settled.entries.iter().collect::<Vec<_>>());
        assert_eq!((entries.len(), &entries), (7 + 11, &expected), "parts and a gap");
    }

    #[test]
    fn what_nobody_claims_is_unattributed_and_named_by_what_follows() {
        let mut ledger = Ledger::open(at(0), true);
        ledger.claim(SpanKind::Wait, at(0), at(1), Place::Nowhere);
        ledger.claim(SpanKind::Flash, at(4), at(5), Place::Drive(0));
        let settled = ledger.settle(at(7));
        assert_eq!(parts(&settled.spans), [(SpanKind::Wait, 1), (SpanKind::Flash, 1), (SpanKind::Unattributed, 5)]);
        assert_eq!(settled.gap_before, Some(SpanKind::Flash), "three of the five");
        let ends: Vec<_> = settled.entries.iter().map(|entry| (entry.kind, entry.end)).collect();
        assert_eq!(
            ends,
            [
                (SpanKind::Wait, at(1)),
                (SpanKind::Unattributed, at(4)),
                (SpanKind::Flash, at(5)),
                (SpanKind::Unattributed, at(7))
            ]
        );
    }

    #[test]
    fn what_two_claim_is_an_error_unless_parts_run_beside_each_other() {
        let overlapping = |forks: bool| {
            let mut ledger = Ledger::open(at(0), false);
            if forks {
                ledger.fork();
            }
            ledger.claim(SpanKind::Flash, at(0), at(6), Place::Nowhere);
            ledger.claim(SpanKind::Serialization, at(4), at(9), Place::Nowhere);
            ledger.settle(at(9))
        };
        for (forks, twice) in [(false, Span::ns(2)), (true, Span::ZERO)] {
            let settled = overlapping(forks);
            assert_eq!(settled.twice, twice);
            assert_eq!(parts(&settled.spans), [(SpanKind::Serialization, 3), (SpanKind::Flash, 6)]);
        }
    }

    #[test]
    fn a_claim_beyond_the_end_makes_the_ledger_void() {
        let mut ledger = Ledger::open(at(0), false);
        ledger.claim(SpanKind::Flash, at(0), at(6), Place::Nowhere);
        let settled = ledger.settle(at(4));
        assert_eq!((parts(&settled.spans), settled.twice), (vec![(SpanKind::Unattributed, 4)], Span::ns(2)));
    }

    #[test]
    fn every_place_comes_back_from_its_numbers() {
        for kind in 0..Place::NAMES.len() as u8 {
            let place = Place::of(kind, 7).unwrap();
            assert_eq!(place.numbers(), (kind, if kind == 0 { 0 } else { 7 }));
        }
        assert_eq!(Place::of(Place::NAMES.len() as u8, 0), None);
    }

    proptest! {
        #[test]
        fn whatever_is_claimed_the_sums_are_the_latency_and_the_entries_tell_how(
            claims in proptest::collection::vec((0usize..KINDS, 0u64..50, 0u64..50), 0..20),
            forks: bool,
            end in 40u64..100,
        ) {
            let mut ledger = Ledger::open(at(5), true);
            if forks {
                ledger.fork();
            }
            for (kind, begin, span) in claims {
                let begin = at(5 + begin);
                ledger.claim(SpanKind::ALL[kind], begin, begin + Span::ns(span), Place::Nowhere);
            }
            let settled = ledger.clone().settle(at(end));
            prop_assert_eq!(settled.spans.total(), at(end) - at(5));
            if ledger.mark <= at(end) {
                for kind in SpanKind::ALL {
                    let entries = settled.entries.iter().filter(|entry| entry.kind == kind);
                    let counted: Span = entries.map(|entry| entry.counted).sum();
                    prop_assert_eq!(counted, settled.spans.get(kind));
                }
            }
        }
    }
}
