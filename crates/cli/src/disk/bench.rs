//! `rackweave disk ... bench`: a closed loop of requests on one queue.

use super::{failed, open, part};
use crate::arguments::{BenchArguments, BenchLoad, DiskArguments};
use crate::describe::print_json;
use crate::failure::{Failure, bad_input, print};
use base::{Bytes, Seed, Span, Stream, Time};
use live::{Extent, RemoteDisk};
use nvme::initiator::Ticket;
use serde::Serialize;
use std::collections::BTreeMap;

/// The results. Latencies are from submission to completion, as this host's clock has it.
#[derive(Serialize)]
struct Measured {
    requests: u64,
    seconds: f64,
    requests_per_second: f64,
    bytes_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

/// Which request is next.
struct Load {
    kind: BenchLoad,
    blocks: u32,
    places: u64,
    next: u64,
    stream: Stream,
    data: Vec<Vec<u8>>,
}

impl Load {
    fn is_write(&self) -> bool {
        matches!(self.kind, BenchLoad::Write | BenchLoad::RandomWrite)
    }
    fn extent(&mut self) -> Extent {
        let place = match self.kind {
            BenchLoad::RandomRead | BenchLoad::RandomWrite => self.stream.below(self.places),
            BenchLoad::Read | BenchLoad::Write => {
                let place = self.next % self.places;
                self.next += 1;
                place
            }
        };
        Extent { start: place * u64::from(self.blocks), blocks: self.blocks }
    }
    fn submit(&mut self, disk: &mut RemoteDisk) -> Result<Ticket, Failure> {
        let extent = self.extent();
        let submitted = match self.is_write() {
            true => {
                let bytes = u64::from(self.blocks) * disk.block_bytes();
                let data = self.data.pop().unwrap_or_else(|| vec![0x5a; bytes as usize]);
                disk.submit_write(1, extent, data, false)
            }
            false => disk.submit_read(1, extent),
        };
        submitted.map_err(failed)
    }
}

/// Measures and prints.
pub fn bench(arguments: &DiskArguments, wanted: &BenchArguments) -> Result<(), Failure> {
    let mut disk = open(arguments)?;
    let mut load = load(&disk, wanted)?;
    let until = disk.host().now() + Span::secs(wanted.seconds);
    let measured = drive(&mut disk, &mut load, wanted.depth, until)?;
    disk.disconnect().map_err(failed)?;
    if wanted.json {
        return print_json(&measured);
    }
    let Measured { requests, requests_per_second, bytes_per_second, p50_us, p99_us, max_us, .. } = measured;
    print(&format!(
        "{requests} requests, {requests_per_second:.0} a second, {:.1} MB/s; p50 {p50_us:.1} us, p99 {p99_us:.1} us, longest {max_us:.1} us\n",
        bytes_per_second / 1e6
    ))
}

fn load(disk: &RemoteDisk, wanted: &BenchArguments) -> Result<Load, Failure> {
    let (_, blocks) = part(disk, Bytes::ZERO, Some(wanted.block))?;
    if blocks == 0 || blocks > u64::from(disk.transfer_blocks_max()) {
        let most = u64::from(disk.transfer_blocks_max()) * disk.block_bytes();
        return Err(bad_input(format!("--block {}: allowed is one block to {}", wanted.block, Bytes::new(most))));
    }
    let stream = Seed(wanted.seed).stream("disk/bench");
    let load = Load {
        kind: wanted.load,
        blocks: blocks as u32,
        places: disk.blocks() / blocks,
        next: 0,
        stream,
        data: Vec::new(),
    };
    if load.is_write() && !wanted.overwrite {
        return Err(bad_input("writes overwrite the disk: say --overwrite when what is there may be lost"));
    }
    Ok(load)
}

fn drive(disk: &mut RemoteDisk, load: &mut Load, depth: u16, until: Time) -> Result<Measured, Failure> {
    let begun = disk.host().now();
    let mut underway: BTreeMap<Ticket, Time> = BTreeMap::new();
    let mut latencies_ns: Vec<u32> = Vec::new();
    loop {
        let now = disk.host().now();
        while now < until && underway.len() < usize::from(depth) && disk.host().initiator().room(1) > 0 {
            let ticket = load.submit(disk)?;
            underway.insert(ticket, now);
        }
        if underway.is_empty() {
            break;
        }
        let completed = disk.host().next_completed().map_err(failed)?;
        if !completed.status.is_success() {
            return Err(Failure::Failed(format!("a request failed: {}", completed.status)));
        }
        let Some(came) = underway.remove(&completed.ticket) else { continue };
        let took = disk.host().now().saturating_since(came);
        latencies_ns.push(u32::try_from(took.as_ps() / 1_000).unwrap_or(u32::MAX));
        if load.is_write() {
            load.data.push(completed.data);
        }
    }
    let seconds = (disk.host().now() - begun).as_secs_f64();
    Ok(measured(latencies_ns, seconds, u64::from(load.blocks) * disk.block_bytes()))
}

fn measured(mut latencies_ns: Vec<u32>, seconds: f64, bytes: u64) -> Measured {
    latencies_ns.sort_unstable();
    let at = |share: f64| {
        let index = (latencies_ns.len() as f64 * share) as usize;
        latencies_ns.get(index.min(latencies_ns.len().saturating_sub(1))).map_or(0.0, |ns| f64::from(*ns) / 1e3)
    };
    let requests = latencies_ns.len() as u64;
    let per_second = requests as f64 / seconds;
    Measured {
        requests,
        seconds,
        requests_per_second: per_second,
        bytes_per_second: per_second * bytes as f64,
        p50_us: at(0.5),
        p99_us: at(0.99),
        max_us: at(1.0),
    }
}
