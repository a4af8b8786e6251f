//! What priority flow control has done to a network in the end.

use super::SanRig;
use record::metric::{self, Meter};
use san::Port;
use san::deadlock::{circle_of_stuck, stuck};
use std::collections::BTreeMap;
use topology::Channel;

impl SanRig {
    /// Warns of links that wait for each other, and so carry no data any more.
    pub fn judge_pauses(&self, meter: &mut Meter) {
        if !self.is_lossless() {
            return;
        }
        let paused = self.paused_links();
        let stuck = stuck(&paused);
        meter.put(metric::pfc_deadlocked_links, stuck.len() as f64);
        if !stuck.is_empty() {
            let circle = self.names(&circle_of_stuck(&paused, &stuck));
            meter.warn(format!(
                "priority flow control has deadlocked: {} links carry no data any more, as {circle} each wait for \
                 the next. Rings and tori can: take another fabric, or transport = tcp or dctcp",
                stuck.len()
            ));
        }
    }

    /// Whether hops have flow control.
    pub(super) fn is_lossless(&self) -> bool {
        self.config.host.stream.as_ref().is_some_and(|stream| stream.dcqcn().is_some())
    }

    /// Links whose sender is told to pause, with the links at which packets wait that came by them.
    fn paused_links(&self) -> BTreeMap<Channel, Vec<Channel>> {
        let mut paused = BTreeMap::new();
        for (vertex, hop) in self.vertices.hops.iter().zip(&self.programs.hops) {
            let channel = |port| self.carrier.wires.channel(*vertex, port);
            for port in (0..self.carrier.wires.ports(*vertex)).map(Port).filter(|port| hop.pauses(*port)) {
                paused.insert(channel(port).reverse(), hop.waits_at(port).map(channel).collect());
            }
        }
        paused
    }

    /// The vertices of links that follow each other.
    fn names(&self, circle: &[Channel]) -> String {
        let graph = &self.config.graph;
        let sources = circle.iter().chain(circle.first()).map(|link| graph.source(*link));
        let names: Vec<&str> = sources.map(|vertex| graph.vertex(vertex).name.as_str()).collect();
        names.join(" -> ")
    }
}
