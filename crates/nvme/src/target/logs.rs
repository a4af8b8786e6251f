//! Log pages.

use crate::feature::Event;
use crate::log::{
    AnaGroup, AnaLog, ChangedNamespaces, CommandEffect, CommandEffects, DiscoveryEntry, DiscoveryHead, ErrorEntry,
    FirmwareSlots, Health, LogId, ReservationNotice, SubsystemKind, TransportKind, TransportSecurity, window,
};
use crate::target::config::PortConfig;
use crate::target::controller::{Controller, Role};
use crate::target::notice::Counters;
use crate::target::subsystem::Subsystem;
use crate::target::{Ports, TargetLimits};
use crate::vendor::{ADD_WRITE, MULTI_CAST};
use crate::{GetLogPage, Nqn, Status};
use base::Span;

/// Temperature of a machine without sensors: 40 degrees, at which no tool warns.
const TEMPERATURE_KELVIN: u16 = 313;
/// Entries of the admin queue in a discovery entry (Linux requests 32).
const ADMIN_QUEUE: u16 = 32;
/// TREQ: bits 1:0 say whether a secure channel is required or not, bit 2 that flow control may be
/// off.
const CHANNEL: u8 = 0b001;
const NO_CHANNEL: u8 = 0b010;
const FLOW_CONTROL_OPTIONAL: u8 = 0b100;
/// LSP bit 0 of the ANA log: groups without their namespaces (Base 2.0, Figure 218).
const GROUPS_ONLY: u8 = 1;

/// The sources of log pages.
pub(super) struct Logs<'a> {
    pub(super) limits: &'a TargetLimits,
    pub(super) ports: &'a Ports,
    pub(super) subsystems: &'a [Subsystem],
    pub(super) counters: Counters,
    pub(super) uptime: Span,
}

impl Logs<'_> {
    /// The part of a log that Get Log Page asks `controller` for, shorter at its end.
    pub(super) fn part(&self, controller: &Controller, asked: GetLogPage) -> Result<Vec<u8>, Status> {
        if asked.is_index || !asked.offset.is_multiple_of(4) {
            return Err(Status::INVALID_FIELD);
        }
        let log = self.log(controller, asked)?;
        let part = window(log.len(), asked.offset, asked.bytes()).ok_or(Status::INVALID_FIELD)?;
        Ok(log[part].to_vec())
    }

    fn log(&self, controller: &Controller, asked: GetLogPage) -> Result<Vec<u8>, Status> {
        let known = LogId::of_code(asked.log).ok_or(Status::INVALID_LOG_PAGE)?;
        if !supports(controller.role, known) {
            return Err(Status::INVALID_LOG_PAGE);
        }
        Ok(match known {
            LogId::Supported => supported(controller.role),
            LogId::Errors => self.error_log(controller),
            LogId::Health => self.health(controller).encode().to_vec(),
            LogId::Firmware => self.firmware(controller),
            LogId::ChangedNamespaces => {
                ChangedNamespaces(controller.changed_namespaces.iter().copied().collect()).encode().to_vec()
            }
            LogId::CommandEffects => effects().encode().to_vec(),
            LogId::AsymmetricAccess => self.ana_log(controller, asked.specific & GROUPS_ONLY != 0),
            LogId::Discovery => self.discovery_log(controller),
            LogId::Reservations => reservation_notice(controller),
        })
    }

    fn subsystem(&self, controller: &Controller) -> Option<&Subsystem> {
        controller.subsystem().map(|at| &self.subsystems[at])
    }

    fn error_log(&self, controller: &Controller) -> Vec<u8> {
        let mut log: Vec<u8> = controller.errors.iter().flat_map(|entry| entry.encode()).collect();
        log.resize(usize::from(self.limits.errors_max) * ErrorEntry::BYTES, 0);
        log
    }

    fn health(&self, controller: &Controller) -> Health {
        let counters = self.counters;
        // Units of 512,000 bytes, rounded up (Base 2.0, Figure 207).
        let units = |bytes: u64| u128::from(bytes.div_ceil(512_000));
        let up = self.uptime.as_ps() / Span::secs(3600).as_ps();
        let blank = Health::decode(&[0; Health::BYTES]).expect("zeros are a health log without values");
        Health {
            temperature_kelvin: TEMPERATURE_KELVIN,
            spare_percent: 100,
            read_512_000: units(counters.read_bytes),
            written_512_000: units(counters.written_bytes),
            reads: counters.reads.into(),
            writes: counters.writes.into(),
            media_errors: counters.media_errors.into(),
            error_entries: controller.error_count.into(),
            power_cycles: 1,
            power_on_hours: up.into(),
            ..blank
        }
    }

    fn firmware(&self, controller: &Controller) -> Vec<u8> {
        let Some(subsystem) = self.subsystem(controller) else { return vec![0; FirmwareSlots::BYTES] };
        FirmwareSlots { active: 1, slot_1: subsystem.config.firmware }.encode().to_vec()
    }

    fn ana_log(&self, controller: &Controller, groups_only: bool) -> Vec<u8> {
        let Some(subsystem) = self.subsystem(controller) else { return Vec::new() };
        let groups = subsystem.groups().into_iter().map(|(group, namespaces)| {
            let path = subsystem.path(controller.port, group);
            let namespaces = if groups_only { Vec::new() } else { namespaces };
            AnaGroup { group, changes: path.changes, state: path.state, namespaces }
        });
        AnaLog { changes: subsystem.path_changes, groups: groups.collect() }.encode()
    }

    /// An entry for each port of each subsystem that the host may use, the discovery subsystem
    /// last.
    fn discovery_log(&self, controller: &Controller) -> Vec<u8> {
        let (ports, mut entries) = (&self.ports.all, Vec::new());
        for subsystem in self.subsystems.iter().filter(|subsystem| subsystem.config.hosts.allows(&controller.host)) {
            let ports = ports.iter().filter(|port| subsystem.config.ports.contains(&port.id));
            entries.extend(ports.map(|port| entry(port, subsystem.config.name, SubsystemKind::Nvm)));
        }
        let here = ports.iter().filter(|port| port.id == controller.port);
        entries.extend(here.map(|port| entry(port, Nqn::discovery(), SubsystemKind::CurrentDiscovery)));
        let generation = self.ports.generation;
        let mut log = DiscoveryHead { generation, entries: entries.len() as u64, format: 0 }.encode().to_vec();
        entries.iter().for_each(|entry| log.extend_from_slice(&entry.encode()));
        log
    }
}

