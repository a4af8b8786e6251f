//! What a read of one block may find.

use super::{Found, Write, WriteEnd};
use base::Time;

#[derive(Clone, Copy, Debug)]
struct Candidate {
    write: Write,
    /// The first acknowledged write that began after this one had ended, and was so found to have
    /// replaced it.
    replaced_by: Option<Write>,
}

#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Values that an open read, or a read that begins now, may return.
    candidates: Vec<Candidate>,
    /// Begin of each open read, in order.
    reads: Vec<Time>,
    /// The last write that was dropped, for messages.
    dropped: Option<Candidate>,
}

impl Default for Block {
    fn default() -> Self {
        let first = Write { id: 0, begun: Time::ZERO, ended: Some(Time::ZERO), is_acknowledged: true };
        Block { candidates: vec![Candidate { write: first, replaced_by: None }], reads: Vec::new(), dropped: None }
    }
}

impl Block {
    pub(super) fn write_begins(&mut self, now: Time, id: u64) {
        let write = Write { id, begun: now, ended: None, is_acknowledged: false };
        self.candidates.push(Candidate { write, replaced_by: None });
    }

    pub(super) fn write_ends(&mut self, now: Time, id: u64, end: WriteEnd) {
        let under_way = self.candidates.iter_mut().find(|other| other.write.id == id && other.write.ended.is_none());
        let Some(candidate) = under_way else { return };
        candidate.write.ended = Some(now);
        candidate.write.is_acknowledged = end == WriteEnd::Acknowledged;
        let winner = candidate.write;
        if winner.is_acknowledged {
            self.replace_before(winner);
        }
        self.forget();
    }

    /// Writes that ended before `winner` began are replaced. Writes that ended at the same instant
    /// were concurrent.
    fn replace_before(&mut self, winner: Write) {
        for candidate in &mut self.candidates {
            let is_before = candidate.write.id == 0 || candidate.write.ended.is_some_and(|ended| ended < winner.begun);
            if is_before && candidate.write.id != winner.id {
                candidate.replaced_by.get_or_insert(winner);
            }
        }
    }

    pub(super) fn read_begins(&mut self, now: Time) {
        self.reads.push(now);
    }

    pub(super) fn read_leaves(&mut self, begun: Time) {
        if let Some(place) = self.reads.iter().position(|other| *other == begun) {
            self.reads.remove(place);
            self.forget();
        }
    }

    /// Whether a read that began at `begun` may find `id`; if not, what that is and what had
    /// replaced it.
    pub(super) fn judge(&self, begun: Time, id: u64) -> Result<(), (Found, Write)> {
        let known = self.candidates.iter().chain(&self.dropped).find(|candidate| candidate.write.id == id);
        match known {
            None => Err((Found::Forgotten(id), self.newest())),
            Some(Candidate { write, replaced_by: Some(winner) }) if is_past(winner, begun) => {
                Err((Found::Write(*write), *winner))
            }
            Some(_) => Ok(()),
        }
    }

    /// The write that was acknowledged last.
    fn newest(&self) -> Write {
        let acknowledged = self.candidates.iter().filter(|candidate| candidate.write.is_acknowledged);
        let newest = acknowledged.max_by_key(|candidate| candidate.write.ended).or(self.candidates.first());
        newest.expect("a block holds something").write
    }

    /// Drops writes that were replaced before every open read, and so before every later one.
    fn forget(&mut self) {
        let first_read = self.reads.first().copied();
        let dropped = &mut self.dropped;
        self.candidates.retain(|candidate| {
            let is_needed = match (candidate.replaced_by, first_read) {
                (None, _) => true,
                (Some(winner), Some(begun)) => !is_past(&winner, begun),
                (Some(_), None) => false,
            };
            if !is_needed {
                *dropped = Some(*candidate);
            }
            is_needed
        });
    }

    pub(super) fn remembered(&self) -> usize {
        self.candidates.len()
    }
}

/// Returns whether `winner` was acknowledged before a read began; at the same instant they are
/// concurrent.
fn is_past(winner: &Write, begun: Time) -> bool {
    winner.ended.is_some_and(|ended| ended < begun)
}
