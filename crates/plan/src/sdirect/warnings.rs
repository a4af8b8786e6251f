//! What a reader must know about a machine with devices before believing its numbers.

use super::SDirect;
use crate::warnings::measured;

impl SDirect {
    /// Values that are legal but probably unintended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.overload(&mut out);
        measured(self.run.warm_up, self.io.requests, &mut out);
        self.network(&mut out);
        out
    }

    fn overload(&self, out: &mut Vec<String>) {
        let peak = f64::from(self.machine.commands_per_second) * f64::from(self.machine.devices);
        if let Some(rate) = self.requests_per_second.filter(|rate| *rate >= peak) {
            out.push(format!("{rate:.0} requests a second are more than the devices' controllers begin, {peak:.0}: queues grow as long as the run lasts"));
        }
    }

    fn network(&self, out: &mut Vec<String>) {
        let Some(rate) = self.requests_per_second.filter(|_| self.clients.remote) else { return };
        let packets = self.task.bytes.count().div_ceil(self.clients.packet.count());
        let bits = (self.task.bytes.count() + packets * self.clients.header.count()) as f64 * 8.0;
        let (offered, line) = (rate * bits, self.clients.rate.as_bps() as f64);
        if offered >= line {
            out.push(format!(
                "{:.1} Gb/s of data are requested over a link of {}: the network is overloaded",
                offered / 1e9,
                self.clients.rate
            ));
        }
    }
}
