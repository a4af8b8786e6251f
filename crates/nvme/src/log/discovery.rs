//! The discovery log (5.16.1.23): where subsystems are. A host reads the head, then entries by
//! offset, then the head again. It repeats this when the generation has changed.

use crate::layout::{codes, layout};
use crate::name::{Nqn, Text};

codes! {
    /// Transport (TRTYPE).
    pub enum TransportKind: u8 {
        /// RDMA.
        Rdma = 1,
        /// Fibre Channel.
        FibreChannel = 2,
        /// TCP.
        Tcp = 3,
        /// Within one host.
        Loop = 254,
    }
}

codes! {
    /// Address family (ADRFAM).
    pub enum AddressFamily: u8 {
        /// None.
        None = 0,
        /// IPv4.
        Ipv4 = 1,
        /// IPv6.
        Ipv6 = 2,
        /// InfiniBand.
        InfiniBand = 3,
        /// Fibre Channel.
        FibreChannel = 4,
        /// Within one host.
        Loop = 254,
    }
}

codes! {
    /// Type of the subsystem (SUBTYPE).
    pub enum SubsystemKind: u8 {
        /// Another discovery subsystem.
        Referral = 1,
        /// Namespaces.
        Nvm = 2,
        /// The discovery subsystem that answers.
        CurrentDiscovery = 3,
    }
}

codes! {
    /// TLS of a port (TCP Transport 1.0, Figure 36).
    pub enum TransportSecurity: u8 {
        /// Not.
        None = 0,
        /// TLS 1.2 or later.
        Tls12 = 1,
        /// TLS 1.3 or later.
        Tls13 = 2,
    }
}

layout! {
    /// Head of the log (Figure 262).
    pub struct DiscoveryHead [1024] {
        /// Counts changes of the log.
        generation: u64 = 0,
        /// Entries behind the head.
        entries: u64 = 8,
        /// Format of entries: 0.
        format: u16 = 16,
    }
}

layout! {
    /// An entry (Figure 263).
    pub struct DiscoveryEntry [1024] {
        /// Transport.
        transport: TransportKind = 0,
        /// Family of the address.
        family: AddressFamily = 1,
        /// Type of the subsystem.
        kind: SubsystemKind = 2,
        /// Bits 1:0 secure channel: 0 unsaid, 1 required, 2 not; bit 2: flow control may be off
        /// (TREQ).
        requirements: u8 = 3,
        /// Port of the subsystem.
        port: u16 = 4,
        /// Controller, FFFFh for the dynamic model.
        controller: u16 = 6,
        /// Entries of the admin queue, at most.
        admin_queue_size: u16 = 8,
        /// Bit 0: duplicate information, bit 1: explicit persistent connections (EFLAGS).
        flags: u16 = 10,
        /// TCP port in decimal.
        service: Text<32> = 32,
        /// Which subsystem.
        subsystem: Nqn = 256,
        /// Address as text.
        address: Text<256> = 512,
        /// First byte of the transport specific address, see [`DiscoveryEntry::tcp_security`].
        specific: u8 = 768,
    }
}

impl DiscoveryEntry {
    /// TLS of the port; `None` for other transports and unknown codes.
    pub fn tcp_security(&self) -> Option<TransportSecurity> {
        if self.transport == TransportKind::Tcp { TransportSecurity::of_code(self.specific) } else { None }
    }
}
