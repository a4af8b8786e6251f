//! The controller (Base 2.0, Figure 275), as far as hosts over fabrics use it.

use crate::feature::EventMask;
use crate::layout::{codes, flags, layout};
use crate::name::{Nqn, Text};
use crate::property::Version;

codes! {
    /// Type of a controller (CNTRLTYPE).
    pub enum ControllerKind: u8 {
        /// An older controller that does not report it.
        Unreported = 0,
        /// Namespaces are read and written.
        Io = 1,
        /// Only the discovery log.
        Discovery = 2,
        /// Only administration.
        Administrative = 3,
    }
}

flags! {
    /// Optional I/O commands (ONCS).
    pub struct NvmCommands: u16 {
        /// Compare.
        COMPARE = 0,
        /// Write Uncorrectable.
        WRITE_UNCORRECTABLE = 1,
        /// Dataset Management.
        DATASET_MANAGEMENT = 2,
        /// Write Zeroes.
        WRITE_ZEROES = 3,
        /// Save and select of features.
        SAVE_SELECT = 4,
        /// Reservations.
        RESERVATIONS = 5,
        /// Timestamp.
        TIMESTAMP = 6,
        /// Verify.
        VERIFY = 7,
        /// Copy.
        COPY = 8,
    }
}

flags! {
    /// Fused commands (FUSES).
    pub struct FusedCommands: u16 {
        /// Compare and Write.
        COMPARE_AND_WRITE = 0,
    }
}

flags! {
    /// Supported features of log pages (LPA).
    pub struct LogAttributes: u8 {
        /// SMART of a namespace.
        NAMESPACE_HEALTH = 0,
        /// Commands supported and effects.
        COMMAND_EFFECTS = 1,
        /// Offsets and lengths of 32 bits.
        EXTENDED = 2,
        /// Telemetry.
        TELEMETRY = 3,
        /// Persistent events.
        PERSISTENT_EVENTS = 4,
        /// The log of supported logs.
        SUPPORTED_LOGS = 5,
    }
}

flags! {
    /// Asymmetric access: states that are reported and how groups behave (ANACAP).
    pub struct AnaCapabilities: u8 {
        /// Optimized.
        OPTIMIZED = 0,
        /// Non-optimized.
        NON_OPTIMIZED = 1,
        /// Inaccessible.
        INACCESSIBLE = 2,
        /// Persistent loss.
        PERSISTENT_LOSS = 3,
        /// Change.
        CHANGE = 4,
        /// A namespace stays in its group while it is attached.
        STABLE_GROUPS = 6,
    }
}

flags! {
    /// Which SGLs (SGLS).
    pub struct SglSupport: u32 {
        /// Supported, of any alignment. A host on fabrics insists on bit 0 or 1.
        ANY_ALIGNMENT = 0,
        /// Supported, aligned to dwords.
        DWORD_ALIGNMENT = 1,
        /// Keyed descriptors.
        KEYED = 2,
        /// Offsets in the address of blocks: in-capsule data.
        OFFSETS = 20,
        /// Transport data blocks.
        TRANSPORT = 21,
    }
}

