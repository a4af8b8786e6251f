//! Many hosts that come, work, reset and vanish, with every block checked. Five seconds as a test;
//! `make soak` gives it sixty.

mod support;

use live::{Extent, HostError, RemoteDisk};
use nvme::initiator::InitiatorConfig;
use nvme::pdu::Digests;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Running, config, pattern};

/// Hosts; each has an admin and an I/O connection.
const HOSTS: u64 = 32;
const BLOCKS: u64 = 256;

/// How a host leaves.
#[derive(Clone, Copy)]
enum Leaving {
    InOrder,
    WithoutAWord,
    ByReset,
}

#[test]
fn many_hosts_come_and_go_and_every_block_is_what_was_written_last() {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let until = Instant::now() + Duration::from_secs(seconds);
    let target = Running::start("[[subsystem]]\nnamespace = [{ size = '16MiB' }]");
    let transfers = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..HOSTS {
            let (target, transfers) = (&target, &transfers);
            scope.spawn(move || host(target, number, until, transfers));
        }
    });
    let transfers = transfers.into_inner();
    println!("{transfers} transfers of {HOSTS} hosts");
    assert!(transfers >= HOSTS, "every host has had its turn");
    target.stop();
}

/// One host with blocks of its own.
fn host(target: &Running, number: u64, until: Instant, transfers: &AtomicU64) {
    let mut versions = vec![0u64; BLOCKS as usize];
    let mut round = 0;
    loop {
        round += 1;
        let digests = Digests { header: number.is_multiple_of(2), data: number.is_multiple_of(3) };
        let config = InitiatorConfig { digests, ..config(&format!("soak-{number}")) };
        let mut disk = target.disk_as(config, 1);
        let done = work(&mut disk, number, round, &mut versions, until).expect("the target serves it");
        transfers.fetch_add(done, Ordering::Relaxed);
        let leaving = [Leaving::InOrder, Leaving::WithoutAWord, Leaving::ByReset][((number + round) % 3) as usize];
        leave(disk, leaving);
        if Instant::now() >= until {
            return;
        }
    }
}

/// Reads what was written last and writes anew, several blocks at a time.
fn work(
    disk: &mut RemoteDisk,
    number: u64,
    round: u64,
    versions: &mut [u64],
    until: Instant,
) -> Result<u64, HostError> {
    const AT_ONCE: u64 = 8;
    let mut done = 0;
    for turn in 0..20u64 {
        let at = base::mix(number << 40 ^ round << 8 ^ turn) % (BLOCKS - AT_ONCE);
        let extent = Extent { start: number * BLOCKS + at, blocks: AT_ONCE as u32 };
        let place = at as usize..(at + AT_ONCE) as usize;
        let expected: Vec<u8> =
            place.clone().flat_map(|block| content(number, block as u64, versions[block])).collect();
        assert!(disk.read(extent)? == expected, "host {number} finds what it has not written at {at}");
        versions[place.clone()].iter_mut().for_each(|version| *version += 1);
        let data: Vec<u8> = place.flat_map(|block| content(number, block as u64, versions[block])).collect();
        disk.write(extent, data, turn % 7 == 0)?;
        done += 2;
        if Instant::now() >= until {
            break;
        }
    }
    Ok(done)
}

/// A block's content: zeros before the first write.
fn content(number: u64, block: u64, version: u64) -> Vec<u8> {
    if version == 0 { vec![0; 512] } else { pattern(number << 20 | block, version, 512) }
}

fn leave(mut disk: RemoteDisk, leaving: Leaving) {
    match leaving {
        Leaving::InOrder => disk.disconnect().expect("in order"),
        Leaving::WithoutAWord => {
            for start in 0..16 {
                disk.submit_read(1, Extent { start, blocks: 8 }).expect("there is room");
            }
            let _ = disk.host().next_event_within(Duration::ZERO).expect("it is connected");
        }
        Leaving::ByReset => {
            disk.host().disable();
            while disk.host().next_event().is_ok() {}
        }
    }
}
