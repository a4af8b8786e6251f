//! Gimbal, the storage switch of a target (Min et al., SIGCOMM 2021): one for each drive.
//!
//! * [`LatencyMonitor`]: the load of the drive, by its latency, separately for reads and writes.
//! * [`RateController`]: the rate of I/Os to the drive, with one token bucket for reads and one for
//!   writes.
//! * [`WriteCost`]: the cost of a written byte relative to a read byte.
//! * [`Gimbal`]: deficit round robin over tenants that hold virtual slots, and their credits.
//!
//! Tenants are numbered densely, one per session. Nothing is allocated once the queues have reached
//! their largest length.
//!
//! The paper leaves two things open. Here, a tenant's queue is first in, first out. The first I/O
//! of a kind that lacks tokens blocks its kind and not the other. So small I/Os cannot starve a
//! large one, and a drive that may serve reads never idles for lack of write tokens.

mod cost;
mod monitor;
mod rate;
mod tenant;

pub use cost::WriteCost;
pub use monitor::{Condition, LatencyMonitor};
pub use rate::{IoKind, RateController};

use base::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;
use tenant::{Tenant, Waiting};

/// The constants of Gimbal. The published values are those of SIGCOMM 2021, section 4, and the
/// released code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GimbalConfig {
    /// Mean latency above which the drive is overloaded; published 1,500 us.
    pub latency_max: Span,
    /// Mean latency below which the drive is underused; published 250 us.
    pub latency_min: Span,
    /// Shift of the moving average: a new latency has the weight 1 / 2^shift; published 1.
    pub latency_shift: u32,
    /// Shift of the threshold: it falls by 1 / 2^shift of its distance to the mean; published 4.
    pub threshold_shift: u32,
    /// Factor by which the rate grows faster while the drive is underused; published 8.
    pub underused_factor: u64,
    /// Initial rate; published 1,000 MiB/s.
    pub rate_initial: Rate,
    /// Minimum rate; published 50 MiB/s.
    pub rate_min: Rate,
    /// Maximum rate; published 4 GiB/s.
    pub rate_max: Rate,
    /// Capacity of each token bucket; published 256 KiB.
    pub bucket_max: Bytes,
    /// Completed bytes between two samples of the completion rate; published 16 MiB.
    pub sample_bytes: Bytes,
    /// Initial and maximum write cost, in halves; published 18 (9).
    pub cost_max_halves: u32,
    /// Decrease of the write cost while writes are fast, in halves; published 1 (0.5).
    pub cost_step_halves: u32,
    /// Period of updates of the write cost; published 100 ms.
    pub cost_period: Span,
    /// Whether the write cost follows the released code: it rises only with reads in the period or
    /// when the drive is overloaded, and falls without writes too. The paper mentions neither.
    pub cost_is_as_released: bool,
    /// Deficit added to a tenant in each round; published 128 KiB.
    pub quantum: Bytes,
    /// Weight of I/Os that fills a virtual slot; published 128 KiB.
    pub slot_bytes: Bytes,
    /// Virtual slots that the active tenants share; published 8.
    pub slots: u32,
    /// A tenant's credit before its first slot has completed; published 32.
    pub credit_initial: u32,
    /// The maximum of waiting I/Os of one tenant. Not in the paper: it bounds memory.
    pub waiting_max: usize,
}

impl GimbalConfig {
    /// The constants that Gimbal's paper prints (SIGCOMM'21, sections 3 and 4).
    pub const PUBLISHED: GimbalConfig = GimbalConfig {
        latency_max: Span::us(1500),
        latency_min: Span::us(250),
        latency_shift: 1,
        threshold_shift: 4,
        underused_factor: 8,
        rate_initial: Rate::bps(1000 << 23),
        rate_min: Rate::bps(50 << 23),
        rate_max: Rate::bps(4096 << 23),
        bucket_max: Bytes::kib(256),
        sample_bytes: Bytes::kib(16 << 10),
        cost_max_halves: 18,
        cost_step_halves: 1,
        cost_period: Span::ms(100),
        cost_is_as_released: false,
        quantum: Bytes::kib(128),
        slot_bytes: Bytes::kib(128),
        slots: 8,
        credit_initial: 32,
        waiting_max: 1024,
    };
}

