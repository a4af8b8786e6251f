//! Controller properties (NVM Express Base 2.0, 3.1.3), read and written by fabrics commands.

use crate::CodecError;
use crate::command::PropertySize;
use crate::layout::codes;

codes! {
    /// Which property, by its offset.
    pub enum PropertyId: u32 {
        /// CAP: capabilities of the controller; eight bytes.
        Capabilities = 0x00,
        /// VS: version of the specification.
        Version = 0x08,
        /// CC: the configuration that the host sets.
        Configuration = 0x14,
        /// CSTS: status of the controller.
        Status = 0x1c,
        /// NSSR: reset of the whole subsystem.
        SubsystemReset = 0x20,
    }
}

impl PropertyId {
    /// The width of the property.
    pub const fn size(self) -> PropertySize {
        match self {
            PropertyId::Capabilities => PropertySize::Eight,
            _ => PropertySize::Four,
        }
    }

    /// Whether a host may write it.
    pub const fn is_writable(self) -> bool {
        matches!(self, PropertyId::Configuration | PropertyId::SubsystemReset)
    }
}

/// CAP (3.1.3.1), the fields that matter on fabrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Entries of the largest I/O queue, less one.
    pub queue_size_max_minus_one: u16,
    /// Queues lie in one piece: always on fabrics.
    pub contiguous_queues: bool,
    /// Longest time to become ready or not ready, in units of 500 ms.
    pub ready_timeout_500_ms: u8,
    /// Whether the subsystem can be reset.
    pub subsystem_reset: bool,
    /// Command sets: bit 0 NVM, bit 6 others, bit 7 none.
    pub command_sets: u8,
    /// Smallest page as a power of two times 4 KiB; four bits.
    pub page_min: u8,
    /// Largest page, as above.
    pub page_max: u8,
}

impl Capabilities {
    /// As the property.
    pub fn encode(self) -> u64 {
        u64::from(self.queue_size_max_minus_one)
            | u64::from(self.contiguous_queues) << 16
            | u64::from(self.ready_timeout_500_ms) << 24
            | u64::from(self.subsystem_reset) << 36
            | u64::from(self.command_sets) << 37
            | u64::from(self.page_min & 15) << 48
            | u64::from(self.page_max & 15) << 52
    }

    /// From the property; fails when the largest page is below the smallest.
    pub fn decode(value: u64) -> Result<Self, CodecError> {
        let capabilities = Capabilities {
            queue_size_max_minus_one: value as u16,
            contiguous_queues: value >> 16 & 1 != 0,
            ready_timeout_500_ms: (value >> 24) as u8,
            subsystem_reset: value >> 36 & 1 != 0,
            command_sets: (value >> 37) as u8,
            page_min: (value >> 48 & 15) as u8,
            page_max: (value >> 52 & 15) as u8,
        };
        if capabilities.page_max < capabilities.page_min {
            let got = u64::from(capabilities.page_max);
            return Err(CodecError::Field { field: "CAP.MPSMAX", got, allowed: "at least CAP.MPSMIN" });
        }
        Ok(capabilities)
    }
}

/// VS (3.1.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the first dot.
    pub major: u16,
    /// Behind it.
    pub minor: u8,
    /// Behind the second dot.
    pub tertiary: u8,
}

impl Version {
    /// As the property, and as in identify data.
    pub fn encode(self) -> u32 {
        u32::from(self.major) << 16 | u32::from(self.minor) << 8 | u32::from(self.tertiary)
    }

    /// From the property; every value is a version.
    pub fn decode(value: u32) -> Self {
        Version { major: (value >> 16) as u16, minor: (value >> 8) as u8, tertiary: value as u8 }
    }
}

impl crate::layout::Field for Version {
    const BYTES: usize = 4;
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
        u32::get(bytes, name).map(Self::decode)
    }
    fn put(&self, bytes: &mut [u8]) {
        self.encode().put(bytes);
    }
}

codes! {
    /// The kind of shutdown (CC.SHN).
    pub enum Shutdown: u8 {
        /// Not.
        None = 0,
        /// In order.
        Normal = 1,
        /// In a hurry.
        Abrupt = 2,
    }
}

codes! {
    /// State of a shutdown (CSTS.SHST).
    pub enum ShutdownState: u8 {
        /// None was requested.
        None = 0,
        /// Under way.
        Occurring = 1,
        /// Done.
        Complete = 2,
    }
}

/// CC (3.1.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Whether the controller is to work; from 1 to 0 is a reset.
    pub enable: bool,
    /// Command set: 0 NVM, 6 all supported, 7 admin only.
    pub command_set: u8,
    /// Page as a power of two times 4 KiB; four bits.
    pub page: u8,
    /// Arbitration: 0 round robin.
    pub arbitration: u8,
    /// Shutdown.
    pub shutdown: Shutdown,
    /// SQE size as a power of two: 6.
    pub sqe_size: u8,
    /// CQE size as a power of two: 4.
    pub cqe_size: u8,
}

