//! What a data path beside the program is told is what the program does with the next read.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const VSSDS: u32 = 6;

fn bodies() -> impl Strategy<Value = Body> {
    let place = || (0..NODES + 1).prop_map(NodeId);
    // One vSSD beyond the tables.
    let create = (place(), 0..17_u32, place()).prop_map(|(server, replica, replica_server)| Body::Create {
        server,
        replica: VssdId(replica),
        replica_server,
    });
    // Partners more often than strangers.
    let pair = (0..VSSDS, 0..NODES, 0..NODES).prop_map(|(replica, server, other)| Body::Create {
        server: NodeId(server),
        replica: VssdId(replica),
        replica_server: NodeId(other),
    });
    let note = prop::sample::select(vec![Soft, Regular, Background, Finish, Accept]);
    prop_oneof![1 => create, 4 => pair, 1 => Just(Body::Delete), 8 => note.prop_map(Body::Collection)]
}

proptest! {
    #[test]
    fn what_is_told_is_what_the_next_read_gets(
        steps in prop::collection::vec((0..VSSDS, 0..NODES, bodies()), 1..60),
        coordination in prop::bool::weighted(0.9),
    ) {
        let quick = SwitchConfig { pipeline: Span::ZERO, recirculation: Span::ZERO, coordination, ..config() };
        let mut rack = Rack::new(quick);
        let (mut redirects, mut told) = (Redirects::default(), BTreeMap::new());
        for (vssd, source, body) in steps {
            let vssd = VssdId(vssd);
            // Most are of the vSSD's own server, which alone speaks for it.
            let source = rack.switch.tables_server(vssd).filter(|_| source > 0).unwrap_or(NodeId(source));
            let packet = packet(vssd, source, source, body);
            rack.send(packet);
            for (vssd, to) in redirects.after(&mut rack.switch, &packet) {
                let before = match to {
                    Some(to) => told.insert(vssd, to),
                    None => told.remove(&vssd),
                };
                prop_assert_ne!(before, to, "what did not change is not told");
            }
            for vssd in (0..VSSDS).map(VssdId) {
                let asked = rack.switch.tables_server(vssd).unwrap_or(FIRST);
                let (port, came) = rack.route(read(vssd, asked));
                let expected = told.get(&vssd).copied().unwrap_or((asked, vssd));
                prop_assert_eq!((came.target, came.vssd), expected);
                prop_assert_eq!(port, expected.0);
            }
        }
    }
}

impl Switch {
    fn tables_server(&self, vssd: VssdId) -> Option<NodeId> {
        self.tables.server_of(vssd)
    }
}
