//! RoCEv2 with DCQCN over priority flow control.

use super::Rival;
use crate::cost::READ_REQUEST;
use crate::file::words;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::resolve::Resolver;
use crate::table::table;
use base::{Bytes, Operation, Rate, Span};
use hardware::EthernetStack;
use transport::config::{Dcqcn, Pause, Reaction};
use transport::cost::{Part, Train, WireCost};
use transport::dcqcn;

words! {
    /// The source of DCQCN's constants that its table does not give.
    DcqcnPreset {
        /// The paper's (SIGCOMM'15); those that are bytes in a queue or bits a second scale from
        /// its 40 Gb/s to the link rate.
        Scaled,
        /// The paper's as they are, with the dynamic thresholds of its testbed; meant for links of
        /// 40 Gb/s.
        Paper,
        /// Those that HPCC's simulator (SIGCOMM'19) gives DCQCN, which it scales from 25 Gb/s, and
        /// its reaction.
        Hpcc,
    }
}

words! {
    /// When the switch pauses an ingress port.
    PfcName {
        /// At `pause_above` bytes.
        Static,
        /// Above `free_share` of what is free of `shared_buffer`.
        Dynamic,
    }
}

words! {
    /// How a flow answers notifications of congestion.
    ReactionName {
        /// Each cuts the rate and raises alpha (SIGCOMM'15).
        AtOnce,
        /// The rate is cut at most once a `cut_interval`, alpha moves once an `alpha_timer` (HPCC's
        /// simulator, after adapters).
        Periodic,
    }
}

