//! Does the claim hold: over random schedules of delays, losses and failures a careless retry over
//! another path loses acknowledged writes, and ours do not.
//!
//! Four clients, one I/O each at a time, share four blocks of a drive that is reached by two ways.
//! The checker sees what clients see.

#[path = "../../../san/tests/net/mod.rs"]
mod net;

use base::{Operation, Seed, Span, Stream, Time};
use history::{BlockId, Found, OrderViolation, WriteEnd, WriteOrder};
use net::{BLOCK, Net, host_config, target_config};
use proptest::prelude::*;
use san::Outcome;
use san::retry::{RetryPolicy, quiesce_wait};
use san::target::TargetConfig;

const CLIENTS: usize = 4;
const BLOCKS: u64 = 4;
const ROUNDS: u64 = 40;
/// The longest that a packet is on its way, and that a drive takes, and that a command may wait at
/// the target.
const WAY_MAX: Span = Span::us(400);
const DRIVE_MAX: Span = Span::us(60);
const COMMAND_LIFE_MAX: Span = Span::us(600);

/// What a client waits for: request, block, whether it writes, since when.
type Asked = Option<(u64, u64, bool, Time)>;

/// What the clients ask and see.
struct Clients {
    asked: [Asked; CLIENTS],
    rounds: [u64; CLIENTS],
    next: u64,
    order: WriteOrder,
    dice: Stream,
    seen: usize,
}

fn id(block: u64) -> BlockId {
    (2, block)
}

impl Clients {
    fn ask(&mut self, net: &mut Net) {
        for client in 0..CLIENTS {
            if self.asked[client].is_some() || self.rounds[client] == ROUNDS {
                continue;
            }
            self.rounds[client] += 1;
            self.next += 1;
            let (block, is_write) = (self.dice.below(BLOCKS), self.dice.below(3) > 0);
            let operation = if is_write { Operation::Write } else { Operation::Read };
            net.ask(net.now, self.next, operation, block, BLOCK);
            self.asked[client] = Some((self.next, block, is_write, net.now));
            match is_write {
                true => self.order.write_begins(net.now, id(block), self.next),
                false => self.order.read_begins(net.now, id(block)),
            }
        }
    }

    fn see(&mut self, net: &Net) -> Result<(), OrderViolation> {
        for (at, done) in &net.done[self.seen..] {
            self.seen += 1;
            let is_of = |asked: &Asked| asked.is_some_and(|(request, ..)| request == done.request.0);
            let client = self.asked.iter().position(is_of).unwrap();
            let (request, block, is_write, begun) = self.asked[client].take().unwrap();
            match (is_write, done.outcome) {
                (true, Outcome::Success) => self.order.write_ends(*at, id(block), request, WriteEnd::Acknowledged),
                (true, _) => self.order.write_ends(*at, id(block), request, WriteEnd::Failed),
                (false, Outcome::Success) => self.order.read_ends(*at, id(block), begun, found(net, request))?,
                (false, _) => self.order.read_fails(id(block), begun),
            }
        }
        Ok(())
    }
}

/// What the drive found for a read.
fn found(net: &Net, request: u64) -> u64 {
    net.executed.iter().rev().find(|(_, other, ..)| other.0 == request).unwrap().3
}

fn world(seed: u64, retry: RetryPolicy) -> Net {
    let mut host = host_config(retry);
    (host.timeout, host.sends_max, host.suspect_for) = (Span::us(300), 2, Span::us(500));
    let target = TargetConfig { command_life_max: Some(COMMAND_LIFE_MAX), ..target_config() };
    let mut net = Net::new(host, &target);
    let mut dice = Seed(seed).stream("ways");
    net.way = Box::new(move |_, _, _| match dice.below(100) {
        0 => None,
        1..8 => Some(Span::us(dice.below(400))),
        _ => Some(Span::us(1 + dice.below(6))),
    });
    let mut dice = Seed(seed).stream("drive");
    net.drive_time = Box::new(move |_| Span::us(1 + dice.below(60)));
    let mut dice = Seed(seed).stream("failures");
    for _ in 0..4 {
        let (at, port) = (Time::us(dice.below(8_000)), dice.below(2) as u16);
        net.link_down(at, port);
        net.link_up(at + Span::us(1 + dice.below(1_500)), port);
    }
    let at = Time::us(dice.below(8_000));
    net.drive_failed(at);
    net.drive_back(at + Span::us(dice.below(300)));
    net
}

