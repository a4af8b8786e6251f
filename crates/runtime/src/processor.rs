//! How long a thread waited for a processor, and how busy all processors of its machine were.

use base::Span;
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Nanoseconds for which this thread has run.
pub fn thread_ran_ns() -> u64 {
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    ran.tv_sec as u64 * 1_000_000_000 + ran.tv_nsec as u64
}

/// Nanoseconds of a tick of /proc/stat on every Linux of today.
const TICK_NS: u64 = 10_000_000;

/// What a thread had of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// How long it ran.
    pub ran: Span,
    /// How long it could have run, and another thread had the processor.
    pub waited: Span,
}

/// Says what a thread had of processors since it was asked before.
#[derive(Debug)]
pub struct Processor {
    file: Option<File>,
    before: Had,
}

impl Processor {
    /// Of the thread that calls this.
    pub fn of_this_thread() -> Processor {
        let mut processor = Processor { file: File::open("/proc/thread-self/schedstat").ok(), before: Had::default() };
        processor.since();
        processor
    }

    /// What it had since the last call; `None` where the kernel does not say.
    pub fn since(&mut self) -> Option<Had> {
        let mut text = [0; 80];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        let now = parse(&text[..length])?;
        let Had { ran, waited } = std::mem::replace(&mut self.before, now);
        Some(Had { ran: now.ran.saturating_sub(ran), waited: now.waited.saturating_sub(waited) })
    }
}

/// The first two numbers: nanoseconds on a processor, and nanoseconds of waiting for one.
fn parse(text: &[u8]) -> Option<Had> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok().map(Span::ns);
    Some(Had { ran: next()?, waited: next()? })
}

/// How many processors threads of this machine may use; 0 where the kernel does not say how long
/// they wait for one.
pub fn count() -> u32 {
    let has_waits = Processor::of_this_thread().since().is_some();
    std::thread::available_parallelism().ok().filter(|_| has_waits).map_or(0, |count| count.get() as u32)
}

/// How long all processors of this machine together were busy since its boot, in nanoseconds but to
/// ten milliseconds; `None` where the system does not say.
pub fn busy_ns() -> Option<u64> {
    busy_of(&fs::read_to_string("/proc/stat").ok()?)
}

/// Users, the system and interrupts. What a guest had is in what users had. Threads of low priority
/// (the second) keep nobody waiting.
fn busy_of(text: &str) -> Option<u64> {
    let ticks = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>().ok()?;
    let busy = [0, 2, 5, 6].iter().filter_map(|place| ticks.get(*place));
    Some(busy.fold(0, |all: u64, ticks| all.saturating_add(ticks.saturating_mul(TICK_NS))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_kernel_are_read() {
        assert_eq!(parse(b"535 19 65\n"), Some(Had { ran: Span::ns(535), waited: Span::ns(19) }));
        assert_eq!([parse(b"535\n"), parse(b""), parse(b"1 x 2")], [None; 3]);
        let text = "cpu  100 20 3 4000 500 6 7 80 90 0\ncpu0 50 10 1 2000 250 3 3 40 45 0\n";
        assert_eq!(busy_of(text), Some(1_160_000_000));
        assert_eq!([busy_of("cpu0 1"), busy_of(""), busy_of("cpu  1 x")], [None; 3]);
    }

    #[test]
    fn a_thread_that_works_has_a_processor() {
        let mut processor = Processor::of_this_thread();
        let mut had = Had::default();
        // The kernel counts at its ticks.
        for _ in 0..1_000 {
            assert!((0..100_000_u64).map(std::hint::black_box).sum::<u64>() > 0);
            let Some(more) = processor.since() else { return };
            had = Had { ran: had.ran + more.ran, waited: had.waited + more.waited };
            if had.ran > Span::ms(5) {
                return;
            }
        }
        panic!("{had:?}");
    }
}
