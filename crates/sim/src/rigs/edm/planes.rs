//! The switches of a rack, with the links to and from each.

use super::EdmRigConfig;
use super::converged::Converged;
use crate::rigs::seat::Alarm;
use base::{NodeId, Program, Time};
use edm::mirror::{LinkLoss, Networks};
use edm::{Place, Switch, SwitchOut};
use hardware::Link;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// One switch with the links to and from it.
pub struct Plane {
    /// The program.
    pub switch: Switch,
    /// From each node.
    pub uplinks: Vec<Link>,
    /// To each node.
    pub downlinks: Vec<Link>,
    /// Whether the link of each node is up.
    pub link_up: Vec<bool>,
    /// Whether nodes use it.
    pub up: bool,
    /// Grants on their way from the scheduler to the egress ports.
    pub emitting: VecDeque<Round>,
    /// Empty lists of rounds that have been emitted.
    pub spare: Vec<Vec<SwitchOut>>,
}

/// The grants and requests that one round of a scheduler has made.
pub struct Round {
    /// When they are at their egress ports.
    pub at: Time,
    /// Decisions of the scheduler.
    pub said: Vec<SwitchOut>,
}

/// All planes: one, or two in step.
pub struct Planes {
    planes: Vec<Plane>,
    networks: Networks,
    living: u8,
    /// When the switches match next. One event for both planes: with one each, something else at
    /// the same instant could come between them, and only one of them would see it.
    alarm: Alarm,
    /// The links instead of those of the planes, if there are frames on them.
    pub converged: Option<Box<Converged>>,
}

impl Planes {
    /// The planes of a rack.
    pub fn new(config: &EdmRigConfig, place: Place) -> Planes {
        let count: u8 = if config.redundant { 2 } else { 1 };
        let planes = (0..count).map(|_| Plane::new(config, place)).collect();
        let converged = config.background.as_ref().map(|background| Box::new(Converged::new(config, background)));
        let networks = Networks::new(config.redundant);
        Planes { planes, networks, living: count, alarm: Alarm::OFF, converged }
    }
    /// The number of planes in use.
    #[inline]
    pub fn living(&self) -> u8 {
        self.living
    }
    /// The first plane in use, whose frames are counted.
    pub fn first_living(&self) -> usize {
        self.networks.used().next().unwrap_or(0)
    }
    /// Returns the time for which a match has to be scheduled, if one has to.
    pub fn arm(&mut self, now: Time) -> Option<Time> {
        let living = self.planes.iter().filter(|plane| plane.up);
        let next = living.filter_map(|plane| plane.switch.next_wakeup()).min();
        self.alarm.arm(next.map(|at| at.max(now)))
    }
    /// Takes the match event of `now`. Returns whether no earlier one has overtaken it.
    pub fn ring(&mut self, now: Time) -> bool {
        self.alarm.ring(now)
    }
    /// The link of a node to the primary switch dies. Returns whether only that node is concerned.
    pub fn lose_link(&mut self, node: NodeId) -> bool {
        let is_node = self.networks.on_link_loss() == LinkLoss::Node;
        if is_node {
            self.planes[0].link_up[node.index()] = false;
        }
        self.count();
        is_node
    }
    /// A switch dies.
    pub fn lose_switch(&mut self, plane: usize) {
        self.networks.on_switch_loss(plane);
        self.count();
    }
    fn count(&mut self) {
        for (number, plane) in self.planes.iter_mut().enumerate() {
            plane.up = self.networks.is_used(number);
        }
        self.living = self.networks.used().count() as u8;
    }
}

impl Deref for Planes {
    type Target = [Plane];
    #[inline]
    fn deref(&self) -> &[Plane] {
        &self.planes
    }
}

impl DerefMut for Planes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Plane] {
        &mut self.planes
    }
}

impl Plane {
    fn new(config: &EdmRigConfig, place: Place) -> Plane {
        let nodes = config.nodes as usize;
        Plane {
            switch: Switch::new(config.edm, place),
            uplinks: vec![Link::new(config.rate); nodes],
            downlinks: vec![Link::new(config.rate); nodes],
            link_up: vec![true; nodes],
            up: true,
            emitting: VecDeque::new(),
            spare: Vec::new(),
        }
    }
    /// Whether anything passes between this switch and `node`.
    #[inline]
    pub fn carries(&self, node: NodeId) -> bool {
        self.up && self.link_up[node.index()]
    }
}
