//! The target's view of a drive: its state, and the queue that selects the next command.

use super::Admission;
use crate::gimbal::{Gimbal, GimbalConfig, GimbalIo, Started};
use crate::id::DriveId;
use base::{Span, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Drive {
    pub(super) id: DriveId,
    pub(super) is_up: bool,
    /// Number of sessions that have used the drive.
    tenants: u32,
    queue: Queue,
}

#[derive(Clone, Debug)]
enum Queue {
    Gimbal { config: GimbalConfig, switch: Box<Gimbal> },
    Fifo(Fifo),
}

/// First in, first out, with a limit on commands at the drive.
#[derive(Clone, Debug)]
struct Fifo {
    depth: u32,
    waiting_max: usize,
    credit: u32,
    waiting: VecDeque<(u32, GimbalIo)>,
    at_drive: u32,
}

impl Drive {
    pub(super) fn new(id: DriveId, admission: &Admission) -> Self {
        let queue = match *admission {
            Admission::Gimbal(config) => Queue::Gimbal { config, switch: Box::new(Gimbal::new(config, 0)) },
            Admission::Fifo { depth, waiting_max, credit } => {
                let (waiting, at_drive) = (VecDeque::new(), 0);
                Queue::Fifo(Fifo { depth: depth.max(1), waiting_max, credit, waiting, at_drive })
            }
        };
        Drive { id, is_up: true, tenants: 0, queue }
    }

    /// Adds a session of the drive; returns its number.
    pub(super) fn add_tenant(&mut self) -> u32 {
        if let Queue::Gimbal { switch, .. } = &mut self.queue {
            switch.add_tenant();
        }
        self.tenants += 1;
        self.tenants - 1
    }

    pub(super) fn gimbal(&self) -> Option<&Gimbal> {
        match &self.queue {
            Queue::Gimbal { switch, .. } => Some(switch),
            Queue::Fifo(_) => None,
        }
    }

    /// Prefetches the state of a tenant.
    #[inline]
    pub(super) fn prefetch(&self, tenant: u32) {
        if let Queue::Gimbal { switch, .. } = &self.queue {
            switch.prefetch(tenant);
        }
    }

    /// Queues an I/O; returns whether there was room.
    pub(super) fn submit(&mut self, tenant: u32, io: GimbalIo) -> bool {
        match &mut self.queue {
            Queue::Gimbal { switch, .. } => switch.submit(tenant, io).is_ok(),
            Queue::Fifo(fifo) if fifo.waiting.len() >= fifo.waiting_max => false,
            Queue::Fifo(fifo) => {
                fifo.waiting.push_back((tenant, io));
                true
            }
        }
    }

    pub(super) fn next(&mut self, now: Time) -> Option<Started> {
        match &mut self.queue {
            Queue::Gimbal { switch, .. } => switch.next(now),
            Queue::Fifo(fifo) if fifo.at_drive >= fifo.depth => None,
            Queue::Fifo(fifo) => {
                let (tenant, io) = fifo.waiting.pop_front()?;
                fifo.at_drive += 1;
                Some(Started { io, tenant, slot: 0 })
            }
        }
    }

    pub(super) fn complete(&mut self, now: Time, started: Started, latency: Span) {
        match &mut self.queue {
            Queue::Gimbal { switch, .. } => {
                switch.complete(now, started, latency);
            }
            Queue::Fifo(fifo) => fifo.at_drive -= 1,
        }
    }

    pub(super) fn abandon(&mut self, started: Started) {
        match &mut self.queue {
            Queue::Gimbal { switch, .. } => {
                switch.abandon(started);
            }
            Queue::Fifo(fifo) => fifo.at_drive -= 1,
        }
    }

    pub(super) fn withdraw(&mut self, tenant: u32, ticket: u32) {
        match &mut self.queue {
            Queue::Gimbal { switch, .. } => {
                switch.withdraw(tenant, ticket);
            }
            Queue::Fifo(fifo) => fifo.waiting.retain(|(_, io)| io.ticket != ticket),
        }
    }

    /// Handles a failure of the drive, and discards all state about it: the drive that comes back
    /// may be another one.
    pub(super) fn fail(&mut self) {
        self.is_up = false;
        match &mut self.queue {
            Queue::Gimbal { config, switch } => **switch = Gimbal::new(*config, self.tenants as usize),
            Queue::Fifo(fifo) => {
                fifo.waiting.clear();
                fifo.at_drive = 0;
            }
        }
    }

    pub(super) fn credit(&self, tenant: u32) -> u32 {
        match &self.queue {
            Queue::Gimbal { switch, .. } => switch.credit(tenant),
            Queue::Fifo(fifo) => fifo.credit,
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        match &self.queue {
            Queue::Gimbal { switch, .. } => switch.next_wakeup(),
            Queue::Fifo(_) => None,
        }
    }
}