/// A waiting I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GimbalIo {
    /// The caller's identifier.
    pub ticket: u32,
    /// Read or write.
    pub kind: IoKind,
    /// Length in bytes, at least one.
    pub bytes: u32,
}

/// An I/O to submit to the drive now. Pass it to [`Gimbal::complete`] when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The submitted I/O.
    pub io: GimbalIo,
    /// The tenant of the I/O.
    pub tenant: u32,
    /// The tenant's slot in which it counts.
    pub slot: u8,
}

/// The queue of a tenant is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} I/Os of tenant {tenant} wait, no more may")]
pub struct TenantFull {
    /// The tenant whose queue is full.
    pub tenant: u32,
    /// I/Os in its queue.
    pub waiting: usize,
}

/// The storage switch of one drive. Call [`Gimbal::submit`] for each arriving I/O and
/// [`Gimbal::complete`] for each completed one. After both, and at [`Gimbal::next_wakeup`], call
/// [`Gimbal::next`] until it returns `None`.
#[derive(Clone, Debug)]
pub struct Gimbal {
    config: GimbalConfig,
    monitors: [LatencyMonitor; 2],
    rate: RateController,
    cost: WriteCost,
    tenants: Vec<Tenant>,
    /// Tenants with waiting I/Os and room in a slot, in round-robin order.
    turns: VecDeque<Turn>,
    /// If the slot limit is at least this, all tenants in `turns` have room: a tenant loses its
    /// room only when the limit falls.
    roomy_from: u32,
    /// Number of tenants with I/Os that wait or are at the drive.
    active: u32,
    wakeup: Option<Time>,
}

/// A tenant in the round-robin order, with its first I/O. The I/O is kept here because under load
/// [`Gimbal::next`] may scan all turns to find one that may start.
#[derive(Clone, Copy, Debug)]
struct Turn {
    tenant: u32,
    io: GimbalIo,
}

impl Gimbal {
    /// Creates the switch of an idle drive for `tenants` tenants.
    pub fn new(config: GimbalConfig, tenants: usize) -> Self {
        Gimbal {
            monitors: [LatencyMonitor::new(&config); 2],
            rate: RateController::new(&config),
            cost: WriteCost::new(&config),
            tenants: (0..tenants).map(|_| Tenant::new(&config)).collect(),
            turns: VecDeque::new(),
            roomy_from: 0,
            active: 0,
            wakeup: None,
            config,
        }
    }

    /// Adds a tenant with the next number.
    pub fn add_tenant(&mut self) {
        self.tenants.push(Tenant::new(&self.config));
    }

    /// Queues an I/O of `tenant`.
    ///
    /// # Errors
    ///
    /// When [`GimbalConfig::waiting_max`] I/Os of the tenant wait.
    pub fn submit(&mut self, tenant: u32, io: GimbalIo) -> Result<(), TenantFull> {
        let slot_limit = self.slot_limit_with(tenant);
        let state = &mut self.tenants[tenant as usize];
        if state.waiting.len() >= self.config.waiting_max {
            return Err(TenantFull { tenant, waiting: state.waiting.len() });
        }
        self.active += u32::from(state.is_idle());
        state.waiting.push_back(Waiting(io));
        if !state.has_turn && state.has_room(slot_limit) {
            self.give_turn(tenant, slot_limit);
        }
        Ok(())
    }

    /// Prefetches the state of a tenant of which an I/O will soon arrive or complete. Has no other
    /// effect.
    #[inline]
    pub fn prefetch(&self, tenant: u32) {
        Tenant::prefetch(&self.tenants, tenant);
    }

