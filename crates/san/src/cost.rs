//! The cost of a SAN: the paper's model (section 5.2), which counts ports, and the same for the
//! parts of a graph.
//!
//! A storage node needs a certain number of ports to reach its bandwidth, on whichever device they
//! are. In a switched SAN, adapters of `P` ports provide them and switches of `Q` ports face them.
//! In a switchless SAN, adapters of `R` ports provide them and nothing faces them.
//!
//! The paper gives the number of switches twice, with different results. Its formula is `2 B / (B_p
//! Q)`, which has one switch port for a storage node and one for its client. Its example is
//! `ceil(80 / 32)`, storage ports alone. With Table 1 that is 5 switches or 3. [`SwitchRule`]
//! selects one; the example's rule reproduces its 105,000 USD against 52,000 USD.

use topology::{Bill, Graph, Hop, VertexId, VertexKind};

/// Prices of parts, in US dollars, and their port counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Ports of an adapter in a switched SAN, at least 1: the paper's P.
    pub switched_adapter_ports: u32,
    /// Price of such an adapter.
    pub switched_adapter: f64,
    /// Ports of a switch, at least 1: the paper's Q.
    pub switch_ports: u32,
    /// Price of a switch.
    pub switch: f64,
    /// Ports of an adapter in a switchless SAN, at least 1: the paper's R.
    pub switchless_adapter_ports: u32,
    /// Price of such an adapter.
    pub switchless_adapter: f64,
    /// Price of a cable with the transceivers at its ends. The paper omits cables.
    pub cable: f64,
    /// Price of a metre of cable.
    pub cable_metre: f64,
}

/// A part whose price can be varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// An adapter of a switched SAN.
    SwitchedAdapter,
    /// A switch.
    Switch,
    /// An adapter of a switchless SAN.
    SwitchlessAdapter,
}

/// The number of switch ports for a number of storage ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchRule {
    /// One switch port per storage port, as in the paper's example.
    StoragePorts,
    /// A second switch port for clients, as in its formula.
    StorageAndClientPorts,
}

impl SwitchRule {
    /// Returns the switch ports per storage port.
    const fn factor(self) -> u64 {
        match self {
            SwitchRule::StoragePorts => 1,
            SwitchRule::StorageAndClientPorts => 2,
        }
    }
}

/// The number of cables by which storage nodes reach each other or their switches. Nodes share no
/// adapter and no switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoragePorts {
    /// Of each target to switches, or of each adapter to adapters; nodes without any are left out.
    nodes: Vec<u64>,
    /// Of each switch to targets; switches without any are left out.
    switches: Vec<u64>,
}

impl StoragePorts {
    /// Counts the ports of a graph in which each link stands for `trunk` cables.
    pub fn of(graph: &Graph, trunk: u32) -> StoragePorts {
        let is_storage =
            |hop: &&Hop| graph.vertex(hop.to).kind != VertexKind::Host && graph.egress_port(hop.channel).is_some();
        let is_target = |hop: &&Hop| graph.vertex(hop.to).kind == VertexKind::Target;
        let count = |vertex: VertexId, is_meant: &dyn Fn(&&Hop) -> bool| {
            graph.hops(vertex).iter().filter(is_meant).count() as u64 * u64::from(trunk)
        };
        let nodes = graph.of_kind(VertexKind::Target).chain(graph.of_kind(VertexKind::Adapter));
        let switches = graph.of_kind(VertexKind::Switch);
        let some = |ports: &u64| *ports > 0;
        StoragePorts {
            nodes: nodes.map(|node| count(node, &is_storage)).filter(some).collect(),
            switches: switches.map(|switch| count(switch, &is_target)).filter(some).collect(),
        }
    }

    /// Returns the number of ports of all storage nodes: the paper's B / B_p.
    pub fn total(&self) -> u64 {
        self.nodes.iter().sum()
    }
}

/// The number of parts, and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Number of adapters.
    pub adapters: u64,
    /// Number of switches.
    pub switches: u64,
    /// Number of cables.
    pub cables: u64,
    /// Cost of the adapters, in US dollars.
    pub adapters_usd: f64,
    /// Cost of the switches, in US dollars.
    pub switches_usd: f64,
    /// Cost of the cables, in US dollars.
    pub cables_usd: f64,
}

impl Cost {
    /// Returns the total, in US dollars.
    pub fn total_usd(&self) -> f64 {
        self.adapters_usd + self.switches_usd + self.cables_usd
    }
}

