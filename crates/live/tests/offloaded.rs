//! S-Direct's commands through its engine, on real backends: what they leave is what plain reads
//! and writes would have left.

mod support;

use live::storage::{Memory, Storage};
use live::{Extent, HostError, RemoteDisk};
use proptest::prelude::*;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use support::{Running, config, pattern};

const BLOCK: usize = 512;
/// 1 MiB in each namespace.
const BLOCKS: u64 = 2048;
const BACKENDS: [&str; 3] = [
    "{ id = ID, size = '1MiB' }",
    "{ id = ID, backend = 'flash', drive = 'optane', size = '1MiB' }",
    "{ id = ID, backend = 'file', path = 'PATH-ID', size = '1MiB' }",
];

/// Three namespaces of one kind each, or of three kinds.
fn plan(kinds: [usize; 3], folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("disk").display().to_string();
    // The path comes last: the system's random name may have an "ID" in it.
    let namespaces =
        kinds.iter().zip(1..).map(|(kind, id)| BACKENDS[*kind].replace("ID", &format!("{id}")).replace("PATH", &path));
    format!("[[subsystem]]\nnamespace = [{}]", namespaces.collect::<Vec<_>>().join(", "))
}

fn disks(target: &Running) -> [RemoteDisk; 3] {
    [1, 2, 3].map(|namespace| target.disk_as(config("one"), namespace))
}

fn whole(disk: &mut RemoteDisk) -> Vec<u8> {
    disk.read(Extent { start: 0, blocks: BLOCKS as u32 }).expect("it is there")
}

/// A MultiCast from the first namespace.
#[derive(Clone, Debug)]
struct Cast {
    start: u64,
    blocks: u32,
    places: Vec<(u32, u64)>,
}

fn cast() -> impl Strategy<Value = Cast> {
    let places = prop::collection::vec((1..=3u32, 0..BLOCKS), 1..6);
    (0..BLOCKS, 1..300u32, places).prop_map(|(start, blocks, places)| Cast { start, blocks, places })
}

