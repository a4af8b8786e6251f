//! Carries the decisions of the collectors to switch, controller and device: Algorithm 2, lines 7
//! to 19, and channel groups.

use super::StorageNode;
use super::interface::{NodeOut, VssdConfig};
use super::timers::Alarm;
use crate::collect::{Collector, CollectorAction, Coordination, Grain};
use crate::groups::{BlockMove, Ledger};
use crate::id::VssdId;
use crate::packet::{Body, CollectionNote, ControlMessage};
use base::{NodeId, Time};

/// vSSDs that collect together.
pub(super) struct Unit {
    number: u32,
    pub collector: Collector,
    ledger: Option<Ledger>,
    members: Vec<usize>,
    /// Steps at the device, and those that follow together when all of them have ended: only where
    /// a step occupies the channels.
    under_way: u32,
    next_round: Vec<(VssdId, u32)>,
}

impl Unit {
    /// Power was lost.
    pub fn reset(&mut self) {
        self.collector.reset();
        self.under_way = 0;
        self.next_round.clear();
        if let Some(ledger) = &mut self.ledger {
            ledger.reset();
        }
    }

    /// Whether a step of collection occupies the channels of its vSSDs.
    pub fn is_occupied(&self) -> bool {
        self.under_way > 0
    }
}

impl StorageNode {
    /// The unit that a new vSSD (the next in the table) belongs to.
    pub(super) fn join_unit(&mut self, config: &VssdConfig) -> usize {
        let known = self.units.iter().position(|unit| unit.number == config.unit);
        let index = known.unwrap_or_else(|| {
            let mut collector = Collector::new(self.config.collection);
            collector.set_policy(self.config.id, self.own.collect.clone());
            let ledger = self.config.borrow.map(Ledger::new);
            self.units.push(Unit {
                number: config.unit,
                collector,
                ledger,
                members: Vec::new(),
                under_way: 0,
                next_round: Vec::new(),
            });
            self.units.len() - 1
        });
        let unit = &mut self.units[index];
        unit.members.push(self.vssds.len());
        unit.collector.add_member(config.id, config.streams);
        index
    }

    /// The answer of the coordinator.
    pub(super) fn on_note(
        &mut self,
        vssd: VssdId,
        note: CollectionNote,
        free: Option<(NodeId, VssdId)>,
        now: Time,
        out: &mut Vec<NodeOut>,
    ) {
        let Some(unit) = self.unit_of(vssd) else {
            self.counters.ignored += 1;
            return;
        };
        self.units[unit].collector.answer(vssd, note, free, &mut self.actions);
        self.act(now, unit, out);
    }

    pub(super) fn on_collected(
        &mut self,
        now: Time,
        vssd: VssdId,
        stream: u32,
        freed: bool,
        nothing: bool,
        out: &mut Vec<NodeOut>,
    ) {
        let Some(unit) = self.unit_of(vssd) else { return };
        let of_unit = &mut self.units[unit];
        of_unit.under_way = of_unit.under_way.saturating_sub(1);
        if freed {
            self.offer_again(now, vssd, out);
        }
        self.units[unit].collector.step_done(vssd, stream, freed, nothing, &mut self.actions);
        self.act(now, unit, out);
        if self.config.collection.grain == Grain::Channel && !self.units[unit].is_occupied() {
            self.dispatch_members(now, unit, out);
        }
    }

    /// What has waited for the channels of a unit goes to the device, and behind it the steps that
    /// are due.
    fn begin_round(&mut self, now: Time, unit: usize, out: &mut Vec<NodeOut>) {
        if self.units[unit].is_occupied() || self.units[unit].next_round.is_empty() {
            return;
        }
        self.dispatch_members(now, unit, out);
        let Unit { under_way, next_round, .. } = &mut self.units[unit];
        *under_way = next_round.len() as u32;
        out.extend(next_round.drain(..).map(|(vssd, stream)| NodeOut::Collect { vssd, stream }));
    }

    fn dispatch_members(&mut self, now: Time, unit: usize, out: &mut Vec<NodeOut>) {
        for place in 0..self.units[unit].members.len() {
            self.dispatch(now, self.units[unit].members[place], out);
        }
    }

    pub(super) fn on_blocks(&mut self, vssd: VssdId, free: u32, owned: u32, out: &mut Vec<NodeOut>) {
        self.note_blocks(vssd, free, owned);
        if let Some(unit) = self.unit_of(vssd) {
            self.lend(unit, out);
        }
    }

    pub(super) fn note_blocks(&mut self, vssd: VssdId, free: u32, owned: u32) {
        if let Some(unit) = self.unit_of(vssd) {
            self.units[unit].collector.report(vssd, free, owned);
        }
    }

