//! The same code under two clocks. The inputs of a live session, with their times, go again to a
//! fresh target without sockets, threads or a real clock. It makes the same decisions.

mod support;

use live::{Extent, Host, RemoteDisk, Server, ServerOptions};
use nvme::initiator::InitiatorConfig;
use nvme::journal::replay;
use nvme::pdu::Digests;
use nvme::target::TargetConfig;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use support::{config, pattern, plan};

/// A journal that the test can read while the server owns it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn session(address: &str, number: u64) {
    let digests = Digests { header: number.is_multiple_of(2), data: number.is_multiple_of(3) };
    let config = InitiatorConfig { digests, ..config(&format!("host-{number}")) };
    let mut disk = RemoteDisk::open(Host::connect(address, config).expect("it is let in"), 1).expect("it is there");
    for round in 0..20u64 {
        let extent = Extent { start: number * 1000 + round * 40, blocks: 1 + (round as u32 * 7) % 40 };
        let data = pattern(extent.start, round, extent.blocks as usize * 512);
        disk.write(extent, data.clone(), round % 5 == 0).expect("it is taken");
        assert_eq!(disk.read(extent).expect("it is there"), data);
    }
    let place = number * 1000 + 999;
    let failed = disk.multi_cast(Extent { start: number * 1000, blocks: 1 }, &[(1, place)]).expect("it is cast");
    assert!(failed.is_empty());
    disk.add_write(place << 9, (place << 9) + 8).expect("it is added");
    match number % 3 {
        0 => disk.disconnect().expect("in order"),
        1 => disk.host().disable(),
        _ => drop(disk),
    }
}

/// Six hosts use a namespace of this backend; the journal, and what the target was made of.
fn served(backend: &str) -> (Vec<u8>, TargetConfig) {
    let journal = Shared::default();
    let plan = plan(&format!("[[subsystem]]\nnamespace = [{{ {backend}, size = '16MiB' }}]"));
    let options = ServerOptions { journal: Some(Box::new(journal.clone())), ..ServerOptions::default() };
    let mut server = Server::start(&plan, options).expect("it starts");
    let (address, stopper, target_config) =
        (server.addresses()[0].to_string(), server.stopper(), server.config().clone());
    let thread = std::thread::spawn(move || server.run());
    std::thread::scope(|scope| {
        for number in 0..6 {
            let address = &address;
            scope.spawn(move || session(address, number));
        }
    });
    stopper.stop();
    thread.join().expect("it does not panic").expect("it ends in order");
    let written = journal.0.lock().expect("nobody panics").clone();
    (written, target_config)
}

#[test]
fn a_live_session_played_again_under_another_clock_decides_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    // A file: its threads answer in any order.
    let (written, config) = served(&format!("backend = 'file', path = '{}/disk'", folder.path().display()));
    let played = replay(config.clone(), written.as_slice()).expect("every decision is the same");
    assert!(played.compared > 500 && played.loans == 0, "{played:?}");

    // The comparison can fail: one byte of data that a host has sent is another.
    let mut changed = written;
    let place = changed.windows(64).position(|window| window == &pattern(40, 1, 512)[..64]);
    changed[place.expect("host 0 has written it")] ^= 1;
    replay(config, changed.as_slice()).expect_err("a request for a backend differs");
}

#[test]
fn a_journal_of_a_disk_in_memory_holds_the_loans_that_served() {
    let (written, config) = served("backend = 'ram'");
    let played = replay(config, written.as_slice()).expect("every decision is the same");
    // Four of the hosts have no data digests; of their 80 reads, some are of 16 KiB at most.
    assert!(played.loans > 20, "{played:?}");
}