impl Cast {
    /// Every range that it touches, by namespace.
    fn ranges(&self) -> Vec<(u32, u64)> {
        std::iter::once((1, self.start)).chain(self.places.iter().copied()).collect()
    }
    fn is_outside(&self) -> bool {
        self.ranges().iter().any(|(_, start)| start + u64::from(self.blocks) > BLOCKS)
    }
    fn overlaps(&self) -> bool {
        let ranges = self.ranges();
        let meets =
            |one: &(u32, u64), two: &(u32, u64)| one.0 == two.0 && one.1.abs_diff(two.1) < u64::from(self.blocks);
        ranges.iter().enumerate().any(|(place, one)| ranges[..place].iter().any(|two| meets(one, two)))
    }
    /// The same by plain copies of bytes.
    fn model(&self, contents: &mut [Vec<u8>; 3]) {
        let bytes = self.blocks as usize * BLOCK;
        let at = self.start as usize * BLOCK;
        let data = contents[0][at..at + bytes].to_vec();
        for (namespace, start) in &self.places {
            let at = *start as usize * BLOCK;
            contents[*namespace as usize - 1][at..at + bytes].copy_from_slice(&data);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn multicasts_leave_on_every_namespace_what_plain_writes_would(
        kinds in prop::array::uniform3(0..3usize), casts in prop::collection::vec(cast(), 1..12)
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let target = Running::start(&plan(kinds, &folder));
        let mut disks = disks(&target);
        let mut contents = [1u64, 2, 3].map(|version| pattern(0, version, BLOCKS as usize * BLOCK));
        for (disk, content) in disks.iter_mut().zip(&contents) {
            disk.write(Extent { start: 0, blocks: BLOCKS as u32 }, content.clone(), false).expect("it is taken");
        }
        for cast in casts {
            let extent = Extent { start: cast.start, blocks: cast.blocks };
            match disks[0].multi_cast(extent, &cast.places) {
                Ok(failed) => {
                    prop_assert!(failed.is_empty() && !cast.is_outside() && !cast.overlaps(), "{cast:?}");
                    cast.model(&mut contents);
                }
                Err(HostError::Command { status, .. }) => {
                    prop_assert!(cast.is_outside() || cast.overlaps(), "{cast:?}: {status}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        for (disk, content) in disks.iter_mut().zip(&contents) {
            prop_assert!(whole(disk) == *content);
        }
        target.stop();
    }
}

#[test]
fn a_word_counts_every_add_write_and_loses_no_plain_write_beside_it() {
    const HOSTS: u64 = 4;
    const ROUNDS: u64 = 40;
    let folder = tempfile::tempdir().expect("a folder");
    for kind in 0..3 {
        let target = Running::start(&plan([kind; 3], &folder));
        let mut first = target.disk();
        let one = [&1u64.to_le_bytes()[..], &[0; BLOCK - 8]].concat();
        first.write(Extent { start: 9, blocks: 1 }, one, false).expect("it is taken");
        std::thread::scope(|scope| {
            for host in 0..HOSTS {
                let target = &target;
                scope.spawn(move || {
                    let mut disk = target.disk_as(config(&format!("host-{host}")), 1);
                    for round in 0..ROUNDS {
                        // Two words of one block, added up to by two hosts each.
                        let sum = until_done(|| disk.add_write(9 * 512, 512 + host % 2 * 8));
                        assert!((round + 1..=2 * ROUNDS).contains(&sum));
                    }
                });
            }
        });
        let block = first.read(Extent { start: 1, blocks: 1 }).expect("it is there");
        let word = |place: usize| u64::from_le_bytes(block[place..place + 8].try_into().expect("8 bytes"));
        assert_eq!((word(0), word(8), word(16)), (2 * ROUNDS, 2 * ROUNDS, 0));
        target.stop();
    }
}

/// A host that is told to try again does.
fn until_done(mut add: impl FnMut() -> Result<u64, HostError>) -> u64 {
    loop {
        match add() {
            Err(HostError::Command { status, .. }) if status == nvme::Status::INTERRUPTED => {}
            sum => return sum.expect("it is added"),
        }
    }
}

#[test]
fn what_the_engine_refuses_changes_nothing_and_is_told_as_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = Running::start(&plan([0; 3], &folder));
    let mut disk = target.disk();
    disk.write(Extent { start: 0, blocks: 4 }, pattern(0, 1, 4 * BLOCK), false).expect("it is taken");
    let before = whole(&mut disk);
    for (outcome, reason) in [
        (disk.multi_cast(Extent { start: 0, blocks: 2 }, &[(1, 1)]), "invalid field"),
        (disk.multi_cast(Extent { start: 0, blocks: 2 }, &[(2, 4), (2, 5)]), "invalid field"),
        (disk.multi_cast(Extent { start: 0, blocks: 2 }, &[(2, BLOCKS - 1)]), "LBA out of range"),
        (disk.add_write(4, 8).map(|_| Vec::new()), "invalid field"),
        (disk.add_write(0, BLOCKS * 512).map(|_| Vec::new()), "LBA out of range"),
    ] {
        let error = outcome.expect_err("it cannot be").to_string();
        assert!(error.to_lowercase().contains(&reason.to_lowercase()), "{error}");
    }
    assert!(whole(&mut disk) == before);
    assert!(disks(&target)[1..].iter_mut().all(|disk| whole(disk).iter().all(|byte| *byte == 0)));
    target.stop();
}

/// A storage whose writes can be made to fail, and which loses power as a disk with a volatile
/// cache does at worst.
struct Fragile {
    cached: Memory,
    medium: Mutex<Vec<u8>>,
    refuses_writes: AtomicBool,
}

impl Fragile {
    fn new() -> Arc<Fragile> {
        let bytes = BLOCKS as usize * BLOCK;
        let cached = Memory::new(bytes as u64).expect("there is room");
        Arc::new(Fragile { cached, medium: Mutex::new(vec![0; bytes]), refuses_writes: AtomicBool::new(false) })
    }
    fn lose_power(&self) {
        self.cached.write(0, &self.medium.lock().expect("nobody panics")).expect("it is inside");
    }
    fn refuse_writes(&self, whether: bool) {
        self.refuses_writes.store(whether, Ordering::Relaxed);
    }
}

impl Storage for Fragile {
    fn bytes(&self) -> u64 {
        self.cached.bytes()
    }
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.cached.read(at, buffer)
    }
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        if self.refuses_writes.load(Ordering::Relaxed) {
            Err(io::ErrorKind::Other.into())
        } else {
            self.cached.write(at, data)
        }
    }
    fn zero(&self, at: u64, bytes: u64, deallocate: bool) -> io::Result<()> {
        self.cached.zero(at, bytes, deallocate)
    }
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.cached.give_back(at, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.cached.read(0, &mut self.medium.lock().expect("nobody panics"))
    }
    fn resize(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Three namespaces in storages that fail when they are told to.
fn on_fragile(storages: &[Arc<Fragile>; 3]) -> Running {
    let storages = storages.clone();
    let text = "[[subsystem]]\nnamespace = [{ id = 1, backend = 'file', path = 'a', size = '1MiB' }, { id = 2, backend = 'file', path = 'b', size = '1MiB' }, \
                { id = 3, backend = 'file', path = 'c', size = '1MiB' }]";
    Running::start_with(text, move |id| Some(storages[id as usize - 1].clone()))
}

#[test]
fn one_target_that_fails_is_named_and_the_others_hold_everything() {
    let storages = [(); 3].map(|()| Fragile::new());
    let target = on_fragile(&storages);
    let mut disks = disks(&target);
    // Three pieces of the engine.
    let data = pattern(0, 1, 384 * BLOCK);
    disks[0].write(Extent { start: 0, blocks: 384 }, data.clone(), false).expect("it is taken");
    storages[1].refuse_writes(true);
    let failed = disks[0].multi_cast(Extent { start: 0, blocks: 384 }, &[(3, 0), (2, 0), (3, 1000)]);
    assert_eq!(failed.expect("some hold it"), [1]);
    for start in [0, 1000] {
        assert!(disks[2].read(Extent { start, blocks: 384 }).expect("it is there") == data);
    }
    let all =
        disks[0].multi_cast(Extent { start: 0, blocks: 384 }, &[(2, 0)]).expect_err("nobody holds it").to_string();
    assert!(all.contains("write fault"), "{all}");
    let add = target.disk_as(config("two"), 2).add_write(0, 8).expect_err("it cannot be written").to_string();
    assert!(add.contains("write fault"), "{add}");
    // The engine is left in order: what failed works again when its medium does.
    storages[1].refuse_writes(false);
    assert!(disks[0].multi_cast(Extent { start: 0, blocks: 384 }, &[(2, 0)]).expect("all hold it").is_empty());
    assert!(disks[1].read(Extent { start: 0, blocks: 384 }).expect("it is there") == data);
    target.stop();
}

#[test]
fn what_was_cast_and_flushed_outlives_a_loss_of_power_and_sums_do_too() {
    let storages = [(); 3].map(|()| Fragile::new());
    let target = on_fragile(&storages);
    let mut disks = disks(&target);
    let data = pattern(0, 1, 200 * BLOCK);
    disks[0].write(Extent { start: 0, blocks: 200 }, data.clone(), false).expect("it is taken");
    assert!(disks[0].multi_cast(Extent { start: 0, blocks: 200 }, &[(2, 5), (3, 5)]).expect("it is cast").is_empty());
    let sum = disks[1].add_write(5 * 512, 5 * 512 + 8).expect("it is added");
    disks[1].flush().expect("it is kept");
    storages.iter().for_each(|storage| storage.lose_power());
    let mut kept = data;
    kept[8..16].copy_from_slice(&sum.to_le_bytes());
    assert!(disks[1].read(Extent { start: 5, blocks: 200 }).expect("it is there") == kept);
    // Nobody has flushed the third: nothing was promised.
    assert_eq!(disks[2].read(Extent { start: 5, blocks: 200 }).expect("it is there"), vec![0; 200 * BLOCK]);
    target.stop();
}
