//! One sync of a file at a time.
//!
//! Linux tells a failed write-back to one fsync of a descriptor, once. Of two that run at the same
//! time the other one succeeds, though the data that it waited for may be lost. So they run one
//! after another, and one does for all that were asked for before it began.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// How many have begun, and how many of these have ended.
    begun: u64,
    ended: u64,
    runs: bool,
}

/// The syncs of a file. After a failure none succeeds: the system may have dropped what it could
/// not write.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    state: Mutex<State>,
    changed: Condvar,
    /// Beside the state: each write looks at it.
    has_failed: AtomicBool,
}

impl Syncs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one has failed.
    pub fn check(&self) -> io::Result<()> {
        match self.has_failed.load(Ordering::Acquire) {
            true => Err(io::Error::other("an earlier sync has failed")),
            false => Ok(()),
        }
    }

    /// One has failed, here or elsewhere.
    pub fn fail(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// Returns when a sync that began after this call has succeeded. Runs it, unless somebody else
    /// does.
    pub fn run(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut state = self.state();
        let wanted = state.begun + 1;
        while state.runs && state.ended < wanted {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended >= wanted || self.check().is_err() {
            return self.check();
        }
        (state.begun, state.runs) = (wanted, true);
        drop(state);
        let result = sync().inspect_err(|_| self.fail());
        let mut state = self.state();
        (state.runs, state.ended) = (false, wanted);
        drop(state);
        self.changed.notify_all();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::thread::{scope, sleep};
    use std::time::Duration;

    const THREADS: u32 = 8;

    /// Threads write and sync, and the sync with this number fails. Who succeeded has its write
    /// synced by one that began later. Returns writes, syncs, and how many succeeded.
    fn game(fails: Option<u32>) -> (u32, u32, u32) {
        let (syncs, inside, writes) = (Syncs::default(), AtomicBool::new(false), AtomicU32::new(0));
        let (synced, ran, done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let own = writes.fetch_add(1, SeqCst) + 1;
                        let result = syncs.run(|| {
                            assert!(!inside.swap(true, SeqCst), "two at a time");
                            let before = writes.load(SeqCst);
                            sleep(Duration::from_micros(300));
                            inside.store(false, SeqCst);
                            if fails == Some(ran.fetch_add(1, SeqCst)) {
                                return Err(io::ErrorKind::StorageFull.into());
                            }
                            synced.store(before, SeqCst);
                            Ok(())
                        });
                        if result.is_ok() {
                            assert!(synced.load(SeqCst) >= own, "write {own} is not synced");
                            done.fetch_add(1, SeqCst);
                        }
                    }
                });
            }
        });
        (writes.into_inner(), ran.into_inner(), done.into_inner())
    }

    #[test]
    fn one_sync_runs_at_a_time_and_does_for_all_that_were_asked_for_before() {
        let (writes, ran, done) = game(None);
        assert_eq!((writes, done), (THREADS * 20, THREADS * 20));
        assert!(ran < writes / 2, "{ran} syncs for {writes}");
    }

    #[test]
    fn after_one_that_failed_none_succeeds() {
        let (_, ran, done) = game(Some(4));
        assert_eq!(ran, 5, "none is tried again");
        assert!((4..THREADS * 20).contains(&done), "{done}");
    }
}
