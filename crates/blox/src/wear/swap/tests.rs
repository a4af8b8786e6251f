use super::*;
use proptest::prelude::*;

const PLAN: SwapPlan = SwapPlan { one_blocks: 2, other_blocks: 1, batch: 1, attempts_max: 2 };

fn one(index: u32) -> SwapBlock {
    SwapBlock { content: Side::One, index }
}

fn other(index: u32) -> SwapBlock {
    SwapBlock { content: Side::Other, index }
}

/// Carries out whatever is asked for until `stage` is reached.
fn advance_to(stage: SwapStage, swap: &mut SwapProgress, asked: &mut Vec<SwapAction>) {
    while swap.stage() != stage {
        let action = asked.remove(0);
        report(action, swap, asked);
    }
}

fn report(action: SwapAction, swap: &mut SwapProgress, asked: &mut Vec<SwapAction>) {
    match action {
        SwapAction::Read { block, .. } => swap.on_event(SwapEvent::Read(block), asked),
        SwapAction::Write { block, .. } => swap.on_event(SwapEvent::Written(block), asked),
        SwapAction::Commit { .. } => swap.on_event(SwapEvent::Committed, asked),
        SwapAction::Erase { block, .. } => swap.on_event(SwapEvent::Erased(block), asked),
        SwapAction::Serve { block, .. } => swap.end(block, asked),
    }
}

fn started(plan: SwapPlan) -> (SwapProgress, Vec<SwapAction>) {
    let mut swap = SwapProgress::new(plan).expect("the plan is allowed");
    let mut asked = Vec::new();
    swap.start(&mut asked);
    (swap, asked)
}

#[test]
fn a_swap_clears_reads_writes_commits_and_clears_again() {
    let (mut swap, mut asked) = started(PLAN);
    let erases = |blocks: &[(SwapBlock, Side)]| -> Vec<SwapAction> {
        blocks.iter().map(|(block, on)| SwapAction::Erase { block: *block, on: *on }).collect()
    };
    assert_eq!(asked, erases(&[(one(0), Side::Other), (other(0), Side::One)]));
    advance_to(SwapStage::Reading, &mut swap, &mut asked);
    let read = |block: SwapBlock| SwapAction::Read { block, from: block.content };
    assert_eq!(asked, [read(one(0)), read(other(0))]);
    advance_to(SwapStage::Writing, &mut swap, &mut asked);
    let write = |block: SwapBlock| SwapAction::Write { block, to: block.content.opposite() };
    assert_eq!(asked, [write(one(0)), write(other(0))]);
    advance_to(SwapStage::Committing, &mut swap, &mut asked);
    assert_eq!(asked, [SwapAction::Commit { moved: 1 }]);
    assert_eq!(swap.side_of(one(0)), Side::One);
    advance_to(SwapStage::Clearing, &mut swap, &mut asked);
    assert_eq!(asked, erases(&[(one(0), Side::One), (other(0), Side::Other)]));
    assert_eq!(swap.side_of(one(0)), Side::Other);
    advance_to(SwapStage::Done, &mut swap, &mut asked);
    assert_eq!((swap.side_of(one(1)), swap.moved()), (Side::Other, 2));
}

#[test]
fn requests_to_the_batch_wait_and_those_to_other_blocks_do_not() {
    let (mut swap, mut asked) = started(PLAN);
    advance_to(SwapStage::Writing, &mut swap, &mut asked);
    assert_eq!(swap.admit(other(0), 7), Admission::Held);
    assert_eq!(swap.admit(one(1), 8), Admission::Serve(Side::One));
    assert_eq!(swap.admit(other(1), 9), Admission::NoSuchBlock);
    advance_to(SwapStage::Committing, &mut swap, &mut asked);
    assert_eq!((swap.admit(one(0), 10), swap.held()), (Admission::Held, 2));
    let mut served = Vec::new();
    swap.on_event(SwapEvent::Committed, &mut served);
    let serve = |ticket, block, on| SwapAction::Serve { ticket, block, on };
    assert_eq!(served[2..], [serve(7, other(0), Side::One), serve(10, one(0), Side::Other)]);
}

#[test]
fn a_batch_is_read_only_when_the_requests_underway_have_ended() {
    let mut swap = SwapProgress::new(PLAN).expect("the plan is allowed");
    let mut asked = Vec::new();
    assert_eq!(swap.admit(one(0), 1), Admission::Serve(Side::One));
    assert_eq!(swap.admit(one(0), 2), Admission::Serve(Side::One));
    swap.start(&mut asked);
    advance_to(SwapStage::Pausing, &mut swap, &mut asked);
    swap.end(one(0), &mut asked);
    assert_eq!((swap.stage(), asked.len()), (SwapStage::Pausing, 0));
    swap.end(one(0), &mut asked);
    assert_eq!((swap.stage(), asked.len()), (SwapStage::Reading, 2));
}

