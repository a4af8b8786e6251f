//! Is remote memory a memory? Answers, atomic operations and order, by history (paper 2.3, 3.1.1
//! property 5, 3.2.1).

#[path = "../examples/locks.rs"]
mod locks;

use base::{NodeId, Rate, Span, Time};
use edm::{Access, Modify, Ordering};
use locks::support::cluster;
use locks::support::programs::{Ask, Done, Program, Timed, is_linearizable, run};
use proptest::prelude::*;
use sim::rigs::edm::{EdmRig, EdmRigConfig, Fault, FaultKind};

const MEMORY: NodeId = NodeId(0);
const WORD: u64 = 64;

fn modify(modify: Modify) -> Ask {
    Ask { target: MEMORY, access: Access::Modify { address: WORD, modify } }
}
fn read() -> Ask {
    Ask { target: MEMORY, access: Access::Read { address: WORD, bytes: 8 } }
}
fn write(word: u64) -> Ask {
    Ask { target: MEMORY, access: Access::Write { address: WORD, bytes: 8, word } }
}

/// Asks for a fixed list.
struct List(std::vec::IntoIter<Ask>);

impl Program for List {
    fn next(&mut self, _: Time, _: Option<u64>) -> Option<Ask> {
        self.0.next()
    }
}

/// Runs one list a compute node against the memory of node 0, which only serves.
fn run_lists(config: EdmRigConfig, lists: Vec<Vec<Ask>>) -> (EdmRig, Vec<Done>) {
    let mut lists: Vec<List> = lists.into_iter().map(|list| List(list.into_iter())).collect();
    let programs = lists.iter_mut().map(|list| Some(list as &mut dyn Program));
    let mut rig = EdmRig::new(config);
    let (done, _) = run(&mut rig, Vec::new(), std::iter::once(None).chain(programs).collect());
    (rig, done)
}

/// Fetch-and-add by everybody at once: every number is given out once, and each node sees its own
/// grow.
#[test]
fn fetch_and_add_gives_every_number_once() {
    let (nodes, each) = (7, 60);
    let add = modify(Modify::FetchAndAdd { addend: 1 });
    let (rig, done) = run_lists(cluster(nodes + 1), vec![vec![add; each]; nodes as usize]);
    let mut answers: Vec<u64> = done.iter().map(|done| done.answer.unwrap()).collect();
    for node in 1..=nodes {
        let own: Vec<u64> =
            done.iter().filter(|done| done.node == NodeId(node)).map(|done| done.answer.unwrap()).collect();
        assert!(own.len() == each && own.is_sorted());
    }
    answers.sort();
    assert!(answers.into_iter().eq(0..u64::from(nodes) * each as u64));
    assert_eq!(rig.host(MEMORY).memory().read(WORD), u64::from(nodes) * each as u64);
}

/// Swaps hand one value on to the next: the answers and the last word are a chain without a fork.
#[test]
fn swaps_form_a_chain() {
    let swaps = |node: u64| (0..50).map(move |turn| modify(Modify::Swap { new: node * 1_000 + turn }));
    let (rig, done) = run_lists(cluster(6), (1..6).map(|node| swaps(node).collect()).collect());
    let mut seen: Vec<u64> = done.iter().map(|done| done.answer.unwrap()).collect();
    seen.push(rig.host(MEMORY).memory().read(WORD));
    let mut stored: Vec<u64> =
        std::iter::once(0).chain((1..6).flat_map(|n| (0..50).map(move |turn| n * 1_000 + turn))).collect();
    seen.sort();
    stored.sort();
    assert_eq!(seen, stored, "every value is handed on exactly once");
}

/// Counts with compare-and-swap: read, then try to store one more, until it has done so `left`
/// times.
struct Increment {
    left: u32,
    guess: Option<u64>,
}

impl Program for Increment {
    fn next(&mut self, _: Time, answer: Option<u64>) -> Option<Ask> {
        match (self.guess.take(), answer) {
            (None, Some(word)) => {
                self.guess = Some(word);
                return Some(modify(Modify::CompareAndSwap { expected: word, new: word + 1 }));
            }
            (Some(_), Some(1)) => self.left -= 1,
            _ => {}
        }
        (self.left > 0).then(read)
    }
}

/// Of several compare-and-swaps that expect the same value one succeeds: the successful ones are a
/// chain of single steps.
#[test]
fn compare_and_swap_lets_one_of_all_that_expect_the_same_through() {
    let (nodes, each) = (6u32, 25);
    for latency in [0, 400] {
        let mut config = cluster(nodes + 1);
        config.memory.latency = Span::ns(latency);
        let mut rig = EdmRig::new(config);
        let mut programs: Vec<Increment> = (0..nodes).map(|_| Increment { left: each, guess: None }).collect();
        let players = programs.iter_mut().map(|program| Some(program as &mut dyn Program));
        let (done, _) = run(&mut rig, Vec::new(), std::iter::once(None).chain(players).collect());
        let mut stored: Vec<u64> = done.iter().filter_map(successful_expectation).collect();
        stored.sort();
        assert!(stored.into_iter().eq(0..u64::from(nodes * each)));
        let tries = done.iter().filter(|done| matches!(done.ask.access, Access::Modify { .. })).count();
        assert!(tries > (nodes * each) as usize, "nobody ever lost: this test shows nothing");
    }
}

fn successful_expectation(done: &Done) -> Option<u64> {
    match done.ask.access {
        Access::Modify { modify: Modify::CompareAndSwap { expected, .. }, .. } if done.answer == Some(1) => {
            Some(expected)
        }
        _ => None,
    }
}

