//! Fastpass.

use super::Rival;
use crate::cost::READ_REQUEST;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Operation, Span};
use hardware::EthernetStack;
use transport::config::Fastpass;
use transport::cost::{Train, WireCost};
use transport::fastpass;

table! {
    /// Fastpass. "Paper" is SIGCOMM'14.
    FastpassFile => Fastpass on _ground of Fastpass {
        /// Payload of a time slot: one full packet (paper, 3: a slot is an MTU on the link).
        slot_payload: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_460),
        /// Time slots that the arbiter plans together (public code: `BATCH_SIZE`, 16).
        batch: u32 [1 to 32] = 16,
        /// Timeout of a demand, which is then sent again (public code:
        /// `CONTROLLER_SEND_TIMEOUT_SECS`, 200 us with slots of a microsecond).
        timeout: Quantity<Span> ["1ps" to "1h"] = Span::us(200),
    }
}

impl Rival for FastpassFile {
    type Config = Fastpass;
    const STACK: EthernetStack = EthernetStack::TCP;

    fn train(config: &Fastpass, bytes: Bytes) -> Train {
        fastpass::train(config, bytes)
    }

    fn wire_cost(config: &Fastpass, operation: Operation, bytes: Bytes) -> WireCost {
        fastpass::wire_cost(config, operation, bytes, READ_REQUEST)
    }

    fn full(config: &Fastpass) -> Bytes {
        config.slot_payload
    }

    fn parameters(&self, ground: &Ground) -> Fastpass {
        self.resolve(ground)
    }

    fn table(config: &Fastpass) -> FastpassFile {
        FastpassFile::of(config)
    }
}