table! {
    /// RoCEv2 with DCQCN and priority flow control. "Paper" is SIGCOMM'15, whose values are for 40
    /// Gb/s; those that are bytes in a queue or bits a second scale with the link rate, unless
    /// `preset` says otherwise. What `paper` and `hpcc` have instead is in
    /// docs/concepts/rivals-dcqcn.md.
    DcqcnFile => Dcqcn on ground of Dcqcn {
        /// The source of the constants that are not given.
        preset: DcqcnPreset = DcqcnPreset::Scaled,
        /// Largest payload: the RoCE MTU of 1024 bytes, which fits into a standard frame (paper,
        /// 6).
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_024),
        /// No marks below this queue (paper, Figure 14: 5 KB at 40 Gb/s).
        mark_from: Quantity<Bytes> = Bytes::new(ground.scaled_from_40g(5_000)),
        /// All marked above this queue (paper, Figure 14: 200 KB at 40 Gb/s).
        mark_all: Quantity<Bytes> ["1B" to "1TiB"] = Bytes::new(ground.scaled_from_40g(200_000)),
        /// Marking probability just below `mark_all` (paper, Figure 14: 1 %).
        mark_probability: f64 [above 0.0 to 1.0] = 0.01,
        /// When the switch pauses an ingress port.
        pfc: PfcName = PfcName::Static,
        /// XOFF threshold of an ingress port, above `mark_all`, so that marks come
        /// before pauses (paper, 4).
        pause_above: Quantity<Bytes> ["1B" to "1TiB"] where [pfc = "static"] = Bytes::new(ground.scaled_from_40g(240_000)),
        /// XON threshold, two full frames lower (paper, 4).
        resume_below: Quantity<Bytes> where [pfc = "static"] = Bytes::new(ground.scaled_from_40g(240_000).saturating_sub(2 * 1538).max(1)),
        /// The buffer that all ports share, without headroom. What the paper's 12 MB
        /// leave beside 22.4 KB for each of eight classes at 32 ports (paper, 4).
        shared_buffer: Quantity<Bytes> ["1B" to "1TiB"] where [pfc = "dynamic"] = DCQCN_SHARED,
        /// The share of what is free of it that one port may hold (paper, 4: beta /
        /// 8, with beta = 8).
        free_share: f64 [above 0.0 to 1_024.0] where [pfc = "dynamic"] = 1.0,
        /// Gain g of alpha (paper, Figure 14: 1/256).
        gain: f64 [above 0.0 to 1.0] = 1.0 / 256.0,
        /// Least rate of a flow in bits a second. The paper gives none; 100 Mb/s is in the
        /// published simulator of DCQCN's authors, HPCC's experiments at 100 Gb/s have 1 Gb/s.
        rate_min_bps: u64 [from 1] = 100_000_000,
        /// Least time between two congestion notifications of a flow (paper, 3.1: 50 us).
        notification_interval: Quantity<Span> ["1ps" to "1h"] = Span::us(50),
        /// How a flow answers notifications.
        reaction: ReactionName = ReactionName::AtOnce,
        /// Period of checks for a notification (HPCC's simulator: 4 us).
        cut_interval: Quantity<Span> ["1ps" to "1h"] where [reaction = "periodic"] = Span::us(4),
        /// Alpha decays when no notification came for this long (paper, 3.1: 55 us).
        alpha_timer: Quantity<Span> ["1ps" to "1h"] = Span::us(55),
        /// Rate-increase timer (paper, Figure 14: 55 us).
        increase_timer: Quantity<Span> ["1ps" to "1h"] = Span::us(55),
        /// Rate-increase byte counter (paper, Figure 14: 10 MB).
        increase_bytes: Quantity<Bytes> ["1B" to "1TiB"] where [reaction = "at-once"] = Bytes::new(10_000_000),
        /// Rounds of fast recovery, F (paper, 3.1: 5).
        fast_recovery_rounds: u32 [1 to 1_000] = 5,
        /// Additive step in bits a second (paper, 3.1: 40 Mb/s at 40 Gb/s).
        additive_bps: u64 [from 1] = ground.scaled_from_40g(40_000_000),
        /// Hyper step in bits a second; the paper gives none, ten additive steps is what its
        /// vendor's adapters ship with.
        hyper_bps: u64 [from 1] = ground.scaled_from_40g(400_000_000),
    } as {
        mtu,
        mark_from,
        mark_all,
        mark_probability,
        pause,
        reaction: answer,
        gain,
        rate_min_bps,
        notification_interval,
        alpha_timer,
        increase_timer,
        fast_recovery_rounds,
        additive_bps,
        hyper_bps,
    } from {
        let pause = match pfc {
            PfcName::Static => Pause::Static { above: pause_above, below: resume_below },
            PfcName::Dynamic => Pause::Dynamic { shared: shared_buffer, share: free_share },
        };
        let answer = match reaction {
            ReactionName::AtOnce => Reaction::AtOnce { increase_bytes },
            ReactionName::Periodic => Reaction::Periodic { cut_interval },
        };
    } to {
        // What its values were taken from says nothing more.
        let preset = DcqcnPreset::Scaled;
        let (pfc, [pause_above, resume_below], shared_buffer, free_share) = match pause {
            Pause::Static { above, below } => (PfcName::Static, [above, below], Bytes::ZERO, 0.0),
            Pause::Dynamic { shared, share } => (PfcName::Dynamic, [Bytes::ZERO; 2], shared, share),
        };
        let (reaction, increase_bytes, cut_interval) = match answer {
            Reaction::AtOnce { increase_bytes } => (ReactionName::AtOnce, increase_bytes, Span::ZERO),
            Reaction::Periodic { cut_interval } => (ReactionName::Periodic, Bytes::ZERO, cut_interval),
        };
    }
}

/// SIGCOMM'15, 4.
const DCQCN_SHARED: Bytes = Bytes::new(12_000_000 - 8 * 32 * 22_400);

// A table of other tables too: its parameters depend on their rack.
crate::quantity::plain!(DcqcnFile);

/// What HPCC's simulator scales its constants from.
const HPCC_RATE: Rate = Rate::gbps(25);

impl DcqcnFile {
    /// What is given, with the preset's values for what is not given.
    fn with_preset(&self, ground: &Ground) -> DcqcnFile {
        match self.preset {
            None | Some(DcqcnPreset::Scaled) => self.clone(),
            Some(DcqcnPreset::Paper) => self.as_published(),
            Some(DcqcnPreset::Hpcc) => self.as_in_hpcc(ground),
        }
    }