layout! {
    /// The controller, its subsystem and limits.
    pub struct IdentifyController [4096] {
        /// PCI vendor (VID).
        vendor: u16 = 0,
        /// PCI subsystem vendor (SSVID).
        subsystem_vendor: u16 = 2,
        /// Serial number (SN).
        serial: Text<20> = 4,
        /// Model (MN).
        model: Text<40> = 24,
        /// Firmware revision (FR).
        firmware: Text<8> = 64,
        /// Commands that are best sent together, as a power of two (RAB).
        arbitration_burst: u8 = 72,
        /// Organisation, little-endian (IEEE).
        organisation: [u8; 3] = 73,
        /// Several ports, controllers, virtual functions, asymmetric access: bits 0 to 3 (CMIC).
        sharing: u8 = 76,
        /// Longest transfer as a power of two of the smallest page, 0 for any (MDTS).
        transfer_max: u8 = 77,
        /// This controller (CNTLID).
        controller: u16 = 78,
        /// As property VS (VER).
        version: Version = 80,
        /// Typical time to resume, us (RTD3R).
        resume_us: u32 = 84,
        /// Typical time to go to sleep, us (RTD3E).
        sleep_us: u32 = 88,
        /// Supported asynchronous events (OAES).
        events: EventMask = 92,
        /// Attributes (CTRATT): bit 0 host identifiers of 128 bits, 6 traffic based keep alive.
        attributes: u32 = 96,
        /// Type (CNTRLTYPE).
        kind: ControllerKind = 111,
        /// Globally unique id, or zero (FGUID).
        guid: [u8; 16] = 112,
        /// Retry delays 1 to 3, in units of 100 ms (CRDT).
        retry_delays_100_ms: [u16; 3] = 128,
        /// Optional admin commands (OACS).
        admin_commands: u16 = 256,
        /// Aborts at a time, less one (ACL).
        aborts_minus_one: u8 = 258,
        /// Asynchronous event requests at a time, less one (AERL).
        events_minus_one: u8 = 259,
        /// Firmware slots and updates (FRMW).
        firmware_updates: u8 = 260,
        /// Logs (LPA).
        logs: LogAttributes = 261,
        /// Entries of the error log, less one (ELPE).
        errors_minus_one: u8 = 262,
        /// Power states, less one (NPSS).
        power_states_minus_one: u8 = 263,
        /// Warning temperature, K (WCTEMP).
        warning_kelvin: u16 = 266,
        /// Critical temperature, K (CCTEMP).
        critical_kelvin: u16 = 268,
        /// Capacity of the subsystem, bytes (TNVMCAP).
        capacity: u128 = 280,
        /// Of it unallocated, bytes (UNVMCAP).
        unallocated: u128 = 296,
        /// Granularity of keep alive, in units of 100 ms; 0 means none (KAS).
        keep_alive_100_ms: u16 = 320,
        /// Longest change of asymmetric access, s (ANATT).
        ana_transition_s: u8 = 342,
        /// Asymmetric access (ANACAP).
        ana: AnaCapabilities = 343,
        /// Largest group (ANAGRPMAX).
        ana_group_max: u32 = 344,
        /// Groups (NANAGRPID).
        ana_groups: u32 = 348,
        /// SQE size: least in the low half, most in the high one, powers of two; 66h (SQES).
        sqe_sizes: u8 = 512,
        /// CQE size, as above; 44h (CQES).
        cqe_sizes: u8 = 513,
        /// Outstanding commands of a queue; at least a queue's size (MAXCMD).
        commands_max: u16 = 514,
        /// Highest namespace (NN).
        namespaces: u32 = 516,
        /// Optional I/O commands (ONCS).
        commands: NvmCommands = 520,
        /// Fused commands (FUSES).
        fused: FusedCommands = 522,
        /// Volatile write cache in bit 0, flush of all namespaces in 2:1 (VWC).
        write_cache: u8 = 525,
        /// Blocks written as one, less one (AWUN).
        atomic_minus_one: u16 = 526,
        /// The same across a power loss (AWUPF).
        atomic_power_fail_minus_one: u16 = 528,
        /// Blocks of a fused compare and write, less one (ACWU).
        atomic_compare_minus_one: u16 = 532,
        /// Formats of Copy, a bit each (OCFS).
        copy_formats: u16 = 534,
        /// SGLs (SGLS).
        sgls: SglSupport = 536,
        /// Namespaces at most, 0 for as many as `namespaces` (MNAN).
        namespaces_max: u32 = 540,
        /// Which subsystem (SUBNQN).
        subsystem: Option<Nqn> = 768,
        /// Command capsule on I/O queues, units of 16 bytes: at least 4 (IOCCSZ).
        command_capsule_16: u32 = 1792,
        /// Response capsule, units of 16 bytes: at least 1 (IORCSZ).
        response_capsule_16: u32 = 1796,
        /// Offset of in-capsule data behind the entry, in units of 16 bytes: 0 (ICDOFF).
        in_capsule_offset_16: u16 = 1800,
        /// Bit 0: controllers are not dynamic (FCATT).
        fabric_attributes: u8 = 1802,
        /// Data descriptors of a command at most (MSDBD).
        sgl_blocks_max: u8 = 1803,
        /// Optional fabrics commands: bit 0 Disconnect (OFCS).
        fabric_commands: u16 = 1804,
        /// Power of state 0, in units of 0.01 W.
        power_10_mw: u16 = 2048,
    }
}

impl IdentifyController {
    /// Bytes of in-capsule data on I/O queues; none when the capsule is smaller than an entry
    /// (IOCCSZ x 16 - 64).
    pub fn in_capsule_bytes(&self) -> u64 {
        (u64::from(self.command_capsule_16) * 16).saturating_sub(crate::Sqe::BYTES as u64)
    }
}

layout! {
    /// Limits of the NVM command set (NVM Command Set 1.0, 4.1.5.4): zeros mean no limit.
    pub struct NvmController [4096] {
        /// Largest Verify, as MDTS (VSL).
        verify_max: u8 = 0,
        /// Largest Write Zeroes, as MDTS (WZSL).
        zeroes_max: u8 = 1,
        /// Largest Write Uncorrectable, as MDTS (WUSL).
        uncorrectable_max: u8 = 2,
        /// Ranges of a Dataset Management (DMRL).
        ranges_max: u8 = 3,
        /// Blocks of a range of it (DMRSL).
        range_blocks_max: u32 = 4,
        /// Blocks of all its ranges (DMSL).
        blocks_max: u64 = 8,
    }
}
