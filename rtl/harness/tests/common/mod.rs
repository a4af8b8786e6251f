//! Random schedules by proptest, until enough cycles have gone by.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::cell::Cell;

/// Cycles of all schedules of one test file: `RTL_CYCLES`, or a few for a quick look.
fn cycles_wanted() -> u64 {
    match std::env::var("RTL_CYCLES") {
        Ok(text) => text.parse().expect("RTL_CYCLES is a number of cycles"),
        Err(_) => 300_000,
    }
}

/// The one batch to play: `RTL_BATCH`, the number that a failure names.
fn batch_wanted() -> Option<u64> {
    let text = std::env::var("RTL_BATCH").ok()?;
    Some(text.parse().expect("RTL_BATCH is the number of a batch"))
}

/// Plays random schedules until they have taken a `share`th of the cycles wanted, or those of one
/// batch, and returns how many they took. The same schedules each time; a failure is shrunk and
/// printed.
pub fn run<S: Strategy>(schedule: &S, share: u64, play: impl Fn(S::Value) -> Result<u64, TestCaseError>) -> u64 {
    let cycles = Cell::new(0);
    let one = batch_wanted();
    for batch in one.unwrap_or(0).. {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&batch.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let config = Config { cases: 16, failure_persistence: None, max_shrink_iters: 1_000, ..Config::default() };
        let played = TestRunner::new_with_rng(config, rng).run(schedule, |steps| {
            cycles.set(cycles.get() + play(steps)?);
            Ok(())
        });
        match played {
            Err(TestError::Fail(reason, steps)) => panic!("batch {batch}: {reason}\n{steps:#?}"),
            Err(TestError::Abort(reason)) => panic!("batch {batch}: {reason}"),
            Ok(()) if one.is_some() || cycles.get() >= cycles_wanted() / share => break,
            Ok(()) => {}
        }
    }
    cycles.get()
}