#[test]
fn a_batch_that_fails_twice_stops_the_swap_where_it_is() {
    let (mut swap, mut asked) = started(PLAN);
    for _ in 0..2 {
        advance_to(SwapStage::Writing, &mut swap, &mut asked);
        assert_eq!(swap.admit(one(0), 3), Admission::Held);
        asked.clear();
        swap.on_event(SwapEvent::Failed(one(0)), &mut asked);
        assert!(asked.contains(&SwapAction::Serve { ticket: 3, block: one(0), on: Side::One }));
        assert!(asked.contains(&SwapAction::Erase { block: one(0), on: Side::Other }));
    }
    advance_to(SwapStage::Stopped, &mut swap, &mut asked);
    assert_eq!((swap.is_over(), swap.side_of(one(0))), (true, Side::One));
}

#[test]
fn what_was_not_asked_for_is_ignored() {
    let (mut swap, mut asked) = started(PLAN);
    let before = asked.clone();
    for event in [SwapEvent::Committed, SwapEvent::Read(one(0)), SwapEvent::Failed(one(0)), SwapEvent::Erased(one(1))] {
        swap.on_event(event, &mut asked);
    }
    swap.end(one(1), &mut asked);
    assert_eq!((swap.stage(), asked), (SwapStage::Clearing, before));
}

#[test]
fn a_record_that_no_batch_ends_with_is_refused() {
    let plan = SwapPlan { one_blocks: 7, other_blocks: 5, batch: 3, attempts_max: 1 };
    let accepted: Vec<u32> = (0..10).filter(|moved| SwapProgress::resume(plan, *moved).is_ok()).collect();
    assert_eq!(accepted, [0, 3, 6, 7]);
    assert!(SwapProgress::new(SwapPlan { batch: 0, ..plan }).is_err());
    assert!(SwapProgress::new(SwapPlan { attempts_max: 0, ..plan }).is_err());
}

/// Two drives, the controller's memory, clients, and what survives a crash.
struct World {
    plan: SwapPlan,
    swap: SwapProgress,
    /// What the swap has asked for.
    asked: Vec<SwapAction>,
    /// Survives: copies by block and side.
    flash: BTreeMap<(SwapBlock, Side), u64>,
    /// Survives: the record.
    moved: u32,
    memory: BTreeMap<SwapBlock, u64>,
    /// Writes that are let through, with their places.
    underway: Vec<(SwapBlock, Side, u64)>,
    /// The last write that was answered, by block.
    answered: BTreeMap<SwapBlock, u64>,
    next_value: u64,
    crashes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One of the actions happens and is reported.
    Happen(usize),
    /// One of the actions fails, if it can.
    Fail(usize),
    /// A client writes to a block.
    Ask(SwapBlock),
    /// One of the writes underway reaches flash and is answered.
    Answer(usize),
    /// Power is lost. By the bits of the number, actions and writes underway have happened or not.
    Crash(u64),
}

