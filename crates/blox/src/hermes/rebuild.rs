//! Rebuild of a stale replica: it requests all pages from its peers, a window at a time. A page
//! comes when all writes that its peer remembers of it have come, one by one.

use crate::id::{Page, WriteId};
use base::{Span, Time};

/// A requested page.
#[derive(Clone, Copy)]
struct Asked {
    page: Page,
    due: Time,
    /// When it was sent the last time.
    at: Time,
    /// Number of requests before this one that are still without an answer.
    tries: usize,
    /// Number of requests that had no answer in time: each makes the next one go to another peer.
    turn: usize,
    /// The last of its writes that has come.
    after: Option<WriteId>,
}

/// How often the time for an answer is doubled, and how many times the time that one took is
/// enough for the next.
const DOUBLINGS: u32 = 6;
const ENOUGH: u64 = 4;

pub struct Rebuild {
    next: u64,
    pages: u64,
    window: usize,
    timeout: Span,
    /// How long the next request has. It is doubled when answers are late, and stays so for other
    /// pages until one is answered at once (Karn's algorithm): what waits in queues does not get
    /// through sooner if it is asked for twice.
    patience: Span,
    /// Requests that were sent before that do not double it again.
    doubled: Time,
    /// Requests that were sent before that may have been lost: the next one has the timeout alone.
    renewed: Time,
    asked: Vec<Asked>,
}

