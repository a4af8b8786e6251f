//! The state of a SAN for series.

use super::{Place, SanRig};
use crate::sampler::Probe;
use base::Time;
use record::Series;
use san::Port;
use topology::Channel;
use transport::Allowance;

impl SanRig {
    pub(super) fn sample_state(&self, now: Time, probe: &mut Probe) {
        self.sample_ports(now, probe);
        self.sample_ends(probe);
        self.sample_drives(probe);
    }

    /// The ports of hops, by the channels that leave them.
    fn sample_ports(&self, now: Time, probe: &mut Probe) {
        let graph = &self.config.graph;
        let channels = (0..graph.channel_count() as u32).map(Channel);
        let of_hop = |channel| match self.vertices.places[graph.source(channel).index()] {
            Place::Hop(place) => Some((channel, &self.programs.hops[place as usize], graph.egress_port(channel)?)),
            Place::Host(_) | Place::Target(_) => None,
        };
        let ports: Vec<_> =
            channels.filter_map(of_hop).map(|(channel, hop, port)| (channel, hop, Port(port as u16))).collect();
        for (channel, hop, port) in &ports {
            probe.put_at(Series::PortQueueBytes, channel.0, hop.waiting(*port).count() as f64);
        }
        for (channel, hop, port) in &ports {
            probe.put_at(Series::PortQueuePackets, channel.0, hop.packets(*port) as f64);
        }
        for (channel, hop, port) in ports.iter().filter(|(_, hop, _)| hop.reserves()) {
            probe.put_at(Series::ReservedRate, channel.0, hop.booked(now, *port).as_bps() as f64);
        }
    }

    fn sample_ends(&self, probe: &mut Probe) {
        let (hosts, targets) = (&self.programs.hosts, &self.programs.targets);
        probe.put_each(Series::HostWaiting, 0, hosts.iter().map(|host| host.waiting() as f64));
        probe.put_each(Series::TargetCommands, 0, targets.iter().map(|target| target.under_way() as f64));
        for (host, left) in (0..).zip(hosts).filter_map(|(index, host)| Some((index, host.credit_left()?))) {
            probe.put_at(Series::CreditLeft, host, left as f64);
        }
        let of_hosts = (0..).zip(hosts.iter().map(|host| host.allowance()));
        put_allowances(of_hosts, [Series::WindowBytes, Series::SendRate], probe);
        let of_targets = (0..).zip(targets.iter().map(|target| target.allowance()));
        put_allowances(of_targets, [Series::TargetWindowBytes, Series::TargetSendRate], probe);
    }

    fn sample_drives(&self, probe: &mut Probe) {
        let mut under_way = vec![0_u32; self.drives.count()];
        for (_, work) in self.working.iter().filter(|(_, work)| !work.is_lost) {
            under_way[work.drive.index()] += 1;
        }
        probe.put_each(Series::DriveCommands, 0, under_way.into_iter().map(f64::from));
        let per_target = self.config.drives.per_target as usize;
        for drive in 0..self.drives.count() {
            if let Some(gimbal) = self.programs.targets[drive / per_target].gimbal(drive % per_target) {
                probe.put_at(Series::GimbalCredits, drive as u32, gimbal.credits() as f64);
            }
        }
        probe.put_drives(self.drives.whole());
    }
}

fn put_allowances(allowances: impl Iterator<Item = (u32, Allowance)>, [window, rate]: [Series; 2], probe: &mut Probe) {
    for (index, allowance) in allowances {
        match allowance {
            Allowance::Window(bytes) => probe.put_at(window, index, bytes.count() as f64),
            Allowance::Rate(bps) => probe.put_at(rate, index, bps),
            Allowance::None | Allowance::Granted(_) => {}
        }
    }
}
