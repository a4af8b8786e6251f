//! A controller, from Connect to the end of its admin connection.

use crate::feature::{Event, EventMask, HostBehavior};
use crate::log::{ErrorEntry, ReservationNotice};
use crate::property::{Capabilities, Configuration, ControllerStatus, Shutdown, ShutdownState, Version};
use crate::target::{PortId, TargetLimits};
use crate::{HostId, Nqn};
use base::{Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// VS: 2.0, as in a widely used target.
pub(super) const VERSION: Version = Version { major: 2, minor: 0, tertiary: 0 };
/// Reservation notices that wait for a host; beyond that the oldest are dropped.
const NOTICES_MAX: usize = 64;
/// Least keep-alive timeout before a controller is enabled. Its timer is not active then (Base 2.0,
/// 3.9), and nothing else would end it.
const UNENABLED: Span = Span::secs(10);
/// CAP.TO: 15 s, generous for a controller that is ready at once.
const READY_TIMEOUT_500_MS: u8 = 30;

/// The subsystem of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Of the discovery subsystem.
    Discovery,
    /// Of the subsystem with this index.
    Storage(usize),
}

/// State of an event of a kind that is reported once until its log is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventState {
    /// An event happened.
    pub(super) is_due: bool,
    /// It was reported; no more until the log is read.
    pub(super) is_masked: bool,
}

/// Kinds of events (the index of their state).
pub(super) const EVENTS: [Event; 4] =
    [Event::NAMESPACE_CHANGED, Event::ASYMMETRIC_ACCESS_CHANGED, Event::DISCOVERY_CHANGED, Event::RESERVATION];

/// A controller.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) id: u16,
    pub(super) role: Role,
    pub(super) port: PortId,
    pub(super) host: Nqn,
    pub(super) host_id: HostId,
    pub(super) configuration: Configuration,
    pub(super) status: ControllerStatus,
    /// Zero for none.
    pub(super) keep_alive: Span,
    pub(super) keep_alive_deadline: Option<Time>,
    /// Connections by queue; 0 is the admin queue.
    pub(super) queues: Vec<Option<u32>>,
    /// Event requests, oldest first.
    pub(super) event_requests: VecDeque<u32>,
    pub(super) event_mask: EventMask,
    pub(super) events: [EventState; EVENTS.len()],
    /// Namespaces that changed since the log was read.
    pub(super) changed_namespaces: BTreeSet<u32>,
    /// Those of them that were replaced by others. Hosts are notified twice: Linux removes such a
    /// namespace at the first scan and adds it at the next.
    pub(super) replaced_namespaces: BTreeSet<u32>,
    pub(super) reservation_notices: VecDeque<ReservationNotice>,
    pub(super) reservation_notice_count: u64,
    /// Masked changes of reservations, by namespace.
    pub(super) reservation_masks: BTreeMap<u32, u32>,
    pub(super) behavior: HostBehavior,
    pub(super) features: Features,
    pub(super) errors: VecDeque<ErrorEntry>,
    pub(super) error_count: u64,
    pub(super) errors_max: usize,
    /// Least keep-alive timeout while it is not enabled.
    unenabled: Span,
}

/// Features that are stored and have no effect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub(super) arbitration: u32,
    pub(super) power: u32,
    pub(super) temperature: u32,
    pub(super) error_recovery: u32,
    pub(super) write_atomicity: u32,
    pub(super) timestamp_ms: u64,
    pub(super) timestamp_set: Option<Time>,
}

/// The host of a new controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) role: Role,
    pub(super) port: PortId,
    pub(super) host: Nqn,
    pub(super) host_id: HostId,
}

impl Controller {
    pub(super) fn new(id: u16, guest: Guest, admin: u32, limits: &TargetLimits) -> Self {
        Controller {
            id,
            role: guest.role,
            port: guest.port,
            host: guest.host,
            host_id: guest.host_id,
            configuration: disabled(),
            status: idle(),
            keep_alive: Span::ZERO,
            keep_alive_deadline: None,
            queues: vec![Some(admin)],
            event_requests: VecDeque::new(),
            event_mask: EventMask::empty(),
            events: Default::default(),
            changed_namespaces: BTreeSet::new(),
            replaced_namespaces: BTreeSet::new(),
            reservation_notices: VecDeque::new(),
            reservation_notice_count: 0,
            reservation_masks: BTreeMap::new(),
            behavior: HostBehavior { advanced_retry: 0, extended_telemetry: 0, extended_formats: 0, copy_formats: 0 },
            features: Features::default(),
            errors: VecDeque::new(),
            error_count: 0,
            errors_max: usize::from(limits.errors_max),
            unenabled: UNENABLED.max(limits.handshake),
        }
    }

    /// The index of its subsystem; `None` of a discovery controller.
    pub(super) fn subsystem(&self) -> Option<usize> {
        match self.role {
            Role::Storage(index) => Some(index),
            Role::Discovery => None,
        }
    }

