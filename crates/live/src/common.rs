//! What the loops of a target give each other: letters of their machines with the sockets that
//! belong to them, configurations, commands of S-Direct, and what they have counted.

use crate::backend::AllBackends;
use crate::metrics::Counted;
use crate::secrets::Secrets;
use crate::setup::Shrinking;
use crate::socket::Socket;
use base::Span;
use mio::Waker;
use nvme::target::{IoRequest, IoResult, IoTag, Letter, Member, TargetConfig};
use plan::target::TargetPlan;
use runtime::lock::lock;
use runtime::waiting::Ways;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longest time that the metrics wait for a loop that is busy. Then they show its last numbers.
const COUNT_WAIT: Duration = Duration::from_millis(100);

/// What a loop gets from another.
pub(crate) enum Parcel {
    /// A letter of its machine, and the socket of the connection that comes with it.
    Letter(Letter, Option<Box<Socket>>),
    /// A configuration that the first loop has taken.
    Change(Box<Change>),
    /// A command of S-Direct, for the engine of the first loop.
    Engine(Member, Box<IoRequest>),
    /// The engine's answer.
    Answer(IoTag, IoResult),
    /// The first loop asks for what was counted.
    Count(u64),
}

/// A new configuration, of which nothing can fail any more.
#[derive(Clone)]
pub(crate) struct Change {
    pub plan: Arc<TargetPlan>,
    pub config: TargetConfig,
    pub backends: AllBackends,
    pub secrets: Arc<Secrets>,
    pub old_secrets: Arc<Secrets>,
    /// Disks become smaller when the last loop has dropped it.
    pub shrinking: Arc<Shrinking>,
}

struct Share {
    parcels: Mutex<Vec<Parcel>>,
    waker: Arc<Waker>,
}

/// The numbers of a loop, and the question that they answer.
#[derive(Clone, Copy, Default)]
struct Told {
    question: u64,
    counted: Counted,
}

/// What all loops share.
pub(crate) struct Common {
    shares: Box<[Share]>,
    told: Mutex<Vec<Told>>,
    changed: Condvar,
    questions: AtomicU64,
    /// How they wait.
    pub ways: Arc<Ways>,
}

impl Common {
    /// Of loops that these wake, and that poll for so long at most.
    pub(crate) fn new(wakers: &[Arc<Waker>], busy_poll: Span) -> Common {
        let share = |waker: &Arc<Waker>| Share { parcels: Mutex::default(), waker: waker.clone() };
        Common {
            shares: wakers.iter().map(share).collect(),
            told: Mutex::new(vec![Told::default(); wakers.len()]),
            changed: Condvar::new(),
            questions: AtomicU64::new(0),
            ways: Arc::new(Ways::new(wakers.len(), busy_poll)),
        }
    }

    /// Whether there is more than one loop.
    pub(crate) fn is_shared(&self) -> bool {
        self.shares.len() > 1
    }

    /// All loops but the first.
    pub(crate) fn others(&self) -> impl Iterator<Item = Member> + use<> {
        (1..self.shares.len() as u16).map(Member)
    }

    /// Gives a loop something. What one loop gives another arrives in that order.
    pub(crate) fn give(&self, to: Member, parcel: Parcel) {
        let share = &self.shares[usize::from(to.0)];
        let mut parcels = lock(&share.parcels);
        parcels.push(parcel);
        if parcels.len() == 1 {
            // It fails only when the loop is gone.
            let _ = share.waker.wake();
        }
    }

    /// What a loop was given.
    pub(crate) fn given(&self, to: Member) -> Vec<Parcel> {
        std::mem::take(&mut lock(&self.shares[usize::from(to.0)].parcels))
    }

    /// A loop answers how much it has counted.
    pub(crate) fn tell(&self, own: Member, question: u64, counted: Counted) {
        lock(&self.told)[usize::from(own.0)] = Told { question, counted };
        self.changed.notify_all();
    }

    /// Asks all loops but the first what they have counted, and adds it to `own`.
    pub(crate) fn sum(&self, own: Counted) -> Counted {
        let question = self.questions.fetch_add(1, Ordering::Relaxed) + 1;
        self.others().for_each(|other| self.give(other, Parcel::Count(question)));
        let told = lock(&self.told);
        let is_open = |told: &mut Vec<Told>| told[1..].iter().any(|told| told.question < question);
        let waited = self.changed.wait_timeout_while(told, COUNT_WAIT, is_open);
        let (told, _) = waited.unwrap_or_else(PoisonError::into_inner);
        told[1..].iter().fold(own, |sum, told| sum + told.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Poll, Token};

    fn common() -> Common {
        let poll = Poll::new().expect("there are events");
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).expect("there are events"));
        Common::new(&[waker.clone(), waker.clone(), waker], Span::ZERO)
    }

    #[test]
    fn a_loop_gets_what_it_was_given_in_order_and_once() {
        let common = common();
        (1..4).for_each(|number| common.give(Member(1), Parcel::Count(number)));
        let numbers = |given: Vec<Parcel>| -> Vec<u64> {
            given
                .into_iter()
                .filter_map(|parcel| if let Parcel::Count(number) = parcel { Some(number) } else { None })
                .collect()
        };
        assert!(numbers(common.given(Member(2))).is_empty());
        assert_eq!(numbers(common.given(Member(1))), [1, 2, 3]);
        assert!(numbers(common.given(Member(1))).is_empty());
    }

    #[test]
    fn a_sum_has_the_numbers_of_all_loops_and_of_a_busy_one_the_last() {
        let common = common();
        let commands = |commands| {
            let mut counted = Counted::default();
            counted.counters.commands = commands;
            counted
        };
        common.tell(Member(2), 0, commands(40));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let asked = std::iter::repeat_with(|| common.given(Member(1))).find(|given| !given.is_empty());
                if let Some([Parcel::Count(question)]) = asked.as_deref() {
                    common.tell(Member(1), *question, commands(2));
                }
            });
            assert_eq!(common.sum(commands(100)).counters.commands, 142);
        });
    }
}
