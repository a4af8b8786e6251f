//! Memory of one end, accessed by others: over libfabric's provider for TCP, in one process.
//! Without libfabric on the machine they say so and test nothing, except in CI.

use fabric::{Done, Entry, FabricError, Initiator, Library, Place, Target};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

const KEY: u64 = 0x1234_5678_9abc_def0;
const WORDS: usize = 1 << 10;

/// Whether the library is there.
fn has_library() -> bool {
    match Library::open() {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            eprintln!("SKIPPED: {error}");
            false
        }
    }
}

fn free() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// A target on a thread that sleeps when there is nothing to do.
struct Running {
    memory: Arc<Vec<AtomicU64>>,
    place: Place,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Shared, so that a test looks at it as well.
struct Shared(Arc<Vec<AtomicU64>>);

impl std::ops::Deref for Shared {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Running {
    fn start() -> Running {
        let memory: Arc<Vec<AtomicU64>> = Arc::new((0..WORDS as u64).map(AtomicU64::new).collect());
        let (tell, told) = std::sync::mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared, over) = (Shared(memory.clone()), is_over.clone());
        let thread = spawn(move || {
            let mut target = Target::open("tcp", free(), shared, KEY).unwrap_or_else(|error| panic!("{error}"));
            tell.send(target.place().clone()).expect("somebody waits");
            while !over.load(SeqCst) {
                target.turn().expect("its queue does not fail");
                if target.may_sleep() {
                    wait(target.fd());
                }
            }
        });
        let place = told.recv().expect("it starts");
        Running { memory, place, is_over, thread: Some(thread) }
    }

    fn initiator(&self) -> Initiator {
        Initiator::open(self.place.clone(), 16, 8192).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it was started").expect("it does not panic");
        }
    }
}

/// Waits for a file, 20 ms at most.
fn wait(file: std::os::fd::BorrowedFd<'_>) {
    use std::os::fd::AsRawFd;
    let mut file = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry is there.
    #[expect(unsafe_code, reason = "a test may wait as it likes")]
    unsafe {
        libc::poll(&mut file, 1, 20)
    };
}

/// Posts until there is room, and waits for the end.
fn done(
    initiator: &mut Initiator,
    mut post: impl FnMut(&mut Initiator) -> Result<Option<Entry>, FabricError>,
) -> Result<Done, FabricError> {
    let until = Instant::now() + Duration::from_secs(20);
    let (mut all, mut entry) = (Vec::new(), None);
    loop {
        assert!(Instant::now() < until, "it is never done");
        if entry.is_none() {
            entry = post(initiator)?;
        }
        initiator.take(&mut all)?;
        if let Some(found) = all.iter().position(|(done, _)| Some(*done) == entry) {
            return Ok(all.swap_remove(found).1);
        }
        if entry.is_some() && initiator.may_sleep() {
            wait(initiator.fd());
        }
    }
}

