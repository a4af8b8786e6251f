//! Rebuild of a stale replica: it requests all pages from its peers, a window at a time.

use crate::id::Page;
use base::{Span, Time};

/// A requested page.
struct Asked {
    page: Page,
    due: Time,
    /// Number of requests so far: each uses another peer.
    tries: usize,
}

pub struct Rebuild {
    next: u64,
    pages: u64,
    window: usize,
    timeout: Span,
    asked: Vec<Asked>,
}

impl Rebuild {
    pub fn new(pages: u64, window: usize, timeout: Span) -> Rebuild {
        Rebuild {
            next: 0,
            pages,
            window: window.max(1),
            timeout: timeout.max(Span::ps(1)),
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
        self.asked.push(Asked { page, due: now + self.timeout, tries: 0 });
        Some(page)
    }
    /// A page whose request timed out, and the number of its requests.
    pub fn overdue(&mut self, now: Time) -> Option<(Page, usize)> {
        let asked = self.asked.iter_mut().find(|asked| asked.due <= now)?;
        asked.tries += 1;
        asked.due = now + self.timeout;
        Some((asked.page, asked.tries))
    }
    /// Returns whether the page was requested, and removes the request.
    pub fn answered(&mut self, page: Page) -> bool {
        let place = self.asked.iter().position(|asked| asked.page == page);
        place.is_some_and(|place| {
            self.asked.swap_remove(place);
            true
        })
    }
    /// Makes every question overdue: nobody will answer those of an old epoch.
    pub fn ask_again(&mut self, now: Time) {
        self.asked.iter_mut().for_each(|asked| asked.due = now);
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
