//! Gimbal, the storage switch of a target (Min et al., SIGCOMM 2021): one for each drive.
//!
//! * [`LatencyMonitor`]: how loaded the drive is, by its latency; reads and writes apart.
//! * [`RateController`]: at which rate I/Os go to the drive, and tokens of reads and of writes.
//! * [`WriteCost`]: how many bytes of reads a written byte is worth.
//! * [`Gimbal`]: deficit round robin over tenants that hold virtual slots, and their credits.
//!
//! Tenants are numbered densely, one a session. Nothing is allocated once the queues have grown to
//! what waits in them.
//!
//! Where the paper leaves it open: a tenant's queue is first in first out; the first I/O of a kind
//! that lacks tokens holds back its kind and not the other, so that a large I/O is not starved by
//! small ones and a drive that may take reads never idles for want of tokens of writes.

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

/// The constants of Gimbal. The published ones are those of SIGCOMM 2021, section 4 and the
/// released code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GimbalConfig {
    /// Mean latency above which the drive is overloaded; published 1,500 us.
    pub latency_max: Span,
    /// Mean latency below which it is underused; published 250 us.
    pub latency_min: Span,
    /// A new latency counts 1 / 2^this in the mean; published 1.
    pub latency_shift: u32,
    /// The threshold falls by 1 / 2^this of its distance to the mean; published 4.
    pub threshold_shift: u32,
    /// How many times faster the rate grows while the drive is underused; published 8.
    pub underused_factor: u64,
    /// The rate at the start; published 1,000 MiB/s.
    pub rate_initial: Rate,
    /// The least rate; published 50 MiB/s.
    pub rate_min: Rate,
    /// The greatest rate; published 4 GiB/s.
    pub rate_max: Rate,
    /// The most tokens of reads, and of writes; published 256 KiB.
    pub bucket_max: Bytes,
    /// Completed bytes between two samples of the completion rate; published 16 MiB.
    pub sample_bytes: Bytes,
    /// The write cost at the start and its greatest, in halves; published 18 (9).
    pub cost_max_halves: u32,
    /// How much the write cost falls while writes are quick, in halves; published 1 (0.5).
    pub cost_step_halves: u32,
    /// How often the write cost is looked at; published 100 ms.
    pub cost_period: Span,
    /// Whether the write cost follows the released code: it rises only with reads in the period or
    /// when the drive is overloaded, and falls without writes too. The paper names neither.
    pub cost_is_as_released: bool,
    /// What a tenant gains in each round; published 128 KiB.
    pub quantum: Bytes,
    /// Weight of I/Os that fill a virtual slot; published 128 KiB.
    pub slot_bytes: Bytes,
    /// Virtual slots that the active tenants share; published 8.
    pub slots: u32,
    /// A tenant's credit before a slot of its own has completed; published 32.
    pub credit_initial: u32,
    /// The most I/Os of one tenant that may wait: ours, a bound on memory.
    pub waiting_max: usize,
}

/// An I/O that waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GimbalIo {
    /// The caller's name for it.
    pub ticket: u32,
    /// Read or write.
    pub kind: IoKind,
    /// Bytes to move, at least one.
    pub bytes: u32,
}

/// An I/O that goes to the drive now. Hand it back to [`Gimbal::complete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// What was submitted.
    pub io: GimbalIo,
    /// Whose it is.
    pub tenant: u32,
    /// In which of the tenant's slots it counts.
    pub slot: u8,
}

/// As many I/Os of the tenant wait as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} I/Os of tenant {tenant} wait, no more may")]
pub struct TenantFull {
    /// The tenant whose queue is full.
    pub tenant: u32,
    /// I/Os in its queue.
    pub waiting: usize,
}

/// One drive's switch. Call [`Gimbal::submit`] for what arrives and [`Gimbal::complete`] for what
/// the drive has done, after both [`Gimbal::next`] until it gives nothing, and again at
/// [`Gimbal::next_wakeup`].
#[derive(Clone, Debug)]
pub struct Gimbal {
    config: GimbalConfig,
    monitors: [LatencyMonitor; 2],
    rate: RateController,
    cost: WriteCost,
    tenants: Vec<Tenant>,
    /// Tenants with waiting I/Os and room in a slot, in the order of their turns.
    turns: VecDeque<Turn>,
    /// While a tenant may have at least so many slots, all in `turns` have room: who has a turn
    /// loses its room only when slots become fewer.
    roomy_from: u32,
    /// Tenants with I/Os that wait or are at the drive.
    active: u32,
    wakeup: Option<Time>,
}

/// A tenant that stands in the order of turns, with its first I/O: many stand there when the drive
/// is loaded, and all may be looked at to find one that may start.
#[derive(Clone, Copy, Debug)]
struct Turn {
    tenant: u32,
    io: GimbalIo,
}

