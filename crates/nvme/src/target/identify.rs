//! Identify pages of controllers and namespaces.

use crate::feature::EventMask;
use crate::identify::{
    ActiveNamespaces, AnaCapabilities, ControllerKind, FusedCommands, IDENTIFY_BYTES, IdentifyController, IdentifyId,
    IdentifyNamespace, LbaFormat, LogAttributes, NamespaceDescriptors, NamespaceName, NamespaceSummary, NvmCommands,
    SglSupport,
};
use crate::target::TargetLimits;
use crate::target::controller::{Controller, Role, VERSION};
use crate::target::controllers::Controllers;
use crate::target::group::Group;
use crate::target::nvm::{COPY_RANGES_MAX, copy_blocks_max, copy_range_blocks_max};
use crate::target::subsystem::{Namespace, Subsystem};
use crate::{Identify, Nqn, Sqe, Status, Text};

/// Bits of CMIC: several ports, several controllers, asymmetric access.
const SHARING: u8 = 1 << 0 | 1 << 1 | 1 << 3;
/// CTRATT: host identifiers of 128 bits, and keep-alive by any command (TBKAS).
const ATTRIBUTES: u32 = 1 << 0 | 1 << 6;
/// ACL, less one: aborts are answered at once, so any number will do; 3 is that of a widely used
/// target.
const ABORTS_MINUS_ONE: u8 = 3;
/// RESCAP: every type of reservation, and IEKEY as Base 1.3 and later mean it.
const RESERVATIONS: u8 = 0xfe;
/// RESCAP: they may survive a power loss (PTPLS).
const RESERVATIONS_PERSIST: u8 = 0x01;
/// Structures of CNS 12h and 13h: controllers of a namespace, of the subsystem (Base 2.0, Figure
/// 273).
const CONTROLLERS_OF_NAMESPACE: u8 = 0x12;
const CONTROLLERS: u8 = 0x13;
/// Longest change of asymmetric access, s: paths change at once.
const TRANSITION_S: u8 = 10;

/// All ANA states are reported, and namespaces stay in their groups.
const PATHS: AnaCapabilities = AnaCapabilities::OPTIMIZED
    .union(AnaCapabilities::NON_OPTIMIZED)
    .union(AnaCapabilities::INACCESSIBLE)
    .union(AnaCapabilities::PERSISTENT_LOSS)
    .union(AnaCapabilities::CHANGE)
    .union(AnaCapabilities::STABLE_GROUPS);
/// Optional commands of the NVM command set.
const COMMANDS: NvmCommands = NvmCommands::COMPARE
    .union(NvmCommands::DATASET_MANAGEMENT)
    .union(NvmCommands::WRITE_ZEROES)
    .union(NvmCommands::RESERVATIONS)
    .union(NvmCommands::TIMESTAMP)
    .union(NvmCommands::VERIFY)
    .union(NvmCommands::COPY);

const NOT_A_NAMESPACE: Status = Status::INVALID_NAMESPACE;

/// The sources of identify pages.
pub(super) struct Identity<'a> {
    pub(super) limits: &'a TargetLimits,
    pub(super) subsystems: &'a [Subsystem],
    pub(super) controllers: &'a Controllers,
    pub(super) group: &'a Group,
}

