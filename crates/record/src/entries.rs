//! The claims of one request in order, in words that are decoded only for the requests that are
//! kept: most requests whose claims are recorded turn out not to be among the slowest.
//!
//! Words have 32 bits: most spans are short, and what lies in few cache lines displaces little of
//! the simulation. The first two words are the time at which the ledger was opened. Each record
//! begins with a header and the index of its place. A run of consecutive parts follows with one
//! word a part, which is its kind and its span. Any other claim follows with its begin, if that is
//! not where the time that is accounted for ends; its span; and the time that counts, if it is not
//! the whole span. These times take two words each.

use crate::ledger::{Entry, Place};
use crate::row::SpanKind;
use base::{Span, Time};
use std::cell::RefCell;

/// The claims of a request in order, if they are kept. Their memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Empty where no claims are kept.
    words: Vec<u32>,
}

/// A header is the number of parts of a run, which is 0 for another claim; the flags and the kind
/// of that claim; and the kind of place.
const PARTS: u32 = 0xff;
const STARTS_APART: u32 = 1 << 8;
const COUNTS_LESS: u32 = 1 << 9;
const KIND: u32 = 10;
const PLACE_KIND: u32 = 16;

/// In the word of a part, the kind lies above the picoseconds of the span.
const SPAN_BITS: u32 = 27;
const SPAN_MASK: u32 = (1 << SPAN_BITS) - 1;
const KIND_MASK: u32 = u32::MAX >> SPAN_BITS;

/// Words of a record before what follows its header and its place.
const HEAD: usize = 2;

thread_local! {
    /// Empty lists of requests that have ended.
    static SPARE: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };
}

impl Entries {
    /// An empty list of claims from `now` on, if claims are kept.
    #[inline]
    pub(crate) fn open(now: Time, keeps_entries: bool) -> Entries {
        if keeps_entries { Entries::spare(now) } else { Entries::default() }
    }

    fn spare(now: Time) -> Entries {
        let mut words = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        words.extend_from_slice(&halves(now.as_ps()));
        Entries { words }
    }

