//! Whose constants DCQCN has where its table does not say otherwise.

use crate::design_file::{DcqcnFile, DcqcnPreset, PfcName, ReactionName};
use crate::ground::Ground;
use crate::quantity::Quantity;
use base::{Bytes, Rate, Span};
use transport::config::Dcqcn;

/// What HPCC's simulator scales its constants from.
const HPCC_RATE: Rate = Rate::gbps(25);

impl DcqcnFile {
    /// The parameters: what is given, then the preset's, then defaults.
    pub(crate) fn parameters(&self, ground: &Ground) -> Dcqcn {
        self.with_preset(ground).resolve(ground)
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
}
