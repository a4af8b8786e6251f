//! Every order in which the passes of replicas' requests can meet in the tables.

use super::super::coordination::{self, Progress, Row, Verdict};
use super::super::tables::{Phase, Tables};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Requests that are still to come, replica by replica, and the packets between two passes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    bits: Vec<(bool, Phase)>,
    begun: Vec<usize>,
    under_way: Vec<(u32, CollectionNote, Progress)>,
    /// Who holds a grant that it asked for softly.
    soft: Vec<bool>,
}

/// Replicas `0..n` in a ring, vSSD and server of the same number.
struct World {
    scripts: Vec<Vec<CollectionNote>>,
    seen: BTreeSet<State>,
    soft_grants: usize,
    settled: usize,
}

impl World {
    fn explore(scripts: Vec<Vec<CollectionNote>>) -> World {
        let count = scripts.len();
        let mut tables = Tables::new(count as u32);
        for vssd in 0..count as u32 {
            let row = Row { server: NodeId(vssd), replica: VssdId((vssd + 1) % count as u32) };
            for progress in [Progress::Arrived, Progress::Replacing(Phase::Idle)] {
                coordination::replace(&mut tables, VssdId(vssd), Some(row), progress);
            }
        }
        let state =
            State { bits: bits(&tables), begun: vec![0; count], under_way: Vec::new(), soft: vec![false; count] };
        let mut world = World { scripts, seen: BTreeSet::new(), soft_grants: 0, settled: 0 };
        let mut open = vec![(tables, state)];
        while let Some((tables, state)) = open.pop() {
            if world.seen.insert(state.clone()) {
                world.check(&state);
                world.follow(&tables, &state, &mut open);
            }
        }
        world
    }

    fn check(&mut self, state: &State) {
        assert!(state.soft.iter().filter(|held| **held).count() <= 1, "two soft grants in {state:?}");
        if state.under_way.is_empty() {
            for (collecting, phase) in &state.bits {
                let agrees = matches!((collecting, phase), (false, Phase::Idle) | (true, Phase::Granted));
                assert!(agrees, "the tables disagree in {state:?}");
            }
            self.settled += 1;
        }
    }

    fn follow(&mut self, tables: &Tables, state: &State, open: &mut Vec<(Tables, State)>) {
        for vssd in 0..self.scripts.len() {
            if let Some(note) = self.scripts[vssd].get(state.begun[vssd]) {
                let mut next = state.clone();
                next.begun[vssd] += 1;
                open.push(self.pass(tables.clone(), next, (vssd as u32, *note, Progress::Arrived)));
            }
        }
        for place in 0..state.under_way.len() {
            let mut next = state.clone();
            let packet = next.under_way.remove(place);
            open.push(self.pass(tables.clone(), next, packet));
        }
    }

    fn pass(
        &mut self,
        mut tables: Tables,
        mut state: State,
        (vssd, request, progress): (u32, CollectionNote, Progress),
    ) -> (Tables, State) {
        let held = tables.bits(VssdId(vssd)).1;
        let verdict =
            coordination::collection(&mut tables, &note(VssdId(vssd), NodeId(vssd), request), request, progress);
        match verdict {
            Verdict::Again(progress) => state.under_way.push((vssd, request, progress)),
            Verdict::Answer(Accept) if request == Soft && held != Phase::Granted => {
                state.soft[vssd as usize] = true;
                self.soft_grants += 1;
                let collects = |other: &usize| tables.bits(VssdId(*other as u32)).1 == Phase::Granted;
                let mut others = (0..state.soft.len()).filter(|other| *other != vssd as usize && collects(other));
                // In a larger ring a regular request may come after its vSSD has been looked at:
                // nothing denies it.
                let is_pair = state.soft.len() == 2;
                assert!(!is_pair || others.next().is_none(), "accepted while the replica collects: {state:?}");
            }
            Verdict::Answer(Finish) => state.soft[vssd as usize] = false,
            Verdict::Answer(_) => {}
            other => panic!("a sound request ended in {other:?}"),
        }
        state.under_way.sort();
        state.bits = bits(&tables);
        (tables, state)
    }
}

fn bits(tables: &Tables) -> Vec<(bool, Phase)> {
    (0..).map(VssdId).take_while(|vssd| tables.holds(*vssd)).map(|vssd| tables.bits(vssd)).collect()
}

/// All sequences of `length` requests.
fn scripts(length: u32) -> Vec<Vec<CollectionNote>> {
    let choices = [Soft, Regular, Finish];
    let digit = |script: usize, place: u32| choices[script / 3_usize.pow(place) % 3];
    (0..3_usize.pow(length)).map(|script| (0..length).map(|place| digit(script, place)).collect()).collect()
}