impl Controller {
    /// The host read a log: its event may be reported again.
    pub(super) fn log_read(&mut self, log: u8) {
        let event = match LogId::of_code(log) {
            Some(LogId::ChangedNamespaces) => {
                self.changed_namespaces = std::mem::take(&mut self.replaced_namespaces);
                Event::NAMESPACE_CHANGED
            }
            Some(LogId::AsymmetricAccess) => Event::ASYMMETRIC_ACCESS_CHANGED,
            Some(LogId::Discovery) => Event::DISCOVERY_CHANGED,
            Some(LogId::Reservations) => {
                self.reservation_notices.pop_front();
                Event::RESERVATION
            }
            _ => return,
        };
        self.rearm(event);
        let has_more = match event {
            Event::RESERVATION => !self.reservation_notices.is_empty(),
            Event::NAMESPACE_CHANGED => !self.changed_namespaces.is_empty(),
            _ => false,
        };
        if has_more {
            self.raise(event);
        }
    }
}

fn entry(port: &PortConfig, subsystem: Nqn, kind: SubsystemKind) -> DiscoveryEntry {
    let channel = if port.security == TransportSecurity::None { NO_CHANNEL } else { CHANNEL };
    DiscoveryEntry {
        transport: TransportKind::Tcp,
        family: port.family,
        kind,
        requirements: FLOW_CONTROL_OPTIONAL | channel,
        port: port.id.0,
        controller: crate::ConnectData::DYNAMIC,
        admin_queue_size: ADMIN_QUEUE,
        flags: 0,
        service: port.service,
        subsystem,
        address: port.address,
        specific: port.security.code(),
    }
}

fn supports(role: Role, log: LogId) -> bool {
    match role {
        Role::Discovery => matches!(log, LogId::Supported | LogId::Errors | LogId::Health | LogId::Discovery),
        Role::Storage(_) => log != LogId::Discovery,
    }
}

/// Log 00h: a dword a log, bit 0 supported.
fn supported(role: Role) -> Vec<u8> {
    let mut log = vec![0; 1024];
    for known in LogId::ALL.iter().filter(|known| supports(role, **known)) {
        log[usize::from(known.code()) * 4] = 1;
    }
    log
}

/// The oldest unread notice, or an empty one.
fn reservation_notice(controller: &Controller) -> Vec<u8> {
    let waiting = controller.reservation_notices.len().saturating_sub(1).min(255) as u8;
    let none = ReservationNotice { count: 0, kind: 0, waiting: 0, namespace: 0 };
    let notice = controller.reservation_notices.front().map(|notice| ReservationNotice { waiting, ..*notice });
    notice.unwrap_or(none).encode().to_vec()
}

/// Admin opcodes that are supported, and I/O opcodes with what they change (Base 2.0, Figure 211).
const ADMIN: [u8; 7] = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18];
const CHANGING: [u8; 6] = [0x01, 0x08, 0x09, 0x19, MULTI_CAST, ADD_WRITE];
const OTHER: [u8; 8] = [0x00, 0x02, 0x05, 0x0c, 0x0d, 0x0e, 0x11, 0x15];

fn effects() -> CommandEffects {
    let mut effects = CommandEffects { admin: [CommandEffect::empty(); 256], io: [CommandEffect::empty(); 256] };
    ADMIN.iter().for_each(|opcode| effects.admin[usize::from(*opcode)] = CommandEffect::SUPPORTED);
    OTHER.iter().for_each(|opcode| effects.io[usize::from(*opcode)] = CommandEffect::SUPPORTED);
    for opcode in CHANGING {
        effects.io[usize::from(opcode)] = CommandEffect::SUPPORTED | CommandEffect::BLOCKS;
    }
    effects
}