    /// CAP.
    pub(super) fn capabilities(limits: &TargetLimits) -> Capabilities {
        Capabilities {
            queue_size_max_minus_one: limits.queue_entries_max - 1,
            contiguous_queues: true,
            ready_timeout_500_ms: READY_TIMEOUT_500_MS,
            subsystem_reset: false,
            command_sets: 1,
            page_min: 0,
            page_max: 4,
        }
    }

    /// Whether I/O queues and I/O commands are accepted.
    pub(super) fn is_ready(&self) -> bool {
        self.status.ready && self.status.shutdown == ShutdownState::None
    }

    /// Sets the keep-alive timeout, zero for none, and returns the timer's deadline.
    pub(super) fn set_keep_alive(&mut self, timeout: Span, now: Time) -> Option<Time> {
        self.keep_alive = timeout;
        self.restart_keep_alive(now);
        self.keep_alive_deadline
    }

    /// Restarts the keep-alive timer: a command came, or the controller is enabled.
    pub(super) fn restart_keep_alive(&mut self, now: Time) {
        let span = if self.is_ready() { self.keep_alive } else { self.keep_alive.max(self.unenabled) };
        self.keep_alive_deadline = if self.keep_alive == Span::ZERO { None } else { now.checked_add(span) };
    }

    /// Adds an entry to the error log.
    pub(super) fn log_error(&mut self, entry: ErrorEntry) {
        self.error_count += 1;
        if self.errors.len() >= self.errors_max {
            self.errors.pop_back();
        }
        self.errors.push_front(ErrorEntry { count: self.error_count, ..entry });
    }

    /// Resets all state but the identity.
    pub(super) fn reset(&mut self) {
        (self.configuration, self.status) = (disabled(), idle());
        (self.event_mask, self.events) = (EventMask::empty(), Default::default());
        self.behavior = HostBehavior { advanced_retry: 0, extended_telemetry: 0, extended_formats: 0, copy_formats: 0 };
        let Features { timestamp_ms, timestamp_set, .. } = self.features;
        self.features = Features { timestamp_ms, timestamp_set, ..Features::default() };
    }

    /// An event of this kind happened. It is reported if the host has enabled it and has read the
    /// log of the last.
    pub(super) fn raise(&mut self, event: Event) {
        let wanted = match event {
            Event::NAMESPACE_CHANGED => self.event_mask.contains(EventMask::NAMESPACE_ATTRIBUTES),
            Event::ASYMMETRIC_ACCESS_CHANGED => self.event_mask.contains(EventMask::ASYMMETRIC_ACCESS),
            Event::DISCOVERY_CHANGED => self.event_mask.contains(EventMask::DISCOVERY_LOG),
            _ => true,
        };
        if let Some(state) = self.event_state(event).filter(|_| wanted) {
            state.is_due = true;
        }
    }

    /// The host has read the log of this event: later ones may be reported.
    pub(super) fn rearm(&mut self, event: Event) {
        if let Some(state) = self.event_state(event) {
            *state = EventState::default();
        }
    }

    fn event_state(&mut self, event: Event) -> Option<&mut EventState> {
        let index = EVENTS.iter().position(|known| *known == event)?;
        self.events.get_mut(index)
    }

    /// The next event to report, and the event request that it completes.
    pub(super) fn next_event(&mut self) -> Option<(u32, Event)> {
        let index = self.events.iter().position(|state| state.is_due && !state.is_masked)?;
        let slot = self.event_requests.pop_front()?;
        self.events[index] = EventState { is_due: false, is_masked: true };
        Some((slot, EVENTS[index]))
    }

    /// A change of reservations of `namespace`, of this kind (Base 2.0, Figure 264). The host is
    /// notified unless it has masked the kind.
    pub(super) fn notify_reservation(&mut self, namespace: u32, kind: u8) {
        // Feature 82h masks by bits 1 to 3, of the kinds 1 to 3 (Base 2.0, 5.27.1.26).
        if self.reservation_masks.get(&namespace).is_some_and(|mask| mask & 1 << kind != 0) {
            return;
        }
        self.reservation_notice_count += 1;
        if self.reservation_notices.len() >= NOTICES_MAX {
            self.reservation_notices.pop_front();
        }
        let count = self.reservation_notice_count;
        self.reservation_notices.push_back(ReservationNotice { count, kind, waiting: 0, namespace });
        self.raise(Event::RESERVATION);
    }
}

const fn disabled() -> Configuration {
    Configuration {
        enable: false,
        command_set: 0,
        page: 0,
        arbitration: 0,
        shutdown: Shutdown::None,
        sqe_size: 0,
        cqe_size: 0,
    }
}

const fn idle() -> ControllerStatus {
    ControllerStatus { ready: false, fatal: false, shutdown: ShutdownState::None, subsystem_reset: false }
}
