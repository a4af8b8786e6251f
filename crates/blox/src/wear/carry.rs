//! The program of a storage server that carries swaps out while requests go on, see
//! [`SwapCarrier`].

#[cfg(test)]
mod tests;

use super::WearError;
use super::swap::{Admission, Side, SwapAction, SwapBlock, SwapEvent, SwapPlan, SwapProgress, SwapStage};
use crate::id::{Page, Value, VssdId};
use base::{Program, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// How a server swaps. Every field is given; `plan` has the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierConfig {
    /// Pages of each vSSD.
    pub pages: u64,
    /// Pages of each vSSD that move together. A region needs this many units beyond its pages, and
    /// memory holds twice as many.
    pub batch: u32,
    /// How often a batch is tried.
    pub attempts_max: u32,
    /// Maximum pages in flight.
    pub depth: u32,
    /// How long a swap makes way for requests at the device, unless a request waits for the swap.
    pub wait_max: Span,
}

/// Where a page lies: a unit of the region that a vSSD had when it was made, or has had since it
/// was last swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The owner of the region.
    pub region: VssdId,
    /// The unit of it.
    pub unit: u64,
}

/// A page in transit from one region to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapCopy {
    block: SwapBlock,
    /// Copies of an earlier attempt no longer count.
    attempt: u32,
}

/// What can happen to a server's swaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierIn {
    /// Two vSSDs of the server shall exchange their places. One pair after the other.
    Swap {
        /// One.
        one: VssdId,
        /// The other.
        other: VssdId,
    },
    /// A page requested with [`CarrierOut::Read`] is in memory.
    Read {
        /// The copy.
        copy: SwapCopy,
        /// The content.
        value: Value,
    },
    /// A page that was to be written is written.
    Written(SwapCopy),
    /// There is no free block for it now.
    Refused(SwapCopy),
    /// There never will be: the flash is worn out.
    Failed(SwapCopy),
    /// The server has died: what it held is forgotten, requests included.
    Fail,
    /// It is back.
    Recover,
}

/// What a server's swaps want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierOut {
    /// Read a page into memory, behind requests.
    Read {
        /// To be handed back.
        copy: SwapCopy,
        /// Its place.
        seat: Seat,
    },
    /// Write a page, behind requests.
    Write {
        /// To be handed back.
        copy: SwapCopy,
        /// Where it shall be.
        seat: Seat,
        /// The content.
        value: Value,
    },
    /// What lies there does not count.
    Trim(Seat),
    /// A request that was held may be served.
    Serve {
        /// Its name, given to [`SwapCarrier::admit`].
        ticket: u64,
        /// Where its page lies.
        seat: Seat,
    },
    /// All pages have changed places: from now on each vSSD's region is the one that was the
    /// other's.
    Exchange {
        /// One.
        one: VssdId,
        /// The other.
        other: VssdId,
    },
}

/// What swaps have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarrierCounters {
    /// Swaps that are done.
    pub done: u64,
    /// Swaps that were given up half way.
    pub stopped: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Requests that had to wait for a batch.
    pub held: u64,
    /// From the first page to the exchange, summed over swaps that are done.
    pub time: Span,
}

/// Executes the swaps of one storage server (RackBlox, 3.6), and knows the place of each page
/// during and after them.
///
/// It sits between a server and its drives. The caller requests the [place](SwapCarrier::admit) of
/// every read and write at the device and reports its [end](SwapCarrier::end); it executes each
/// [`CarrierOut`] and reports it with [`on`](SwapCarrier::on). [`SwapProgress`] documents the order
/// of pages, and why nothing is lost.
///
/// **Places of pages.** A region has a batch more units than its vSSD has pages. The pages are
/// consecutive from some unit on, in a ring, and the free units precede them. The first batch of
/// the other's pages is written there; it leaves the same number of free units behind it, for the
/// next batch, and so on. When all have moved, each region holds the other's pages, and they begin
/// a batch earlier.
///
/// **Priority.** A page of a swap is read or written when no request is at the device, when one has
/// delayed it for [`CarrierConfig::wait_max`], or when a request waits for the swap itself.
#[derive(Clone, Debug)]
pub struct SwapCarrier {
    config: CarrierConfig,
    /// The unit of each region where its pages begin; 0 when not mentioned.
    begins: BTreeMap<VssdId, u64>,
    waiting: VecDeque<Pair>,
    active: Option<Active>,
    /// Requests at the device.
    underway: BTreeMap<(VssdId, Page), u32>,
    is_down: bool,
    attempt: u32,
    counters: CarrierCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    one: VssdId,
    other: VssdId,
}