    /// SIGCOMM'15: Figure 14 and 3.1; 4 has a beta of 8. The step of hyper increase is that of its
    /// authors' simulator (bobzhuyb/ns3-rdma, mix/config.txt).
    fn as_published(&self) -> DcqcnFile {
        DcqcnFile {
            mark_from: self.mark_from.or(Some(Quantity(Bytes::new(5_000)))),
            mark_all: self.mark_all.or(Some(Quantity(Bytes::new(200_000)))),
            pfc: self.pfc.or(Some(PfcName::Dynamic)),
            additive_bps: self.additive_bps.or(Some(40_000_000)),
            hyper_bps: self.hyper_bps.or(Some(200_000_000)),
            ..self.clone()
        }
    }

    /// alibaba-edu/High-Precision-Congestion-Control, simulation/run.py, `--cc dcqcn`: thresholds
    /// of 100 and 400 KB and steps of 5 and 50 Mb/s at 25 Gb/s, 16 MiB of buffer at 50; an eighth
    /// of what is free (switch-mmu, `pfc_a_shift` of 3). There each acknowledgement echoes a mark:
    /// a notification each microsecond says as much to timers of that length.
    fn as_in_hpcc(&self, ground: &Ground) -> DcqcnFile {
        let bytes = |value, rate| Some(Quantity(Bytes::new(ground.scaled(value, rate))));
        let span = |us| Some(Quantity(Span::us(us)));
        DcqcnFile {
            mtu: self.mtu.or(Some(Quantity(Bytes::new(1_000)))),
            mark_from: self.mark_from.or(bytes(100_000, HPCC_RATE)),
            mark_all: self.mark_all.or(bytes(400_000, HPCC_RATE)),
            mark_probability: self.mark_probability.or(Some(0.2)),
            pfc: self.pfc.or(Some(PfcName::Dynamic)),
            shared_buffer: self.shared_buffer.or(bytes(16 << 20, Rate::gbps(50))),
            free_share: self.free_share.or(Some(0.125)),
            rate_min_bps: self.rate_min_bps.or(Some(1_000_000_000)),
            notification_interval: self.notification_interval.or(span(1)),
            reaction: self.reaction.or(Some(ReactionName::Periodic)),
            cut_interval: self.cut_interval.or(span(4)),
            alpha_timer: self.alpha_timer.or(span(1)),
            increase_timer: self.increase_timer.or(span(300)),
            fast_recovery_rounds: self.fast_recovery_rounds.or(Some(1)),
            additive_bps: self.additive_bps.or(Some(ground.scaled(5_000_000, HPCC_RATE))),
            hyper_bps: self.hyper_bps.or(Some(ground.scaled(50_000_000, HPCC_RATE))),
            ..self.clone()
        }
    }
}

impl Rival for DcqcnFile {
    type Config = Dcqcn;
    const STACK: EthernetStack = EthernetStack::ROCE;

    fn train(config: &Dcqcn, bytes: Bytes) -> Train {
        dcqcn::train(config, Part::Write, bytes)
    }

    fn wire_cost(config: &Dcqcn, operation: Operation, bytes: Bytes) -> WireCost {
        dcqcn::wire_cost(config, operation, bytes, READ_REQUEST)
    }

    fn full(config: &Dcqcn) -> Bytes {
        config.mtu
    }

    fn parameters(&self, ground: &Ground) -> Dcqcn {
        self.with_preset(ground).resolve(ground)
    }

    fn table(config: &Dcqcn) -> DcqcnFile {
        // The constants of a preset are written key by key.
        DcqcnFile { preset: None, ..DcqcnFile::of(config) }
    }

    fn check(resolver: &mut Resolver<'_>, table: &str, config: &Dcqcn) {
        resolver.bytes("mark_from", table, config.mark_from, 0..=config.mark_all.count());
        if let Pause::Static { above, below } = config.pause {
            resolver.bytes("resume_below", table, below, 1..=above.count());
        }
    }
}