fn bytes_of(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

#[test]
fn what_one_end_registers_the_other_one_reads_writes_and_swaps() {
    if !has_library() {
        return;
    }
    let target = Running::start();
    let mut one = target.initiator();
    for (at, words) in [(0, 1), (8, 3), (512, 898), (8 * (WORDS as u64 - 2), 2)] {
        let read = done(&mut one, |one| one.read(at, words * 8)).expect("it is inside");
        let first = at / 8;
        assert_eq!(read, Done::Read(bytes_of(first..first + words as u64)), "{words} words at {at}");
    }
    for (at, words) in [(0, 1), (80, 9), (800, 100)] {
        let new = bytes_of((0..words).map(|word| word + 1000));
        assert_eq!(done(&mut one, |one| one.write(at, &new)).expect("it is inside"), Done::Written);
        // It is there for everybody when it is done.
        let found = target.memory[at as usize / 8..][..words as usize].iter().map(|word| word.load(SeqCst));
        assert_eq!(bytes_of(found), new, "{words} words at {at}");
    }
    let swap = |one: &mut Initiator, expected, new| done(one, |one| one.swap(160, expected, new)).expect("inside");
    assert_eq!(swap(&mut one, 20, u64::MAX), Done::Found(20));
    assert_eq!(swap(&mut one, 20, 7), Done::Found(u64::MAX), "it was another one");
    assert_eq!(target.memory[20].load(SeqCst), u64::MAX);
    let set = done(&mut one, |one| one.set_bits(160, 0xff00, 0x1234)).expect("it is inside");
    assert_eq!((set, target.memory[20].load(SeqCst)), (Done::Written, 0xffff_ffff_ffff_12ff));
}

#[test]
fn swaps_of_ends_and_of_processors_are_atomic_together() {
    if !has_library() {
        return;
    }
    let target = Running::start();
    target.memory[5].store(0, SeqCst);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut one = target.initiator();
                add(|expected| match done(&mut one, |one| one.swap(40, expected, expected + 1)) {
                    Ok(Done::Found(word)) => word,
                    other => panic!("{other:?}"),
                });
            });
        }
        scope.spawn(|| {
            add(|expected| {
                // Slow enough to be in the way of the others to the end.
                sleep(Duration::from_micros(20));
                let swapped = target.memory[5].compare_exchange(expected, expected + 1, SeqCst, SeqCst);
                swapped.unwrap_or_else(|found| found)
            });
        });
    });
    assert_eq!(target.memory[5].load(SeqCst), 3 * EACH);
}

/// Additions of each of three.
const EACH: u64 = 2_000;

/// Adds one so often, by a compare-and-swap that returns what it found.
fn add(mut swap: impl FnMut(u64) -> u64) {
    let mut expected = 0;
    for _ in 0..EACH {
        loop {
            let found = swap(expected);
            if found == expected {
                break expected += 1;
            }
            expected = found;
        }
    }
}

#[test]
fn words_are_read_whole_while_a_processor_changes_them() {
    if !has_library() {
        return;
    }
    let target = Running::start();
    let words: Vec<u64> = vec![0; 900];
    target.memory[..900].iter().for_each(|word| word.store(0, SeqCst));
    let (memory, is_over) = (target.memory.clone(), Arc::new(AtomicBool::new(false)));
    let over = is_over.clone();
    let writer = spawn(move || {
        while !over.load(SeqCst) {
            memory[..900].iter().for_each(|word| word.store(!word.load(SeqCst), SeqCst));
        }
    });
    let mut one = target.initiator();
    let mut changed = 0;
    for _ in 0..2_000 {
        let Done::Read(read) = done(&mut one, |one| one.read(0, 7200)).expect("it is inside") else { panic!("a read") };
        let read: Vec<u64> = read.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert!(read.iter().all(|word| [0, u64::MAX].contains(word)), "a torn word: {read:x?}");
        changed += u32::from(read != words);
    }
    is_over.store(true, SeqCst);
    writer.join().expect("it does not panic");
    assert!(changed > 100, "nothing changed meanwhile");
}

#[test]
fn what_is_outside_or_has_another_key_is_refused_and_harms_nobody() {
    if !has_library() {
        return;
    }
    let target = Running::start();
    let before: Vec<u64> = target.memory.iter().map(|word| word.load(SeqCst)).collect();
    let end = 8 * WORDS as u64;
    let wrong = Place { key: KEY + 1, ..target.place.clone() };
    for (place, at) in [(&target.place, end), (&target.place, end - 8), (&target.place, u64::MAX - 7), (&wrong, 0)] {
        for kind in 0..3 {
            let mut one = Initiator::open(place.clone(), 4, 64).unwrap_or_else(|error| panic!("{error}"));
            let refused = done(&mut one, |one| match kind {
                0 => one.read(at, 16),
                1 => one.write(at, &[9; 16]),
                _ => one.swap(if at == end - 8 { end } else { at }, 0, 9),
            });
            assert!(matches!(refused, Err(FabricError::Call { .. })), "{at:x}, {kind}: {refused:?}");
        }
    }
    let after: Vec<u64> = target.memory.iter().map(|word| word.load(SeqCst)).collect();
    assert_eq!(before, after);
    let mut one = target.initiator();
    assert_eq!(done(&mut one, |one| one.read(8, 8)), Ok(Done::Read(bytes_of([1]))), "it still answers");
}

