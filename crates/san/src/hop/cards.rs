//! An adapter of several cards (paper, 3.2): between ports of two of them packets cross PCIe.

/// Cards of an adapter by the numbers of its cable ports, `ports` of them a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cards {
    /// Cable ports of a card, at least 1.
    pub ports: u32,
}

impl Cards {
    /// Returns whether a packet from one cable port to another leaves its card: "routing from
    /// port-1 of BF2-A to port-2 of BF2-B requires traversing across PCIe".
    pub const fn crosses(self, ingress: u32, egress: u32) -> bool {
        ingress / self.ports != egress / self.ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_one_card_do_not_cross_and_those_of_two_do() {
        let cards = Cards { ports: 2 };
        let crossing = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
        let crossing: Vec<_> = crossing.filter(|(from, to)| cards.crosses(*from, *to)).collect();
        assert_eq!(crossing, [(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (2, 1), (3, 0), (3, 1)]);
    }
}
