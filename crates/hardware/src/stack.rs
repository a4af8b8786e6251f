//! What a message crosses between an application and the wire, above the 66-bit blocks: protocol
//! stack, MAC, PCS, transceiver, and the layer-2 pipeline of a switch.

use base::Span;
use serde::Serialize;

/// The fixed latencies of one Ethernet stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EthernetStack {
    /// Protocol stack (transport and network layers), each end, each pass.
    pub protocol: Span,
    /// Media access control, each crossing.
    pub mac: Span,
    /// Physical coding sublayer, each crossing.
    pub pcs: Span,
    /// PMA, PMD and transceiver, each crossing.
    pub transceiver: Span,
    /// Layer-2 forwarding of a switch (parse, lookup, buffer, crossbar), per pass.
    pub forwarding: Span,
}

impl EthernetStack {
    /// MAC and PHY alone. Source: EDM (ASPLOS'25), Table 1 (25 GbE on FPGA, Tofino switch).
    pub const RAW: EthernetStack = EthernetStack {
        protocol: Span::ZERO,
        mac: Span::ps(7_680),
        pcs: Span::ps(7_680),
        transceiver: Span::ns(19),
        forwarding: Span::ns(400),
    };
    /// RoCEv2 in hardware. Source: EDM (ASPLOS'25), Table 1.
    pub const ROCE: EthernetStack = EthernetStack { protocol: Span::ps(230_200), ..EthernetStack::RAW };
    /// TCP/IP in hardware. Source: EDM (ASPLOS'25), Table 1.
    pub const TCP: EthernetStack = EthernetStack { protocol: Span::ps(666_200), ..EthernetStack::RAW };

    /// CXL. Source: Pond (ASPLOS'23), the latency breakdown of its pools: 25 ns for both passes of
    /// a CXL port, 20 ns for both passes of a retimer, and a switch of two ports with 20 ns for
    /// arbitration and its internal network. Assumptions: each pass takes half of a round trip; a
    /// link at rack distance has one retimer, of which each end is charged half. One trip is then
    /// 12.5 + 10 + (12.5 + 10 + 12.5) + 10 + 12.5 = 80 ns; fibre or copper comes on top.
    pub const CXL: EthernetStack = EthernetStack {
        protocol: Span::ps(12_500),
        mac: Span::ZERO,
        pcs: Span::ZERO,
        transceiver: Span::ns(5),
        forwarding: Span::ns(35),
    };

    /// What a host adds between the application and the wire (or back).
    pub fn host_pass(&self) -> Span {
        self.protocol + self.mac + self.pcs + self.transceiver
    }
    /// What a switch adds between the last bit in and the output queue: receive side and layer-2
    /// pipeline.
    pub fn switch_receive(&self) -> Span {
        self.transceiver + self.pcs + self.mac + self.forwarding
    }
    /// What a switch adds between the output queue and the wire.
    pub fn switch_transmit(&self) -> Span {
        self.mac + self.pcs + self.transceiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EDM Table 1, last row, without serialization: reads are two trips, writes one; 10 ns of
    /// fibre a hop.
    #[test]
    fn table_1_of_edm_comes_out_for_its_three_rivals() {
        let trip = |stack: EthernetStack| {
            stack.host_pass() * 2 + stack.switch_receive() + stack.switch_transmit() + Span::ns(20)
        };
        assert_eq!(trip(EthernetStack::RAW), Span::ps(557_440));
        assert_eq!(trip(EthernetStack::RAW) * 2, Span::ps(1_114_880));
        assert_eq!(trip(EthernetStack::ROCE), Span::ps(1_017_840));
        assert_eq!(trip(EthernetStack::TCP) * 2, Span::ps(3_779_680));
    }
}
