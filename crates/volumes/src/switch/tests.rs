//! The kernel's data path against the role: each frame goes through both.
//!
//! What the kernel sends, the role would have sent: the same bytes to the same node. What the role
//! forwards without its tables, the kernel sends too. Everything else reaches the role as it came.

mod frames;
mod live;
mod packets;

use super::*;
use crate::journal::End;
use crate::wire::{WireCounts, opened};
use blox::{PAGE_BYTES, Page, Tag, Value, decode_datagram, encode_datagram};
use express::{Counts, Express, Neighbour, Own, Ran, Verdict};
use frames::{Frame, looks_unsummed};
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// Where this node is, the kernel is never told.
const UNKNOWN: usize = 5;
/// The interface of the switch.
const STATION: express::Station = [2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee];

/// Nodes 0 to 3 are servers, 4 and 5 doors; then the control plane.
fn rack() -> Rack {
    let server = |host: u32| format!("[[storage]]\nname = 's{host}'\nlisten = '10.9.0.{host}:7010'\n");
    let door = |host: u32| format!("[[door]]\nname = 'd{host}'\nlisten = '10.9.0.{host}:7020'\nconfig = 't.toml'\n");
    let rest: String = (0..4).map(server).chain((4..6).map(door)).collect();
    let text = format!("insecure = true\nswitch.listen = '10.9.0.9:7000'\ncontrol.listen = '10.9.0.8:7001'\n{rest}");
    plan::rack::parse("rack.toml", &text).expect("a rack")
}

/// The compiled program, or why there is none.
fn object() -> Result<Vec<u8>, String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (object, source) = (root.join("target/xdp/switch.bpf.o"), root.join("crates/express/bpf/switch.bpf.c"));
    let age = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified());
    let Ok(made) = age(&object) else { return Err("no target/xdp/switch.bpf.o: `make xdp` compiles it".into()) };
    assert!(made >= age(&source).expect("it is there"), "target/xdp/switch.bpf.o is old: `make xdp` compiles it anew");
    Ok(std::fs::read(&object).expect("it is there"))
}

/// What the role sends.
#[derive(Default)]
struct Sends {
    tag: [u8; 8],
    sent: Vec<(NodeId, Vec<u8>)>,
}

impl Carrier for Sends {
    fn send(&mut self, to: NodeId, packet: &Packet, data: Option<&Bytes>) {
        let mut bytes = self.tag.to_vec();
        encode_datagram(packet, data.map_or(&[], |data| data), &mut bytes);
        self.sent.push((to, bytes));
    }
    fn asked(&mut self, _: Time, _: u32, _: Page, _: bool) {}
    fn ended(&mut self, _: Tag, _: End) {}
    fn rotted(&mut self, _: VssdId, _: Page, _: Option<Value>) {}
}

/// A role with its data path, which no network reaches.
struct Both {
    role: SwitchRole,
    own: Own,
    places: Vec<Option<Neighbour>>,
    now: Time,
    /// What the role did last.
    done: Vec<(NodeId, Vec<u8>)>,
}

impl Both {
    /// Both for a rack, or why there is no kernel's part: no object, or no rights.
    fn new(rack: &Rack) -> Result<Both, String> {
        let object = object()?;
        let SocketAddr::V4(address) = rack.switch.listen else { panic!("the tests have IPv4") };
        let blox::SwitchConfig { nodes: inside, table_entries: redirects, .. } = configs::switch(rack);
        let own = Own { tag: wire::tag_of(rack), address, station: STATION, inside, redirects };
        let express = match Express::load(&object, &own) {
            Err(error) if error.to_string().contains("CAP_BPF") => return Err(error.to_string()),
            loaded => loaded.expect("the kernel takes the program"),
        };
        let nodes = configs::switch_node(rack).0;
        let mut role = SwitchRole::new(rack, 0).expect("a rack");
        let mut kernel = Kernel::new(express, "none", nodes);
        let place = |(node, place): (usize, plan::rack::Place)| {
            let SocketAddr::V4(address) = place.listen else { panic!("the tests have IPv4") };
            (node != UNKNOWN).then_some(Neighbour { address, station: [2, 0, 0, 0, 9, node as u8] })
        };
        let places: Vec<_> = rack.places().into_iter().take(nodes as usize).enumerate().map(place).collect();
        places.iter().enumerate().for_each(|(node, place)| kernel.tell(NodeId(node as u32), *place));
        assert!(kernel.fault.is_none(), "{:?}", kernel.fault);
        role.kernel = Some(kernel);
        Ok(Both { role, own, places, now: Time::ZERO, done: Vec::new() })
    }