impl Identity<'_> {
    /// The structure that Identify asks `controller` for.
    pub(super) fn page(&self, controller: &Controller, namespace: u32, asked: Identify) -> Result<Vec<u8>, Status> {
        let known = IdentifyId::of_code(asked.structure);
        if known == Some(IdentifyId::Controller) {
            return Ok(self.of_controller(controller).encode().to_vec());
        }
        let subsystem = controller.subsystem().map(|at| &self.subsystems[at]).ok_or(Status::INVALID_FIELD)?;
        match (known, asked.structure) {
            (Some(known), _) => subsystem.identify(namespace, known, asked.command_set, self.limits),
            (None, CONTROLLERS) => Ok(self.controller_list(controller, asked.controller)),
            (None, CONTROLLERS_OF_NAMESPACE) => {
                subsystem.namespaces.get(&namespace).ok_or(NOT_A_NAMESPACE)?;
                Ok(self.controller_list(controller, asked.controller))
            }
            (None, _) => Err(Status::INVALID_FIELD),
        }
    }

    /// Controllers of the same subsystem from `from` on: a count and identifiers of two bytes each,
    /// rising.
    fn controller_list(&self, asking: &Controller, from: u16) -> Vec<u8> {
        let mut ids = self.controllers.ids_of(|known| known.id >= from && known.role == asking.role);
        let name = asking.subsystem().map(|at| self.subsystems[at].config.name);
        let elsewhere = self.group.elsewhere.range(from..).filter(|(_, known)| known.subsystem == name);
        ids.extend(elsewhere.map(|(id, _)| *id));
        ids.sort_unstable();
        ids.truncate(IDENTIFY_BYTES / 2 - 1);
        let words = std::iter::once(ids.len() as u16).chain(ids);
        words.flat_map(u16::to_le_bytes).collect()
    }

    fn of_controller(&self, controller: &Controller) -> IdentifyController {
        let limits = &self.limits;
        let base = IdentifyController {
            transfer_max: limits.transfer_shift,
            controller: controller.id,
            version: VERSION,
            attributes: ATTRIBUTES,
            aborts_minus_one: ABORTS_MINUS_ONE,
            events_minus_one: (limits.events_max - 1) as u8,
            errors_minus_one: (limits.errors_max - 1) as u8,
            keep_alive_100_ms: limits.keep_alive_100_ms,
            commands_max: limits.queue_entries_max,
            sgls: SglSupport::ANY_ALIGNMENT | SglSupport::OFFSETS | SglSupport::TRANSPORT,
            command_capsule_16: ((limits.in_capsule_bytes + Sqe::BYTES as u32) / 16).max(4),
            response_capsule_16: 1,
            sgl_blocks_max: 1,
            fabric_commands: 1,
            ..blank()
        };
        match controller.role {
            Role::Discovery => discovery_controller(base),
            Role::Storage(at) => self.subsystems[at].identify_controller(base),
        }
    }
}

impl Subsystem {
    fn identify(&self, id: u32, asked: IdentifyId, command_set: u8, limits: &TargetLimits) -> Result<Vec<u8>, Status> {
        let namespace = || self.namespaces.get(&id).ok_or(NOT_A_NAMESPACE);
        let is_specific = matches!(
            asked,
            IdentifyId::CommandSetNamespace | IdentifyId::CommandSetController | IdentifyId::CommandSetActiveNamespaces
        );
        if is_specific && command_set != 0 {
            return Err(Status::COMMAND_SET_UNSUPPORTED);
        }
        match asked {
            IdentifyId::Namespace | IdentifyId::AllocatedNamespace => self.identify_namespace(id, limits),
            IdentifyId::NamespaceDescriptors => namespace().map(descriptors),
            IdentifyId::ActiveNamespaces | IdentifyId::AllocatedNamespaces | IdentifyId::CommandSetActiveNamespaces => {
                active_list(self, id)
            }
            IdentifyId::NamespaceSummary => namespace().map(summary),
            IdentifyId::CommandSetNamespace => namespace().map(|_| vec![0; IDENTIFY_BYTES]),
            // No limits of the NVM command set beyond those of transfers.
            IdentifyId::CommandSetController => Ok(vec![0; IDENTIFY_BYTES]),
            IdentifyId::CommandSets => Ok(command_sets()),
            IdentifyId::Controller => Err(Status::INVALID_FIELD),
        }
    }

    fn identify_namespace(&self, id: u32, limits: &TargetLimits) -> Result<Vec<u8>, Status> {
        // Only controllers with namespace management describe what is common to all namespaces
        // (FFFFFFFFh; Base 2.0, 5.17.2.1). SPDK and Linux refuse it too.
        if id == 0 || id > self.config.namespace_max {
            return Err(NOT_A_NAMESPACE);
        }
        // An inactive namespace is zeros.
        let page = self.namespaces.get(&id).map(|known| describe(known, limits).encode().to_vec());
        Ok(page.unwrap_or(vec![0; IDENTIFY_BYTES]))
    }

