//! Reservations of a shared namespace (NVM Express Base 2.0, 8.19): registrants, the holder, and
//! the effects of the four commands. Pure: the caller notifies hosts and stores the state.

use crate::reservation::{
    AcquireAction, ExtendedRegistrant, ExtendedReport, PersistChange, RegisterAction, ReleaseAction, ReservationKind,
};
use crate::{HostId, ReservationAcquire, ReservationRegister, ReservationRelease, Status};

/// Most registrants of a namespace: ours, so that a host with many names cannot fill memory.
pub const REGISTRANTS_MAX: usize = 64;

/// A host that has registered a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredHost {
    /// Which host.
    pub host: HostId,
    /// Its key.
    pub key: u64,
    /// Whether it holds the reservation.
    pub is_holder: bool,
}

/// Everything that is reserved of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// Counts changes.
    pub generation: u32,
    /// Type of the reservation; the code of [`ReservationKind`].
    pub kind: HeldKind,
    /// Whether it survives a power loss (PTPL).
    pub persists: bool,
    /// Registrants, in the order of registration.
    pub registrants: Vec<RegisteredHost>,
}

/// [`ReservationKind`] that starts as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldKind(pub ReservationKind);

impl Default for HeldKind {
    fn default() -> Self {
        HeldKind(ReservationKind::None)
    }
}

/// The access of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Blocks are read.
    Read,
    /// Blocks are changed.
    Write,
}

/// Effects on other hosts, which are notified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Registrations that were taken away.
    pub(super) preempted: Vec<HostId>,
    /// Registrants whose reservation was released.
    pub(super) released: Vec<HostId>,
    /// Registrants whose reservation another host has preempted.
    pub(super) taken: Vec<HostId>,
    /// Commands of the preempted end.
    pub(super) aborts: bool,
}

const CONFLICT: Status = Status::RESERVATION_CONFLICT;

impl Reservations {
    /// The state after a power loss: one that does not persist is kept as none.
    pub(super) fn kept(&self) -> Reservations {
        if self.persists { self.clone() } else { Reservations::default() }
    }

    /// Whether `host` may do `intent` now (Base 2.0, Figure 469).
    pub(super) fn allows(&self, host: HostId, intent: Intent) -> bool {
        use ReservationKind as Kind;
        let registrant = self.registrants.iter().find(|registrant| registrant.host == host);
        let (is_registrant, is_holder) = (registrant.is_some(), registrant.is_some_and(|known| known.is_holder));
        match (self.kind.0, intent) {
            (Kind::None, _) => true,
            (Kind::WriteExclusive | Kind::WriteExclusiveRegistrants | Kind::WriteExclusiveAll, Intent::Read) => true,
            (Kind::WriteExclusive | Kind::ExclusiveAccess, _) => is_holder,
            _ => is_registrant,
        }
    }

    /// The report, with the controller by which each host is reached.
    pub(super) fn report(&self, controller_of: impl Fn(HostId) -> u16) -> ExtendedReport {
        let registrants = self.registrants.iter().map(|known| ExtendedRegistrant {
            controller: controller_of(known.host),
            status: u8::from(known.is_holder),
            key: known.key,
            host_id: known.host,
        });
        let (generation, kind, persists) = (self.generation, self.kind.0, self.persists);
        ExtendedReport { generation, kind, persists, registrants: registrants.collect() }
    }

    fn find(&self, host: HostId) -> Option<&RegisteredHost> {
        self.registrants.iter().find(|known| known.host == host)
    }

    fn is_all(&self) -> bool {
        matches!(self.kind.0, ReservationKind::WriteExclusiveAll | ReservationKind::ExclusiveAccessAll)
    }

    /// Types whose release is reported to registrants (Base 2.0, 8.19.9).
    fn end_is_told(&self) -> bool {
        !matches!(
            self.kind.0,
            ReservationKind::None | ReservationKind::WriteExclusive | ReservationKind::ExclusiveAccess
        )
    }

    /// Reservation Register (7.3).
    pub(super) fn register(
        &mut self,
        host: HostId,
        command: ReservationRegister,
        [current, new]: [u64; 2],
    ) -> Result<Effects, Status> {
        let known = self.find(host).copied();
        let fits = command.ignore_key || known.is_some_and(|known| known.key == current);
        let effects = match (command.action, known) {
            (RegisterAction::Register, None) => self.add(host, new)?,
            (RegisterAction::Register, Some(known)) if known.key == new => Effects::default(),
            (RegisterAction::Register, Some(_)) => return Err(CONFLICT),
            (RegisterAction::Replace, None) if command.ignore_key => self.add(host, new)?,
            (_, None) => return Err(CONFLICT),
            (_, Some(_)) if !fits => return Err(CONFLICT),
            (RegisterAction::Replace, Some(_)) => {
                self.registrants.iter_mut().filter(|known| known.host == host).for_each(|known| known.key = new);
                Effects::default()
            }
            (RegisterAction::Unregister, Some(_)) => self.remove(host),
        };
        match command.persist {
            PersistChange::Keep => {}
            PersistChange::Off => self.persists = false,
            PersistChange::On => self.persists = true,
        }
        self.generation = self.generation.wrapping_add(1);
        Ok(effects)
    }