/// Both architectures for the same number of storage ports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Ports of all storage nodes together.
    pub ports: u64,
    /// Cost with switches.
    pub switched: Cost,
    /// Cost without switches.
    pub switchless: Cost,
}

impl Comparison {
    /// Returns the saved share of the switched cost; negative if the switchless SAN costs more.
    pub fn saving(&self) -> f64 {
        1.0 - self.switchless.total_usd() / self.switched.total_usd()
    }
}

impl Prices {
    /// Returns the cost of a switched SAN whose storage nodes have `ports` ports together (the
    /// paper's B / B_p). Cables are left out: the model has no lengths.
    pub fn switched(&self, ports: u64, rule: SwitchRule) -> Cost {
        let opposite = ports.saturating_mul(rule.factor());
        self.cost_of_switched(
            ports.div_ceil(u64::from(self.switched_adapter_ports)),
            opposite.div_ceil(u64::from(self.switch_ports)),
        )
    }

    /// Returns the cost of a switchless SAN whose storage nodes have `ports` ports together.
    pub fn switchless(&self, ports: u64) -> Cost {
        self.cost_of_switchless(ports.div_ceil(u64::from(self.switchless_adapter_ports)))
    }

    /// Returns the cost of both architectures for `ports` storage ports.
    pub fn compare(&self, ports: u64, rule: SwitchRule) -> Comparison {
        Comparison { ports, switched: self.switched(ports, rule), switchless: self.switchless(ports) }
    }

    /// Returns cost over bandwidth (paper, Figure 14) for `nodes` storage nodes of 1, 2, ...
    /// `ports_per_node_max` ports each.
    pub fn over_bandwidth(&self, nodes: u64, ports_per_node_max: u64, rule: SwitchRule) -> Vec<Comparison> {
        (1..=ports_per_node_max).map(|ports| self.compare(nodes.saturating_mul(ports), rule)).collect()
    }

    /// Returns the cost of the parts that storage nodes need to reach each other, rounded up to
    /// whole parts for each node and switch. Cables are left out.
    pub fn of_storage(&self, ports: &StoragePorts, rule: SwitchRule) -> Cost {
        let parts = |ports: &[u64], each: u32| ports.iter().map(|ports| ports.div_ceil(u64::from(each))).sum();
        if ports.switches.is_empty() {
            return self.cost_of_switchless(parts(&ports.nodes, self.switchless_adapter_ports));
        }
        let opposite: Vec<u64> = ports.switches.iter().map(|ports| ports.saturating_mul(rule.factor())).collect();
        self.cost_of_switched(parts(&ports.nodes, self.switched_adapter_ports), parts(&opposite, self.switch_ports))
    }

    /// Returns these prices with one of them multiplied by `factor`, for sensitivity analysis.
    pub fn scaled(&self, part: Part, factor: f64) -> Prices {
        let mut prices = *self;
        *prices.price_mut(part) *= factor;
        prices
    }

    /// Returns the factor on a part's price at which both architectures cost the same, all else
    /// being equal. `None` if no price of that part, however low or high, achieves that.
    pub fn break_even(&self, part: Part, ports: u64, rule: SwitchRule) -> Option<f64> {
        let without = self.scaled(part, 0.0).compare(ports, rule);
        let with = self.compare(ports, rule);
        let lead = |it: &Comparison| it.switched.total_usd() - it.switchless.total_usd();
        let slope = lead(&with) - lead(&without);
        let factor = -lead(&without) / slope;
        (slope != 0.0 && factor >= 0.0).then_some(factor)
    }

    /// Returns the cost of the parts of a graph, rounded up to whole parts for each node and
    /// switch. Each link stands for `trunk` cables, with one port at either end of each. A switch
    /// with more ports than a purchasable one counts as several, which is the paper's reading of a
    /// ToR with 80 ports; cables between these are left out. The clients' own adapters are left out
    /// as in the paper; the ports and cables that clients take on the SAN's side are not.
    pub fn of_bill(&self, bill: &Bill, trunk: u32) -> Cost {
        let trunk = u64::from(trunk);
        let parts = |kind, ports: u32| bill.parts(kind, u64::from(ports), trunk);
        let mut cost = if bill.count(VertexKind::Switch) > 0 {
            let adapters = parts(VertexKind::Target, self.switched_adapter_ports);
            self.cost_of_switched(adapters, parts(VertexKind::Switch, self.switch_ports))
        } else {
            self.cost_of_switchless(parts(VertexKind::Adapter, self.switchless_adapter_ports))
        };
        cost.cables = bill.cable_count() * trunk;
        let metres = bill.cable_length().as_mm() as f64 / 1e3 * trunk as f64;
        cost.cables_usd = cost.cables as f64 * self.cable + metres * self.cable_metre;
        cost
    }

