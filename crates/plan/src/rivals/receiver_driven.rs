//! An idealised receiver-driven protocol.

use super::Rival;
use crate::cost::READ_REQUEST;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::resolve::{BUFFER_MAX, Resolver};
use crate::table::table;
use base::{Bytes, Operation};
use hardware::EthernetStack;
use transport::config::ReceiverDriven;
use transport::cost::{Train, WireCost};
use transport::receiver_driven;

table! {
    /// The idealised receiver-driven protocol.
    ReceiverDrivenFile => ReceiverDriven on ground of ReceiverDriven {
        /// Largest payload of a packet: 1500 bytes less the IPv4 and UDP headers and 16 of its own.
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_456),
        /// Credits out at once: a bandwidth-delay product of payload (Homa, SIGCOMM'18, 3.2:
        /// RTTbytes).
        outstanding: Quantity<Bytes> = Bytes::new(1_456) * u64::from(ground.frames_in_flight()),
    }
}

impl Rival for ReceiverDrivenFile {
    type Config = ReceiverDriven;
    const STACK: EthernetStack = EthernetStack::RAW;

    fn train(config: &ReceiverDriven, bytes: Bytes) -> Train {
        receiver_driven::train(config, bytes)
    }

    fn wire_cost(config: &ReceiverDriven, operation: Operation, bytes: Bytes) -> WireCost {
        receiver_driven::wire_cost(config, operation, bytes, READ_REQUEST)
    }

    fn full(config: &ReceiverDriven) -> Bytes {
        config.mtu
    }

    fn check(resolver: &mut Resolver<'_>, table: &str, config: &ReceiverDriven) {
        resolver.bytes("outstanding", table, config.outstanding, config.mtu.count()..=BUFFER_MAX);
    }

    fn parameters(&self, ground: &Ground) -> ReceiverDriven {
        self.resolve(ground)
    }

    fn table(config: &ReceiverDriven) -> ReceiverDrivenFile {
        ReceiverDrivenFile::of(config)
    }
}
