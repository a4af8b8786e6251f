//! The status of a completion (NVM Express Base 2.0, 3.3.3.2).

/// A status: type, code and what the host may do next. Fifteen bits on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Status {
    /// Status code type: 0 generic, 1 command specific, 2 media and data integrity, 3 path, 7
    /// vendor; three bits.
    pub kind: u8,
    /// Status code.
    pub code: u8,
    /// Which of the controller's three retry delays applies, 0 for none; two bits.
    pub retry_delay: u8,
    /// The error log holds more.
    pub more: bool,
    /// The same command would fail again.
    pub do_not_retry: bool,
}

macro_rules! statuses {
    ($($(#[$meta:meta])* $name:ident = $kind:literal $code:literal $text:literal,)*) => {
        impl Status {
            $($(#[$meta])* #[doc = concat!("Type ", stringify!($kind), ", code ", stringify!($code), ": ", $text, ".")]
            pub const $name: Status = Status::new($kind, $code);)*

            /// What type and code mean, in the specification's words as nearly as is short.
            pub const fn text(self) -> &'static str {
                match (self.kind, self.code) {
                    $(($kind, $code) => $text,)*
                    (7, _) => "vendor specific",
                    _ => "unknown status",
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0 0x00 "successful completion",
    INVALID_OPCODE = 0 0x01 "invalid command opcode",
    INVALID_FIELD = 0 0x02 "invalid field in command",
    COMMAND_ID_CONFLICT = 0 0x03 "command id conflict",
    DATA_TRANSFER_ERROR = 0 0x04 "data transfer error",
    POWER_LOSS = 0 0x05 "aborted due to power loss",
    INTERNAL_ERROR = 0 0x06 "internal error",
    ABORT_REQUESTED = 0 0x07 "command abort requested",
    QUEUE_DELETED = 0 0x08 "aborted due to deletion of its submission queue",
    FAILED_FUSED = 0 0x09 "aborted due to failed fused command",
    MISSING_FUSED = 0 0x0a "aborted due to missing fused command",
    INVALID_NAMESPACE = 0 0x0b "invalid namespace or format",
    COMMAND_SEQUENCE = 0 0x0c "command sequence error",
    INVALID_SGL_SEGMENT = 0 0x0d "invalid SGL segment descriptor",
    INVALID_SGL_COUNT = 0 0x0e "invalid number of SGL descriptors",
    INVALID_SGL_LENGTH = 0 0x0f "data SGL length invalid",
    INVALID_SGL_TYPE = 0 0x11 "SGL descriptor type invalid",
    ATOMIC_WRITE_UNIT = 0 0x14 "atomic write unit exceeded",
    OPERATION_DENIED = 0 0x15 "operation denied",
    INVALID_SGL_OFFSET = 0 0x16 "SGL offset invalid",
    HOST_ID_FORMAT = 0 0x18 "host identifier inconsistent format",
    KEEP_ALIVE_EXPIRED = 0 0x19 "keep alive timer expired",
    KEEP_ALIVE_INVALID = 0 0x1a "keep alive timeout invalid",
    PREEMPTED = 0 0x1b "aborted due to preempt and abort",
    WRITE_PROTECTED = 0 0x20 "namespace is write protected",
    INTERRUPTED = 0 0x21 "command interrupted",
    TRANSIENT_TRANSPORT = 0 0x22 "transient transport error",
    COMMAND_SET_UNSUPPORTED = 0 0x2b "I/O command set not supported",
    LBA_OUT_OF_RANGE = 0 0x80 "LBA out of range",
    CAPACITY_EXCEEDED = 0 0x81 "capacity exceeded",
    NAMESPACE_NOT_READY = 0 0x82 "namespace not ready",
    RESERVATION_CONFLICT = 0 0x83 "reservation conflict",
    INVALID_QUEUE_ID = 1 0x01 "invalid queue identifier",
    INVALID_QUEUE_SIZE = 1 0x02 "invalid queue size",
    ABORT_LIMIT = 1 0x03 "abort command limit exceeded",
    EVENT_LIMIT = 1 0x05 "asynchronous event request limit exceeded",
    INVALID_LOG_PAGE = 1 0x09 "invalid log page",
    FEATURE_NOT_SAVEABLE = 1 0x0d "feature identifier not saveable",
    FEATURE_NOT_CHANGEABLE = 1 0x0e "feature not changeable",
    FEATURE_NOT_PER_NAMESPACE = 1 0x0f "feature not namespace specific",
    CONNECT_FORMAT = 1 0x80 "connect incompatible format, or conflicting attributes",
    CONNECT_BUSY = 1 0x81 "connect controller busy, or invalid protection information",
    CONNECT_INVALID_PARAMETERS = 1 0x82 "connect invalid parameters, or write to a read-only range",
    CONNECT_RESTART_DISCOVERY = 1 0x83 "connect restart discovery, or command size limit exceeded",
    CONNECT_INVALID_HOST = 1 0x84 "connect invalid host",
    DISCONNECT_INVALID_QUEUE = 1 0x85 "disconnect invalid queue type",
    DISCOVERY_RESTART = 1 0x90 "discovery information changed, restart",
    AUTHENTICATION_REQUIRED = 1 0x91 "authentication required",
    WRITE_FAULT = 2 0x80 "write fault",
    UNRECOVERED_READ = 2 0x81 "unrecovered read error",
    GUARD_CHECK = 2 0x82 "end-to-end guard check error",
    COMPARE_FAILURE = 2 0x85 "compare failure",
    ACCESS_DENIED = 2 0x86 "access denied",
    INTERNAL_PATH = 3 0x00 "internal path error",
    ANA_PERSISTENT_LOSS = 3 0x01 "asymmetric access persistent loss",
    ANA_INACCESSIBLE = 3 0x02 "asymmetric access inaccessible",
    ANA_TRANSITION = 3 0x03 "asymmetric access transition",
    CONTROLLER_PATHING = 3 0x60 "controller pathing error",
    HOST_PATHING = 3 0x70 "host pathing error",
    HOST_ABORTED = 3 0x71 "command aborted by host",
}

impl Status {
    /// Copy: a range or their sum is longer than the namespace's limits (NVM Command Set 1.0,
    /// 3.2.2): the same code as [`Status::CONNECT_RESTART_DISCOVERY`], of another command.
    pub const SIZE_LIMIT: Status = Status::new(1, 0x83);

    /// Type and code, with a retry allowed.
    pub const fn new(kind: u8, code: u8) -> Status {
        Status { kind, code, retry_delay: 0, more: false, do_not_retry: false }
    }

    /// The same, and a retry would not help.
    pub const fn without_retry(self) -> Status {
        Status { do_not_retry: true, ..self }
    }

    /// Whether the command succeeded.
    pub const fn is_success(self) -> bool {
        self.kind == 0 && self.code == 0
    }

    /// Fifteen bits: code 7:0, type 10:8, retry delay 12:11, more 13, do not retry 14.
    pub const fn bits(self) -> u16 {
        let (kind, delay) = ((self.kind & 7) as u16, (self.retry_delay & 3) as u16);
        self.code as u16 | kind << 8 | delay << 11 | (self.more as u16) << 13 | (self.do_not_retry as u16) << 14
    }

    /// Reads the fifteen bits; every pattern is a status.
    pub const fn of_bits(bits: u16) -> Status {
        Status {
            kind: (bits >> 8 & 7) as u8,
            code: bits as u8,
            retry_delay: (bits >> 11 & 3) as u8,
            more: bits >> 13 & 1 != 0,
            do_not_retry: bits >> 14 & 1 != 0,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let retry = if self.do_not_retry { ", do not retry" } else { "" };
        write!(formatter, "{} ({:02x}/{:02x}h{retry})", self.text(), self.kind, self.code)
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_fifteen_bits_comes_back() {
        for bits in 0..1 << 15 {
            assert_eq!(Status::of_bits(bits).bits(), bits);
        }
    }

    /// Base 2.0, Figure 93: code in bits 24:17 of dword 3, type in 27:25, more 30, DNR 31; the
    /// phase tag is below.
    #[test]
    fn the_bits_stand_where_dword_3_has_them() {
        let status = Status { retry_delay: 1, more: true, ..Status::COMPARE_FAILURE.without_retry() };
        assert_eq!(status.bits(), 0x85 | 2 << 8 | 1 << 11 | 1 << 13 | 1 << 14);
        assert_eq!(Status::INVALID_OPCODE.without_retry().to_string(), "invalid command opcode (00/01h, do not retry)");
    }
}