    fn add(&mut self, host: HostId, key: u64) -> Result<Effects, Status> {
        if self.registrants.len() >= REGISTRANTS_MAX {
            return Err(Status::INTERNAL_ERROR);
        }
        let is_holder = self.is_all();
        self.registrants.push(RegisteredHost { host, key, is_holder });
        Ok(Effects::default())
    }

    fn remove(&mut self, host: HostId) -> Effects {
        let was_holder = self.find(host).is_some_and(|known| known.is_holder);
        self.registrants.retain(|known| known.host != host);
        let is_held = self.registrants.iter().any(|known| known.is_holder);
        if was_holder && !is_held { self.end_reservation(host) } else { Effects::default() }
    }

    /// The reservation is over; registrants but `by` are notified if its type requires it.
    fn end_reservation(&mut self, by: HostId) -> Effects {
        let told = self.end_is_told();
        self.kind = HeldKind(ReservationKind::None);
        self.registrants.iter_mut().for_each(|known| known.is_holder = false);
        let others = self.registrants.iter().map(|known| known.host).filter(|host| told && *host != by);
        Effects { released: others.collect(), ..Effects::default() }
    }

    fn check_key(&self, host: HostId, key: u64, ignore_key: bool) -> Result<RegisteredHost, Status> {
        let known = self.find(host).copied().ok_or(CONFLICT)?;
        if ignore_key || known.key == key { Ok(known) } else { Err(CONFLICT) }
    }

    /// Reservation Acquire (7.2).
    pub(super) fn acquire(
        &mut self,
        host: HostId,
        command: ReservationAcquire,
        [current, preempted]: [u64; 2],
    ) -> Result<Effects, Status> {
        if command.ignore_key {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        let known = self.check_key(host, current, false)?;
        match command.action {
            AcquireAction::Acquire if command.kind == ReservationKind::None => {
                Err(Status::INVALID_FIELD.without_retry())
            }
            AcquireAction::Acquire => self.hold(known, command.kind),
            AcquireAction::Preempt => self.preempt(host, command.kind, preempted),
            AcquireAction::PreemptAndAbort => {
                self.preempt(host, command.kind, preempted).map(|effects| Effects { aborts: true, ..effects })
            }
        }
    }

    fn hold(&mut self, known: RegisteredHost, kind: ReservationKind) -> Result<Effects, Status> {
        match self.kind.0 {
            ReservationKind::None => self.give(known.host, kind),
            held if held == kind && known.is_holder => {}
            _ => return Err(CONFLICT),
        }
        Ok(Effects::default())
    }

    fn give(&mut self, host: HostId, kind: ReservationKind) {
        self.kind = HeldKind(kind);
        let is_all = self.is_all();
        self.registrants.iter_mut().for_each(|known| known.is_holder = is_all || known.host == host);
    }

    /// Takes registrations by their key, and with the holder's the reservation (8.19.7).
    fn preempt(&mut self, host: HostId, kind: ReservationKind, key: u64) -> Result<Effects, Status> {
        if key == 0 && !self.is_all() {
            return Err(Status::INVALID_FIELD.without_retry());
        }
        // Where all hold it, a key of zero takes the reservation from everyone and any other key is
        // of a registrant alone.
        let takes = if self.is_all() { key == 0 } else { self.holder().is_some_and(|known| known.key == key) };
        let is_hit = |known: &RegisteredHost| if key == 0 { known.host != host } else { known.key == key };
        if key != 0 && !self.registrants.iter().any(is_hit) {
            return Err(CONFLICT);
        }
        let preempted = self.registrants.iter().filter(|known| is_hit(known) && known.host != host);
        let preempted: Vec<HostId> = preempted.map(|known| known.host).collect();
        let kind_changes = self.kind.0 != kind;
        self.registrants.retain(|known| known.host == host || !is_hit(known));
        self.generation = self.generation.wrapping_add(1);
        if !takes {
            return Ok(Effects { preempted, ..Effects::default() });
        }
        let told = self.end_is_told() && kind_changes;
        self.give(host, kind);
        let others = self.registrants.iter().map(|known| known.host).filter(|other| told && *other != host);
        Ok(Effects { preempted, taken: others.collect(), ..Effects::default() })
    }

    fn holder(&self) -> Option<&RegisteredHost> {
        self.registrants.iter().find(|known| known.is_holder)
    }

    /// Reservation Release (7.4).
    pub(super) fn release(&mut self, host: HostId, command: ReservationRelease, key: u64) -> Result<Effects, Status> {
        let known = self.check_key(host, key, command.ignore_key)?;
        match command.action {
            ReleaseAction::Clear => Ok(self.clear(host)),
            ReleaseAction::Release if !known.is_holder => Ok(Effects::default()),
            ReleaseAction::Release if command.kind != self.kind.0 => Err(Status::INVALID_FIELD.without_retry()),
            ReleaseAction::Release => Ok(self.end_reservation(host)),
        }
    }

    fn clear(&mut self, host: HostId) -> Effects {
        let others = self.registrants.iter().map(|known| known.host).filter(|other| *other != host).collect();
        self.registrants.clear();
        self.kind = HeldKind(ReservationKind::None);
        self.generation = self.generation.wrapping_add(1);
        Effects { preempted: others, ..Effects::default() }
    }
}
