//! Admin commands (NVM Express Base 2.0, 5). Creating and deleting queues is not among them: on
//! fabrics Connect does it.

use super::{CommandError, QueueKind, bits, dwords, wide};
use crate::Sqe;
use crate::layout::codes;

const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const ABORT: u8 = 0x08;
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0a;
const ASYNCHRONOUS_EVENT: u8 = 0x0c;
const KEEP_ALIVE: u8 = 0x18;

/// An admin command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin {
    /// 02h (5.16).
    GetLogPage(GetLogPage),
    /// 06h (5.17).
    Identify(Identify),
    /// 08h (5.1): aborts a command. Bit 0 of dword 0 of the completion is 0 if it was aborted.
    Abort {
        /// Queue of the command.
        queue: u16,
        /// Its id.
        id: u16,
    },
    /// 09h (5.27).
    SetFeatures(SetFeatures),
    /// 0Ah (5.15).
    GetFeatures {
        /// Feature, see [`Feature`](crate::feature::FeatureId).
        feature: u8,
        /// Which of its values.
        select: FeatureSelect,
        /// Dword 11, which the feature defines.
        argument: u32,
    },
    /// 0Ch (5.2): completes when something happens.
    AsynchronousEvent,
    /// 18h (5.18).
    KeepAlive,
}

codes! {
    /// The value of a feature to return (5.15, Figure 191).
    pub enum FeatureSelect: u8 {
        /// The one in force.
        Current = 0,
        /// The one after a reset.
        Default = 1,
        /// The one that a reset keeps.
        Saved = 2,
        /// Capabilities of the feature: bit 0 saveable, 1 per namespace, 2 changeable.
        Capabilities = 3,
    }
}

/// Get Log Page (5.16): part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLogPage {
    /// Which log, see [`LogId`](crate::log::LogId).
    pub log: u8,
    /// Specific to the log, 7 bits.
    pub specific: u8,
    /// The asynchronous event that pointed to the log stays as it is (RAE).
    pub retain_event: bool,
    /// Dwords to return, less one.
    pub dwords_minus_one: u32,
    /// Identifier specific to the log.
    pub specific_id: u16,
    /// Where to begin, in bytes (or entries, see `is_index`).
    pub offset: u64,
    /// Whether `offset` counts entries.
    pub is_index: bool,
    /// I/O command set.
    pub command_set: u8,
}

impl GetLogPage {
    /// Dwords of a log from a byte on, without other parameters.
    pub const fn part(log: u8, offset: u64, dwords_minus_one: u32) -> Self {
        GetLogPage {
            log,
            specific: 0,
            retain_event: false,
            dwords_minus_one,
            specific_id: 0,
            offset,
            is_index: false,
            command_set: 0,
        }
    }

    /// Bytes to return, at most 16 GiB: bound it before allocating.
    pub fn bytes(&self) -> u64 {
        (u64::from(self.dwords_minus_one) + 1) * 4
    }
}

/// Identify (5.17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identify {
    /// Which structure (CNS), see [`IdentifyId`](crate::identify::IdentifyId).
    pub structure: u8,
    /// A controller, for the structures that are about one.
    pub controller: u16,
    /// Identifier specific to the structure.
    pub specific_id: u16,
    /// I/O command set.
    pub command_set: u8,
}

/// Set Features (5.27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFeatures {
    /// Feature, see [`FeatureId`](crate::feature::FeatureId).
    pub feature: u8,
    /// Whether a reset keeps the value.
    pub save: bool,
    /// Dwords 11 to 15, which the feature defines.
    pub arguments: [u32; 5],
}

pub(super) fn decode(entry: &Sqe) -> Result<Admin, CommandError> {
    let [first, second] = [entry.dword(0), entry.dword(1)];
    Ok(match entry.opcode {
        GET_LOG_PAGE => Admin::GetLogPage(decode_log(entry)),
        IDENTIFY => Admin::Identify(Identify {
            structure: first as u8,
            controller: (first >> 16) as u16,
            specific_id: second as u16,
            command_set: (second >> 24) as u8,
        }),
        ABORT => Admin::Abort { queue: first as u16, id: (first >> 16) as u16 },
        SET_FEATURES => Admin::SetFeatures(SetFeatures {
            feature: first as u8,
            save: first >> 31 != 0,
            arguments: std::array::from_fn(|index| entry.dword(index + 1)),
        }),
        GET_FEATURES => Admin::GetFeatures {
            feature: first as u8,
            select: FeatureSelect::checked(bits(first, 8, 3) as u8, "feature select")?,
            argument: second,
        },
        ASYNCHRONOUS_EVENT => Admin::AsynchronousEvent,
        KEEP_ALIVE => Admin::KeepAlive,
        opcode => return Err(CommandError::Opcode { opcode, queue: QueueKind::Admin }),
    })
}

fn decode_log(entry: &Sqe) -> GetLogPage {
    let [first, second, last] = [entry.dword(0), entry.dword(1), entry.dword(4)];
    GetLogPage {
        log: first as u8,
        specific: bits(first, 8, 7) as u8,
        retain_event: bits(first, 15, 1) != 0,
        dwords_minus_one: first >> 16 | second << 16,
        specific_id: (second >> 16) as u16,
        offset: wide(entry.dword(2), entry.dword(3)),
        is_index: bits(last, 23, 1) != 0,
        command_set: (last >> 24) as u8,
    }
}

pub(super) fn encode(body: &Admin, bare: Sqe) -> Sqe {
    let (opcode, words) = match *body {
        Admin::GetLogPage(log) => (GET_LOG_PAGE, dwords(log_dwords(log))),
        Admin::Identify(identify) => (IDENTIFY, dwords(identify_dwords(identify))),
        Admin::Abort { queue, id } => (ABORT, dwords([u32::from(queue) | u32::from(id) << 16])),
        Admin::SetFeatures(SetFeatures { feature, save, arguments: [a, b, c, d, e] }) => {
            (SET_FEATURES, dwords([u32::from(feature) | u32::from(save) << 31, a, b, c, d, e]))
        }
        Admin::GetFeatures { feature, select, argument } => {
            (GET_FEATURES, dwords([u32::from(feature) | u32::from(select.code()) << 8, argument]))
        }
        Admin::AsynchronousEvent => (ASYNCHRONOUS_EVENT, dwords([])),
        Admin::KeepAlive => (KEEP_ALIVE, dwords([])),
    };
    Sqe { opcode, dwords_10: words, ..bare }
}

fn log_dwords(log: GetLogPage) -> [u32; 5] {
    let first = u32::from(log.log) | u32::from(log.specific & 0x7f) << 8 | u32::from(log.retain_event) << 15;
    let second = log.dwords_minus_one >> 16 | u32::from(log.specific_id) << 16;
    let last = u32::from(log.is_index) << 23 | u32::from(log.command_set) << 24;
    [first | log.dwords_minus_one << 16, second, log.offset as u32, (log.offset >> 32) as u32, last]
}

fn identify_dwords(identify: Identify) -> [u32; 2] {
    let controller = u32::from(identify.controller) << 16;
    [
        u32::from(identify.structure) | controller,
        u32::from(identify.specific_id) | u32::from(identify.command_set) << 24,
    ]
}