    /// The datagram of a packet.
    fn datagram(&self, packet: &Packet) -> Vec<u8> {
        let data: Vec<u8> = (0..PAGE_BYTES).map(|byte| (byte % 251) as u8).collect();
        let mut bytes = self.own.tag.to_vec();
        encode_datagram(packet, &data, &mut bytes);
        bytes
    }

    fn kernel(&mut self) -> &mut Kernel {
        self.role.kernel.as_mut().expect("it has one")
    }

    fn counts(&mut self) -> Counts {
        self.kernel().express.counts().expect("it can be read")
    }

    /// What the role does about a datagram at its socket.
    fn by_role(&mut self, datagram: &[u8]) -> (Option<Packet>, Vec<(NodeId, Vec<u8>)>) {
        let mut whole = datagram.to_vec();
        let mut sends = Sends { tag: self.own.tag, sent: Vec::new() };
        let open = opened(&mut whole, self.own.tag, None, NodeId(0), &mut WireCounts::default());
        let Some(Ok((packet, page))) = open.map(|datagram| decode_datagram(datagram)) else {
            return (None, sends.sent);
        };
        self.now += Span::us(3);
        let page = Bytes::copy_from_slice(page);
        self.role.on_packet(self.now, packet, &page, &mut sends);
        assert!(self.kernel().fault.is_none(), "the kernel takes what it is told");
        (Some(packet), sends.sent)
    }

    /// Lets a frame go through both, and compares. Returns what the kernel did.
    fn step(&mut self, frame: &Frame, datagram: &[u8]) -> Verdict {
        let bytes = frame.bytes(&self.own, datagram);
        let before = self.counts();
        let Ran { verdict, frame: out, .. } = self.kernel().express.run(&bytes, 1).expect("the kernel runs it");
        let after = self.counts();
        if !frame.reaches_the_role() {
            assert_eq!((verdict, &out), (Verdict::Pass, &bytes), "{frame:?} is not for the data path");
            return verdict;
        }
        let (packet, sent) = self.by_role(datagram);
        match verdict {
            Verdict::Send => self.assert_sent(frame, &out, packet, &sent),
            _ => self.assert_passed(packet, &sent, (&bytes, &out), verdict),
        }
        self.done = sent;
        assert_eq!(after.forwarded - before.forwarded, u64::from(verdict == Verdict::Send));
        let [left, right] = [before, after].map(|counts| {
            let Counts { forwarded, control, unsound, unknown, unsummed, .. } = counts;
            forwarded + control + unsound + unknown + unsummed
        });
        let is_long = bytes.len() >= frames::LEAST;
        assert_eq!(right - left, u64::from(is_long), "each frame for the switch is counted once");
        verdict
    }

    /// The kernel has sent what the role sends.
    fn assert_sent(&self, frame: &Frame, out: &[u8], packet: Option<Packet>, sent: &[(NodeId, Vec<u8>)]) {
        let [(to, bytes)] = sent else { panic!("the kernel sends {packet:?}, and the role {}", sent.len()) };
        let place = self.places[to.index()].unwrap_or_else(|| panic!("nobody has told where {to:?} is"));
        assert_eq!(out, frame.answered(&self.own, &place, bytes), "{packet:?} to {to:?}");
    }

    /// The kernel has left a frame as it was, and has a reason.
    fn assert_passed(
        &self,
        packet: Option<Packet>,
        sent: &[(NodeId, Vec<u8>)],
        (bytes, out): (&[u8], &[u8]),
        verdict: Verdict,
    ) {
        assert_eq!((verdict, out), (Verdict::Pass, bytes));
        let (Some(packet), [(to, _)]) = (packet, sent) else { return };
        if looks_unsummed(bytes) {
            return;
        }
        let is_data = matches!(
            packet.body,
            Body::Write { .. }
                | Body::Read { .. }
                | Body::ReadReply { .. }
                | Body::WriteReply { .. }
                | Body::Replica(_)
        );
        assert!(!is_data || self.places[to.index()].is_none(), "the kernel leaves {packet:?} to the role");
    }
}

/// Says why a test does nothing here, or gives what it needs.
fn both_for(rack: &Rack) -> Option<Both> {
    Both::new(rack).inspect_err(|reason| println!("SKIPPED: the kernel's data path: {reason}")).ok()
}

fn source() -> SocketAddrV4 {
    SocketAddrV4::new([10, 9, 0, 4].into(), 7_020)
}