#[test]
fn two_replicas_never_both_hold_a_soft_grant_in_whatever_order_their_passes_meet() {
    let all = scripts(3);
    let (mut states, mut soft_grants) = (0, 0);
    for first in &all {
        for second in &all {
            let world = World::explore(vec![first.clone(), second.clone()]);
            assert!(world.settled > 0);
            states += world.seen.len();
            soft_grants += world.soft_grants;
        }
    }
    assert!(states > 100_000 && soft_grants > 10_000, "{states} states and {soft_grants} grants are hardly all");
}

#[test]
fn neither_do_three() {
    let all = scripts(2);
    for first in &all {
        for second in &all {
            for third in &all {
                World::explore(vec![first.clone(), second.clone(), third.clone()]);
            }
        }
    }
}

/// Requests at the given moments, in units of a quarter of a round, and each one's answer.
fn answers(rack: &mut Rack, mut requests: Vec<(u64, VssdId, NodeId)>) -> Vec<(VssdId, CollectionNote)> {
    requests.sort();
    let start = rack.now;
    let mut events = Vec::new();
    for (quarters, vssd, server) in requests {
        let at = start + ROUND * quarters / 4;
        while let Some(next) = rack.switch.next_wakeup().filter(|next| *next <= at) {
            rack.switch.on_wakeup(next, &mut rack.out);
        }
        rack.now = at;
        rack.on(SwitchIn::Packet(note(vssd, server, Soft)));
    }
    events.extend(rack.settle());
    let answer = |(_, event): &(Time, SwitchOut)| match *event {
        SwitchOut::Transmit { packet: Packet { vssd, body: Body::Collection(note), .. }, .. } => (vssd, note),
        other => panic!("an answer was expected, not {other:?}"),
    };
    events.iter().map(answer).collect()
}

#[test]
fn of_two_soft_requests_at_nearly_the_same_moment_exactly_one_is_accepted() {
    for quarters in 0..=40 {
        let mut rack = Rack::with_replicas(config());
        let answers = answers(&mut rack, vec![(20, RED, FIRST), (quarters, BLUE, SECOND)]);
        let accepted = answers.iter().filter(|(_, note)| *note == Accept).count();
        assert_eq!((answers.len(), accepted), (2, 1), "{quarters} quarters of a round: {answers:?}");
    }
}

proptest! {
    #[test]
    fn of_three_soft_requests_exactly_one_is_accepted(quarters in prop::array::uniform3(0_u64..40)) {
        let mut rack = Rack::new(config());
        for vssd in 0..3 {
            let (next, server) = ((vssd + 1) % 3, NodeId(vssd + 1));
            prop_assert_eq!(rack.send(create(VssdId(vssd), server, VssdId(next), NodeId(next + 1))), []);
        }
        let requests = (0..3).map(|vssd| (quarters[vssd as usize], VssdId(vssd), NodeId(vssd + 1))).collect();
        let answers = answers(&mut rack, requests);
        let accepted = answers.iter().filter(|(_, note)| *note == Accept).count();
        prop_assert_eq!((answers.len(), accepted), (3, 1), "{:?}", answers);
    }

    /// Any packets at any moments: at most one soft grant, and tables that agree once nothing is
    /// under way.
    #[test]
    fn the_tables_of_a_busy_switch_agree(
        requests in prop::collection::vec((0_u64..1_500, prop::bool::ANY, 0_usize..6), 1..60),
    ) {
        let mut rack = Rack::with_replicas(config());
        for (gap_ns, is_red, kind) in requests {
            let (vssd, server, other, other_server) =
                if is_red { (RED, FIRST, BLUE, SECOND) } else { (BLUE, SECOND, RED, FIRST) };
            let packet = match kind {
                0..5 => note(vssd, server, [Soft, Soft, Regular, Background, Finish][kind]),
                _ => create(vssd, server, other, other_server),
            };
            let at = rack.now + Span::ns(gap_ns);
            while let Some(next) = rack.switch.next_wakeup().filter(|next| *next <= at) {
                rack.switch.on_wakeup(next, &mut rack.out);
            }
            rack.now = at;
            rack.on(SwitchIn::Packet(packet));
        }
        rack.settle();
        for (collecting, phase) in rack.bits() {
            prop_assert!(matches!((collecting, phase), (false, Phase::Idle) | (true, Phase::Granted)));
        }
    }
}