    fn cost_of_switched(&self, adapters: u64, switches: u64) -> Cost {
        let adapters_usd = adapters as f64 * self.switched_adapter;
        let switches_usd = switches as f64 * self.switch;
        Cost { adapters, switches, adapters_usd, switches_usd, ..Cost::default() }
    }

    fn cost_of_switchless(&self, adapters: u64) -> Cost {
        Cost { adapters, adapters_usd: adapters as f64 * self.switchless_adapter, ..Cost::default() }
    }

    fn price_mut(&mut self, part: Part) -> &mut f64 {
        match part {
            Part::SwitchedAdapter => &mut self.switched_adapter,
            Part::Switch => &mut self.switch,
            Part::SwitchlessAdapter => &mut self.switchless_adapter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Length, Rate};
    use topology::{Cabling, Config, Endpoints, Kind, Lengths, Placement, Ports};

    /// Paper, Table 1.
    const TABLE_1: Prices = Prices {
        switched_adapter_ports: 2,
        switched_adapter: 900.0,
        switch_ports: 32,
        switch: 23_000.0,
        switchless_adapter_ports: 4,
        switchless_adapter: 2_600.0,
        cable: 0.0,
        cable_metre: 0.0,
    };
    /// 20 nodes of 2 adapters of 2 ports.
    const TABLE_1_PORTS: u64 = 80;

    fn config(kind: Kind, endpoints: Endpoints, endpoint_cables: u32) -> Config {
        let metre = Length::m(1);
        Config {
            kind,
            endpoints,
            ports: Ports { endpoint: 64, adapter: 64, switch: 128 },
            cabling: Cabling {
                rate: Rate::gbps(100),
                board_rate: Rate::gbps(400),
                fabric_cables: 1,
                endpoint_cables,
                lengths: Lengths { endpoint: metre, near: metre, far: metre },
            },
        }
    }

    #[test]
    fn the_example_of_table_1_comes_out() {
        let both = TABLE_1.compare(TABLE_1_PORTS, SwitchRule::StoragePorts);
        assert_eq!((both.switched.adapters, both.switched.switches, both.switchless.adapters), (40, 3, 20));
        assert_eq!((both.switched.adapters_usd, both.switched.switches_usd), (36_000.0, 69_000.0));
        assert_eq!((both.switched.total_usd(), both.switchless.total_usd()), (105_000.0, 52_000.0));
        assert!((both.saving() - 0.505).abs() < 0.0005, "{}", both.saving());
    }

    #[test]
    fn the_formula_has_twice_the_ports_and_five_switches() {
        let both = TABLE_1.compare(TABLE_1_PORTS, SwitchRule::StorageAndClientPorts);
        assert_eq!((both.switched.switches, both.switched.total_usd()), (5, 151_000.0));
    }

    #[test]
    fn one_port_more_than_a_switch_has_needs_another_one() {
        let switches = |ports| TABLE_1.switched(ports, SwitchRule::StoragePorts).switches;
        assert_eq!((switches(0), switches(1), switches(32), switches(33)), (0, 1, 1, 2));
    }

    #[test]
    fn cost_over_bandwidth_grows_by_whole_parts_and_table_1_is_its_fourth_point() {
        let curve = TABLE_1.over_bandwidth(20, 8, SwitchRule::StoragePorts);
        assert_eq!(curve.len(), 8);
        assert_eq!(curve[3], TABLE_1.compare(TABLE_1_PORTS, SwitchRule::StoragePorts));
        for pair in curve.windows(2) {
            assert!(pair[0].switched.total_usd() < pair[1].switched.total_usd());
            assert!(pair[0].switchless.total_usd() < pair[1].switchless.total_usd());
        }
    }

    #[test]
    fn at_the_break_even_price_both_cost_the_same() {
        for part in [Part::SwitchedAdapter, Part::Switch, Part::SwitchlessAdapter] {
            let Some(factor) = TABLE_1.break_even(part, TABLE_1_PORTS, SwitchRule::StoragePorts) else {
                // Adapters of a switched SAN would need a negative price.
                assert_eq!(part, Part::SwitchedAdapter);
                continue;
            };
            let even = TABLE_1.scaled(part, factor).compare(TABLE_1_PORTS, SwitchRule::StoragePorts);
            assert!(even.saving().abs() < 1e-9, "{part:?} at {factor}: {}", even.saving());
        }
        let switch = TABLE_1.break_even(Part::Switch, TABLE_1_PORTS, SwitchRule::StoragePorts);
        // (52,000 - 36,000) / 69,000: switches at 5,333 USD.
        assert!((switch.unwrap() - 16.0 / 69.0).abs() < 1e-12);
    }

    #[test]
    fn a_graph_of_table_1_costs_what_the_example_does() {
        let storage = Endpoints { hosts: 0, targets: 20, placement: Placement::Spread };
        let graph = config(Kind::SingleSwitch, storage, 4).build().unwrap();
        let cost = TABLE_1.of_bill(&graph.bill(), 1);
        assert_eq!((cost.adapters, cost.switches, cost.total_usd()), (40, 3, 105_000.0));
        assert_eq!(cost.cables, 80);
        let ports = StoragePorts::of(&graph, 1);
        let by = |rule| TABLE_1.of_storage(&ports, rule).total_usd();
        assert_eq!([SwitchRule::StoragePorts, SwitchRule::StorageAndClientPorts].map(by), [105_000.0, 151_000.0]);
        let torus = Endpoints { hosts: 0, targets: 20, placement: Placement::Spread };
        let graph = config(Kind::Torus { dimensions: vec![5, 4] }, torus, 1).build().unwrap();
        let cost = TABLE_1.of_bill(&graph.bill(), 1);
        assert_eq!((cost.adapters, cost.switches, cost.total_usd()), (20, 0, 52_000.0));
    }

    /// Nodes of three dimensions have six cables to each other and board links to their storage.
    #[test]
    fn nodes_share_no_adapter_and_leaves_no_switch() {
        let storage = |targets| Endpoints { hosts: 0, targets, placement: Placement::Spread };
        let adapters = |kind, targets, cables| {
            let graph = config(kind, storage(targets), cables).build().unwrap();
            TABLE_1.of_bill(&graph.bill(), 1).adapters
        };
        // 2 ports of 4 in each of 8 adapters: 4 would do if nodes shared them.
        assert_eq!(adapters(Kind::Ring { nodes: 8 }, 8, 1), 8);
        let ring = config(Kind::Ring { nodes: 8 }, storage(8), 1).build().unwrap();
        let ports = StoragePorts::of(&ring, 1);
        assert_eq!((ports.total(), TABLE_1.of_storage(&ports, SwitchRule::StoragePorts).adapters), (16, 8));
        // 6 ports: 64 nodes with 2 adapters of 4 ports each, where 384 ports fill 96.
        assert_eq!(adapters(Kind::Torus { dimensions: vec![4, 4, 4] }, 64, 1), 128);
        let leaves = Kind::LeafSpine { leaves: 2, spines: 1, endpoints_per_leaf: 40 };
        let graph = config(leaves, storage(80), 1).build().unwrap();
        // 40 ports and an uplink on each leaf: 2 switches of 32 each; the spine is one.
        assert_eq!(TABLE_1.of_bill(&graph.bill(), 1).switches, 5);
        assert_eq!(TABLE_1.of_storage(&StoragePorts::of(&graph, 1), SwitchRule::StoragePorts).switches, 4);
    }

    #[test]
    fn a_teamed_pipe_costs_what_its_cables_do() {
        let storage = Endpoints { hosts: 4, targets: 20, placement: Placement::Spread };
        let bundle = config(Kind::SingleSwitch, storage.clone(), 4).build().unwrap();
        let pipe = config(Kind::SingleSwitch, storage, 1).build().unwrap();
        let prices = Prices { cable: 50.0, cable_metre: 10.0, ..TABLE_1 };
        assert_eq!(prices.of_bill(&bundle.bill(), 1), prices.of_bill(&pipe.bill(), 4));
        // 24 endpoints of 4 cables of a metre.
        assert_eq!(prices.of_bill(&bundle.bill(), 1).cables_usd, 96.0 * 60.0);
    }
}
