//! What a controller is between Connect and the end of its admin connection.

use crate::feature::{Event, EventMask, HostBehavior};
use crate::log::{ErrorEntry, ReservationNotice};
use crate::property::{Capabilities, Configuration, ControllerStatus, Shutdown, ShutdownState, Version};
use crate::target::{PortId, TargetLimits};
use crate::{HostId, Nqn};
use base::{Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// VS: 2.0, as a widely used target answers.
pub(super) const VERSION: Version = Version { major: 2, minor: 0, tertiary: 0 };
/// Notices of reservations that wait for a host; of more only the last are kept.
const NOTICES_MAX: usize = 64;
/// How long a controller with a keep-alive timeout may be silent at least while it is not enabled:
/// the timer is not active then (Base 2.0, 3.9), and nothing else would end it.
const UNENABLED: Span = Span::secs(10);
/// CAP.TO: 15 s, generous for a controller that is ready at once.
const READY_TIMEOUT_500_MS: u8 = 30;

/// Whose a controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Of the discovery subsystem.
    Discovery,
    /// Of the subsystem with this index.
    Storage(usize),
}

/// What a host was not told yet, of the kinds that are told once until their log is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventState {
    /// Something happened.
    pub(super) is_due: bool,
    /// It was told; nothing more until the log is read.
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
    /// Commands that wait for events, oldest first.
    pub(super) event_requests: VecDeque<u32>,
    pub(super) event_mask: EventMask,
    pub(super) events: [EventState; EVENTS.len()],
    /// Namespaces that changed since the log was read.
    pub(super) changed_namespaces: BTreeSet<u32>,
    /// Those of them that are other ones now. Hosts are told twice: Linux removes such a namespace
    /// at the first scan and would add it at the next.
    pub(super) replaced_namespaces: BTreeSet<u32>,
    pub(super) reservation_notices: VecDeque<ReservationNotice>,
    pub(super) reservation_notice_count: u64,
    /// Changes of reservations that are not told, by namespace.
    pub(super) reservation_masks: BTreeMap<u32, u32>,
    pub(super) behavior: HostBehavior,
    pub(super) features: Features,
    pub(super) errors: VecDeque<ErrorEntry>,
    pub(super) error_count: u64,
    pub(super) errors_max: usize,
    /// How long it may be silent at least while it is not enabled.
    unenabled: Span,
}

/// Features that are kept and mean nothing more here.
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

/// Who asks for a controller, and how.
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

    /// Whether I/O queues and I/O commands are taken.
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

    /// Something failed.
    pub(super) fn log_error(&mut self, entry: ErrorEntry) {
        self.error_count += 1;
        if self.errors.len() >= self.errors_max {
            self.errors.pop_back();
        }
        self.errors.push_front(ErrorEntry { count: self.error_count, ..entry });
    }

    /// Everything that a reset brings back, the identity apart.
    pub(super) fn reset(&mut self) {
        (self.configuration, self.status) = (disabled(), idle());
        (self.event_mask, self.events) = (EventMask::empty(), Default::default());
        self.behavior = HostBehavior { advanced_retry: 0, extended_telemetry: 0, extended_formats: 0, copy_formats: 0 };
        let Features { timestamp_ms, timestamp_set, .. } = self.features;
        self.features = Features { timestamp_ms, timestamp_set, ..Features::default() };
    }

    /// Something of this kind happened; it is told when the host asked for it and has read of the
    /// last.
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

    /// The host read the log of this event, and in it everything so far: what happens from now on
    /// may be told.
    pub(super) fn rearm(&mut self, event: Event) {
        if let Some(state) = self.event_state(event) {
            *state = EventState::default();
        }
    }

    fn event_state(&mut self, event: Event) -> Option<&mut EventState> {
        let index = EVENTS.iter().position(|known| *known == event)?;
        self.events.get_mut(index)
    }

    /// An event to tell and the command that waited for it.
    pub(super) fn next_event(&mut self) -> Option<(u32, Event)> {
        let index = self.events.iter().position(|state| state.is_due && !state.is_masked)?;
        let slot = self.event_requests.pop_front()?;
        self.events[index] = EventState { is_due: false, is_masked: true };
        Some((slot, EVENTS[index]))
    }

    /// A change of reservations of `namespace`, of this kind (Base 2.0, Figure 264), that the host
    /// is told unless it asked not to be.
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