    /// Returns the next I/O for the drive, or `None` if none waits, or if those that wait lack
    /// tokens or slots.
    pub fn next(&mut self, now: Time) -> Option<Started> {
        if self.turns.is_empty() {
            self.wakeup = None;
            return None;
        }
        self.rate.refill(now, self.cost);
        let mut held: [Option<u32>; 2] = [None; 2];
        let mut place = 0;
        // Every tenant with a turn has a waiting I/O, and is active.
        let slot_limit = self.slot_limit(self.active);
        while let Some(&Turn { tenant, io }) = self.turns.get(place) {
            if slot_limit < self.roomy_from && !self.tenants[tenant as usize].has_room(slot_limit) {
                self.lose_turn(place, tenant);
                continue;
            }
            // Nothing more can be started; the scan continues to remove tenants that have lost
            // their room.
            if held.iter().all(Option::is_some) {
                if slot_limit >= self.roomy_from {
                    break;
                }
                place += 1;
                continue;
            }
            let kind = io.kind as usize;
            if held[kind].is_some() || !self.rate.allows(io.kind, io.bytes) {
                held[kind].get_or_insert(io.bytes);
                place += 1;
            } else if self.tenants[tenant as usize].deficit < self.cost.weight(io.kind, io.bytes) {
                self.tenants[tenant as usize].deficit += self.config.quantum.count();
                self.move_to_back(place);
            } else {
                return Some(self.start(place, tenant, io, slot_limit));
            }
        }
        self.roomy_from = self.roomy_from.min(slot_limit);
        self.wakeup = held_until(&self.rate, self.cost, now, held);
        None
    }

    /// Returns when the tokens suffice for the first I/O that [`Gimbal::next`] held back.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    /// Completes a started I/O, `latency` after its submission. Returns the tenant's credit, for
    /// the response.
    pub fn complete(&mut self, now: Time, started: Started, latency: Span) -> u32 {
        let Started { io, tenant, .. } = started;
        let condition = self.monitors[io.kind as usize].record(latency);
        self.rate.refill(now, self.cost);
        self.rate.complete(now, io.bytes, condition);
        self.cost.record(now, io.kind, latency);
        self.release(started);
        self.credit(tenant)
    }

    /// Releases the slot of a started I/O that will not complete (the drive failed), without
    /// updating monitor, rate or cost. Returns the tenant's credit.
    pub fn abandon(&mut self, started: Started) -> u32 {
        self.release(started);
        self.credit(started.tenant)
    }

    /// Removes a waiting I/O and returns whether it was found. Searches the tenant's queue
    /// linearly.
    pub fn withdraw(&mut self, tenant: u32, ticket: u32) -> bool {
        let state = &mut self.tenants[tenant as usize];
        let Some(place) = state.waiting.iter().position(|Waiting(io)| io.ticket == ticket) else { return false };
        state.waiting.remove(place);
        if state.waiting.is_empty() {
            state.deficit = 0;
            state.has_turn = false;
            self.active -= u32::from(state.is_idle());
            self.turns.retain(|turn| turn.tenant != tenant);
        } else if let (0, Some(Waiting(first))) = (place, state.waiting.front()) {
            self.turns.iter_mut().filter(|turn| turn.tenant == tenant).for_each(|turn| turn.io = *first);
        }
        true
    }

    /// Returns the number of I/Os that `tenant` may have outstanding.
    pub fn credit(&self, tenant: u32) -> u32 {
        match self.tenants[tenant as usize].last_slot_ios {
            None => self.config.credit_initial,
            Some(ios) => self.slot_limit_with(tenant) * ios,
        }
    }

    /// Returns the number of I/Os that all tenants together may have outstanding.
    pub fn credits(&self) -> u64 {
        (0..self.tenants.len() as u32).map(|tenant| u64::from(self.credit(tenant))).sum()
    }

