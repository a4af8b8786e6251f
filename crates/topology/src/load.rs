//! The load of links under shortest-path traffic among all nodes.

use crate::graph::{Graph, VertexId};

impl Graph {
    /// Returns, for each channel, the number of ordered pairs of `nodes` that cross it. Every pair
    /// sends one unit, split evenly over its shortest paths (a half counts as a half). This is
    /// Brandes' edge betweenness (Journal of Mathematical Sociology 25, 2001) for chosen sources
    /// and targets, with parallel cables as separate paths.
    pub fn channel_loads(&self, nodes: &[VertexId]) -> Vec<f64> {
        let mut is_node = vec![false; self.vertices.len()];
        nodes.iter().for_each(|node| is_node[node.index()] = true);
        let mut loads = vec![0.0; self.channel_count()];
        for target in nodes {
            self.add_loads_to(*target, &is_node, &mut loads);
        }
        loads
    }

    /// Adds the loads of all flow to `target`. From the farthest vertices on, each splits its flow
    /// among its hops in proportion to their numbers of shortest paths.
    fn add_loads_to(&self, target: VertexId, is_node: &[bool], loads: &mut [f64]) {
        let toward = self.distances_from(target);
        let mut order: Vec<VertexId> = self.vertex_ids().filter(|vertex| toward.to(*vertex).is_some()).collect();
        order.sort_by_key(|vertex| toward.raw(*vertex));
        let mut paths = vec![0.0; self.vertices.len()];
        paths[target.index()] = 1.0;
        for vertex in &order[1..] {
            paths[vertex.index()] = self.minimal_hops(*vertex, &toward).map(|hop| paths[hop.to.index()]).sum();
        }
        let mut arrived = vec![0.0; self.vertices.len()];
        for vertex in order[1..].iter().rev() {
            let through = arrived[vertex.index()] + f64::from(u8::from(is_node[vertex.index()]));
            for hop in self.minimal_hops(*vertex, &toward) {
                let share = through * paths[hop.to.index()] / paths[vertex.index()];
                loads[hop.channel.index()] += share;
                arrived[hop.to.index()] += share;
            }
        }
    }
}