impl Configuration {
    /// As the property.
    pub fn encode(self) -> u32 {
        u32::from(self.enable)
            | u32::from(self.command_set & 7) << 4
            | u32::from(self.page & 15) << 7
            | u32::from(self.arbitration & 7) << 11
            | u32::from(self.shutdown.code()) << 14
            | u32::from(self.sqe_size & 15) << 16
            | u32::from(self.cqe_size & 15) << 20
    }

    /// From the property; fails on the reserved kind of shutdown.
    pub fn decode(value: u32) -> Result<Self, CodecError> {
        Ok(Configuration {
            enable: value & 1 != 0,
            command_set: (value >> 4 & 7) as u8,
            page: (value >> 7 & 15) as u8,
            arbitration: (value >> 11 & 7) as u8,
            shutdown: Shutdown::checked((value >> 14 & 3) as u8, "CC.SHN")?,
            sqe_size: (value >> 16 & 15) as u8,
            cqe_size: (value >> 20 & 15) as u8,
        })
    }
}

/// CSTS (3.1.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// Commands are taken.
    pub ready: bool,
    /// Something went wrong that only a reset can mend.
    pub fatal: bool,
    /// Shutdown.
    pub shutdown: ShutdownState,
    /// The subsystem was reset; the host writes 1 to clear.
    pub subsystem_reset: bool,
}

impl ControllerStatus {
    /// As the property.
    pub fn encode(self) -> u32 {
        u32::from(self.ready)
            | u32::from(self.fatal) << 1
            | u32::from(self.shutdown.code()) << 2
            | u32::from(self.subsystem_reset) << 4
    }

    /// From the property; fails on the reserved state of shutdown.
    pub fn decode(value: u32) -> Result<Self, CodecError> {
        Ok(ControllerStatus {
            ready: value & 1 != 0,
            fatal: value >> 1 & 1 != 0,
            shutdown: ShutdownState::checked((value >> 2 & 3) as u8, "CSTS.SHST")?,
            subsystem_reset: value >> 4 & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capabilities() -> Capabilities {
        Capabilities {
            queue_size_max_minus_one: 127,
            contiguous_queues: true,
            ready_timeout_500_ms: 30,
            subsystem_reset: false,
            command_sets: 1,
            page_min: 0,
            page_max: 4,
        }
    }

    /// Base 2.0, Figures 36 and 46 to 48, worked out by hand.
    #[test]
    fn properties_have_their_bits_where_the_figures_have_them() {
        assert_eq!(capabilities().encode(), 0x0040_0020_1e01_007f);
        assert_eq!(Version { major: 2, minor: 1, tertiary: 0 }.encode(), 0x0002_0100);
        let configuration = Configuration {
            enable: true,
            command_set: 0,
            page: 0,
            arbitration: 0,
            shutdown: Shutdown::Normal,
            sqe_size: 6,
            cqe_size: 4,
        };
        assert_eq!(configuration.encode(), 0x0046_4001);
        let status =
            ControllerStatus { ready: true, fatal: false, shutdown: ShutdownState::Complete, subsystem_reset: false };
        assert_eq!(status.encode(), 0x9);
    }

    #[test]
    fn reserved_codes_are_refused_by_name() {
        let refused = Configuration::decode(3 << 14).unwrap_err();
        assert!(matches!(refused, CodecError::Field { field: "CC.SHN", got: 3, .. }));
        assert!(matches!(ControllerStatus::decode(3 << 2), Err(CodecError::Field { field: "CSTS.SHST", .. })));
    }

    #[test]
    fn a_largest_page_below_the_smallest_is_refused_and_an_equal_one_is_not() {
        let equal = Capabilities { page_min: 4, ..capabilities() };
        assert_eq!(Capabilities::decode(equal.encode()), Ok(equal));
        let above = Capabilities { page_min: 5, ..capabilities() };
        assert!(matches!(Capabilities::decode(above.encode()), Err(CodecError::Field { field: "CAP.MPSMAX", .. })));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(value in any::<u64>()) {
            if let Ok(capabilities) = Capabilities::decode(value) {
                prop_assert_eq!(Capabilities::decode(capabilities.encode()), Ok(capabilities));
            }
            let value = value as u32;
            prop_assert_eq!(Version::decode(value).encode(), value);
            if let Ok(configuration) = Configuration::decode(value) {
                prop_assert_eq!(configuration.encode(), value & 0x00ff_fff1);
            }
            if let Ok(status) = ControllerStatus::decode(value) {
                prop_assert_eq!(status.encode(), value & 0x1f);
            }
        }
    }
}
