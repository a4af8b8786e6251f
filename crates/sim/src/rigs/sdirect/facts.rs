//! What only these designs can tell.

use super::{SDirectRig, Server};
use crate::rigs::wear_facts::facts_of_drives;
use base::{Span, Time};
use sdirect::Client;
use sdirect::baseline::stack::Notice;
use std::collections::BTreeMap;

impl SDirectRig {
    pub(super) fn facts(&self, out: &mut BTreeMap<String, f64>) {
        facts_of_drives(self.machine.drives(), out);
        let ([root_up, root_down], [nic_up, nic_down]) = (self.machine.root_traffic(), self.machine.nic_traffic());
        let mut add = |name: &str, value: f64| {
            out.insert(name.to_string(), value);
        };
        add("host_memory_bytes", self.machine.memory_bytes() as f64);
        add("root_link_data_bytes", (root_up.data + root_down.data).count() as f64);
        add("root_link_wire_bytes", (root_up.wire + root_down.wire).count() as f64);
        add("root_link_busy_s", root_up.busy.max(root_down.busy).as_secs_f64());
        add("nic_link_data_bytes", (nic_up.data + nic_down.data).count() as f64);
        add("network_bytes", self.network.bytes() as f64);
        add("requests_failed", self.counts.failed as f64);
        add("commands_repeated", self.clients.iter().map(Client::repeated).sum::<u64>() as f64);
        add("host_cpu_s", self.host_cpu().as_secs_f64());
        match &self.server {
            Server::Engine(engine) => {
                let counters = engine.counters();
                let bound = self.plan.nic.map_or(1, |nic| nic.fifo.count());
                add("nic_memory_highest_bytes", counters.held_highest as f64);
                add("fifo_highest_ratio", engine.fifo_highest() as f64 / bound as f64);
                add("doorbells", counters.doorbells as f64);
                add("commands_refused", counters.refused as f64);
                add("strays", counters.strays as f64);
            }
            Server::Software(software) => {
                add("doorbells", software.stack.doorbells() as f64);
                for (work, span) in software.cpu.busy() {
                    add(&format!("host_cpu_{work}_s"), span.as_secs_f64());
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