/// A swap that has begun.
#[derive(Clone, Debug)]
struct Active {
    pair: Pair,
    progress: SwapProgress,
    began: Time,
    /// Pages in memory.
    memory: BTreeMap<SwapBlock, Value>,
    todo: VecDeque<SwapAction>,
    outstanding: u32,
    /// Time from which the next page moves regardless of requests at the device.
    goes_at: Option<Time>,
}

impl Pair {
    fn of(&self, side: Side) -> VssdId {
        if side == Side::One { self.one } else { self.other }
    }
    fn side_of(&self, vssd: VssdId) -> Option<Side> {
        [Side::One, Side::Other].into_iter().find(|side| self.of(*side) == vssd)
    }
}

/// Commands.
impl SwapCarrier {
    /// A server without swaps. Fails without a batch, an attempt or a page in flight, and for more
    /// pages than 32-bit numbers name.
    pub fn new(config: CarrierConfig) -> Result<SwapCarrier, WearError> {
        WearError::check(config.depth > 0, "depth", 0, "at least one page is needed")?;
        let pages_max = u64::from(u32::MAX - config.batch);
        WearError::check(config.pages <= pages_max, "pages", config.pages, "a batch less than 2^32 are allowed")?;
        SwapProgress::new(plan(&config))?;
        Ok(SwapCarrier {
            config,
            begins: BTreeMap::new(),
            waiting: VecDeque::new(),
            active: None,
            underway: BTreeMap::new(),
            is_down: false,
            attempt: 0,
            counters: CarrierCounters::default(),
        })
    }
    /// A request wants a page; where it lies, or `None` while the page moves: then the request is
    /// served with [`CarrierOut::Serve`].
    pub fn admit(&mut self, vssd: VssdId, page: Page, ticket: u64) -> Option<Seat> {
        let seat = match self.active.as_mut().and_then(|active| active.block(vssd, page)) {
            None => Some(self.own_seat(vssd, page)),
            Some(block) => {
                let active = self.active.as_mut().expect("a block belongs to a swap that is active");
                match active.progress.admit(block, ticket) {
                    Admission::Serve(side) => Some(self.seat(block, side)),
                    Admission::Held => None,
                    // Such a page has no place and was never written; its server does not access
                    // it.
                    Admission::NoSuchBlock => Some(self.own_seat(vssd, page)),
                }
            }
        };
        match seat {
            Some(_) => *self.underway.entry((vssd, page)).or_default() += 1,
            None => self.counters.held += 1,
        }
        seat
    }
    /// A request that was served has ended.
    pub fn end(&mut self, now: Time, vssd: VssdId, page: Page, out: &mut Vec<CarrierOut>) {
        let Some(count) = self.underway.get_mut(&(vssd, page)) else { return };
        *count -= 1;
        if *count == 0 {
            self.underway.remove(&(vssd, page));
        }
        let Some(active) = &mut self.active else { return };
        let mut actions = Vec::new();
        if let Some(block) = active.block(vssd, page) {
            active.progress.end(block, &mut actions);
        }
        self.carry(now, actions, out);
    }
}

impl Program for SwapCarrier {
    type In = CarrierIn;
    type Out = CarrierOut;