    pub(super) fn on_lent(&mut self, now: Time, moved: BlockMove, out: &mut Vec<NodeOut>) {
        let Some(unit) = self.unit_of(moved.to) else { return };
        self.note_lent(moved);
        if moved.blocks > 0 {
            self.offer_again(now, moved.to, out);
        } else {
            self.press(now, unit, out);
        }
    }

    pub(super) fn note_lent(&mut self, moved: BlockMove) {
        let Some(unit) = self.unit_of(moved.to) else { return };
        if let Some(ledger) = &mut self.units[unit].ledger {
            ledger.lent(moved);
        }
    }

    pub(super) fn on_returned(&mut self, moved: BlockMove) {
        let Some(unit) = self.unit_of(moved.from) else { return };
        if let Some(ledger) = &mut self.units[unit].ledger {
            ledger.returned(moved);
        }
    }

    /// A write found no free block: the vSSD borrows, and when nobody can lend its unit collects at
    /// once.
    pub(super) fn run_short(&mut self, now: Time, unit: usize, out: &mut Vec<NodeOut>) {
        if !self.lend(unit, out) {
            self.press(now, unit, out);
        }
    }

    pub(super) fn wake_unit(&mut self, now: Time, index: usize, out: &mut Vec<NodeOut>) {
        let unit = &mut self.units[index];
        let is_idle = unit.members.iter().all(|&member| self.vssds[member].idle.is_idle(now));
        unit.collector.on_wakeup(now, is_idle, &mut self.actions);
        self.act(now, index, out);
    }

    pub(super) fn arm_unit(&mut self, unit: usize) {
        self.timers.ring_by(Alarm::Unit(unit as u32), self.units[unit].collector.next_wakeup());
    }

    /// After a restart.
    pub(super) fn take_back_grants(&mut self, now: Time, out: &mut Vec<NodeOut>) {
        for unit in 0..self.units.len() {
            self.units[unit].collector.restart(&mut self.actions);
            self.act(now, unit, out);
        }
    }

    fn press(&mut self, now: Time, unit: usize, out: &mut Vec<NodeOut>) {
        self.units[unit].collector.press(now, &mut self.actions);
        self.act(now, unit, out);
    }

    /// Orders a loan if a member needs one and another can spare it; returns whether one is open.
    fn lend(&mut self, unit: usize, out: &mut Vec<NodeOut>) -> bool {
        let Unit { collector, ledger, .. } = &mut self.units[unit];
        let Some(ledger) = ledger else { return false };
        out.extend(ledger.lend(collector.free_blocks()).map(NodeOut::Lend));
        ledger.is_lending()
    }

    fn act(&mut self, now: Time, unit: usize, out: &mut Vec<NodeOut>) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                CollectorAction::Say { vssd, note } => self.say(vssd, note, out),
                CollectorAction::Step { vssd, stream } => match self.config.collection.grain {
                    Grain::Die => out.push(NodeOut::Collect { vssd, stream }),
                    Grain::Channel => self.units[unit].next_round.push((vssd, stream)),
                },
                CollectorAction::Ended => self.on_ended(now, unit, out),
            }
        }
        self.actions = actions;
        self.begin_round(now, unit, out);
        self.arm_unit(unit);
    }

    /// Borrowed blocks go back, and writes that found no room are tried again.
    fn on_ended(&mut self, now: Time, unit: usize, out: &mut Vec<NodeOut>) {
        let Unit { collector, ledger, .. } = &self.units[unit];
        if let Some(ledger) = ledger {
            out.extend(ledger.give_back(collector.free_blocks()).into_iter().map(NodeOut::Return));
        }
        for place in 0..self.units[unit].members.len() {
            let name = self.vssds[self.units[unit].members[place]].config.id;
            self.offer_again(now, name, out);
        }
    }

    fn offer_again(&mut self, now: Time, vssd: VssdId, out: &mut Vec<NodeOut>) {
        let Some(&index) = self.by_name.get(&vssd) else { return };
        if self.vssds[index].offer_again() {
            self.dispatch(now, index, out);
        }
    }

    fn say(&self, vssd: VssdId, note: CollectionNote, out: &mut Vec<NodeOut>) {
        match self.config.collection.coordination {
            Coordination::Uncoordinated => {}
            Coordination::Switch(switch) => self.send(switch, vssd, 0, Body::Collection(note), out),
            Coordination::Controller(node) => self.send(node, vssd, 0, Body::Control(ControlMessage::Ask(note)), out),
        }
    }

    fn unit_of(&self, vssd: VssdId) -> Option<usize> {
        self.by_name.get(&vssd).map(|&index| self.vssds[index].unit)
    }
}
