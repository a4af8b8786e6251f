//! Hosts, targets and the wire between them: from keys to the programs' parameters, and back.

use super::Passing;
use super::file::{HostEnd, HostFile, Sessions, TransportName, WireFile};
use crate::design_file::DesignName;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::resolve::Resolver;
use crate::rivals::{DcqcnFile, Rival};
use base::{Bytes, Span};
use san::PacketKind;
use san::connection::{PacedConfig, Sharing, StreamConfig, WindowConfig};
use san::host::HostConfig;
use san::retry::RetryPolicy;
use san::route::{EcmpHash, Policy, RouteConfig};
use san::target::TargetConfig;
use san::wire::{WireConfig, WireFormat};
use topology::{Graph, VertexKind};
use transport::config::Dcqcn;
use transport::framing::roce_ack_wire;

/// Segments in the window of a new connection (RFC 6928).
const INITIAL_SEGMENTS: u32 = 10;
/// The timeout of a queue pair: 4.096 us times 2^14 (InfiniBand 9.9.2.4.1). perftest's default.
const QUEUE_PAIR_TIMEOUT: Span = Span::ps(4_096_000 << 14);
/// Lifetime of a gap in a stream whose packets overtake each other. Ours: longer than the full
/// buffer of a hop takes to leave by one link of 100 Gb/s.
const REORDER_TIMEOUT: Span = Span::ms(1);
/// The ways that packets of a session take.
pub(super) struct Ways<'a> {
    pub graph: Option<&'a Graph>,
    pub passing: Passing,
    pub routing: &'a RouteConfig,
    /// Hops that a header counts, where there is one.
    pub hops: Option<u32>,
}

impl Ways<'_> {
    /// Whether those of one session and uplink are one way, as long as nothing breaks.
    fn keep_order(&self) -> bool {
        matches!(self.routing.policy, Policy::ShortestPath | Policy::Ecmp(EcmpHash::Session))
    }
}

impl Resolver<'_> {
    /// How sessions share the network, if they do: by default by windows where `is_paced`.
    pub(super) fn stream(
        &mut self,
        file: &WireFile,
        wire: &WireConfig,
        (is_paced, design): (bool, DesignName),
        ways: &Ways<'_>,
    ) -> Option<StreamConfig> {
        let ours = if is_paced { TransportName::Tcp } else { TransportName::Unpaced };
        let name = file.transport.unwrap_or(ours);
        self.refuse_idle_keys(design, &[("wire.transport", name.word().into())]);
        let timeout_min = match (name, file.timeout_min) {
            (TransportName::DcqcnPfc, None) => QUEUE_PAIR_TIMEOUT,
            _ => file.timeout_min(),
        };
        let sharing = match name {
            TransportName::Unpaced => return None,
            TransportName::Tcp | TransportName::Dctcp => Sharing::Window(WindowConfig {
                initial: INITIAL_SEGMENTS * wire.mtu,
                max: file.window_max().count() as u32,
                obeys_marks: name == TransportName::Dctcp,
            }),
            TransportName::DcqcnPfc => Sharing::Paced(PacedConfig {
                dcqcn: self.dcqcn(&file.dcqcn.clone().unwrap_or_default(), ways.graph, wire, design),
                reorder_timeout: if ways.keep_order() { Span::ZERO } else { REORDER_TIMEOUT },
            }),
        };
        // A frame of the MTU was found to have room; what has not is complained of elsewhere.
        let format = WireFormat::new(wire).ok()?;
        let acknowledgement = match sharing {
            Sharing::Window(_) => format.frame(PacketKind::Acknowledgement { to_target: true }, 0, 0),
            Sharing::Paced(_) => roce_ack_wire(),
        };
        let segment = format.longest(ways.hops.unwrap_or(0));
        Some(StreamConfig { segment, timeout_min, acknowledgement, sharing })
    }

    /// The rival's parameters, where links have the rate of a host's.
    fn dcqcn(&mut self, file: &DcqcnFile, graph: Option<&Graph>, wire: &WireConfig, design: DesignName) -> Dcqcn {
        let link = |graph: &Graph| {
            let first = graph.of_kind(VertexKind::Host).find_map(|host| graph.hops(host).first());
            first.map(|hop| graph.link(hop.channel.link()).rate)
        };
        let shown = Ground::shown(DesignName::Dcqcn);
        let ground = graph.and_then(link).map_or(shown, |rate| Ground { rate, ..shown });
        let config = Rival::parameters(file, &ground);
        self.refuse_key("wire.dcqcn.mtu", "packets are those of `fabric.mtu` and `wire.segment`");
        let table = serde_json::to_value(DcqcnFile::of(&config)).expect("a table can be written in JSON");
        self.refuse_idle_keys(
            design,
            &[("wire.transport", TransportName::DcqcnPfc.word().into()), ("wire.dcqcn", table)],
        );
        DcqcnFile::check(self, "wire.dcqcn", &config);
        Dcqcn { mtu: Bytes::new(u64::from(wire.segment_max)), ..config }
    }

    pub(super) fn host(&mut self, file: &HostFile, target: &TargetConfig, design: DesignName) -> HostEnd {
        let sessions = Sessions { target, design };
        let end = file.resolve(sessions);
        if matches!(end.host.retry, RetryPolicy::Quiesce { .. }) && sessions.life().is_none() && self.sound(&["target"])
        {
            let reason =
                "retry = quiesce needs target.command_life and target.packet_life: without them no wait is long enough";
            self.conflict("host.retry", reason);
        }
        self.check_times(&end.host);
        end
    }

    fn check_times(&mut self, config: &HostConfig) {
        if config.back_off > config.back_off_max {
            let reason = format!("{} is longer than back_off_max = {}", config.back_off, config.back_off_max);
            self.conflict("host.back_off", reason);
        }
    }
}

/// The table that says all of the wire, and of how sessions share the network.
pub(super) fn wire_of(target: &TargetConfig) -> WireFile {
    let sharing = target.stream.map(|stream| stream.sharing);
    let mut file = WireFile::of(&target.wire);
    file.timeout_min = target.stream.map(|stream| Quantity(stream.timeout_min));
    file.window_max = None;
    file.transport = Some(match sharing {
        None => TransportName::Unpaced,
        Some(Sharing::Window(window)) => {
            file.window_max = Some(Quantity(Bytes::new(u64::from(window.max))));
            if window.obeys_marks { TransportName::Dctcp } else { TransportName::Tcp }
        }
        Some(Sharing::Paced(paced)) => {
            // The network says how large packets are.
            file.dcqcn = Some(DcqcnFile { preset: None, mtu: None, ..DcqcnFile::of(&paced.dcqcn) });
            TransportName::DcqcnPfc
        }
    });
    file
}
