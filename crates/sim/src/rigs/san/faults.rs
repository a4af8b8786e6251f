//! Distances that hops tell each other, and what breaks.

use super::config::{Fault, FaultKind};
use super::wires::Fate;
use super::{Now, Place, SanEvent, SanRig, facts, prime};
use crate::rigs::seat::Alarm;
use san::Port;
use san::hop::{Hop, HopIn};
use san::route::Advertisement;
use topology::{Channel, LinkId, VertexId};

impl SanRig {
    /// Gives every hop the distances of a network that has been up for long.
    pub(super) fn prime(&mut self, context: Now<'_, '_>) {
        let (graph, config) = (self.config.graph.clone(), self.config.hop.route.distance);
        // What a hop tells while it has heard only some of its neighbours would undo what the
        // others know.
        self.gossip.is_priming = true;
        let hosts_listen = self.config.hosts_listen();
        prime::settled(&graph, &config, hosts_listen, |prime::Told { at, port, advertisement }| {
            self.hears(at, port, advertisement, context);
        });
        self.gossip.is_priming = false;
    }

    /// Distances go to a neighbour beside the packets: they are too small to matter on the wire.
    pub(super) fn tell(&mut self, vertex: VertexId, port: Port, advertisement: Advertisement, context: Now<'_, '_>) {
        let channel = self.carrier.wires.channel(vertex, port);
        if self.gossip.is_priming || !self.carrier.wires.is_up(channel) {
            return;
        }
        let (to, to_port) = self.carrier.wires.end(channel);
        let at = context.now + self.carrier.wires.lone(channel, 0);
        let told = self.gossip.told.insert((to, to_port, advertisement, channel));
        context.at(at, SanEvent::Told(told));
    }

    pub(super) fn hear(&mut self, told: u32, context: Now<'_, '_>) {
        let (vertex, port, advertisement, channel) = self.gossip.told.remove(told);
        if self.carrier.wires.is_up(channel) && self.carrier.is_running[vertex.index()] {
            self.hears(vertex, port, advertisement, context);
        }
    }

    fn hears(&mut self, vertex: VertexId, port: Port, advertisement: Advertisement, context: Now<'_, '_>) {
        match self.vertices.places[vertex.index()] {
            Place::Hop(_) => self.tell_hop(vertex, HopIn::Advertisement { port, advertisement }, context),
            Place::Host(_) => self.host_hears(vertex, port, advertisement, context),
            Place::Target(_) => {}
        }
    }

    pub(super) fn fault(&mut self, index: usize, context: Now<'_, '_>) {
        let Fault { what, is_up, .. } = self.config.faults[index];
        match what {
            FaultKind::Link(link) => self.set_link(link, is_up, context),
            FaultKind::Vertex(vertex) => self.set_vertex(vertex, is_up, context),
            FaultKind::Drive(drive) => self.set_drive(drive, is_up, context),
        }
    }

    /// Cuts or mends a link. Both ends notice after a while; a link whose end does not run stays
    /// down.
    fn set_link(&mut self, link: LinkId, is_up: bool, context: Now<'_, '_>) {
        match is_up {
            true => self.cut_links.remove(&link),
            false => self.cut_links.insert(link),
        };
        let runs = self.config.graph.link(link).ends.iter().all(|end| self.carrier.is_running[end.vertex.index()]);
        self.change_link(link.forward(), is_up && runs, context);
    }

    fn change_link(&mut self, channel: Channel, is_up: bool, context: Now<'_, '_>) {
        if self.carrier.wires.is_up(channel) == is_up {
            return;
        }
        self.carrier.wires.set_up(channel, is_up);
        if !is_up {
            self.carrier.flights.iter_mut().filter(|flight| flight.leaving.channel.link() == channel.link()).for_each(
                |flight| {
                    flight.leaving.fate = Fate::Lost;
                },
            );
        }
        for direction in [channel, channel.reverse()] {
            context.after(self.config.passing.detection, SanEvent::Notice(direction, is_up));
        }
    }

    /// The end of a channel notices. What has changed again meanwhile is noticed by the later
    /// event.
    pub(super) fn notice(&mut self, channel: Channel, is_up: bool, context: Now<'_, '_>) {
        let (vertex, port) = self.carrier.wires.end(channel);
        if self.carrier.wires.is_up(channel) != is_up || !self.carrier.is_running[vertex.index()] {
            return;
        }
        match self.vertices.places[vertex.index()] {
            Place::Hop(_) => {
                let input = if is_up { HopIn::LinkUp(port) } else { HopIn::LinkDown(port) };
                self.tell_hop(vertex, input, context);
            }
            Place::Host(_) => self.host_notices(vertex, port, is_up, context),
            // A target answers the way a request came; what is lost its host repeats.
            Place::Target(_) if is_up => self.target_notices(vertex, port, context),
            Place::Target(_) => {}
        }
    }

    /// Stops or starts an adapter, a switch or a target, with all its links. A hop comes back
    /// knowing nothing but its neighbours.
    fn set_vertex(&mut self, vertex: VertexId, is_up: bool, context: Now<'_, '_>) {
        if self.carrier.is_running[vertex.index()] == is_up {
            return;
        }
        self.carrier.is_running[vertex.index()] = is_up;
        if let Place::Target(target) = self.vertices.places[vertex.index()] {
            self.set_target(target, is_up, context);
        }
        if is_up && let Place::Hop(place) = self.vertices.places[vertex.index()] {
            facts::add(&mut self.observed.of_stopped, self.programs.hops[place as usize].counts());
            self.programs.hops[place as usize] = Hop::new(self.config.hop(vertex, self.programs.response_frame));
            self.down_ports_of(vertex, context);
        }
        for port in 0..self.carrier.wires.ports(vertex) {
            let channel = self.carrier.wires.channel(vertex, Port(port));
            let (far, _) = self.carrier.wires.end(channel);
            let is_whole = self.carrier.is_running[far.index()] && !self.cut_links.contains(&channel.link());
            self.change_link(channel, is_up && is_whole, context);
        }
        self.programs.wakes[vertex.index()] = Alarm::OFF;
        self.arm(vertex, context);
    }

    /// A hop that starts takes its links for up; those that are not are told at once, and those
    /// that come up are told when they do.
    fn down_ports_of(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        for port in (0..self.carrier.wires.ports(vertex)).map(Port) {
            if !self.carrier.wires.is_up(self.carrier.wires.channel(vertex, port)) {
                self.tell_hop(vertex, HopIn::LinkDown(port), context);
            }
        }
    }
}
