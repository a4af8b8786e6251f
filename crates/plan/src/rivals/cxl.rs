//! A lossless fabric with hop-by-hop credits, like CXL.

use super::Rival;
use crate::cost::READ_REQUEST;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::resolve::{MTU_MAX, Resolver};
use crate::table::table;
use base::{Bytes, Operation};
use hardware::EthernetStack;
use transport::config::CreditBased;
use transport::cost::{Train, WireCost};
use transport::credit_based;

table! {
    /// Hop-by-hop credits.
    CxlFile => CreditBased on _ground of Cxl {
        /// Payload of a flit (CXL 2.0, 4.2: four 16-byte slots).
        flit_payload: Quantity<Bytes> ["16B" to "9KB"] = Bytes::new(64),
        /// A flit on the wire (CXL 2.0, 4.2: 68 bytes with protocol id and CRC).
        flit_wire: Quantity<Bytes> = Bytes::new(68),
        /// Input buffer of a switch port in flits. No standard value: enough for several link round
        /// trips at 100 Gb/s.
        switch_buffer_flits: u32 [2 to 1_048_576] = 128,
        /// Input buffer of a device in flits; likewise.
        device_buffer_flits: u32 [2 to 1_048_576] = 128,
    }
}

impl Rival for CxlFile {
    type Config = CreditBased;
    const STACK: EthernetStack = EthernetStack::CXL;

    fn train(config: &CreditBased, bytes: Bytes) -> Train {
        credit_based::train(config, bytes)
    }

    fn wire_cost(config: &CreditBased, operation: Operation, bytes: Bytes) -> WireCost {
        credit_based::wire_cost(config, operation, bytes, READ_REQUEST)
    }

    fn full(config: &CreditBased) -> Bytes {
        config.flit_payload
    }

    fn check(resolver: &mut Resolver<'_>, table: &str, config: &CreditBased) {
        resolver.bytes("flit_wire", table, config.flit_wire, config.flit_payload.count()..=MTU_MAX);
    }

    fn parameters(&self, ground: &Ground) -> CreditBased {
        self.resolve(ground)
    }

    fn table(config: &CreditBased) -> CxlFile {
        CxlFile::of(config)
    }
}