    /// Returns whether claims are kept.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        !self.words.is_empty()
    }

    /// Returns whether there is no claim.
    pub fn is_empty(&self) -> bool {
        self.words.len() <= HEAD
    }

    /// Returns the claims in order.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        let (opened, words) =
            self.words.split_first_chunk().map_or((0, &[][..]), |(opened, rest)| (whole(*opened), rest));
        Decoder { words, mark: Time::ps(opened), header: 0, index: 0, parts: 0 }
    }

    /// Gives the memory back.
    pub fn discard(self) {
        let Entries { mut words } = self;
        if words.capacity() > 0 {
            words.clear();
            SPARE.with_borrow_mut(|spare| spare.push(words));
        }
    }

    /// Keeps a claim. Before it, everything up to `mark` was accounted for.
    #[inline(never)]
    pub(crate) fn keep(&mut self, mark: Time, entry: Entry) {
        let Entry { kind, place, begin, end, counted } = entry;
        if !self.is_kept() || begin >= end {
            return;
        }
        let (starts_apart, counts_less) = (begin != mark, counted != end - begin);
        let flags = if starts_apart { STARTS_APART } else { 0 } | if counts_less { COUNTS_LESS } else { 0 };
        self.words.extend_from_slice(&head(place, flags | (kind as u32) << KIND));
        if starts_apart {
            self.words.extend_from_slice(&halves(begin.as_ps()));
        }
        self.words.extend_from_slice(&halves((end - begin).as_ps()));
        if counts_less {
            self.words.extend_from_slice(&halves(counted.as_ps()));
        }
    }

    /// Keeps consecutive parts that begin where what is accounted for ends. All of their time
    /// counts. The first and the last of six are left out where neither has a span: most links have
    /// no end of the way.
    #[inline]
    pub(crate) fn keep_parts<const COUNT: usize>(
        &mut self,
        mark: Time,
        place: Place,
        parts: &[(SpanKind, Span); COUNT],
    ) {
        if let [(_, Span::ZERO), inner @ .., (_, Span::ZERO)] = &parts[..]
            && let Ok(inner) = <&[(SpanKind, Span); 4]>::try_from(inner)
        {
            return self.keep_run(mark, place, inner);
        }
        self.keep_run(mark, place, parts);
    }

    #[inline(always)]
    fn keep_run<const COUNT: usize>(&mut self, mark: Time, place: Place, parts: &[(SpanKind, Span); COUNT]) {
        const { assert!(COUNT > 0 && COUNT <= PARTS as usize, "they fit into a run") }
        let words = parts.map(|(kind, span)| (kind as u32) << SPAN_BITS | span.as_ps() as u32);
        let all = parts.iter().fold(0, |all, (_, span)| all | span.as_ps());
        if all > u64::from(SPAN_MASK) {
            return self.keep_each(mark, place, parts);
        }
        if all == 0 {
            return;
        }
        // Pieces of fixed lengths are faster to copy.
        self.words.reserve(HEAD + COUNT);
        self.words.extend_from_slice(&head(place, COUNT as u32));
        self.words.extend_from_slice(&words);
    }

    /// Keeps parts of which one is too long for a run.
    #[cold]
    fn keep_each(&mut self, mark: Time, place: Place, parts: &[(SpanKind, Span)]) {
        let mut begin = mark;
        for &(kind, counted) in parts {
            let end = begin + counted;
            self.keep(begin, Entry { kind, place, begin, end, counted });
            begin = end;
        }
    }

    /// None of the time counts any more.
    #[cold]
    pub(crate) fn void(&mut self) {
        let all: Vec<Entry> = self.iter().collect();
        let mut mark = self.words.first_chunk().map_or(Time::ZERO, |opened| Time::ps(whole(*opened)));
        self.words.truncate(HEAD);
        for entry in all {
            self.keep(mark, Entry { counted: Span::ZERO, ..entry });
            mark = mark.max(entry.end);
        }
    }
}

#[inline]
fn head(place: Place, rest: u32) -> [u32; HEAD] {
    let (kind, index) = place.numbers();
    [u32::from(kind) << PLACE_KIND | rest, index]
}

/// The lower half of a time first.
#[inline]
fn halves(ps: u64) -> [u32; 2] {
    [ps as u32, (ps >> 32) as u32]
}

#[inline]
fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Reads claims back.
struct Decoder<'a> {
    words: &'a [u32],
    /// Everything before it is accounted for.
    mark: Time,
    /// Of the record that is read, with the index of its place.
    header: u32,
    index: u32,
    /// Parts that are left of a run.
    parts: u32,
}

impl Decoder<'_> {
    fn take<const WORDS: usize>(&mut self) -> Option<[u32; WORDS]> {
        let (first, rest) = self.words.split_first_chunk()?;
        self.words = rest;
        Some(*first)
    }

    fn ps(&mut self) -> Option<u64> {
        self.take().map(whole)
    }

    /// The next part of a run.
    fn part(&mut self) -> Option<Entry> {
        self.parts -= 1;
        let [word] = self.take()?;
        let span = Span::ps(u64::from(word & SPAN_MASK));
        self.entry(word >> SPAN_BITS, self.mark, span, span)
    }

    /// A claim that is no part of a run.
    fn claim(&mut self) -> Option<Entry> {
        let has = |flag| self.header & flag > 0;
        let (starts_apart, counts_less) = (has(STARTS_APART), has(COUNTS_LESS));
        let begin = if starts_apart { Time::ps(self.ps()?) } else { self.mark };
        let span = Span::ps(self.ps()?);
        let counted = if counts_less { Span::ps(self.ps()?) } else { span };
        self.entry(self.header >> KIND & KIND_MASK, begin, span, counted)
    }

    fn entry(&mut self, kind: u32, begin: Time, span: Span, counted: Span) -> Option<Entry> {
        let place = Place::of((self.header >> PLACE_KIND) as u8, self.index)?;
        let kind = *SpanKind::ALL.get(kind as usize)?;
        let end = begin + span;
        self.mark = self.mark.max(end);
        Some(Entry { kind, place, begin, end, counted })
    }
}

