//! From the written tables of DCQCN and pFabric to their parameters and back: keys that stand for
//! one of several ways.

use crate::design_file::{
    DcqcnFile, DcqcnPreset, DcqcnRow, DctcpFile, PfabricFile, PfabricRow, PfcName, RateControlName, ReactionName,
};
use crate::ground::Ground;
use crate::quantity::Quantity;
use base::{Bytes, Rate, Span};
use transport::config::{Dcqcn, Dctcp, Pause, Pfabric, RateControl, Reaction};

/// Keys that are given, as they are written, and what they go with: `None` where nothing is wrong.
pub(crate) type Idle = (&'static str, &'static str);

/// What HPCC's simulator scales its constants from.
const HPCC_RATE: Rate = Rate::gbps(25);

impl DcqcnFile {
    /// The parameters: what is given, then the preset's, then defaults.
    pub(crate) fn parameters(&self, ground: &Ground) -> Dcqcn {
        self.with_preset(ground).resolve(ground).into()
    }

    /// The same, with the preset's values for what is not given.
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

    /// Keys that are given and mean nothing with `config`, and what they would need.
    pub(crate) fn idle_keys(&self, config: &Dcqcn) -> Vec<Idle> {
        let is_static = matches!(config.pause, Pause::Static { .. });
        let is_at_once = matches!(config.reaction, Reaction::AtOnce { .. });
        given_in_vain([
            ("pause_above", self.pause_above.is_some(), is_static, "pfc = \"static\""),
            ("resume_below", self.resume_below.is_some(), is_static, "pfc = \"static\""),
            ("shared_buffer", self.shared_buffer.is_some(), !is_static, "pfc = \"dynamic\""),
            ("free_share", self.free_share.is_some(), !is_static, "pfc = \"dynamic\""),
            ("increase_bytes", self.increase_bytes.is_some(), is_at_once, "reaction = \"at-once\""),
            ("cut_interval", self.cut_interval.is_some(), !is_at_once, "reaction = \"periodic\""),
        ])
    }

    /// The table that says all of `config`, with the keys that mean something.
    pub(crate) fn of_parameters(config: &Dcqcn) -> DcqcnFile {
        let all = DcqcnFile::of(&DcqcnRow::of(config));
        let all = DcqcnFile { preset: None, ..all };
        let all = match config.pause {
            Pause::Static { .. } => DcqcnFile { shared_buffer: None, free_share: None, ..all },
            Pause::Dynamic { .. } => DcqcnFile { pause_above: None, resume_below: None, ..all },
        };
        match config.reaction {
            Reaction::AtOnce { .. } => DcqcnFile { cut_interval: None, ..all },
            Reaction::Periodic { .. } => DcqcnFile { increase_bytes: None, ..all },
        }
    }
}

/// Of keys with whether they are given and whether they mean something: those that are given and do
/// not.
fn given_in_vain<const KEYS: usize>(keys: [(&'static str, bool, bool, &'static str); KEYS]) -> Vec<Idle> {
    keys.into_iter().filter(|(_, given, meant, _)| *given && !meant).map(|(key, _, _, needs)| (key, needs)).collect()
}

impl From<DcqcnRow> for Dcqcn {
    fn from(row: DcqcnRow) -> Dcqcn {
        Dcqcn {
            mtu: row.mtu,
            mark_from: row.mark_from,
            mark_all: row.mark_all,
            mark_probability: row.mark_probability,
            pause: match row.pfc {
                PfcName::Static => Pause::Static { above: row.pause_above, below: row.resume_below },
                PfcName::Dynamic => Pause::Dynamic { shared: row.shared_buffer, share: row.free_share },
            },
            reaction: match row.reaction {
                ReactionName::AtOnce => Reaction::AtOnce { increase_bytes: row.increase_bytes },
                ReactionName::Periodic => Reaction::Periodic { cut_interval: row.cut_interval },
            },
            gain: row.gain,
            rate_min_bps: row.rate_min_bps,
            notification_interval: row.notification_interval,
            alpha_timer: row.alpha_timer,
            increase_timer: row.increase_timer,
            fast_recovery_rounds: row.fast_recovery_rounds,
            additive_bps: row.additive_bps,
            hyper_bps: row.hyper_bps,
        }
    }
}