    /// Returns the rate controller.
    pub fn rate(&self) -> &RateController {
        &self.rate
    }

    /// Returns the current write cost.
    pub fn write_cost(&self) -> WriteCost {
        self.cost
    }

    /// Returns the latency monitor of a kind.
    pub fn monitor(&self, kind: IoKind) -> &LatencyMonitor {
        &self.monitors[kind as usize]
    }

    /// Returns the number of waiting I/Os of all tenants.
    pub fn waiting(&self) -> usize {
        self.tenants.iter().map(|tenant| tenant.waiting.len()).sum()
    }

    /// Returns the number of slots that `tenant` holds.
    pub fn open_slots(&self, tenant: u32) -> u32 {
        self.tenants[tenant as usize].open_slots()
    }

    /// Returns the slot limit per tenant if `tenant` counts as active.
    fn slot_limit_with(&self, tenant: u32) -> u32 {
        self.slot_limit(self.active + u32::from(self.tenants[tenant as usize].is_idle()))
    }

    fn slot_limit(&self, active: u32) -> u32 {
        (self.config.slots / active.max(1)).max(1)
    }

    fn start(&mut self, place: usize, tenant: u32, io: GimbalIo, slot_limit: u32) -> Started {
        let weight = self.cost.weight(io.kind, io.bytes);
        self.rate.take(io.kind, io.bytes);
        let state = &mut self.tenants[tenant as usize];
        state.waiting.pop_front();
        state.deficit -= weight;
        let slot = state.enter_slot(weight);
        if state.waiting.is_empty() {
            // An empty queue keeps no deficit (deficit round robin: Shreedhar and Varghese, SIGCOMM
            // 1995).
            state.deficit = 0;
        }
        match state.waiting.front() {
            Some(Waiting(next)) if state.has_room(slot_limit) => {
                self.turns[place].io = *next;
                self.roomy_from = self.roomy_from.max(slot_limit);
            }
            _ => {
                state.has_turn = false;
                self.turns.remove(place);
            }
        }
        Started { io, tenant, slot }
    }

    fn release(&mut self, started: Started) {
        let state = &mut self.tenants[started.tenant as usize];
        state.leave_slot(started.slot);
        self.active -= u32::from(state.is_idle());
        let slot_limit = self.slot_limit_with(started.tenant);
        let state = &mut self.tenants[started.tenant as usize];
        if !state.has_turn && !state.waiting.is_empty() && state.has_room(slot_limit) {
            self.give_turn(started.tenant, slot_limit);
        }
    }

    /// Appends a tenant with a waiting I/O and room to the round-robin order.
    fn give_turn(&mut self, tenant: u32, slot_limit: u32) {
        let state = &mut self.tenants[tenant as usize];
        let Some(Waiting(io)) = state.waiting.front() else { return };
        state.has_turn = true;
        self.turns.push_back(Turn { tenant, io: *io });
        self.roomy_from = self.roomy_from.max(slot_limit);
    }

    /// Removes the turn of a tenant that must not open another slot, because other tenants have
    /// become active since. Its open slots are full; it regains its turn when the first of them
    /// completes.
    fn lose_turn(&mut self, place: usize, tenant: u32) {
        self.tenants[tenant as usize].has_turn = false;
        self.turns.remove(place);
    }

    fn move_to_back(&mut self, place: usize) {
        if let Some(turn) = self.turns.remove(place) {
            self.turns.push_back(turn);
        }
    }
}

/// Returns when the first of the I/Os that were held back will have its tokens.
fn held_until(rate: &RateController, cost: WriteCost, now: Time, held: [Option<u32>; 2]) -> Option<Time> {
    let wait = |kind: IoKind| held[kind as usize].map(|bytes| rate.wait_for(kind, bytes, cost));
    [wait(IoKind::Read), wait(IoKind::Write)].into_iter().flatten().min().map(|span| now + span)
}

#[cfg(test)]
mod tests;