    fn on(&mut self, now: Time, input: CarrierIn, out: &mut Vec<CarrierOut>) {
        match input {
            CarrierIn::Swap { one, other } => {
                self.waiting.push_back(Pair { one, other });
                self.begin(now, out);
            }
            CarrierIn::Read { copy, value } => {
                if let Some(active) = self.active_of(copy) {
                    active.memory.insert(copy.block, value);
                    self.counters.pages_read += 1;
                    self.copied(now, SwapEvent::Read(copy.block), out);
                }
            }
            CarrierIn::Written(copy) => {
                if self.active_of(copy).is_some() {
                    self.counters.pages_written += 1;
                    self.copied(now, SwapEvent::Written(copy.block), out);
                }
            }
            CarrierIn::Refused(copy) => self.put_off(now, copy),
            CarrierIn::Failed(copy) => self.give_up(now, copy, out),
            CarrierIn::Fail => self.forget(),
            CarrierIn::Recover => self.resume(now, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.active.as_ref()?.goes_at.filter(|_| !self.is_down)
    }

    /// A page may have waited long enough.
    fn on_wakeup(&mut self, now: Time, out: &mut Vec<CarrierOut>) {
        self.issue(now, out);
    }
}

/// Questions.
impl SwapCarrier {
    /// Returns whether a swap is underway.
    pub fn is_swapping(&self) -> bool {
        self.active.as_ref().is_some_and(|active| !active.progress.is_over())
    }
    /// What swaps have done.
    pub fn counters(&self) -> &CarrierCounters {
        &self.counters
    }
}

impl SwapCarrier {
    /// Units of a region.
    fn units(&self) -> u64 {
        self.config.pages + u64::from(self.config.batch)
    }
    fn begin_of(&self, region: VssdId) -> u64 {
        self.begins.get(&region).copied().unwrap_or(0)
    }
    /// Where a page lies that no swap moves.
    fn own_seat(&self, vssd: VssdId, page: Page) -> Seat {
        Seat { region: vssd, unit: (self.begin_of(vssd) + page.0) % self.units() }
    }
    /// Where a page of the active swap lies when it lies on a side: where its own region begins, or
    /// in the free units before the other's.
    fn seat(&self, block: SwapBlock, on: Side) -> Seat {
        let pair = self.active.as_ref().expect("a block belongs to a swap that is active").pair;
        let region = pair.of(on);
        let before = if block.content == on { 0 } else { u64::from(self.config.batch) };
        let unit = (self.begin_of(region) + self.units() - before + u64::from(block.index)) % self.units();
        Seat { region, unit }
    }
    fn begin(&mut self, now: Time, out: &mut Vec<CarrierOut>) {
        if self.active.is_some() || self.is_down {
            return;
        }
        let Some(pair) = self.waiting.pop_front() else { return };
        let mut progress = SwapProgress::new(plan(&self.config)).expect("the plan was checked");
        for ((vssd, page), count) in &self.underway {
            let Some(content) = pair.side_of(*vssd) else { continue };
            let block = SwapBlock { content, index: page.0 as u32 };
            // Nothing is paused yet: each is let through, and counted.
            for _ in 0..*count {
                progress.admit(block, 0);
            }
        }
        let mut actions = Vec::new();
        progress.start(&mut actions);
        let (memory, todo) = (BTreeMap::new(), VecDeque::new());
        self.active = Some(Active { pair, progress, began: now, memory, todo, outstanding: 0, goes_at: None });
        self.carry(now, actions, out);
    }
    /// The active swap, if this is a copy of its present attempt.
    fn active_of(&mut self, copy: SwapCopy) -> Option<&mut Active> {
        self.active.as_mut().filter(|_| copy.attempt == self.attempt)
    }
    fn copied(&mut self, now: Time, event: SwapEvent, out: &mut Vec<CarrierOut>) {
        let mut actions = Vec::new();
        let Some(active) = &mut self.active else { return };
        active.outstanding -= 1;
        active.progress.on_event(event, &mut actions);
        self.carry(now, actions, out);
    }
    /// Executes the steps of a swap until it has to wait for pages.
    fn carry(&mut self, now: Time, actions: Vec<SwapAction>, out: &mut Vec<CarrierOut>) {
        let mut actions = VecDeque::from(actions);
        let mut more = Vec::new();
        while let Some(action) = actions.pop_front() {
            self.act(action, &mut more, out);
            actions.extend(more.drain(..));
        }
        self.issue(now, out);
        self.finish(now, out);
    }
    fn act(&mut self, action: SwapAction, more: &mut Vec<SwapAction>, out: &mut Vec<CarrierOut>) {
        match action {
            SwapAction::Erase { block, on } => out.push(CarrierOut::Trim(self.seat(block, on))),
            SwapAction::Serve { ticket, block, on } => {
                let seat = self.seat(block, on);
                out.push(CarrierOut::Serve { ticket, seat });
            }
            SwapAction::Read { .. } | SwapAction::Write { .. } | SwapAction::Commit { .. } => {}
        }
        let Some(active) = &mut self.active else { return };
        match action {
            SwapAction::Read { .. } | SwapAction::Write { .. } => active.todo.push_back(action),
            // The record lies in memory that survives a loss of power, as the tables of the flash
            // do.
            SwapAction::Commit { .. } => {
                active.memory.clear();
                active.progress.on_event(SwapEvent::Committed, more);
            }
            SwapAction::Erase { block, .. } => active.progress.on_event(SwapEvent::Erased(block), more),
            SwapAction::Serve { block, .. } => {
                let name = (active.pair.of(block.content), Page(u64::from(block.index)));
                *self.underway.entry(name).or_default() += 1;
            }
        }
    }
    /// Moves pages when requests leave room or have delayed them long enough.
    fn issue(&mut self, now: Time, out: &mut Vec<CarrierOut>) {
        let is_free = self.underway.is_empty();
        let (depth, wait_max) = (self.config.depth, self.config.wait_max);
        let Some(active) = self.active.as_mut().filter(|_| !self.is_down) else { return };
        if active.todo.is_empty() || active.outstanding >= depth {
            active.goes_at = None;
            return;
        }
        let is_wanted = active.progress.held() > 0;
        let goes_at = *active.goes_at.get_or_insert(now + wait_max);
        if !is_free && !is_wanted && now < goes_at {
            return;
        }
        active.goes_at = None;
        let room = (depth - active.outstanding) as usize;
        let issued: Vec<SwapAction> = active.todo.drain(..room.min(active.todo.len())).collect();
        active.outstanding += issued.len() as u32;
        issued.into_iter().for_each(|action| out.push(self.ask(action)));
    }
    fn ask(&self, action: SwapAction) -> CarrierOut {
        match action {
            SwapAction::Write { block, to } => {
                let memory = self.active.as_ref().map(|active| &active.memory);
                let value = memory.and_then(|memory| memory.get(&block)).copied();
                let value = value.expect("a page is read before it is written");
                CarrierOut::Write { copy: self.copy(block), seat: self.seat(block, to), value }
            }
            SwapAction::Read { block, from } => {
                CarrierOut::Read { copy: self.copy(block), seat: self.seat(block, from) }
            }
            other => unreachable!("{other:?} is no page on its way"),
        }
    }
    fn copy(&self, block: SwapBlock) -> SwapCopy {
        SwapCopy { block, attempt: self.attempt }
    }
    /// Garbage has to be collected before this page can be written.
    fn put_off(&mut self, now: Time, copy: SwapCopy) {
        let wait_max = self.config.wait_max;
        let Some(active) = self.active_of(copy) else { return };
        let to = copy.block.content.opposite();
        active.outstanding -= 1;
        active.todo.push_front(SwapAction::Write { block: copy.block, to });
        active.goes_at = Some(now + wait_max);
    }
    fn give_up(&mut self, now: Time, copy: SwapCopy, out: &mut Vec<CarrierOut>) {
        let Some(active) = self.active_of(copy) else { return };
        (active.outstanding, active.goes_at) = (0, None);
        active.todo.clear();
        active.memory.clear();
        let mut actions = Vec::new();
        active.progress.on_event(SwapEvent::Failed(copy.block), &mut actions);
        self.attempt = self.attempt.wrapping_add(1);
        self.carry(now, actions, out);
    }
    /// Ends a swap that is over. One that was stopped stays, as it says where pages lie, and no
    /// other begins.
    fn finish(&mut self, now: Time, out: &mut Vec<CarrierOut>) {
        let Some(active) = self.active.as_ref().filter(|active| active.progress.is_over()) else { return };
        let (pair, began) = (active.pair, active.began);
        if active.progress.stage() == SwapStage::Stopped {
            self.counters.stopped = 1;
            return;
        }
        let begins = [pair.one, pair.other]
            .map(|region| (self.begin_of(region) + self.units() - u64::from(self.config.batch)) % self.units());
        self.begins.extend([(pair.one, begins[1]), (pair.other, begins[0])]);
        self.active = None;
        self.counters.done += 1;
        self.counters.time += now.saturating_since(began);
        out.push(CarrierOut::Exchange { one: pair.one, other: pair.other });
        self.begin(now, out);
    }
    fn forget(&mut self) {
        self.is_down = true;
        self.attempt = self.attempt.wrapping_add(1);
        self.underway.clear();
        let plan = plan(&self.config);
        let Some(active) = self.active.as_mut().filter(|active| !active.progress.is_over()) else { return };
        active.progress = SwapProgress::resume(plan, active.progress.moved()).expect("a swap's own record resumes it");
        active.memory.clear();
        active.todo.clear();
        (active.outstanding, active.goes_at) = (0, None);
    }
    fn resume(&mut self, now: Time, out: &mut Vec<CarrierOut>) {
        self.is_down = false;
        let mut actions = Vec::new();
        match self.active.as_mut().filter(|active| !active.progress.is_over()) {
            Some(active) => active.progress.start(&mut actions),
            None => self.begin(now, out),
        }
        self.carry(now, actions, out);
    }
}

impl Active {
    /// The page's name in the swap, if it is part of it.
    fn block(&self, vssd: VssdId, page: Page) -> Option<SwapBlock> {
        let content = self.pair.side_of(vssd)?;
        Some(SwapBlock { content, index: u32::try_from(page.0).ok()? })
    }
}

fn plan(config: &CarrierConfig) -> SwapPlan {
    let pages = config.pages as u32;
    let CarrierConfig { batch, attempts_max, .. } = *config;
    SwapPlan { one_blocks: pages, other_blocks: pages, batch, attempts_max }
}
