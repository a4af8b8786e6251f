//! The claims of one request in order, in words that are decoded only for the requests that are
//! kept: most requests whose claims are recorded turn out not to be among the slowest.
//!
//! The first word is the time at which the ledger was opened. Each claim follows as a header, with
//! its place and kind; its begin, if that is not where the time that is accounted for ends; its
//! span; and the time that counts, if it is not the whole span. Consecutive parts are one header,
//! their kinds, and their spans.

use crate::ledger::{Entry, Place};
use crate::row::SpanKind;
use base::{Span, Time};
use std::cell::RefCell;

/// The claims of a request in order, if they are kept. Their memory is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Empty where no claims are kept.
    words: Vec<u64>,
}

/// A header is the number of consecutive parts, which is 0 for a claim alone; flags; the kind of a
/// claim alone; the kind of place, and in the upper half its index.
const STARTS_APART: u64 = 1 << 8;
const COUNTS_LESS: u64 = 1 << 9;
const KIND: u32 = 10;
const PLACE_KIND: u32 = 16;
const PLACE_INDEX: u32 = 32;

/// Bits of each kind in the word of the kinds of parts.
const KIND_BITS: u32 = 5;
/// Most kinds in a word.
const PARTS_MAX: usize = 12;

thread_local! {
    /// Empty lists of requests that have ended.
    static SPARE: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

impl Entries {
    /// An empty list of claims from `now` on, if claims are kept.
    #[inline]
    pub(crate) fn open(now: Time, keeps_entries: bool) -> Entries {
        if keeps_entries { Entries::spare(now) } else { Entries::default() }
    }

    fn spare(now: Time) -> Entries {
        let mut words = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        words.push(now.as_ps());
        Entries { words }
    }

    /// Returns whether claims are kept.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        !self.words.is_empty()
    }

    /// Returns whether there is no claim.
    pub fn is_empty(&self) -> bool {
        self.words.len() < 2
    }

    /// Returns the claims in order.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + '_ {
        let mark = Time::ps(self.words.first().copied().unwrap_or(0));
        Decoder { words: self.words.get(1..).unwrap_or(&[]), mark, header: 0, parts: 0, kinds: 0 }
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
        self.words.push(header(place, flags | (kind as u64) << KIND));
        if starts_apart {
            self.words.push(begin.as_ps());
        }
        self.words.push((end - begin).as_ps());
        if counts_less {
            self.words.push(counted.as_ps());
        }
    }

    /// Keeps consecutive parts that begin where what is accounted for ends, with their
    /// [`kinds`]. All of their time counts.
    #[inline(never)]
    pub(crate) fn keep_parts<const PARTS: usize>(&mut self, place: Place, kinds: u64, spans: [Span; PARTS]) {
        const { assert!(PARTS > 0 && PARTS <= PARTS_MAX, "their kinds fit into a word") }
        self.words.reserve(2 + PARTS);
        self.words.extend_from_slice(&[header(place, PARTS as u64), kinds]);
        self.words.extend_from_slice(&spans.map(Span::as_ps));
    }

    /// None of the time counts any more.
    #[cold]
    pub(crate) fn void(&mut self) {
        let all: Vec<Entry> = self.iter().collect();
        let mut mark = Time::ps(self.words.first().copied().unwrap_or(0));
        self.words.truncate(1);
        for entry in all {
            self.keep(mark, Entry { counted: Span::ZERO, ..entry });
            mark = mark.max(entry.end);
        }
    }
}

#[inline]
fn header(place: Place, rest: u64) -> u64 {
    let (kind, index) = place.numbers();
    u64::from(index) << PLACE_INDEX | u64::from(kind) << PLACE_KIND | rest
}

/// Returns the kinds of parts as a word, the first in the lowest bits.
#[inline(always)]
pub(crate) fn kinds<const PARTS: usize>(parts: &[(SpanKind, Span); PARTS]) -> u64 {
    parts.iter().rev().fold(0, |kinds, (kind, _)| kinds << KIND_BITS | *kind as u64)
}

/// Reads claims back.
struct Decoder<'a> {
    words: &'a [u64],
    /// Everything before it is accounted for.
    mark: Time,
    header: u64,
    /// Parts that are left, and their kinds.
    parts: u64,
    kinds: u64,
}

impl Decoder<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    /// Returns the next part or claim, and the time of it that counts.
    fn entry(&mut self, kind: u64, begin: Time, counts_less: bool) -> Option<Entry> {
        let span = Span::ps(self.word()?);
        let counted = if counts_less { Span::ps(self.word()?) } else { span };
        let place = Place::of((self.header >> PLACE_KIND) as u8, (self.header >> PLACE_INDEX) as u32)?;
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
                self.header = self.word()?;
                self.parts = self.header & 0xff;
                if self.parts == 0 {
                    let begin = if self.header & STARTS_APART > 0 { Time::ps(self.word()?) } else { self.mark };
                    let kind = self.header >> KIND & KIND_MASK;
                    return self.entry(kind, begin, self.header & COUNTS_LESS > 0);
                }
                self.kinds = self.word()?;
            }
            let kind = self.kinds & KIND_MASK;
            self.kinds >>= KIND_BITS;
            self.parts -= 1;
            let entry = self.entry(kind, self.mark, false)?;
            if entry.begin < entry.end {
                return Some(entry);
            }
        }
    }
}

const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

const _: () = assert!(SpanKind::ALL.len() <= 1 << KIND_BITS && KIND + KIND_BITS <= PLACE_KIND);
const _: () = assert!(PARTS_MAX * KIND_BITS as usize <= 64);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn entry()(
            kind in 0..SpanKind::ALL.len(), place in 0..Place::NAMES.len() as u8, index: u32,
            begin in 0u64..1 << 62, span in prop_oneof![1u64..100, 1u64..1 << 62], share in 0u64..=2,
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
                    kept.keep_parts(entry.place, kinds(&parts), parts.map(|(_, span)| span));
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
        assert!(some.is_empty());
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
