//! A policy that is compiled in: a panic ends the run, and a call that goes on can be seen from
//! outside.

use super::Failed;
use base::{Decide, Decision};
use std::any::Any;
use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Threads whose calls are seen; those of any others are not.
const THREADS_MAX: usize = 256;

/// Calls of a policy, seen from another thread.
pub(super) trait Watched: Debug + Send + Sync {
    /// The call that has gone on for so many looks, if there is one.
    fn stuck(&self, looks_max: u32) -> Option<String>;
}

#[derive(Debug)]
pub(super) struct Compiled<P, D> {
    name: String,
    policy: P,
    failed: Failed,
    calls: Vec<OnceLock<Calls<D>>>,
}

/// The calls of one thread. Lines of their own in the cache, as each thread writes to its calls.
#[derive(Debug)]
#[repr(align(128))]
struct Calls<D> {
    /// The number of the last call, from 1, and what it is about.
    begun: Mutex<(u64, Option<D>)>,
    ended: AtomicU64,
    /// The call that the last look has seen, and how many looks have.
    seen: AtomicU64,
    looks: AtomicU32,
}

impl<D: Decision> Calls<D> {
    fn new() -> Calls<D> {
        let (ended, seen, looks) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU32::new(0));
        Calls { begun: Mutex::new((0, None)), ended, seen, looks }
    }

    fn begin(&self, situation: D) -> u64 {
        let mut begun = self.begun();
        *begun = (begun.0 + 1, Some(situation));
        begun.0
    }

    fn begun(&self) -> MutexGuard<'_, (u64, Option<D>)> {
        self.begun.lock().expect("nothing panics while it holds the call")
    }

    /// One look. Returns what the call is about that this many have seen.
    fn look(&self, looks_max: u32) -> Option<D> {
        let (number, situation) = *self.begun();
        if self.ended.load(Ordering::Acquire) == number || self.seen.swap(number, Ordering::Relaxed) != number {
            self.looks.store(0, Ordering::Relaxed);
            return None;
        }
        let looks = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        situation.filter(|_| looks >= looks_max)
    }
}

impl<P: Decide<D>, D: Decision> Compiled<P, D> {
    pub(super) fn new(name: String, policy: P, failed: Failed) -> Compiled<P, D> {
        let calls = (0..THREADS_MAX).map(|_| OnceLock::new()).collect();
        Compiled { name, policy, failed, calls }
    }

    fn call(&self, situation: &D) -> D::Answer {
        catch_unwind(AssertUnwindSafe(|| self.policy.decide(situation))).unwrap_or_else(|panic| {
            let told = message(panic.as_ref());
            self.failed.report(|| format!("`{}` by `{}` panicked for {situation:?}: {told}", D::NAME, self.name));
            D::NEUTRAL
        })
    }
}

impl<P: Decide<D>, D: Decision> Decide<D> for Compiled<P, D> {
    fn decide(&self, situation: &D) -> D::Answer {
        let Some(calls) = self.calls.get(thread()) else { return self.call(situation) };
        let calls = calls.get_or_init(Calls::new);
        let number = calls.begin(*situation);
        let answer = self.call(situation);
        calls.ended.store(number, Ordering::Release);
        answer
    }
}

impl<P: Decide<D>, D: Decision> Watched for Compiled<P, D> {
    fn stuck(&self, looks_max: u32) -> Option<String> {
        let situation = self.calls.iter().filter_map(OnceLock::get).find_map(|calls| calls.look(looks_max))?;
        Some(format!("`{}` by `{}`: the call for {situation:?}", D::NAME, self.name))
    }
}

/// The number of this thread among those that have called a policy.
fn thread() -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    OWN.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) as usize);
        }
        own.get()
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it gave no reason")
}