impl DcqcnRow {
    /// The row that says all of `config`; what means nothing there is zero.
    fn of(config: &Dcqcn) -> DcqcnRow {
        let (pfc, [pause_above, resume_below], shared_buffer, free_share) = match config.pause {
            Pause::Static { above, below } => (PfcName::Static, [above, below], Bytes::ZERO, 0.0),
            Pause::Dynamic { shared, share } => (PfcName::Dynamic, [Bytes::ZERO; 2], shared, share),
        };
        let (reaction, increase_bytes, cut_interval) = match config.reaction {
            Reaction::AtOnce { increase_bytes } => (ReactionName::AtOnce, increase_bytes, Span::ZERO),
            Reaction::Periodic { cut_interval } => (ReactionName::Periodic, Bytes::ZERO, cut_interval),
        };
        DcqcnRow {
            preset: DcqcnPreset::Scaled,
            mtu: config.mtu,
            mark_from: config.mark_from,
            mark_all: config.mark_all,
            mark_probability: config.mark_probability,
            pfc,
            pause_above,
            resume_below,
            shared_buffer,
            free_share,
            gain: config.gain,
            rate_min_bps: config.rate_min_bps,
            notification_interval: config.notification_interval,
            reaction,
            cut_interval,
            alpha_timer: config.alpha_timer,
            increase_timer: config.increase_timer,
            increase_bytes,
            fast_recovery_rounds: config.fast_recovery_rounds,
            additive_bps: config.additive_bps,
            hyper_bps: config.hyper_bps,
        }
    }
}

impl PfabricFile {
    /// The parameters: what is given, and defaults for the rest.
    pub(crate) fn parameters(&self, ground: &Ground) -> Pfabric {
        let PfabricRow { mss, queue, window, timeout, rate_control, probe_after, mark_above } = self.resolve(ground);
        let control = match rate_control {
            RateControlName::Minimal => RateControl::Minimal { probe_after },
            RateControlName::Dctcp => RateControl::Dctcp(Dctcp {
                mss,
                mark_above,
                queue,
                initial_window: window,
                timeout_min: timeout,
                ..DctcpFile::defaults(ground)
            }),
        };
        Pfabric { mss, queue, window, timeout, control }
    }

    /// Keys that are given and mean nothing with `config`, and what they would need.
    pub(crate) fn idle_keys(&self, config: &Pfabric) -> Vec<Idle> {
        let is_minimal = matches!(config.control, RateControl::Minimal { .. });
        given_in_vain([
            ("probe_after", self.probe_after.is_some(), is_minimal, "rate_control = \"minimal\""),
            ("mark_above", self.mark_above.is_some(), !is_minimal, "rate_control = \"dctcp\""),
        ])
    }

    /// The table that says all of `config`, with the keys that mean something.
    pub(crate) fn of_parameters(config: &Pfabric) -> PfabricFile {
        let Pfabric { mss, queue, window, timeout, control } = *config;
        let (rate_control, probe_after, mark_above) = match control {
            RateControl::Minimal { probe_after } => (RateControlName::Minimal, probe_after, Bytes::ZERO),
            RateControl::Dctcp(dctcp) => (RateControlName::Dctcp, 0, dctcp.mark_above),
        };
        let row = PfabricRow { mss, queue, window, timeout, rate_control, probe_after, mark_above };
        let all = PfabricFile::of(&row);
        match rate_control {
            RateControlName::Minimal => PfabricFile { mark_above: None, ..all },
            RateControlName::Dctcp => PfabricFile { probe_after: None, ..all },
        }
    }
}
