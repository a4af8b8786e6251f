//! x
use models::model::CacheModel;
use models::variant::*;
use models::scenario::{*, Operation::*};
use stateright::{Checker, Model, HasDiscoveries};
fn run(name:&str, variant: Variant, scenario: models::scenario::Scenario) -> bool {
    let t = std::time::Instant::now();
    let checker = CacheModel { variant, scenario: scenario.clone() }.checker().threads(1).target_state_count(std::env::args().nth(5).map_or(6_000_000, |v| v.parse().unwrap())).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let d = checker.discoveries();
    println!("{name} {} {:?} {:?}", checker.unique_state_count(), t.elapsed(), d.iter().map(|(k,v)| (k, v.clone().into_actions().len())).collect::<Vec<_>>());
    if !d.is_empty() { println!("  {scenario:?}"); }
    !d.is_empty()
}
fn main() {
    let mut seed: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let count: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    for n in 0..count {
        let mut r = |m: u64| { seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); (seed >> 33) % m };
        let mut value = 10;
        let clients = 2 + r(2);
        let mut programs = vec![];
        for _ in 0..clients {
            let len = 1 + r(2);
            let mut p = vec![];
            for _ in 0..len {
                let key = u8::from(r(3) == 0);
                value += 1;
                p.push(match r(9) { 0..=4 => Get(key), 5|6 => Put(key, value), 7 => Delete(key), _ => if r(2)==0 {ServerGet(key)} else {CompareAndSwap{key, expected: 1, new: value}} });
            }
            programs.push(p);
        }
        let slots = 1 + r(2) as usize;
        let mut b = Budget::default();
        for _ in 0..r(3) { match r(6) { 0|1 => b.lapses = 1 + r(2) as u8, 2 => b.deaths = 1, 3 => b.crashes = 1, 4 => b.overwrites = 1, _ => b.moves = 1 } }
        let tearing = match r(4) { 0|1 => Tearing::None, 2 => Tearing::Slots, _ => Tearing::Words };
        let s = Scenario { name: "", slots, initial: [1, if r(2)==0 {5} else {0}], cached: [[None, Some(0), Some(1)][r(3) as usize], None],
            programs, tearing, payload_parts: 1 + (r(3)==0) as usize, batches: 1 + (r(3)==0) as usize, fingerprints_collide: r(3)==0, answers_early: r(2)==0, budget: b };
        let bad = run(&format!("{n} early={} tear={:?} batches={} slots={}", s.answers_early, s.tearing, s.batches, s.slots), match std::env::args().nth(4).as_deref() { Some("d") => Variant::ours_with(Flaw::DamagedIgnored), Some("l") => Variant::ours_with(Flaw::LapsedIgnored), Some("o") => Variant::ours_with(Flaw::OffsetInAnyOrder), Some("w") => Variant::ours_with(Flaw::OwnWordInAnyOrder), Some("r") => Variant::ours_with(Flaw::RecoversSlotsFirst), _ => Variant::OURS }, s);
        if bad && std::env::args().nth(3).is_none() { return; }
    }
}
