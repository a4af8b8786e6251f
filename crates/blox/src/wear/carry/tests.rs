use super::*;
use proptest::prelude::*;

const PAGES: u64 = 10;
const CONFIG: CarrierConfig =
    CarrierConfig { pages: PAGES, batch: 3, attempts_max: 2, depth: 2, wait_max: Span::us(100) };
const ONE: VssdId = VssdId(4);
const OTHER: VssdId = VssdId(7);
const BYSTANDER: VssdId = VssdId(9);

/// A request that waits for the swap.
#[derive(Clone, Copy, Debug)]
struct Held {
    ticket: u64,
    vssd: VssdId,
    page: Page,
    write: Option<Value>,
}

/// Drives that are nothing but memory, by unit, and what clients believe to be there.
struct World {
    carrier: SwapCarrier,
    now: Time,
    names: BTreeMap<VssdId, usize>,
    regions: Vec<Vec<Value>>,
    truth: BTreeMap<(VssdId, Page), Value>,
    copies: Vec<CarrierOut>,
    underway: Vec<(VssdId, Page)>,
    held: Vec<Held>,
    values: u64,
}

impl World {
    fn new() -> World {
        let units = (PAGES + u64::from(CONFIG.batch)) as usize;
        let mut world = World {
            carrier: SwapCarrier::new(CONFIG).expect("these numbers are allowed"),
            now: Time::ZERO,
            names: [(ONE, 0), (OTHER, 1), (BYSTANDER, 2)].into(),
            regions: vec![vec![Value(0); units]; 3],
            truth: BTreeMap::new(),
            copies: Vec::new(),
            underway: Vec::new(),
            held: Vec::new(),
            values: 0,
        };
        for vssd in [ONE, OTHER, BYSTANDER] {
            (0..PAGES).for_each(|page| world.ask(vssd, Page(page), true));
        }
        while !world.underway.is_empty() {
            world.end(0);
        }
        world
    }
    fn unit(&mut self, seat: Seat) -> &mut Value {
        &mut self.regions[self.names[&seat.region]][seat.unit as usize]
    }
    fn ask(&mut self, vssd: VssdId, page: Page, is_write: bool) {
        self.values += 1;
        let (ticket, write) = (self.values, is_write.then_some(Value(self.values)));
        let held = Held { ticket, vssd, page, write };
        match self.carrier.admit(vssd, page, ticket) {
            Some(seat) => self.serve(held, seat),
            None => self.held.push(held),
        }
    }
    fn serve(&mut self, request: Held, seat: Seat) {
        let name = (request.vssd, request.page);
        match request.write {
            Some(value) => {
                *self.unit(seat) = value;
                self.truth.insert(name, value);
            }
            None => {
                let found = *self.unit(seat);
                assert_eq!(found, self.truth[&name], "{request:?} at {seat:?}");
            }
        }
        self.underway.push(name);
    }
    fn end(&mut self, which: usize) {
        if self.underway.is_empty() {
            return;
        }
        let (vssd, page) = self.underway.remove(which % self.underway.len());
        let mut out = Vec::new();
        self.carrier.end(self.now, vssd, page, &mut out);
        self.obey(out);
    }
    fn tell(&mut self, input: CarrierIn) {
        let mut out = Vec::new();
        self.carrier.on(self.now, input, &mut out);
        self.obey(out);
    }
    fn obey(&mut self, out: Vec<CarrierOut>) {
        for action in out {
            match action {
                CarrierOut::Read { .. } | CarrierOut::Write { .. } => self.copies.push(action),
                CarrierOut::Trim(seat) => *self.unit(seat) = Value(0),
                CarrierOut::Serve { ticket, seat } => {
                    let place = self.held.iter().position(|held| held.ticket == ticket).expect("it was held");
                    let request = self.held.remove(place);
                    self.serve(request, seat);
                }
                CarrierOut::Exchange { one, other } => {
                    let (first, second) = (self.names[&one], self.names[&other]);
                    self.names.extend([(one, second), (other, first)]);
                }
            }
        }
    }
    /// One of the pages on their way arrives; drives read and write at the moment they are asked.
    fn copy(&mut self, which: usize, is_refused: bool) {
        if self.copies.is_empty() {
            return;
        }
        match self.copies.remove(which % self.copies.len()) {
            CarrierOut::Read { copy, seat } => {
                let value = *self.unit(seat);
                self.tell(CarrierIn::Read { copy, value });
            }
            CarrierOut::Write { copy, .. } if is_refused => self.tell(CarrierIn::Refused(copy)),
            CarrierOut::Write { copy, seat, value } => {
                *self.unit(seat) = value;
                self.tell(CarrierIn::Written(copy));
            }
            _ => {}
        }
    }
    /// The server dies. What drives were doing is over by the time it is back.
    fn crash(&mut self) {
        self.tell(CarrierIn::Fail);
        self.held.clear();
        self.underway.clear();
        while !self.copies.is_empty() {
            self.copy(0, false);
        }
        self.tell(CarrierIn::Recover);
    }
    fn wake(&mut self) {
        if let Some(at) = self.carrier.next_wakeup() {
            self.now = self.now.max(at);
            let mut out = Vec::new();
            self.carrier.on_wakeup(self.now, &mut out);
            self.obey(out);
        }
    }
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.underway.is_empty() && self.copies.is_empty() && !self.carrier.is_swapping() {
                return;
            }
            self.end(0);
            self.copy(0, false);
            self.wake();
        }
        panic!("no end: {:?}", self.carrier);
    }
    fn check_all(&mut self) {
        for vssd in [ONE, OTHER, BYSTANDER] {
            (0..PAGES).for_each(|page| self.ask(vssd, Page(page), false));
        }
        self.settle();
    }
}

