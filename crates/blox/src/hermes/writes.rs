//! The writes that a replica knows and that their clients may send again: none is done twice.
//!
//! In the manner of RIFL (Lee et al., SOSP '15): a client names with each write the oldest that it
//! has open, and what is older is forgotten. What is known is therefore what clients have open, and
//! little more.

use crate::id::{Origin, Page, Tag, WriteId};
use base::{NodeId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::ops::Bound;

/// Writes of one client that are known before it gets a new one done: its oldest must end first.
const WRITES_MAX: usize = 1 << 16;
/// Writes of all clients that are known before one gets a new one done. Each takes about 60 B.
const ALL_MAX: usize = 1 << 18;
/// Lives of clients that are known. One that is silent is forgotten.
const CLIENTS_MAX: usize = 256;
/// A coordinator lets no more begin than that; what it has begun all others take in.
const OTHERS: usize = 4;

/// What is known of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Nothing.
    New,
    /// It has been begun.
    Seen,
    /// Its client has it open no longer.
    Over,
}

struct Client {
    oldest: Tag,
    /// It is forgotten then, unless it is heard before.
    until: Time,
    seen: BTreeMap<Tag, Page>,
}

/// Writes by client and by page.
pub struct Writes {
    /// A client from which nothing has come for so long is forgotten.
    silence: Span,
    /// The latest time that it was told.
    now: Time,
    swept: Time,
    clients: BTreeMap<(NodeId, NonZero<u32>), Client>,
    by_page: BTreeSet<(Page, WriteId)>,
}

impl Writes {
    pub fn new(silence: Span) -> Writes {
        Writes { silence, now: Time::ZERO, swept: Time::ZERO, clients: BTreeMap::new(), by_page: BTreeSet::new() }
    }

    pub fn len(&self) -> usize {
        self.by_page.len()
    }

    pub fn clear(&mut self) {
        self.clients.clear();
        self.by_page.clear();
    }

    pub fn of(&self, id: &WriteId) -> Knowledge {
        match self.clients.get(&(id.client, id.life)) {
            Some(client) if id.tag < client.oldest => Knowledge::Over,
            Some(client) if client.seen.contains_key(&id.tag) => Knowledge::Seen,
            _ => Knowledge::New,
        }
    }

    /// Whether a client may begin one more write, while `begun` of all clients have begun elsewhere
    /// in this server.
    pub fn has_room(&self, id: &WriteId, begun: usize) -> bool {
        self.has_room_of(id, begun, 1)
    }

    fn has_room_of(&self, id: &WriteId, begun: usize, times: usize) -> bool {
        let has_room = match self.clients.get(&(id.client, id.life)) {
            Some(client) => client.seen.len() + begun < WRITES_MAX * times,
            None => self.clients.len() < CLIENTS_MAX * times,
        };
        has_room && self.by_page.len() + begun < ALL_MAX * times
    }

    /// A write has begun. Returns false, and does not know it, where far too many are known.
    pub fn note(&mut self, now: Time, page: Page, origin: &Origin) -> bool {
        self.note_after(now, Span::ZERO, page, origin)
    }

    /// As [`Self::note`], of a client that has been silent since. What has to be forgotten is not
    /// known anew: replicas that tell each other would never forget it.
    pub fn note_after(&mut self, now: Time, silence: Span, page: Page, origin: &Origin) -> bool {
        self.forget_silent(now);
        if silence >= self.silence {
            return true;
        }
        let Origin { id, oldest } = *origin;
        if self.of(&id) == Knowledge::New && !self.has_room_of(&id, 0, OTHERS) {
            return false;
        }
        let until = now + (self.silence - silence);
        let new = || Client { oldest, until, seen: BTreeMap::new() };
        let client = self.clients.entry((id.client, id.life)).or_insert_with(new);
        if id.tag >= client.oldest.max(oldest) {
            if let Some(before) = client.seen.insert(id.tag, page) {
                self.by_page.remove(&(before, id));
            }
            self.by_page.insert((page, id));
        }
        self.keep(until, origin);
        true
    }