/// The port that a place of TCP names: the second field of a `sockaddr_in`.
fn port(place: &Place) -> u16 {
    u16::from_be_bytes([place.address[2], place.address[3]])
}

#[test]
fn who_does_not_speak_libfabric_harms_nobody() {
    if !has_library() {
        return;
    }
    let target = Running::start();
    let mut one = target.initiator();
    assert_eq!(done(&mut one, |one| one.read(8, 8)), Ok(Done::Read(bytes_of([1]))));
    let letters = b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n".to_vec();
    let mut held = Vec::new();
    for bytes in [Vec::new(), vec![0; 4], vec![0; 4096], vec![0xff; 100_000], letters] {
        let mut stream = TcpStream::connect(("127.0.0.1", port(&target.place))).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_millis(200))).expect("it is a socket");
        // It may be closed before it has taken all.
        let _ = stream.write_all(&bytes);
        let _ = stream.read(&mut [0; 64]);
        held.push(stream);
        assert_eq!(done(&mut one, |one| one.read(8, 8)), Ok(Done::Read(bytes_of([1]))), "{} bytes", bytes.len());
    }
    let mut another = target.initiator();
    assert_eq!(done(&mut another, |one| one.read(16, 8)), Ok(Done::Read(bytes_of([2]))), "others still come in");
}

#[test]
fn a_target_that_is_gone_is_an_error_and_its_key_is_useless_at_the_next_one() {
    if !has_library() {
        return;
    }
    let target = Running::start();
    let place = target.place.clone();
    let mut one = target.initiator();
    assert_eq!(done(&mut one, |one| one.read(8, 8)), Ok(Done::Read(bytes_of([1]))));
    drop(target);
    // The provider tries to connect for ever: who waits has to know from elsewhere, or give up.
    let mut done_meanwhile = Vec::new();
    for _ in 0..100 {
        if one.read(8, 8).and_then(|_| one.take(&mut done_meanwhile)).is_err() {
            break;
        }
        sleep(Duration::from_millis(2));
    }
    assert_eq!(done_meanwhile, [], "who answers?");
    // Another one at the same port, with a key of its own.
    let at = SocketAddr::from(([127, 0, 0, 1], port(&place)));
    let memory: Vec<AtomicU64> = (0..4).map(AtomicU64::new).collect();
    let mut next = Target::open("tcp", at, memory, KEY ^ 1).unwrap_or_else(|error| panic!("{error}"));
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let thread = spawn(move || {
        while !over.load(SeqCst) {
            next.turn().expect("its queue does not fail");
        }
    });
    let old = Initiator::open(place.clone(), 4, 64).and_then(|mut one| done(&mut one, |one| one.read(8, 8)));
    let new = Initiator::open(Place { key: KEY ^ 1, ..place }, 4, 64);
    let new = new.and_then(|mut one| done(&mut one, |one| one.read(8, 8)));
    is_over.store(true, SeqCst);
    thread.join().expect("it does not panic");
    assert!(matches!(old, Err(FabricError::Call { .. })), "{old:?}");
    assert_eq!(new, Ok(Done::Read(bytes_of([1]))));
}

#[test]
fn a_provider_that_is_not_there_is_named() {
    if !has_library() {
        return;
    }
    let memory: Vec<AtomicU64> = vec![AtomicU64::new(0)];
    let error = Target::open("nothing", free(), memory, KEY).err().expect("there is none").to_string();
    assert!(error.contains("no provider \"nothing\" for 127.0.0.1:0"), "{error}");
    let place = Place { provider: "verbs".into(), format: 2, address: vec![2; 16], key: 0, base: 0 };
    let error = Initiator::open(place, 1, 8).err().map(|error| error.to_string());
    assert!(error.is_none_or(|error| error.contains("no provider \"verbs;ofi_rxm\"")), "there is no card");
}
