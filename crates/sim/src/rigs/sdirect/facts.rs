//! What only these designs can tell.

use super::{SDirectRig, Server};
use crate::rigs::wear_facts::facts_of_drives;
use base::{Span, Time};
use record::metric::{self, Meter};
use sdirect::baseline::stack::Notice;

impl SDirectRig {
    pub(super) fn facts(&self, meter: &mut Meter) {
        facts_of_drives(self.machine.drives(), meter);
        let ([root_up, root_down], [nic_up, nic_down]) = (self.machine.root_traffic(), self.machine.nic_traffic());
        let repeated: u64 = self.clients.iter().map(|client| client.repeated()).sum();
        for (metric, total) in [
            (metric::host_memory_bytes, self.machine.memory_bytes()),
            (metric::root_link_data_bytes, (root_up.data + root_down.data).count()),
            (metric::root_link_wire_bytes, (root_up.wire + root_down.wire).count()),
            (metric::nic_link_data_bytes, (nic_up.data + nic_down.data).count()),
            (metric::network_bytes, self.network.bytes()),
            (metric::requests_failed, self.requests.failed),
            (metric::commands_repeated, repeated),
        ] {
            meter.count(metric, total as f64);
        }
        let [up, down] = [(0, root_up), (1, root_down)]
            .map(|(part, way)| meter.grown(metric::root_link_busy_s, part, way.busy.as_secs_f64()));
        meter.put(metric::root_link_busy_s, up.max(down));
        meter.count(metric::host_cpu_s, self.host_cpu().as_secs_f64());
        match &self.server {
            Server::Engine(engine) => {
                let counters = engine.counters();
                let bound = self.plan.nic.map_or(1, |nic| nic.fifo.count());
                meter.put(metric::nic_memory_highest_bytes, counters.held_highest as f64);
                meter.put(metric::fifo_highest_ratio, engine.fifo_highest() as f64 / bound as f64);
                meter.count(metric::doorbells, counters.doorbells as f64);
                meter.count(metric::commands_refused, counters.refused as f64);
                meter.count(metric::strays, counters.strays as f64);
            }
            Server::Software(software) => {
                meter.count(metric::doorbells, software.stack.doorbells() as f64);
                for (work, span) in software.cpu.busy() {
                    meter.count(metric::host_cpu_work_s.at(&[work]), span.as_secs_f64());
                }
            }
        }
    }

    /// Time of the machine's cores. One that polls has none to spare, whatever it finds.
    fn host_cpu(&self) -> Span {
        let Server::Software(software) = &self.server else { return Span::ZERO };
        match self.plan.software.map(|config| config.notice) {
            Some(Notice::Poll { .. }) => self.last_time().saturating_since(Time::ZERO) * software.cpu.cores() as u64,
            _ => software.cpu.busy_total(),
        }
    }

    fn last_time(&self) -> Time {
        let Server::Software(software) = &self.server else { return Time::ZERO };
        (0..software.cpu.cores()).map(|core| software.cpu.free_at(core)).max().unwrap_or(Time::ZERO)
    }
}