    /// A client has said which of its writes is the oldest: those before are forgotten.
    pub fn hear(&mut self, now: Time, origin: &Origin) {
        self.forget_silent(now);
        self.keep(now + self.silence, origin);
    }

    fn keep(&mut self, until: Time, origin: &Origin) {
        let Origin { id, oldest } = *origin;
        let Some(client) = self.clients.get_mut(&(id.client, id.life)) else { return };
        client.until = client.until.max(until);
        client.oldest = client.oldest.max(oldest);
        while let Some(first) = client.seen.first_entry().filter(|first| *first.key() < client.oldest) {
            let (tag, page) = first.remove_entry();
            self.by_page.remove(&(page, WriteId { tag, ..id }));
        }
    }

    /// The first write of a page that is known and comes after another, and how long its client has
    /// been silent.
    pub fn next_of(&self, page: Page, after: Option<WriteId>) -> Option<(Origin, Span)> {
        let from = after.map_or(Bound::Included((page, WriteId::FIRST)), |after| Bound::Excluded((page, after)));
        let (_, id) = self.by_page.range((from, Bound::Unbounded)).next().filter(|(other, _)| *other == page)?;
        let Client { oldest, until, .. } = *self.clients.get(&(id.client, id.life))?;
        let silence = self.silence.saturating_sub(until.saturating_since(self.now));
        Some((Origin { id: *id, oldest }, silence))
    }

