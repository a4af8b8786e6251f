//! pFabric.

use super::{DctcpFile, Rival};
use crate::cost::READ_REQUEST;
use crate::file::words;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::resolve::{BUFFER_MAX, Resolver};
use crate::table::table;
use base::{Bytes, Operation, Span};
use hardware::EthernetStack;
use transport::config::{Dctcp, Pfabric, RateControl};
use transport::cost::{Train, WireCost};
use transport::pfabric;

words! {
    /// What decides how much of a flow of pFabric is under way.
    RateControlName {
        /// pFabric's own window, timeout and probes (SIGCOMM'13, 4.2).
        Minimal,
        /// DCTCP: each flow is a connection of its own (EDM, ASPLOS'25, 4.3, has pFabric on top of
        /// DCTCP).
        Dctcp,
    }
}

table! {
    /// pFabric. "Paper" is SIGCOMM'13.
    PfabricFile => Pfabric on ground of Pfabric {
        /// Largest segment: 1500 bytes less the IPv4 and TCP headers, and the priority.
        mss: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_452),
        /// Room of an output queue: two bandwidth-delay products (paper, 4.1).
        queue: Quantity<Bytes> = ground.bandwidth_delay() * 2,
        /// Window that a flow starts with, in segments: a bandwidth-delay product (paper, 4.2).
        window: u32 [1 to 1_048_576] = ground.frames_in_flight(),
        /// Retransmission timeout: a round trip, a full queue, and a frame that is being sent at
        /// either host, so that a packet which only waits is never sent twice. That is a little
        /// over three round trips (paper, 5.2: 45 us at 14.6 us). With dctcp the least, and doubled
        /// by each timeout.
        timeout: Quantity<Span> ["1ps" to "1h"] = ground.round_trip() + ground.full_queue(ground.bandwidth_delay() * 2),
        /// What decides how much of a flow is under way.
        rate_control: RateControlName = RateControlName::Minimal,
        /// Timeouts in a row before a flow probes (paper, 5.2: 5).
        probe_after: u32 [1 to 1_000] where [rate_control = "minimal"] = 5,
        /// Marking threshold of an output queue. Neither paper gives one for queues of
        /// two bandwidth-delay products: half of that, above DCTCP's bound of a seventh of one
        /// (SIGCOMM'10, 3.4).
        mark_above: Quantity<Bytes> where [rate_control = "dctcp"] = ground.bandwidth_delay(),
    } as { mss, queue, window, timeout, control } from {
        let control = match rate_control {
            RateControlName::Minimal => RateControl::Minimal { probe_after },
            RateControlName::Dctcp => RateControl::Dctcp(Dctcp {
                mss,
                mark_above,
                queue,
                initial_window: window,
                timeout_min: timeout,
                ..DctcpFile::default().resolve(ground)
            }),
        };
    } to {
        let (rate_control, probe_after, mark_above) = match control {
            RateControl::Minimal { probe_after } => (RateControlName::Minimal, probe_after, Bytes::ZERO),
            RateControl::Dctcp(dctcp) => (RateControlName::Dctcp, 0, dctcp.mark_above),
        };
    }
}

impl Rival for PfabricFile {
    type Config = Pfabric;
    const STACK: EthernetStack = EthernetStack::TCP;

    fn train(config: &Pfabric, bytes: Bytes) -> Train {
        pfabric::train(config, bytes)
    }

    fn wire_cost(config: &Pfabric, operation: Operation, bytes: Bytes) -> WireCost {
        pfabric::wire_cost(config, operation, bytes, READ_REQUEST)
    }

    fn full(config: &Pfabric) -> Bytes {
        config.mss
    }

    fn check(resolver: &mut Resolver<'_>, table: &str, config: &Pfabric) {
        resolver.bytes("queue", table, config.queue, 1..=BUFFER_MAX);
        if let RateControl::Dctcp(dctcp) = &config.control {
            resolver.bytes("mark_above", table, dctcp.mark_above, 0..=BUFFER_MAX);
        }
    }

    fn parameters(&self, ground: &Ground) -> Pfabric {
        self.resolve(ground)
    }

    fn table(config: &Pfabric) -> PfabricFile {
        PfabricFile::of(config)
    }
}