impl World {
    fn new(plan: SwapPlan) -> World {
        let flash: BTreeMap<_, _> =
            plan.blocks_in(0, plan.blocks()).zip(1..).map(|(block, value)| ((block, block.content), value)).collect();
        let mut world = World {
            plan,
            swap: SwapProgress::new(plan).expect("the plan is allowed"),
            asked: Vec::new(),
            answered: flash.iter().map(|((block, _), value)| (*block, *value)).collect(),
            flash,
            moved: 0,
            memory: BTreeMap::new(),
            underway: Vec::new(),
            next_value: 1_000,
            crashes: 0,
        };
        world.swap.start(&mut world.asked);
        world
    }
    fn take(&mut self, step: Step) {
        match step {
            Step::Happen(choice) => self.happen(choice),
            Step::Fail(choice) => self.fail(choice),
            Step::Ask(block) => self.ask(block),
            Step::Answer(choice) => self.answer(choice),
            Step::Crash(bits) => self.crash(bits),
        }
    }
    fn happen(&mut self, choice: usize) {
        if self.asked.is_empty() {
            return;
        }
        let action = self.asked.remove(choice % self.asked.len());
        self.apply(action);
        if let SwapAction::Serve { ticket, block, on } = action {
            self.underway.push((block, on, ticket));
        } else {
            report(action, &mut self.swap, &mut self.asked);
        }
    }
    /// The effect of an action on memory and flash.
    fn apply(&mut self, action: SwapAction) {
        match action {
            SwapAction::Read { block, from } => {
                let value = *self.flash.get(&(block, from)).expect("the copy that counts is there");
                self.memory.insert(block, value);
            }
            SwapAction::Write { block, to } => {
                let value = *self.memory.get(&block).expect("it was read before");
                let old = self.flash.insert((block, to), value);
                assert_eq!(old, None, "a copy goes to free flash");
            }
            SwapAction::Commit { moved } => self.moved = moved,
            SwapAction::Erase { block, on } => {
                self.flash.remove(&(block, on));
            }
            SwapAction::Serve { .. } => {}
        }
    }
    fn fail(&mut self, choice: usize) {
        if self.asked.is_empty() {
            return;
        }
        let place = choice % self.asked.len();
        if let SwapAction::Read { block, .. } | SwapAction::Write { block, .. } = self.asked[place] {
            // What is left of the batch was asked for in vain: it is called off, and requests are
            // still to be served.
            let is_batch = |action: &SwapAction| matches!(action, SwapAction::Read { .. } | SwapAction::Write { .. });
            self.asked.retain(|action| !is_batch(action));
            self.swap.on_event(SwapEvent::Failed(block), &mut self.asked);
        }
    }
    fn ask(&mut self, block: SwapBlock) {
        self.next_value += 1;
        if let Admission::Serve(side) = self.swap.admit(block, self.next_value) {
            self.underway.push((block, side, self.next_value));
        }
    }
    fn answer(&mut self, choice: usize) {
        if self.underway.is_empty() {
            return;
        }
        let (block, side, value) = self.underway.remove(choice % self.underway.len());
        self.flash.insert((block, side), value);
        self.answered.insert(block, value);
        self.swap.end(block, &mut self.asked);
    }
    fn crash(&mut self, bits: u64) {
        self.crashes += 1;
        let happens = |index: usize| bits >> (index % 64) & 1 == 1;
        for (index, action) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            if happens(index) {
                self.apply(action);
            }
        }
        for (index, (block, side, value)) in std::mem::take(&mut self.underway).into_iter().enumerate() {
            if happens(index + 7) {
                self.flash.insert((block, side), value);
                self.answered.insert(block, value);
            }
        }
        self.memory.clear();
        self.swap = SwapProgress::resume(self.plan, self.moved).expect("the record is one of the plan's");
        self.swap.start(&mut self.asked);
    }
    /// What a reader gets who knows the durable record alone.
    fn check_readable(&self) -> Result<(), TestCaseError> {
        for (block, value) in &self.answered {
            let side = if block.index < self.moved { block.content.opposite() } else { block.content };
            prop_assert_eq!(self.flash.get(&(*block, side)), Some(value), "{:?} on {:?}", block, side);
        }
        Ok(())
    }
    fn run_to_the_end(&mut self) {
        while !self.asked.is_empty() || !self.underway.is_empty() {
            self.happen(0);
            self.answer(0);
        }
    }
}

fn any_block() -> impl Strategy<Value = SwapBlock> {
    (any::<bool>(), 0u32..6).prop_map(|(is_one, index)| if is_one { one(index) } else { other(index) })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any::<usize>().prop_map(Step::Happen),
        1 => any::<usize>().prop_map(Step::Fail),
        4 => any_block().prop_map(Step::Ask),
        4 => any::<usize>().prop_map(Step::Answer),
        1 => any::<u64>().prop_map(Step::Crash),
    ]
}

fn any_plan() -> impl Strategy<Value = SwapPlan> {
    (0u32..6, 0u32..6, 1u32..4, 1u32..4).prop_map(|(one_blocks, other_blocks, batch, attempts_max)| SwapPlan {
        one_blocks,
        other_blocks,
        batch,
        attempts_max,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn after_a_crash_at_any_step_each_block_has_its_last_write_at_one_place(
        plan in any_plan(),
        steps in prop::collection::vec(any_step(), 0..160),
    ) {
        let mut world = World::new(plan);
        for step in steps {
            world.take(step);
            world.check_readable()?;
        }
        world.run_to_the_end();
        world.check_readable()?;
        prop_assert!(world.swap.is_over(), "{:?}", world.swap);
        prop_assert_eq!(world.swap.held(), 0);
        prop_assert_eq!(world.flash.len(), world.answered.len(), "one copy a block: {:?}", world.flash);
    }

    #[test]
    fn a_swap_that_nothing_hinders_moves_every_block(plan in any_plan(), order in prop::collection::vec(any::<usize>(), 200)) {
        let mut world = World::new(plan);
        order.into_iter().for_each(|choice| world.happen(choice));
        world.run_to_the_end();
        prop_assert_eq!(world.swap.stage(), SwapStage::Done);
        let is_moved = |(block, side): &(SwapBlock, Side)| *side == block.content.opposite();
        prop_assert!(world.flash.keys().all(is_moved));
    }
}

#[test]
fn a_crash_before_the_record_keeps_the_old_places_and_one_after_it_the_new() {
    for (is_durable, side) in [(false, Side::One), (true, Side::Other)] {
        let mut world = World::new(PLAN);
        while world.swap.stage() != SwapStage::Committing {
            world.happen(0);
        }
        world.crash(u64::from(is_durable));
        assert_eq!((world.swap.side_of(one(0)), world.crashes), (side, 1));
        world.run_to_the_end();
        assert_eq!(world.swap.stage(), SwapStage::Done);
    }
}
