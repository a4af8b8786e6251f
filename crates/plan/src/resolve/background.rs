//! Ordinary frames beside the memory messages.

use super::demand::LONGEST_GAP;
use super::design::BUFFER_MAX;
use super::{HORIZON, Resolver};
use crate::error::Problem;
use crate::file::BackgroundFile;
use crate::plan::{Background, BackgroundStream, Fabric};
use base::{Bytes, Span};
use edm::pcs::frame::{CHECK_BYTES, FRAME_BYTES_MIN, frame_blocks};
use edm::pcs::timing::block_time;

impl Resolver<'_> {
    pub(super) fn background(&mut self, file: &BackgroundFile, fabric: &Fabric) -> Background {
        let background = file.resolve();
        for (index, stream) in background.streams.iter().enumerate() {
            let key = format!("background.stream.{index}");
            self.check_name(&key, &stream.name, &background.streams[..index]);
            self.check_frames(&key, stream, fabric);
        }
        self.check_queue(background.egress_queue, &background.streams);
        background
    }

    /// A name is a part of the names of metrics, which are paths with dots.
    fn check_name(&mut self, key: &str, name: &str, earlier: &[BackgroundStream]) {
        let key = format!("{key}.name");
        if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter)) {
            let reason = format!("`{name}` becomes a part of metric names: only letters, digits, `-` and `_` will do");
            self.conflict(&key, reason);
        }
        if let Some(index) = earlier.iter().position(|stream| stream.name == name) {
            self.conflict(&key, format!("background.stream.{index} is called `{name}` too"));
        }
    }

    fn check_frames(&mut self, key: &str, stream: &BackgroundStream, fabric: &Fabric) {
        let longest_ps = mean_gap_ps(stream, fabric) * LONGEST_GAP;
        if longest_ps > HORIZON.as_ps() as f64 && self.sound(&["fabric"]) {
            let days = longest_ps / Span::secs(86_400).as_ps() as f64;
            let reason = format!("bursts come so slowly that one could be {days:.0} days away; at most {HORIZON} fit");
            self.conflict(&format!("{key}.load"), reason);
        }
    }

    fn check_queue(&mut self, queue: Bytes, streams: &[BackgroundStream]) {
        let largest = streams.iter().map(|stream| stream.frame).max().unwrap_or(Bytes::new(FRAME_BYTES_MIN as u64));
        let most = Bytes::new(BUFFER_MAX);
        if !(largest..=most).contains(&queue) {
            let allowed = format!("{largest}, the largest frame, to {most}");
            self.report("background.egress_queue", Problem::out_of_range(queue, allowed));
        }
    }
}

/// Between two bursts of a node.
fn mean_gap_ps(stream: &BackgroundStream, fabric: &Fabric) -> f64 {
    let blocks = frame_blocks(stream.frame.count() as usize - CHECK_BYTES).total() * u64::from(stream.burst_frames);
    (block_time(fabric.rate) * blocks).as_ps() as f64 / stream.load
}