    /// Clients give up long before they are forgotten.
    fn forget_silent(&mut self, now: Time) {
        self.now = self.now.max(now);
        if now.saturating_since(self.swept) < self.silence / 4 {
            return;
        }
        self.swept = now;
        for ((node, life), client) in self.clients.extract_if(.., |_, client| client.until <= now) {
            for (tag, page) in client.seen {
                self.by_page.remove(&(page, WriteId { client: node, life, tag }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Span = Span::secs(60);

    fn origin(life: u32, tag: u64, oldest: u64) -> Origin {
        Origin {
            id: WriteId { client: NodeId(7), life: NonZero::new(life + 1).expect("it is more"), tag: Tag(tag) },
            oldest: Tag(oldest),
        }
    }

    fn of(writes: &Writes, life: u32, tag: u64) -> Knowledge {
        writes.of(&origin(life, tag, 0).id)
    }

    #[test]
    fn writes_are_known_until_their_client_has_older_ones_open_no_longer() {
        let mut writes = Writes::new(SILENCE);
        for tag in 1..=4 {
            assert!(writes.note(Time::ZERO, Page(tag % 2), &origin(0, tag, 1)));
        }
        assert_eq!([0, 1, 4, 5].map(|tag| of(&writes, 0, tag)), {
            [Knowledge::Over, Knowledge::Seen, Knowledge::Seen, Knowledge::New]
        });
        assert!(writes.note(Time::ZERO, Page(0), &origin(0, 5, 4)));
        assert!(writes.note(Time::ZERO, Page(0), &origin(0, 3, 1)), "an older word changes nothing");
        assert_eq!([3, 4, 5, 6].map(|tag| of(&writes, 0, tag)), {
            [Knowledge::Over, Knowledge::Seen, Knowledge::Seen, Knowledge::New]
        });
        assert_eq!(writes.len(), 2);
        assert_eq!(of(&writes, 1, 4), Knowledge::New, "of another life");
    }

    #[test]
    fn the_writes_of_a_page_come_one_after_the_other_with_their_clients_oldest() {
        let mut writes = Writes::new(SILENCE);
        for (life, tag, page) in [(0, 1, 2), (0, 2, 3), (1, 1, 2), (0, 3, 2), (0, 4, 9)] {
            assert!(writes.note(Time::ZERO, Page(page), &origin(life, tag, 1)));
        }
        let mut listed = Vec::new();
        let mut after = None;
        while let Some((origin, _)) = writes.next_of(Page(2), after) {
            listed.push((origin.id.life.get() - 1, origin.id.tag.0, origin.oldest.0));
            after = Some(origin.id);
        }
        assert_eq!(listed, [(0, 1, 1), (0, 3, 1), (1, 1, 1)]);
        assert_eq!([1, 3, 9, 10].map(|page| writes.next_of(Page(page), None).is_some()), [false, true, true, false]);
    }

    #[test]
    fn a_silent_client_is_forgotten_and_no_other() {
        let mut writes = Writes::new(SILENCE);
        writes.note(Time::secs(0), Page(0), &origin(0, 1, 1));
        writes.note(Time::secs(30), Page(0), &origin(1, 1, 1));
        writes.note(Time::secs(59), Page(0), &origin(2, 1, 1));
        assert_eq!([0, 1, 2].map(|life| of(&writes, life, 1)), [Knowledge::Seen; 3]);
        writes.note(Time::secs(89), Page(0), &origin(2, 2, 1));
        assert_eq!([0, 1, 2].map(|life| of(&writes, life, 1)), { [Knowledge::New, Knowledge::Seen, Knowledge::Seen] });
        assert_eq!(writes.len(), 3);
    }

    #[test]
    fn a_client_whose_oldest_never_ends_begins_no_more_and_is_not_forgotten() {
        let mut writes = Writes::new(SILENCE);
        let mut begun = 0;
        while writes.has_room(&origin(0, begun, 0).id, 0) {
            assert!(writes.note(Time::ZERO, Page(begun % 8), &origin(0, begun, 0)));
            begun += 1;
        }
        assert_eq!((begun as usize, of(&writes, 0, 0)), (WRITES_MAX, Knowledge::Seen));
        assert!(writes.note(Time::ZERO, Page(0), &origin(0, begun, 0)), "what another has begun is known");
        assert!(writes.note(Time::ZERO, Page(0), &origin(0, begun + 1, begun)));
        assert!(writes.has_room(&origin(0, begun + 2, begun).id, 0));
        assert_eq!(writes.len(), 2);
        let lives = (1..).take_while(|life| {
            let id = origin(*life, 1, 1);
            writes.has_room(&id.id, 0) && writes.note(Time::ZERO, Page(0), &id)
        });
        assert_eq!(lives.count(), CLIENTS_MAX - 1);
    }

    /// Two replicas that are started anew in turns, each with a clock of its own, tell each other
    /// what they know.
    #[test]
    fn what_is_told_again_and_again_is_forgotten_too() {
        let mut told = Writes::new(SILENCE);
        assert!(told.note(Time::ZERO, Page(2), &origin(0, 1, 1)));
        for second in 1..=90 {
            let mut anew = Writes::new(SILENCE);
            // Others write on.
            assert!(told.note(Time::secs(1), Page(3), &origin(1, second, second)));
            if let Some((origin, silence)) = told.next_of(Page(2), None) {
                assert_eq!(silence, Span::secs(second));
                assert!(anew.note_after(Time::ZERO, silence, Page(2), &origin));
            }
            told = anew;
            assert_eq!(of(&told, 0, 1) == Knowledge::Seen, second < 60, "after {second} s");
        }
    }

    /// Nobody begins a write then, and so nobody is noted.
    #[test]
    fn clients_that_fill_all_places_are_forgotten_though_nobody_may_begin() {
        let mut writes = Writes::new(SILENCE);
        (0..CLIENTS_MAX as u32).for_each(|life| assert!(writes.note(Time::ZERO, Page(0), &origin(life, 1, 1))));
        let next = origin(999, 1, 1);
        assert!(!writes.has_room(&next.id, 0));
        writes.hear(Time::ZERO + SILENCE, &next);
        assert!(writes.has_room(&next.id, 0));
    }
}
