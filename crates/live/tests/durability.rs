//! Power is lost at any moment: what was flushed, or written durably, and acknowledged is there
//! afterwards. The recording storage below keeps in the file's place only what was synced, as a
//! disk with a volatile cache does at worst.

mod support;

use live::storage::Storage;
use live::{Extent, RemoteDisk};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use support::{Running, pattern};

const BYTES: u64 = 1 << 20;
const PLAN: &str = "[[subsystem]]\nnamespace = [{ backend = 'file', path = 'unused', size = '1MiB' }]";

/// What is in the cache, and what is on the medium.
#[derive(Default)]
struct Content {
    cached: Vec<u8>,
    medium: Vec<u8>,
    is_dead: bool,
}

/// A storage that can lose power.
struct Volatile(Mutex<Content>);

impl Volatile {
    fn new() -> Arc<Volatile> {
        let empty = vec![0; BYTES as usize];
        Arc::new(Volatile(Mutex::new(Content { cached: empty.clone(), medium: empty, is_dead: false })))
    }
    /// From now on nothing more reaches it, as if the process had been killed.
    fn kill(&self) {
        self.0.lock().expect("nobody panics").is_dead = true;
    }
    /// What a restart finds: the cache is gone.
    fn restart(&self) {
        let mut content = self.0.lock().expect("nobody panics");
        content.cached = content.medium.clone();
        content.is_dead = false;
    }
    fn with<T>(&self, work: impl FnOnce(&mut Content) -> T) -> io::Result<T> {
        let mut content = self.0.lock().expect("nobody panics");
        if content.is_dead { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(work(&mut content)) }
    }
}

impl Storage for Volatile {
    fn bytes(&self) -> u64 {
        BYTES
    }
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.with(|content| buffer.copy_from_slice(&content.cached[at as usize..at as usize + buffer.len()]))
    }
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.with(|content| content.cached[at as usize..at as usize + data.len()].copy_from_slice(data))
    }
    fn zero(&self, at: u64, bytes: u64, _: bool) -> io::Result<()> {
        self.with(|content| content.cached[at as usize..(at + bytes) as usize].fill(0))
    }
    fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.with(|content| content.medium = content.cached.clone())
    }
    fn resize(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What a host does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write { block: u64, durable: bool },
    Flush,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..64u64, any::<bool>()).prop_map(|(block, is_rare)| Act::Write { block, durable: is_rare && block % 4 == 0 }),
        1 => Just(Act::Flush),
    ]
}

/// Versions of each block: the last that must survive, and all that were sent after it.
#[derive(Default)]
struct Expected {
    kept: BTreeMap<u64, u64>,
    since: BTreeMap<u64, Vec<u64>>,
}

impl Expected {
    fn written(&mut self, block: u64, version: u64, durable: bool) {
        self.since.entry(block).or_default().push(version);
        if durable {
            self.keep(block);
        }
    }
    fn keep(&mut self, block: u64) {
        if let Some(versions) = self.since.remove(&block) {
            self.kept.extend(versions.last().map(|last| (block, *last)));
        }
    }
    /// What is found is what was kept or something later, and is kept from now on.
    fn check(&mut self, disk: &mut RemoteDisk) {
        for block in 0..64 {
            let kept = self.kept.remove(&block);
            let later = self.since.remove(&block).unwrap_or_default();
            let found = disk.read(Extent { start: block, blocks: 1 }).expect("it is there");
            let mut allowed = kept.into_iter().chain(later);
            let version = allowed.find(|version| pattern(block, *version, 512) == found);
            let is_untouched = kept.is_none() && found.iter().all(|byte| *byte == 0);
            assert!(is_untouched || version.is_some(), "block {block} holds what it must not");
            self.kept.extend(version.map(|version| (block, version)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_flushed_write_is_lost(rounds in prop::collection::vec(prop::collection::vec(act(), 1..40), 1..4)) {
        let storage = Volatile::new();
        let mut expected = Expected::default();
        let mut version = 0;
        for acts in rounds {
            let target = Running::start_on(PLAN, Some(storage.clone()));
            let mut disk = target.disk();
            for act in acts {
                match act {
                    Act::Write { block, durable } => {
                        version += 1;
                        disk.write(Extent { start: block, blocks: 1 }, pattern(block, version, 512), durable).expect("it is taken");
                        expected.written(block, version, durable);
                    }
                    Act::Flush => {
                        disk.flush().expect("it is kept");
                        (0..64).for_each(|block| expected.keep(block));
                    }
                }
            }
            // One more write that nobody waits for.
            version += 1;
            disk.submit_write(1, Extent { start: 1, blocks: 1 }, pattern(1, version, 512), false).expect("there is room");
            expected.since.entry(1).or_default().push(version);
            storage.kill();
            drop(disk);
            target.die();
            storage.restart();
            let target = Running::start_on(PLAN, Some(storage.clone()));
            expected.check(&mut target.disk());
            target.stop();
        }
    }
}

#[test]
fn a_medium_that_is_gone_fails_writes_and_flushes_instead_of_promising() {
    let storage = Volatile::new();
    let target = Running::start_on(PLAN, Some(storage.clone()));
    let mut disk = target.disk();
    disk.write(Extent { start: 0, blocks: 1 }, vec![1; 512], false).expect("it is taken");
    storage.kill();
    let error = disk.flush().expect_err("it cannot be kept").to_string();
    assert!(error.starts_with("the flush failed: "), "{error}");
    disk.write(Extent { start: 0, blocks: 1 }, vec![2; 512], true).expect_err("it cannot be kept");
    storage.restart();
}