impl Iterator for Decoder<'_> {
    type Item = Entry;
    fn next(&mut self) -> Option<Entry> {
        loop {
            if self.parts == 0 {
                [self.header, self.index] = self.take()?;
                self.parts = self.header & PARTS;
            }
            let entry = if self.parts == 0 { self.claim()? } else { self.part()? };
            if entry.begin < entry.end {
                return Some(entry);
            }
        }
    }
}

const _: () = assert!(SpanKind::ALL.len() <= 1 << (32 - SPAN_BITS) && KIND + (32 - SPAN_BITS) <= PLACE_KIND);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn entry()(
            kind in 0..SpanKind::ALL.len(), place in 0..Place::NAMES.len() as u8, index: u32,
            begin in 0u64..1 << 62, span in prop_oneof![1u64..100, 1u64..1 << 28, 1u64..1 << 62], share in 0u64..=2,
        ) -> Entry {
            let (begin, span) = (Time::ps(begin), Span::ps(span));
            let place = Place::of(place, index).expect("one of the kinds");
            Entry { kind: SpanKind::ALL[kind], place, begin, end: begin + span, counted: span / 2 * share }
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back_as_it_was(
            entries in prop::collection::vec((entry(), any::<bool>()), 0..20), opened in 0u64..1 << 40,
        ) {
            let opened = Time::ps(opened);
            let (mut kept, mut mark, mut expected) = (Entries::open(opened, true), opened, Vec::new());
            for (entry, follows) in entries {
                if follows {
                    let parts = [(entry.kind, Span::ZERO), (entry.kind, entry.end - entry.begin), (SpanKind::Wait, Span::ns(1))];
                    kept.keep_parts(mark, entry.place, &parts);
                    for (kind, counted) in parts.into_iter().skip(1) {
                        let (begin, end) = (mark, mark + counted);
                        expected.push(Entry { kind, begin, end, counted, ..entry });
                        mark = end;
                    }
                } else {
                    kept.keep(mark, entry);
                    expected.push(entry);
                    mark = mark.max(entry.end);
                }
                if mark > Time::ps(1 << 62) {
                    break;
                }
            }
            prop_assert_eq!(kept.iter().collect::<Vec<_>>(), expected.clone());
            kept.void();
            let voided = expected.iter().map(|entry| Entry { counted: Span::ZERO, ..*entry });
            prop_assert_eq!(kept.iter().collect::<Vec<_>>(), voided.collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_is_kept_unless_it_was_asked_for_and_memory_is_used_again() {
        let claim = Entry {
            kind: SpanKind::Flash,
            place: Place::Drive(3),
            begin: Time::ns(1),
            end: Time::ns(2),
            counted: Span::ns(1),
        };
        let mut none = Entries::open(Time::ZERO, false);
        none.keep(Time::ZERO, claim);
        assert!(none.is_empty() && none.iter().count() == 0 && none.words.capacity() == 0);
        let mut some = Entries::open(Time::ZERO, true);
        some.keep_parts(Time::ZERO, claim.place, &[(claim.kind, Span::ZERO); 3]);
        assert!(some.is_empty(), "parts without a span are none");
        some.keep(Time::ZERO, claim);
        some.keep(Time::ns(2), Entry { end: claim.begin, ..claim });
        assert_eq!(some.iter().collect::<Vec<_>>(), [claim], "an empty span is none");
        (0..9).for_each(|_| some.keep(Time::ZERO, claim));
        let room = some.words.capacity();
        some.discard();
        let again = Entries::open(Time::ns(9), true);
        assert!(again.is_empty() && again.words.capacity() == room);
    }
}
