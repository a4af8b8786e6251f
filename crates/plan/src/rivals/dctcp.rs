//! DCTCP.

use super::Rival;
use crate::cost::READ_REQUEST;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Operation, Span};
use hardware::EthernetStack;
use transport::config::Dctcp;
use transport::cost::{Train, WireCost};
use transport::dctcp;

table! {
    /// DCTCP. "Paper" is SIGCOMM'10.
    DctcpFile => Dctcp on _ground of Dctcp {
        /// Largest segment: 1500 bytes less the IPv4 and TCP headers.
        mss: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1460),
        /// Marking threshold K on the wire: 65 full frames, as the paper uses at 10 Gb/s (3.4);
        /// well above its bound of a seventh of the bandwidth-delay product here.
        mark_above: Quantity<Bytes> [to "1TiB"] = Bytes::new(65 * 1538),
        /// Room of an output queue: a port's share of a shallow-buffered switch (paper, 2.3.4: 4 MB
        /// shared, one port can take about 700 KB).
        queue: Quantity<Bytes> ["1B" to "1TiB"] = Bytes::new(700_000),
        /// Gain g (paper, 3.4: 1/16).
        gain: f64 [above 0.0 to 1.0] = 1.0 / 16.0,
        /// Initial window, in segments (RFC 6928: 10).
        initial_window: u32 [1 to 65_536] = 10,
        /// Least retransmission timeout: 1 ms (Vasudevan et al., SIGCOMM'09, for data centers; the
        /// paper's own is 10 ms, 4.2.1).
        timeout_min: Quantity<Span> ["1ps" to "1h"] = Span::ms(1),
        /// Whether receivers tell what came beyond a hole, so that all of a window's holes are
        /// filled in one round trip: Linux does by default. `false` is NewReno.
        selective: bool = true,
        /// Connections between two nodes each way. A message goes over the one that has the least
        /// to send. One is ours; servers have tens in all (paper, 2.2).
        connections: u32 [1 to 64] = 1,
    }
}

impl Rival for DctcpFile {
    type Config = Dctcp;
    const STACK: EthernetStack = EthernetStack::TCP;

    fn train(config: &Dctcp, bytes: Bytes) -> Train {
        dctcp::train(config, bytes)
    }

    fn wire_cost(config: &Dctcp, operation: Operation, bytes: Bytes) -> WireCost {
        dctcp::wire_cost(config, operation, bytes, READ_REQUEST)
    }

    fn full(config: &Dctcp) -> Bytes {
        config.mss
    }

    fn parameters(&self, ground: &Ground) -> Dctcp {
        self.resolve(ground)
    }

    fn table(config: &Dctcp) -> DctcpFile {
        DctcpFile::of(config)
    }
}