const SWAP: CarrierIn = CarrierIn::Swap { one: ONE, other: OTHER };

#[test]
fn two_vssds_exchange_their_regions_and_a_second_swap_brings_them_back() {
    let mut world = World::new();
    let before = world.names.clone();
    for (round, homes) in [(1, [1, 0]), (2, [0, 1])] {
        world.tell(SWAP);
        world.settle();
        world.check_all();
        assert_eq!([world.names[&ONE], world.names[&OTHER]], homes);
        assert_eq!(world.carrier.counters().done, round);
        assert_eq!(world.carrier.counters().pages_written, round * PAGES * 2, "each page is written once");
        let free = |region: &Vec<Value>| region.iter().filter(|value| **value == Value(0)).count();
        assert!(world.regions[..2].iter().all(|region| free(region) == CONFIG.batch as usize), "old copies are gone");
    }
    assert_eq!(world.names, before);
}

#[test]
fn a_swap_makes_way_for_requests_until_its_patience_ends() {
    let mut world = World::new();
    world.ask(BYSTANDER, Page(0), false);
    world.tell(SWAP);
    assert!(world.copies.is_empty(), "a request is at the device");
    assert_eq!(world.carrier.next_wakeup(), Some(Time::us(100)));
    world.wake();
    assert_eq!(world.copies.len(), 2, "as many as may be on their way");
    let mut idle = World::new();
    idle.tell(SWAP);
    assert_eq!((idle.copies.len(), idle.carrier.next_wakeup()), (2, None), "nothing is in the way");
}

#[test]
fn a_request_for_a_page_that_moves_waits_and_hurries_the_swap() {
    let mut world = World::new();
    world.ask(BYSTANDER, Page(0), false);
    world.tell(SWAP);
    world.ask(ONE, Page(1), true);
    world.ask(ONE, Page(5), false);
    assert_eq!((world.held.len(), world.underway.len()), (1, 2), "page 5 is in no batch yet");
    world.end(1);
    assert_eq!(world.copies.len(), 2, "a request is held: the swap goes on though another is at the device");
    while world.copies.iter().any(|copy| matches!(copy, CarrierOut::Read { .. } | CarrierOut::Write { .. })) {
        world.copy(0, false);
        if world.held.is_empty() {
            break;
        }
    }
    assert_eq!(world.carrier.counters().held, 1);
    world.settle();
    world.check_all();
}

#[test]
fn flash_that_is_worn_out_stops_the_swap_where_it_is() {
    let mut world = World::new();
    world.tell(SWAP);
    for _ in 0..200 {
        let Some(CarrierOut::Write { copy, .. }) = world.copies.first().copied() else {
            world.copy(0, false);
            continue;
        };
        world.copies.clear();
        world.tell(CarrierIn::Failed(copy));
    }
    assert_eq!((world.carrier.counters().done, world.carrier.counters().stopped), (0, 1));
    assert!(!world.carrier.is_swapping());
    world.check_all();
}

#[test]
fn numbers_that_make_no_swap_are_refused() {
    for config in [
        CarrierConfig { batch: 0, ..CONFIG },
        CarrierConfig { depth: 0, ..CONFIG },
        CarrierConfig { attempts_max: 0, ..CONFIG },
        CarrierConfig { pages: u64::from(u32::MAX), ..CONFIG },
    ] {
        assert!(SwapCarrier::new(config).is_err(), "{config:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask { vssd: VssdId, page: u64, is_write: bool },
    End(usize),
    Copy { which: usize, is_refused: bool },
    Wake,
    Swap,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let vssd = prop::sample::select(vec![ONE, OTHER, BYSTANDER]);
    prop_oneof![
        6 => (vssd, 0..PAGES, any::<bool>()).prop_map(|(vssd, page, is_write)| Step::Ask { vssd, page, is_write }),
        6 => any::<usize>().prop_map(Step::End),
        12 => (any::<usize>(), prop::bool::weighted(0.1))
            .prop_map(|(which, is_refused)| Step::Copy { which, is_refused }),
        3 => Just(Step::Wake),
        1 => Just(Step::Swap),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each read is compared with the last write in [`World::serve`].
    #[test]
    fn whatever_happens_a_read_returns_the_last_write(steps in prop::collection::vec(step(), 1..200)) {
        let mut world = World::new();
        world.tell(SWAP);
        let mut swaps = 1;
        for step in steps {
            match step {
                Step::Ask { vssd, page, is_write } => world.ask(vssd, Page(page), is_write),
                Step::End(which) => world.end(which),
                Step::Copy { which, is_refused } => world.copy(which, is_refused),
                Step::Wake => world.wake(),
                Step::Swap => {
                    swaps += 1;
                    world.tell(SWAP);
                }
                Step::Crash => world.crash(),
            }
        }
        world.settle();
        prop_assert!(world.held.is_empty());
        world.check_all();
        prop_assert_eq!(world.carrier.counters().done, swaps);
    }
}
