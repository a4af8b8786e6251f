//! Configuration for tests of several modules.

use crate::config::{Dcqcn, Pause, Reaction};
use base::{Bytes, Span};

pub(super) fn config() -> Dcqcn {
    Dcqcn {
        mtu: Bytes::new(1024),
        mark_from: Bytes::kib(5),
        mark_all: Bytes::kib(200),
        mark_probability: 0.01,
        pause: Pause::Static { above: Bytes::kib(64), below: Bytes::kib(60) },
        reaction: Reaction::AtOnce { increase_bytes: Bytes::new(10_000_000) },
        gain: 1.0 / 256.0,
        rate_min_bps: 100_000_000,
        notification_interval: Span::us(50),
        alpha_timer: Span::us(55),
        increase_timer: Span::us(55),
        fast_recovery_rounds: 5,
        additive_bps: 40_000_000,
        hyper_bps: 400_000_000,
    }
}