impl Rebuild {
    pub fn new(pages: u64, window: usize, timeout: Span) -> Rebuild {
        Rebuild {
            next: 0,
            pages,
            window: window.max(1),
            timeout: timeout.max(Span::ps(1)),
            patience: timeout.max(Span::ps(1)),
            doubled: Time::ZERO,
            renewed: Time::ZERO,
            asked: Vec::with_capacity(window),
        }
    }
    /// Returns the next page to request from the first peer, while the window has room.
    pub fn next_page(&mut self, now: Time) -> Option<Page> {
        if self.next == self.pages || self.asked.len() == self.window {
            return None;
        }
        let page = Page(self.next);
        self.next += 1;
        self.asked.push(Asked { page, due: now + self.patience, at: now, tries: 0, turn: 0, after: None });
        Some(page)
    }
    /// A page whose request timed out, and whose turn it is.
    pub fn overdue(&mut self, now: Time) -> Option<(Page, usize)> {
        let asked = self.asked.iter_mut().find(|asked| asked.due <= now)?;
        let is_late = asked.at >= self.renewed;
        if is_late && asked.at >= self.doubled {
            (self.patience, self.doubled) = ((self.patience * 2).min(self.timeout * (1 << DOUBLINGS)), now);
        }
        (asked.tries, asked.turn) = (asked.tries + 1, asked.turn + 1);
        (asked.at, asked.due) = (now, now + if is_late { self.patience } else { self.timeout });
        Some((asked.page, asked.turn))
    }
    /// Returns whether the page was requested, and removes the request.
    pub fn answered(&mut self, now: Time, page: Page) -> bool {
        let Some(place) = self.asked.iter().position(|asked| asked.page == page) else { return false };
        let Asked { at, tries, .. } = self.asked.swap_remove(place);
        self.measure(now, at, tries);
        true
    }
    /// Which request an answer is for is known only where there was one.
    fn measure(&mut self, now: Time, at: Time, tries: usize) {
        if tries == 0 {
            let enough = now.saturating_since(at) * ENOUGH;
            self.patience = self.patience.min(enough.max(self.timeout));
        }
    }
    /// The last write of a requested page that has come.
    pub fn after(&self, page: Page) -> Option<WriteId> {
        self.asked.iter().find(|asked| asked.page == page)?.after
    }
    /// A write of a requested page has come: the next one is requested now. Returns whose turn it
    /// is; `None` where the write had come before.
    pub fn remembered(&mut self, now: Time, page: Page, id: WriteId) -> Option<usize> {
        let place = self.asked.iter().position(|asked| asked.page == page && asked.after < Some(id))?;
        let Asked { at, tries, turn, .. } = self.asked[place];
        self.measure(now, at, tries);
        self.asked[place] = Asked { page, due: now + self.patience, at: now, tries: 0, turn, after: Some(id) };
        Some(turn)
    }
    /// Makes questions overdue that were asked `since` then: nobody will answer those of an old
    /// epoch, or of an outage.
    pub fn ask_again(&mut self, now: Time, since: Time) {
        self.asked.iter_mut().filter(|asked| asked.at >= since).for_each(|asked| asked.due = now);
        self.renewed = now;
    }
    pub fn next_due(&self) -> Option<Time> {
        self.asked.iter().map(|asked| asked.due).min()
    }
    pub fn is_done(&self) -> bool {
        self.next == self.pages && self.asked.is_empty()
    }
    /// No peer is left: the present data are all there is.
    pub fn give_up(&mut self) {
        self.next = self.pages;
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const TIMEOUT: Span = Span::ms(20);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    #[test]
    fn without_answers_the_time_is_doubled_up_to_64_times() {
        let mut rebuild = Rebuild::new(1, 4, TIMEOUT);
        assert_eq!(rebuild.next_page(at(0)), Some(Page(0)));
        let mut gaps = Vec::new();
        let mut last = at(0);
        for tries in 1..10 {
            let due = rebuild.next_due().expect("it was asked for");
            assert_eq!((rebuild.overdue(due), rebuild.overdue(due)), (Some((Page(0), tries)), None));
            gaps.push(due.saturating_since(last).as_ps() / TIMEOUT.as_ps());
            last = due;
        }
        assert_eq!(gaps, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn an_answer_at_once_restores_the_patience_that_it_needs() {
        let mut rebuild = Rebuild::new(9, 1, TIMEOUT);
        let _ = rebuild.next_page(at(0));
        let _ = rebuild.overdue(at(20));
        let _ = rebuild.overdue(at(60));
        assert!(rebuild.answered(at(70), Page(0)), "of the first or a later request");
        let _ = rebuild.next_page(at(100));
        assert_eq!(rebuild.next_due(), Some(at(180)), "no answer has said that less is enough");
        assert!(rebuild.answered(at(110), Page(1)) && !rebuild.answered(at(110), Page(1)));
        let _ = rebuild.next_page(at(200));
        assert_eq!(rebuild.next_due(), Some(at(240)), "four times 10 ms");
        assert!(rebuild.answered(at(201), Page(2)));
        let _ = rebuild.next_page(at(300));
        assert_eq!(rebuild.next_due(), Some(at(320)), "never less than the timeout");
    }

    /// A peer takes 1 ms for each request, also for those that it has answered already: a window of
    /// 64 waits for three timeouts then.
    #[test]
    fn a_peer_slower_than_the_timeout_is_not_buried_in_copies() {
        let (pages, window) = (2_000, 64);
        let mut rebuild = Rebuild::new(pages, window, TIMEOUT);
        let (mut queue, mut served, mut now) = (VecDeque::new(), 0, Time::ZERO);
        while !rebuild.is_done() {
            while let Some((page, _)) = rebuild.overdue(now) {
                queue.push_back(page);
            }
            while let Some(page) = rebuild.next_page(now) {
                queue.push_back(page);
            }
            now += Span::ms(1);
            if let Some(page) = queue.pop_front() {
                served += 1;
                rebuild.answered(now, page);
            }
            assert!(served < 2 * pages, "{served} answers and {} pages still to come", pages - rebuild.next);
        }
        assert!(served >= pages);
    }

    #[test]
    fn what_was_asked_in_an_outage_is_asked_again_when_it_ends() {
        let mut rebuild = Rebuild::new(2, 2, TIMEOUT);
        let _ = rebuild.next_page(at(0));
        let _ = rebuild.next_page(at(10));
        rebuild.ask_again(at(15), at(10));
        assert_eq!((rebuild.overdue(at(15)), rebuild.overdue(at(15))), (Some((Page(1), 1)), None));
        assert_eq!(rebuild.next_due(), Some(at(20)), "the other one is not overdue");
    }

    #[test]
    fn after_an_outage_one_request_has_the_timeout_alone() {
        let mut rebuild = Rebuild::new(1, 1, TIMEOUT);
        let _ = rebuild.next_page(at(0));
        let _ = rebuild.overdue(at(20));
        let _ = rebuild.overdue(at(60));
        assert_eq!(rebuild.next_due(), Some(at(140)));
        rebuild.ask_again(at(70), at(0));
        assert_eq!((rebuild.overdue(at(70)), rebuild.next_due()), (Some((Page(0), 3)), Some(at(90))));
        assert_eq!((rebuild.overdue(at(90)), rebuild.next_due()), (Some((Page(0), 4)), Some(at(250))));
    }

    #[test]
    fn each_write_of_a_page_is_requested_once_the_one_before_has_come() {
        let id = |tag: u64| WriteId { tag: crate::Tag(tag), ..WriteId::FIRST };
        let mut rebuild = Rebuild::new(1, 4, TIMEOUT);
        let _ = rebuild.next_page(at(0));
        assert_eq!(rebuild.remembered(at(1), Page(0), id(3)), Some(0));
        assert_eq!(rebuild.remembered(at(2), Page(0), id(3)), None, "it comes twice");
        assert_eq!((rebuild.after(Page(0)), rebuild.next_due()), (Some(id(3)), Some(at(21))));
        assert_eq!(rebuild.overdue(at(21)), Some((Page(0), 1)));
        assert_eq!(rebuild.remembered(at(22), Page(0), id(5)), Some(1), "the peer that has answered");
        assert_eq!(rebuild.remembered(at(22), Page(0), id(4)), None, "an answer to an earlier request");
        assert!(rebuild.answered(at(23), Page(0)) && rebuild.is_done());
        assert_eq!((rebuild.after(Page(0)), rebuild.remembered(at(24), Page(0), id(9))), (None, None));
    }
}
