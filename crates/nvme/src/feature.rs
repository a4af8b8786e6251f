//! Features (NVM Express Base 2.0, 5.27.1): settings that a host reads and changes, and the
//! asynchronous events that it asks for.

use crate::layout::{codes, flags, layout};

codes! {
    /// Which feature.
    pub enum FeatureId: u8 {
        /// Arbitration among queues.
        Arbitration = 0x01,
        /// Power state.
        PowerManagement = 0x02,
        /// Temperatures at which a warning is given.
        TemperatureThreshold = 0x04,
        /// Time limited error recovery.
        ErrorRecovery = 0x05,
        /// Whether writes may rest in a volatile cache: bit 0.
        VolatileWriteCache = 0x06,
        /// Number of I/O queues, see [`QueueCounts`].
        NumberOfQueues = 0x07,
        /// Whether atomicity across a power loss may be given up: bit 0.
        WriteAtomicity = 0x0a,
        /// Enabled events, see [`EventMask`].
        AsynchronousEvents = 0x0b,
        /// The host's clock in ms since 1970; eight bytes of data.
        Timestamp = 0x0e,
        /// Keep-alive timeout in ms.
        KeepAlive = 0x0f,
        /// Capabilities of the host, see [`HostBehavior`].
        HostBehavior = 0x16,
        /// Which host, in the data: on fabrics set by Connect alone.
        HostId = 0x81,
        /// Masked reservation notifications.
        ReservationNotifications = 0x82,
        /// Whether reservations survive a power loss: bit 0; of a namespace.
        ReservationPersistence = 0x83,
    }
}

/// How many I/O queues (5.27.1.5), in dword 11 and, granted, in the completion. On fabrics a host
/// sets both to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// Submission queues, less one.
    pub submission_minus_one: u16,
    /// Completion queues, less one.
    pub completion_minus_one: u16,
}

impl QueueCounts {
    /// As a dword.
    pub fn encode(self) -> u32 {
        u32::from(self.submission_minus_one) | u32::from(self.completion_minus_one) << 16
    }

    /// From a dword.
    pub fn decode(value: u32) -> Self {
        QueueCounts { submission_minus_one: value as u16, completion_minus_one: (value >> 16) as u16 }
    }
}

flags! {
    /// Enabled events (5.27.1.8, dword 11), besides the critical warnings in bits 7:0. The same
    /// bits in identify data are the controller's supported events (OAES).
    pub struct EventMask: u32 {
        /// A namespace was added, removed or resized.
        NAMESPACE_ATTRIBUTES = 8,
        /// Firmware is about to be activated.
        FIRMWARE_ACTIVATION = 9,
        /// The state of a path changed.
        ASYMMETRIC_ACCESS = 11,
        /// Entries of the discovery log changed.
        DISCOVERY_LOG = 31,
    }
}

codes! {
    /// Type of an event (5.2.1, Figure 146).
    pub enum EventKind: u8 {
        /// Error.
        Error = 0,
        /// SMART and health.
        Health = 1,
        /// Notice.
        Notice = 2,
        /// Told at once, without a log.
        Immediate = 3,
        /// Of an I/O command set: reservations.
        CommandSet = 6,
        /// Vendor.
        Vendor = 7,
    }
}

/// Dword 0 of a completed Asynchronous Event Request (5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The type.
    pub kind: EventKind,
    /// Which of its kind.
    pub information: u8,
    /// The log to read, which also arms the event again.
    pub log: u8,
}

impl Event {
    /// A namespace was added, removed or resized: log 04h lists it.
    pub const NAMESPACE_CHANGED: Event = Event { kind: EventKind::Notice, information: 0x00, log: 0x04 };
    /// The state of a path changed: log 0Ch.
    pub const ASYMMETRIC_ACCESS_CHANGED: Event = Event { kind: EventKind::Notice, information: 0x03, log: 0x0c };
    /// Entries of the discovery log changed: log 70h.
    pub const DISCOVERY_CHANGED: Event = Event { kind: EventKind::Notice, information: 0xf0, log: 0x70 };
    /// The log of reservation notifications has an entry: log 80h.
    pub const RESERVATION: Event = Event { kind: EventKind::CommandSet, information: 0x00, log: 0x80 };

    /// As the completion's dword 0.
    pub fn encode(self) -> u32 {
        u32::from(self.kind.code()) | u32::from(self.information) << 8 | u32::from(self.log) << 16
    }

    /// From the completion's dword 0; fails on a reserved kind.
    pub fn decode(value: u32) -> Result<Self, crate::CodecError> {
        let kind = EventKind::checked((value & 7) as u8, "event type")?;
        Ok(Event { kind, information: (value >> 8) as u8, log: (value >> 16) as u8 })
    }
}

layout! {
    /// Capabilities of the host (5.27.1.18 and Base 2.1): 512 bytes of data.
    pub struct HostBehavior [512] {
        /// 1: knows the status "command interrupted" and retry delays.
        advanced_retry: u8 = 0,
        /// 1: telemetry data area 4.
        extended_telemetry: u8 = 1,
        /// 1: LBA formats beyond the sixteenth.
        extended_formats: u8 = 2,
        /// Bit n allows format n of Copy for ranges of other namespaces: bits 2 and 3.
        copy_formats: u16 = 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base 2.0, Figure 146 and 5.27.1.5: worked out by hand.
    #[test]
    fn events_and_queue_counts_have_their_fields_in_place() {
        assert_eq!(Event::NAMESPACE_CHANGED.encode(), 0x0004_0002);
        assert_eq!(Event::DISCOVERY_CHANGED.encode(), 0x0070_f002);
        assert_eq!(QueueCounts { submission_minus_one: 3, completion_minus_one: 7 }.encode(), 0x0007_0003);
        assert_eq!(EventMask::DISCOVERY_LOG.bits(), 0x8000_0000);
    }

    #[test]
    fn events_and_counts_come_back_and_reserved_kinds_do_not() {
        for event in [Event::NAMESPACE_CHANGED, Event::ASYMMETRIC_ACCESS_CHANGED, Event::RESERVATION] {
            assert_eq!(Event::decode(event.encode()), Ok(event));
        }
        assert!(Event::decode(4).is_err() && Event::decode(5).is_err());
        let counts = QueueCounts { submission_minus_one: 0xffff, completion_minus_one: 1 };
        assert_eq!(QueueCounts::decode(counts.encode()), counts);
    }

    #[test]
    fn host_behavior_says_which_copies_it_knows() {
        let behavior =
            HostBehavior { advanced_retry: 1, extended_telemetry: 0, extended_formats: 0, copy_formats: 0x0c };
        assert_eq!(behavior.encode()[..6], [1, 0, 0, 0, 0x0c, 0]);
        assert_eq!(HostBehavior::decode(&behavior.encode()), Ok(behavior));
    }
}
