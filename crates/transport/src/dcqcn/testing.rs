//! Configuration for tests of several modules.

use crate::config::{Dcqcn, Pause};
use base::Bytes;

pub(super) fn config() -> Dcqcn {
    Dcqcn {
        mark_from: Bytes::kib(5),
        mark_all: Bytes::kib(200),
        pause: Pause::Static { above: Bytes::kib(64), below: Bytes::kib(60) },
        hyper_bps: 400_000_000,
        ..Dcqcn::PUBLISHED
    }
}