impl Gimbal {
    /// An idle drive for `tenants` tenants.
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

    /// A further tenant, whose number is the next.
    pub fn add_tenant(&mut self) {
        self.tenants.push(Tenant::new(&self.config));
    }

    /// An I/O of `tenant` comes; refused when too many of that tenant wait.
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

    /// Something of a tenant's will come or go shortly: what is kept for it can be on its way from
    /// memory meanwhile. Nothing else comes of it.
    #[inline]
    pub fn foresee(&self, tenant: u32) {
        Tenant::foresee(&self.tenants, tenant);
    }

    /// The next I/O for the drive; `None` when none waits, or what waits lacks tokens or slots.
    pub fn next(&mut self, now: Time) -> Option<Started> {
        if self.turns.is_empty() {
            self.wakeup = None;
            return None;
        }
        self.rate.refill(now, self.cost);
        let mut held: [Option<u32>; 2] = [None; 2];
        let mut place = 0;
        // Whoever has a turn has an I/O, and is active.
        let slot_limit = self.slot_limit(self.active);
        while let Some(&Turn { tenant, io }) = self.turns.get(place) {
            if slot_limit < self.roomy_from && !self.tenants[tenant as usize].has_room(slot_limit) {
                self.lose_turn(place, tenant);
                continue;
            }
            // Nothing can be started any more; whoever may have lost its room is looked for all the
            // same.
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

    /// When tokens will do for the first I/O that [`Gimbal::next`] held back.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    /// The drive has done what was started, `latency` after it began. Returns the tenant's credit,
    /// for the response.
    pub fn complete(&mut self, now: Time, started: Started, latency: Span) -> u32 {
        let Started { io, tenant, .. } = started;
        let condition = self.monitors[io.kind as usize].record(latency);
        self.rate.refill(now, self.cost);
        self.rate.complete(now, io.bytes, condition);
        self.cost.record(now, io.kind, latency);
        self.release(started);
        self.credit(tenant)
    }

    /// What was started will never be done (the drive failed): its slot is given back, nothing is
    /// learned. Returns the tenant's credit.
    pub fn abandon(&mut self, started: Started) -> u32 {
        self.release(started);
        self.credit(started.tenant)
    }

    /// Takes a waiting I/O back; whether it waited. A search through the tenant's queue.
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

    /// How many I/Os `tenant` may have outstanding.
    pub fn credit(&self, tenant: u32) -> u32 {
        match self.tenants[tenant as usize].last_slot_ios {
            None => self.config.credit_initial,
            Some(ios) => self.slot_limit_with(tenant) * ios,
        }
    }

    /// The rate controller, to look at.
    pub fn rate(&self) -> &RateController {
        &self.rate
    }

    /// What a written byte is worth now.
    pub fn write_cost(&self) -> WriteCost {
        self.cost
    }

    /// The monitor of a kind, to look at.
    pub fn monitor(&self, kind: IoKind) -> &LatencyMonitor {
        &self.monitors[kind as usize]
    }

    /// I/Os that wait, over all tenants.
    pub fn waiting(&self) -> usize {
        self.tenants.iter().map(|tenant| tenant.waiting.len()).sum()
    }

    /// Slots that `tenant` holds.
    pub fn open_slots(&self, tenant: u32) -> u32 {
        self.tenants[tenant as usize].open_slots()
    }

    /// Slots of each tenant when `tenant` counts as active.
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
            // An empty queue saves nothing up (deficit round robin: Shreedhar and Varghese, SIGCOMM
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

    /// A tenant with an I/O that waits, and room, stands behind the others.
    fn give_turn(&mut self, tenant: u32, slot_limit: u32) {
        let state = &mut self.tenants[tenant as usize];
        let Some(Waiting(io)) = state.waiting.front() else { return };
        state.has_turn = true;
        self.turns.push_back(Turn { tenant, io: *io });
        self.roomy_from = self.roomy_from.max(slot_limit);
    }

    /// Takes the turn of a tenant that must not open another slot, because others have become
    /// active since. It has slots that are open and full, and gets its turn again with the first of
    /// them.
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

/// When the first of the I/Os that were held back will have its tokens.
fn held_until(rate: &RateController, cost: WriteCost, now: Time, held: [Option<u32>; 2]) -> Option<Time> {
    let wait = |kind: IoKind| held[kind as usize].map(|bytes| rate.wait_for(kind, bytes, cost));
    [wait(IoKind::Read), wait(IoKind::Write)].into_iter().flatten().min().map(|span| now + span)
}

#[cfg(test)]
mod tests;