fn asks() -> impl Strategy<Value = Ask> {
    // Few values, so that compare-and-swap has something to hit.
    let word = || 0u64..4;
    prop_oneof![
        Just(read()),
        word().prop_map(write),
        (word(), word()).prop_map(|(expected, new)| modify(Modify::CompareAndSwap { expected, new })),
        word().prop_map(|addend| modify(Modify::FetchAndAdd { addend })),
        word().prop_map(|new| modify(Modify::Swap { new })),
    ]
}

/// One write and one read of an own word, or noise.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write,
    Read,
    Noise { bytes: u32, target: u32, is_write: bool },
}

fn steps() -> impl Strategy<Value = Vec<(u64, u32, Step)>> {
    let noise = (1u32..2_000, 0u32..5, any::<bool>());
    let step = prop_oneof![
        2 => Just(Step::Write),
        2 => Just(Step::Read),
        3 => noise.prop_map(|(bytes, target, is_write)| Step::Noise { bytes, target, is_write }),
    ];
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..30, 0u64..400], 0u32..5, step), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any mix of reads, writes and read-modify-writes on one word by several nodes is
    /// linearizable; with a backup that takes over in the middle, too.
    #[test]
    fn every_history_of_a_word_is_linearizable(
        lists in prop::collection::vec(prop::collection::vec(asks(), 1..12), 2..6),
        latency in prop_oneof![Just(0u64), Just(700)],
        redundant in any::<bool>(),
        fault in 0u64..6_000,
    ) {
        let mut config = cluster(6);
        config.memory.latency = Span::ns(latency);
        config.memory.bandwidth = (latency > 0).then(|| Rate::gbps(100));
        config.redundant = redundant;
        if redundant {
            config.faults = vec![Fault { at: Time::ns(fault), kind: FaultKind::SwitchDown(0) }];
        }
        let (_, done) = run_lists(config, lists);
        prop_assert!(is_linearizable(&done), "{done:?}");
    }

    /// Concurrent reads and writes of one node to one memory take effect in the order of their
    /// submission. A read returns what the node's last write before it has stored, whatever else is
    /// on the wires.
    #[test]
    fn a_node_reads_its_own_writes_in_the_order_of_its_asking(steps in steps(), latency in prop_oneof![Just(0u64), Just(2_000)]) {
        let mut config = cluster(5);
        config.edm.ordering = Ordering::Pair;
        config.memory.latency = Span::ns(latency);
        let (mut at, mut timed, mut expected, mut last) = (Time::ns(1), Vec::<Timed>::new(), Vec::new(), [0u64; 5]);
        for (number, (gap, node, step)) in steps.iter().enumerate() {
            at += Span::ns(*gap);
            let own = u64::from(8 * (node + 1));
            let memory = NodeId((node + 1) % 5);
            let (ask, answer) = match *step {
                Step::Write => {
                    last[*node as usize] = number as u64 + 1;
                    let access = Access::Write { address: own, bytes: 8, word: number as u64 + 1 };
                    (Ask { target: memory, access }, None)
                }
                Step::Read => {
                    (Ask { target: memory, access: Access::Read { address: own, bytes: 8 } }, Some(last[*node as usize]))
                }
                Step::Noise { bytes, target, is_write } => {
                    let target = NodeId(if target == *node { (target + 1) % 5 } else { target });
                    let (address, bytes) = (1 << 20, bytes + 8);
                    let write = Access::Write { address, bytes, word: 0 };
                    (Ask { target, access: if is_write { write } else { Access::Read { address, bytes } } }, None)
                }
            };
            timed.push((at, *node, ask));
            expected.push(answer);
        }
        let (done, _) = run(&mut EdmRig::new(config), timed, Vec::new());
        for (done, expected) in done.iter().zip(expected) {
            if let Some(expected) = expected {
                prop_assert_eq!(done.answer, Some(expected), "{:?}", done);
            }
        }
    }
}

/// The checker itself: it must know a history that no order explains.
#[test]
fn a_history_without_an_order_is_recognised() {
    let done =
        |asked, ended, ask, answer| Done { node: MEMORY, ask, asked: Time::ns(asked), ended: Time::ns(ended), answer };
    let stale = [done(0, 1, write(1), None), done(2, 3, read(), Some(0))];
    assert!(!is_linearizable(&stale));
    let overlapping = [done(0, 3, write(1), None), done(2, 3, read(), Some(0))];
    assert!(is_linearizable(&overlapping));
    let add = modify(Modify::FetchAndAdd { addend: 1 });
    assert!(!is_linearizable(&[done(0, 9, add, Some(0)), done(0, 9, add, Some(0))]));
    let swap_back = [done(0, 9, write(1), None), done(1, 2, read(), Some(1)), done(3, 4, read(), Some(0))];
    assert!(!is_linearizable(&swap_back));
}

/// The example: nobody is ever inside together with another, and no increment is lost.
#[test]
fn the_example_locks_exclude_each_other() {
    for kind in [locks::Kind::CompareAndSwap, locks::Kind::Swap] {
        for latency in [0, 250] {
            let mut config = cluster(6);
            config.memory.latency = Span::ns(latency);
            let outcome = locks::count_under_lock(config, kind, 12);
            assert_eq!(outcome.counter, 5 * 12);
            assert_eq!(outcome.sections.len(), 5 * 12);
            let mut sections = outcome.sections;
            sections.sort();
            assert!(sections.windows(2).all(|two| two[0].1 <= two[1].0), "{kind:?}: two were inside at once");
            assert!(outcome.tries > 5 * 12, "nobody ever found it taken: this shows nothing");
        }
    }
}
