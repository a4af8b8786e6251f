//! How busy the channels of the rack's drives were.

use super::BloxRig;
use super::drives::Drives;
use base::Time;
use hardware::ssd::Busy;
use record::metric::{self, Highest, Key, Lowest, Meter, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// A channel that virtual drives use, and what it did.
struct UsedChannel {
    server: usize,
    drive: usize,
    channel: u32,
    busy: Busy,
}

impl BloxRig {
    /// Reads for what share of the time the channels carried something. Channels of no virtual
    /// drive do not count; drives of the other rack show in writes alone. Flash is booked ahead: of
    /// a run that ends in the midst of its work a share may come out a little too large.
    pub(super) fn facts_of_channels(&self, now: Time, meter: &mut Meter) {
        if self.plan.flash.direct().is_some() {
            return;
        }
        let time = now.as_ps() as f64;
        let local = self.devices.servers.iter().enumerate().take(self.places.servers as usize);
        let channels: Vec<UsedChannel> = local.flat_map(|(server, drives)| used_channels(server, drives)).collect();
        let mut shares: Vec<(usize, f64)> = Vec::with_capacity(channels.len());
        let mut collection = 0.0;
        for (used, part) in channels.iter().zip(1..) {
            let UsedChannel { server, drive, channel, busy } = used;
            let place: [&dyn Display; 3] = [server, drive, channel];
            let metric = metric::server_ssd_channel_utilisation_fraction.at(&place);
            shares.push((*server, meter.ratio(metric, busy.total().as_ps() as f64, time)));
            let collecting = busy.collection.as_ps() as f64;
            collection += meter.grown(metric::channel_collection_mean_fraction, part, collecting);
        }
        for of_server in shares.chunk_by(|one, other| one.0 == other.0) {
            let server: [&dyn Display; 1] = [&of_server[0].0];
            let names = (
                metric::server_channel_utilisation_min_fraction.at(&server),
                metric::server_channel_utilisation_mean_fraction.at(&server),
                metric::server_channel_utilisation_max_fraction.at(&server),
            );
            put_spread(names, of_server, meter);
        }
        let names = (
            metric::channel_utilisation_min_fraction.into(),
            metric::channel_utilisation_mean_fraction.into(),
            metric::channel_utilisation_max_fraction.into(),
        );
        put_spread(names, &shares, meter);
        let elapsed = meter.grown(metric::channel_collection_mean_fraction, 0, time);
        let share = collection / elapsed.max(1.0) / channels.len().max(1) as f64;
        meter.put(metric::channel_collection_mean_fraction, share);
    }
}

/// The channels of a server's drives that virtual drives use, in order.
fn used_channels(server: usize, drives: &Drives) -> Vec<UsedChannel> {
    let mut used = BTreeMap::<usize, BTreeSet<u32>>::new();
    for vssd in drives.vssds() {
        let (drive, channels) = drives.channels(vssd);
        used.entry(drive).or_default().extend(channels);
    }
    let of_drive = |(drive, channels): (usize, BTreeSet<u32>)| {
        let busy = &drives.flash_of(drive).array_counters().channels;
        let one = move |channel| UsedChannel { server, drive, channel, busy: busy[channel as usize] };
        channels.into_iter().map(one)
    };
    used.into_iter().flat_map(of_drive).collect()
}

/// The least, the mean and the largest share.
fn put_spread((min, mean, max): (Key<Lowest>, Key<Sample>, Key<Highest>), shares: &[(usize, f64)], meter: &mut Meter) {
    let shares = || shares.iter().map(|(_, share)| *share);
    let middle = shares().sum::<f64>() / shares().count().max(1) as f64;
    meter.put(min, shares().fold(f64::INFINITY, f64::min).min(middle));
    meter.put(mean, middle);
    meter.put(max, shares().fold(middle, f64::max));
}
