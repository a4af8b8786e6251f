//! The claims of one request in order, in words that are decoded only for the requests that are
//! kept: most requests whose claims are recorded turn out not to be among the slowest.
//!
//! The first word is the time at which the ledger was opened. Each claim follows as a header, with
//! its place and what else there is; a begin, if the claim does not begin where the time that is
//! accounted for ends; its parts, each with its kind and span; and the time that counts, if it is
//! not the whole span.

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

/// A header is the number of parts, then flags, the kind of place, and in the upper half its index.
const STARTS_APART: u64 = 1 << 8;
const COUNTS_LESS: u64 = 1 << 9;
const PLACE_KIND: u32 = 16;
const PLACE_INDEX: u32 = 32;

/// A part is a span with its kind in the upper bits; the span of a [`LONG`] one is another word.
const SPAN_BITS: u32 = 58;
const LONG: u64 = 1 << 63;

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
        Decoder { words: self.words.get(1..).unwrap_or(&[]), mark, begin: mark, header: 0, parts: 0 }
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
        self.words.push(header(place, flags) | 1);
        if starts_apart {
            self.words.push(begin.as_ps());
        }
        self.part(kind, end - begin);
        if counts_less {
            self.words.push(counted.as_ps());
        }
    }

    /// Keeps consecutive parts that begin where what is accounted for ends. All of their time
    /// counts.
    #[inline]
    pub(crate) fn keep_parts(&mut self, place: Place, parts: &[(SpanKind, Span)]) {
        let start = self.words.len();
        // Of long parts there are none or few.
        self.words.reserve(1 + parts.len());
        self.words.push(header(place, 0));
        let mut count = 0;
        for (kind, span) in parts.iter().filter(|(_, span)| *span > Span::ZERO) {
            self.part(*kind, *span);
            count += 1;
        }
        if count > 0 {
            self.words[start] |= count;
        } else {
            self.words.truncate(start);
        }
    }

    #[inline]
    fn part(&mut self, kind: SpanKind, span: Span) {
        let kind = (kind as u64) << SPAN_BITS;
        if span.as_ps() >> SPAN_BITS == 0 {
            self.words.push(kind | span.as_ps());
        } else {
            self.words.extend([LONG | kind, span.as_ps()]);
        }
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
fn header(place: Place, flags: u64) -> u64 {
    let (kind, index) = place.numbers();
    u64::from(index) << PLACE_INDEX | u64::from(kind) << PLACE_KIND | flags
}

/// Reads claims back.
struct Decoder<'a> {
    words: &'a [u64],
    /// Everything before it is accounted for.
    mark: Time,
    /// Where the next part begins.
    begin: Time,
    header: u64,
    /// Parts of the claim that are left.
    parts: u64,
}

impl Decoder<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }
}

impl Iterator for Decoder<'_> {
    type Item = Entry;
    fn next(&mut self) -> Option<Entry> {
        if self.parts == 0 {
            self.header = self.word()?;
            self.parts = self.header & 0xff;
            self.begin = if self.header & STARTS_APART > 0 { Time::ps(self.word()?) } else { self.mark };
        }
        let part = self.word()?;
        let kind = *SpanKind::ALL.get((part & !LONG) as usize >> SPAN_BITS)?;
        let span = if part & LONG > 0 { self.word()? } else { part & ((1 << SPAN_BITS) - 1) };
        let (begin, span) = (self.begin, Span::ps(span));
        let counted = if self.header & COUNTS_LESS > 0 { Span::ps(self.word()?) } else { span };
        let place = Place::of((self.header >> PLACE_KIND) as u8, (self.header >> PLACE_INDEX) as u32)?;
        self.parts -= 1;
        self.begin = begin + span;
        self.mark = self.mark.max(self.begin);
        Some(Entry { kind, place, begin, end: self.begin, counted })
    }
}

const _: () = assert!(SpanKind::ALL.len() < 1 << (63 - SPAN_BITS));

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
                    kept.keep_parts(entry.place, &parts);
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
        let memory = some.words.as_ptr();
        some.discard();
        let again = Entries::open(Time::ns(9), true);
        assert!(again.is_empty() && again.words.as_ptr() == memory);
    }
}