/// A violation with the log of its world.
type Broken = Box<(OrderViolation, String)>;

/// Plays a world to its end.
fn play(seed: u64, retry: RetryPolicy) -> Result<Net, Broken> {
    let mut net = world(seed, retry);
    let dice = Seed(seed).stream("clients");
    let order = WriteOrder::new();
    let mut clients = Clients { asked: [None; CLIENTS], rounds: [0; CLIENTS], next: 0, order, dice, seen: 0 };
    let judge = |judged: Result<(), OrderViolation>, net: &Net| {
        judged.map_err(|violation| Broken::new((violation, net.log.join("\n"))))
    };
    loop {
        clients.ask(&mut net);
        let runs = net.step(Time::secs(5));
        judge(clients.see(&net), &net)?;
        if !runs {
            break;
        }
    }
    assert_eq!(clients.rounds, [ROUNDS; CLIENTS], "a client waits for ever");
    assert_eq!(net.done.len() as u64, CLIENTS as u64 * ROUNDS);
    // What is on the drive in the end, long after the last copy.
    let end = net.now + Span::secs(1);
    for (block, request) in &net.disk {
        judge(clients.order.holds(end, id(*block), *request), &net)?;
    }
    let failed = net.done.iter().filter(|(_, done)| done.outcome != Outcome::Success).count();
    assert!(clients.order.remembered() <= clients.order.blocks() * CLIENTS + failed, "memory is what was in flight");
    Ok(net)
}

fn quiesce() -> RetryPolicy {
    RetryPolicy::Quiesce { wait: quiesce_wait(WAY_MAX, COMMAND_LIFE_MAX, DRIVE_MAX) }
}

#[test]
fn naive_retries_lose_acknowledged_writes_in_random_worlds() {
    let worlds = 300;
    let broken: Vec<Broken> = (0..worlds).filter_map(|seed| play(seed, RetryPolicy::Naive).err()).collect();
    let (violation, log) = &**broken.first().expect("no world shows the danger");
    let Found::Write(lost) = violation.found else { panic!("the write that came back is remembered: {violation}") };
    println!("{} of {worlds} worlds; the first: {violation}", broken.len());
    let names = [lost.id, violation.winner.id].map(|id| format!(" {id} "));
    log.lines().filter(|line| names.iter().any(|name| line.contains(name))).for_each(|line| println!("{line}"));
}

#[test]
fn the_worlds_are_rough() {
    let nets: Vec<Net> = (0..20).map(|seed| play(seed, RetryPolicy::CrossControllerReset).ok().unwrap()).collect();
    let sum = |of: fn(&Net) -> u64| nets.iter().map(of).sum::<u64>();
    assert!(sum(|net| net.host.counters().path_failures) > 40);
    assert!(sum(|net| net.host.counters().retries) > 40);
    assert!(sum(|net| net.target.counters().duplicates) > 20);
    assert!(sum(|net| net.target.counters().late) > 5);
    assert!(sum(|net| net.target.counters().failed) > 5);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn waiting_until_no_copy_can_live_keeps_the_order_of_writes(seed: u64) {
        let played = play(seed, quiesce());
        prop_assert!(played.is_ok(), "{:?}", played.err());
    }

    #[test]
    fn a_reset_of_the_failed_association_keeps_the_order_of_writes(seed: u64) {
        let played = play(seed, RetryPolicy::CrossControllerReset);
        prop_assert!(played.is_ok(), "{:?}", played.err());
    }
}