    fn identify_controller(&self, base: IdentifyController) -> IdentifyController {
        let config = &self.config;
        let has_cache = self.namespaces.values().any(|known| known.config.has_volatile_cache);
        let capacity =
            self.namespaces.values().map(|known| u128::from(known.config.blocks) << known.config.block_shift);
        IdentifyController {
            serial: config.serial,
            model: config.model,
            firmware: config.firmware,
            sharing: SHARING,
            events: EventMask::NAMESPACE_ATTRIBUTES | EventMask::ASYMMETRIC_ACCESS,
            kind: ControllerKind::Io,
            logs: LogAttributes::COMMAND_EFFECTS | LogAttributes::EXTENDED | LogAttributes::SUPPORTED_LOGS,
            capacity: capacity.sum(),
            ana_transition_s: TRANSITION_S,
            ana: PATHS,
            ana_group_max: 1024,
            ana_groups: self.groups().len().max(1) as u32,
            sqe_sizes: 0x66,
            cqe_sizes: 0x44,
            namespaces: config.namespace_max,
            namespaces_max: config.namespace_max,
            commands: COMMANDS,
            fused: FusedCommands::COMPARE_AND_WRITE,
            // Bits 2:1 = 11b: a flush of all namespaces is accepted.
            write_cache: u8::from(has_cache) | 0b110,
            copy_formats: 0xf,
            subsystem: Some(config.name),
            ..base
        }
    }
}

fn discovery_controller(base: IdentifyController) -> IdentifyController {
    IdentifyController {
        kind: ControllerKind::Discovery,
        events: EventMask::DISCOVERY_LOG,
        logs: LogAttributes::EXTENDED,
        subsystem: Some(Nqn::discovery()),
        model: Text::new("Rackweave discovery").expect("the name fits its field"),
        ..base
    }
}

fn blank() -> IdentifyController {
    IdentifyController::decode(&[0; IDENTIFY_BYTES]).expect("zeros are a controller without values")
}

/// Reservation capabilities of a namespace (RESCAP).
fn reservations(namespace: &Namespace) -> u8 {
    RESERVATIONS | if namespace.config.keeps_reservations { RESERVATIONS_PERSIST } else { 0 }
}

/// A namespace as in CNS 00h.
fn describe(namespace: &Namespace, limits: &TargetLimits) -> IdentifyNamespace {
    let config = &namespace.config;
    let bare = IdentifyNamespace::decode(&[0; IDENTIFY_BYTES]).expect("zeros are a namespace without values");
    let mut formats = bare.formats;
    formats[0] = LbaFormat { metadata_bytes: 0, block_shift: config.block_shift, performance: 0 };
    let range_blocks = copy_range_blocks_max(limits, config.block_shift);
    IdentifyNamespace {
        size: config.blocks,
        capacity: config.blocks,
        used: config.blocks,
        sharing: 1,
        reservations: reservations(namespace),
        // Deallocated blocks read as zeros or as before: the backend's affair. Write Zeroes may
        // deallocate.
        deallocation: 1 << 3,
        // A fused pair is one request of a backend, whatever its length.
        atomic_compare_minus_one: range_blocks - 1,
        bytes: u128::from(config.blocks) << config.block_shift,
        copy_range_blocks_max: range_blocks,
        copy_blocks_max: copy_blocks_max(limits, config.block_shift),
        copy_ranges_minus_one: (COPY_RANGES_MAX - 1) as u8,
        ana_group: config.group,
        attributes: u8::from(config.is_read_only),
        nguid: config.nguid,
        eui64: config.eui64,
        formats,
        ..bare
    }
}

fn descriptors(namespace: &Namespace) -> Vec<u8> {
    let config = &namespace.config;
    let mut names = Vec::new();
    if config.eui64 != [0; 8] {
        names.push(NamespaceName::Eui64(config.eui64));
    }
    if config.nguid != [0; 16] {
        names.push(NamespaceName::Nguid(config.nguid));
    }
    names.push(NamespaceName::Uuid(config.uuid));
    names.push(NamespaceName::CommandSet(0));
    NamespaceDescriptors::encode(&names).to_vec()
}

fn active_list(subsystem: &Subsystem, after: u32) -> Result<Vec<u8>, Status> {
    // Base 2.0, 5.17.2.2: nothing is above these.
    if after >= u32::MAX - 1 {
        return Err(NOT_A_NAMESPACE);
    }
    Ok(ActiveNamespaces::page(subsystem.namespaces.keys().copied(), after).encode().to_vec())
}

fn summary(namespace: &Namespace) -> Vec<u8> {
    let config = &namespace.config;
    let summary = NamespaceSummary {
        features: 0,
        sharing: 1,
        reservations: reservations(namespace),
        ana_group: config.group,
        attributes: u8::from(config.is_read_only),
        state: 1,
    };
    summary.encode().to_vec()
}

/// One combination of command sets: NVM alone.
fn command_sets() -> Vec<u8> {
    let mut page = vec![0; IDENTIFY_BYTES];
    page[0] = 1;
    page
}
