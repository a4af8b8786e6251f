//! How busy the channels of the rack's drives were.

use super::BloxRig;
use super::drives::Drives;
use base::Span;
use hardware::ssd::Busy;
use record::Summary;
use std::collections::{BTreeMap, BTreeSet};

/// A channel that virtual drives use, and what it did.
struct UsedChannel {
    server: usize,
    drive: usize,
    channel: u32,
    busy: Busy,
}

impl BloxRig {
    /// Adds to the summary for what share of the run the channels carried something. Channels of no virtual drive do not count; drives of the other rack
    /// show in writes alone. Flash is booked ahead: of a run that ends in the midst of its work a share may come out a little too large.
    pub fn report_channels(&self, summary: &mut Summary) {
        let elapsed_ns = summary.simulated_ns;
        if elapsed_ns <= 0.0 || self.plan.flash.direct().is_some() {
            return;
        }
        let share = |span: Span| span.as_ns_f64() / elapsed_ns;
        let local = self.drives.iter().enumerate().take(self.places.servers as usize);
        let channels: Vec<UsedChannel> = local.flat_map(|(server, drives)| used_channels(server, drives)).collect();
        for used in &channels {
            let UsedChannel { server, drive, channel, busy } = used;
            let name = format!("server_{server}_ssd_{drive}_channel_{channel}");
            summary.extra.insert(format!("{name}_utilisation_fraction"), share(busy.total()));
        }
        for (server, of_server) in channels.chunk_by(|one, other| one.server == other.server).enumerate() {
            spread(
                &format!("server_{server}_channel"),
                of_server.iter().map(|used| share(used.busy.total())),
                &mut summary.extra,
            );
        }
        spread("channel", channels.iter().map(|used| share(used.busy.total())), &mut summary.extra);
        let collection: f64 = channels.iter().map(|used| share(used.busy.collection)).sum();
        summary.extra.insert("channel_collection_mean_fraction".into(), collection / channels.len().max(1) as f64);
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

/// The least, the mean and the largest share under a name.
fn spread(name: &str, shares: impl Iterator<Item = f64>, extra: &mut BTreeMap<String, f64>) {
    let shares: Vec<f64> = shares.collect();
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min).min(mean);
    let most = shares.iter().copied().fold(mean, f64::max);
    for (which, value) in [("min", least), ("mean", mean), ("max", most)] {
        extra.insert(format!("{name}_utilisation_{which}_fraction"), value);
    }
}
