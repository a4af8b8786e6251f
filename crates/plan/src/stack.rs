//! Fixed latencies of a rival's stack.

use crate::design_file::{DesignName, StackName};
use base::Span;
use hardware::EthernetStack;

const NOTHING: EthernetStack = EthernetStack {
    protocol: Span::ZERO,
    mac: Span::ZERO,
    pcs: Span::ZERO,
    transceiver: Span::ZERO,
    forwarding: Span::ZERO,
};

/// The latencies of `stack` under `design`, with the fabric's transceiver.
pub(crate) fn stack_of(design: DesignName, stack: StackName, transceiver: Span) -> EthernetStack {
    let latencies = match stack {
        // EDM's pipeline is counted in cycles of its clocks, and what is about no messages has
        // hosts of its own.
        StackName::Own => design.usual_stack().unwrap_or(NOTHING),
        StackName::None => NOTHING,
        StackName::Raw => EthernetStack::RAW,
        StackName::Roce => EthernetStack::ROCE,
        StackName::Tcp => EthernetStack::TCP,
    };
    // CXL's links are electrical, with retimers of their own.
    if latencies == EthernetStack::CXL { latencies } else { EthernetStack { transceiver, ..latencies } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rival_stands_on_its_usual_stack_with_the_fabrics_transceiver() {
        let own = |design| stack_of(design, StackName::Own, Span::ns(19));
        assert_eq!(own(DesignName::Dctcp), EthernetStack::TCP);
        assert_eq!(own(DesignName::Dcqcn), EthernetStack::ROCE);
        assert_eq!(own(DesignName::ReceiverDriven), EthernetStack::RAW);
        assert_eq!(own(DesignName::Cxl), EthernetStack::CXL);
    }

    #[test]
    fn no_stack_leaves_the_transceiver_alone() {
        let none = stack_of(DesignName::Dctcp, StackName::None, Span::ns(3));
        assert_eq!(none.host_pass() * 2 + none.switch_receive() + none.switch_transmit(), Span::ns(12));
    }
}
