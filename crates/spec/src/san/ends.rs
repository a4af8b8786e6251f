//! Hosts, targets and the wire between them: from keys to the programs' parameters, and back.

use super::file::{AdmissionName, HostFile, RetryName, TargetFile, TransportName, WireFile};
use super::{EndTimes, Passing, San};
use crate::design_file::{DcqcnFile, DesignName};
use crate::ground::Ground;
use crate::quantity::{Limit, Plain, Quantity};
use crate::resolve::Resolver;
use base::{Bytes, Span};
use nvme::pdu::{Digests, Framing};
use san::PacketKind;
use san::connection::{PacedConfig, Sharing, StreamConfig, WindowConfig};
use san::gimbal::GimbalConfig;
use san::host::{HostConfig, HostSessions};
use san::retry::{RetryPolicy, quiesce_wait};
use san::route::{EcmpHash, Policy, RouteConfig};
use san::target::{Admission, TargetConfig};
use san::wire::{WireConfig, WireFormat};
use topology::{Graph, VertexId, VertexKind};
use transport::config::Dcqcn;
use transport::framing::roce_ack_wire;

/// The longest that a drive may take for one command; ours, ten times what a write behind garbage collection takes at worst.
const DRIVE_TIME_MAX: Span = Span::ms(100);
/// Segments in the window of a new connection (RFC 6928).
const INITIAL_SEGMENTS: u32 = 10;
/// The timeout of a queue pair: 4.096 us times 2^14 (InfiniBand 9.9.2.4.1). perftest's default.
const QUEUE_PAIR_TIMEOUT: Span = Span::ps(4_096_000 << 14);
/// How long a hole may stay in a stream whose packets overtake each other. Ours: longer than the
/// full buffer of a hop takes to leave by one link of 100 Gb/s.
const HOLE_PATIENCE: Span = Span::ms(1);
/// Bytes of RoCE's headers beyond IPv4's and TCP's 40: UDP, BTH and ICRC are 24 beside IPv4's 20.
const ROCE_BEYOND_TCP: u32 = 4;

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
    pub(super) fn end_times(&self, file: &HostFile) -> EndTimes {
        let usual = file.stack().ends();
        EndTimes {
            host_send: file.send.map_or(usual.host_send, Plain::plain),
            host_complete: file.complete.map_or(usual.host_complete, Plain::plain),
            per_4_kib: file.per_4_kib.map_or(usual.per_4_kib, Plain::plain),
            target_receive: file.target_receive.map_or(usual.target_receive, Plain::plain),
            target_send: file.target_send.map_or(usual.target_send, Plain::plain),
        }
    }

    pub(super) fn wire(&self, file: &WireFile, passing: &Passing, has_header: bool) -> WireConfig {
        let bytes = |size: Bytes| size.count() as u32;
        WireConfig {
            mtu: passing.mtu.count() as u32,
            tcp_options: match file.transport {
                Some(TransportName::DcqcnPfc) => ROCE_BEYOND_TCP,
                _ => file.tcp_options(),
            },
            has_header,
            framing: Framing {
                digests: Digests { header: file.header_digest(), data: file.data_digest() },
                alignment: 0,
            },
            segment_max: bytes(file.segment()),
            in_capsule_max: bytes(file.in_capsule()),
            host_data_max: bytes(file.host_data()),
            controller_data_max: bytes(file.controller_data()),
            ready_max: bytes(file.ready()),
            success_flag: file.success_flag(),
            fast_retransmit: file.fast_retransmit(),
        }
    }

    /// How sessions share the network, if they do: by default by windows where `is_paced`.
    pub(super) fn stream(
        &mut self,
        file: &WireFile,
        wire: &WireConfig,
        is_paced: bool,
        ways: &Ways<'_>,
    ) -> Option<StreamConfig> {
        let ours = if is_paced { TransportName::Tcp } else { TransportName::Unpaced };
        let name = file.transport.unwrap_or(ours);
        self.refuse_keys_of_others(name);
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
                dcqcn: self.dcqcn(&file.dcqcn.clone().unwrap_or_default(), ways.graph, wire),
                hole_patience: if ways.keep_order() { Span::ZERO } else { HOLE_PATIENCE },
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

    /// Keys that go with another transport than `name`.
    fn refuse_keys_of_others(&mut self, name: TransportName) {
        use TransportName::{DcqcnPfc, Dctcp, Tcp, Unpaced};
        let windows = [Tcp, Dctcp];
        for (key, goes_with, named) in [
            ("wire.timeout_min", &[Tcp, Dctcp, DcqcnPfc][..], "tcp, dctcp and dcqcn+pfc"),
            ("wire.window_max", &windows, "tcp and dctcp"),
            ("wire.dcqcn", &[DcqcnPfc], "dcqcn+pfc"),
            ("wire.tcp_options", &[Tcp, Dctcp, Unpaced], "tcp, dctcp and unpaced"),
            ("fabric.queue", &[Tcp, Dctcp, Unpaced], "tcp, dctcp and unpaced: wire.dcqcn has thresholds of its own"),
        ] {
            if !goes_with.contains(&name) {
                let last = key.rsplit('.').next().unwrap_or(key);
                self.refuse_key(key, &format!("`{last}` goes only with transport = {named}"));
            }
        }
    }

    /// The rival's parameters, where links have the rate of a host's.
    fn dcqcn(&mut self, file: &DcqcnFile, graph: Option<&Graph>, wire: &WireConfig) -> Dcqcn {
        let link = |graph: &Graph| {
            let first = graph.of_kind(VertexKind::Host).find_map(|host| graph.hops(host).first());
            first.map(|hop| graph.link(hop.channel.link()).rate)
        };
        let shown = Ground::shown(DesignName::Dcqcn);
        let ground = graph.and_then(link).map_or(shown, |rate| Ground { rate, ..shown });
        let config = file.parameters(&ground);
        self.refuse_key("wire.dcqcn.mtu", "packets are those of `fabric.mtu` and `wire.segment`");
        for (key, needs) in file.idle_keys(&config) {
            self.conflict(&format!("wire.dcqcn.{key}"), format!("`{key}` goes only with {needs}"));
        }
        self.check_dcqcn("wire.dcqcn", &config);
        Dcqcn { mtu: Bytes::new(u64::from(wire.segment_max)), ..config }
    }

    pub(super) fn target(
        &self,
        file: &TargetFile,
        gimbal: GimbalConfig,
        (wire, stream): (WireConfig, Option<StreamConfig>),
        queue_entries: u16,
        design: DesignName,
    ) -> TargetConfig {
        let ours = if design == DesignName::San { AdmissionName::Gimbal } else { AdmissionName::Fifo };
        TargetConfig {
            wire,
            admission: match file.policy.unwrap_or(ours) {
                AdmissionName::Gimbal => Admission::Gimbal(gimbal),
                AdmissionName::Fifo => {
                    Admission::Fifo { depth: file.depth(), waiting_max: file.waiting_max(), credit: file.credit() }
                }
            },
            drives: Vec::new(),
            sessions: Vec::new(),
            queue_entries,
            lanes: 1,
            flights_max: file.flights_max(),
            command_life_max: file.command_life(),
            packet_life_max: file.packet_life(),
            stream,
            links: Vec::new(),
        }
    }

    pub(super) fn host(&mut self, file: &HostFile, target: &TargetConfig, design: DesignName) -> HostConfig {
        let (probe, timeout) = patience(target);
        let config = HostConfig {
            vertex: VertexId(0),
            sessions: HostSessions::default(),
            wire: target.wire,
            queue_entries: target.queue_entries,
            credits: file.credits.unwrap_or(design == DesignName::San),
            credit_initial: match &target.admission {
                Admission::Gimbal(gimbal) => gimbal.credit_initial,
                Admission::Fifo { credit, .. } => *credit,
            },
            waiting_max: file.waiting_max(),
            probe: file.probe.map_or(probe, Plain::plain),
            timeout: file.timeout.map_or(timeout, Plain::plain),
            sends_max: file.sends(),
            back_off: file.back_off(),
            back_off_max: file.back_off_max(),
            suspect_for: file.suspect(),
            retry: self.retry(file, target),
            stream: target.stream,
            links: Vec::new(),
        };
        self.check_times(&config);
        config
    }

    fn check_times(&mut self, config: &HostConfig) {
        if config.back_off > config.back_off_max {
            let reason = format!("{} is longer than back_off_max = {}", config.back_off, config.back_off_max);
            self.conflict("host.back_off", reason);
        }
    }

    fn retry(&mut self, file: &HostFile, target: &TargetConfig) -> RetryPolicy {
        let name = file.retry();
        if name != RetryName::Quiesce {
            self.refuse_key("host.quiesce_wait", "`quiesce_wait` goes only with retry = quiesce");
        }
        match name {
            RetryName::Naive => RetryPolicy::Naive,
            RetryName::CrossControllerReset => RetryPolicy::CrossControllerReset,
            RetryName::Quiesce => RetryPolicy::Quiesce { wait: self.quiesce(file, target) },
        }
    }

    fn quiesce(&mut self, file: &HostFile, target: &TargetConfig) -> Span {
        let (Some(command), Some(packet)) = (target.command_life_max, target.packet_life_max) else {
            if !self.sound(&["target"]) {
                return Span::ZERO;
            }
            let reason =
                "retry = quiesce needs target.command_life and target.packet_life: without them no wait is long enough";
            self.conflict("host.retry", reason);
            return Span::ZERO;
        };
        let least = quiesce_wait(packet, command, DRIVE_TIME_MAX);
        let wait = file.quiesce_wait.map_or(least, Plain::plain);
        self.at_most("host.quiesce_wait", wait, Span::secs(3_600));
        wait
    }
}

/// How long nothing may come for a command: the first time, and later ones.
fn patience(target: &TargetConfig) -> (Span, Span) {
    match target.stream {
        None => (Span::ms(8), Span::ms(20)),
        Some(_) => (Span::secs(30), Span::secs(30)),
    }
}

/// The tables that say all of both ends.
pub(super) fn ends_of(san: &San) -> (HostFile, TargetFile, WireFile) {
    (host_of(san), target_of(&san.target), wire_of(&san.target))
}

/// Which software it was decides nothing beside its times.
fn host_of(san: &San) -> HostFile {
    let (ends, host) = (&san.ends, &san.host);
    let (retry, quiesce_wait) = match host.retry {
        RetryPolicy::Naive => (RetryName::Naive, None),
        RetryPolicy::Quiesce { wait } => (RetryName::Quiesce, Some(Quantity(wait))),
        RetryPolicy::CrossControllerReset => (RetryName::CrossControllerReset, None),
    };
    HostFile {
        stack: None,
        send: Some(Quantity(ends.host_send)),
        complete: Some(Quantity(ends.host_complete)),
        per_4_kib: Some(Quantity(ends.per_4_kib)),
        target_receive: Some(Quantity(ends.target_receive)),
        target_send: Some(Quantity(ends.target_send)),
        credits: Some(host.credits),
        retry: Some(retry),
        quiesce_wait,
        probe: Some(Quantity(host.probe)),
        timeout: Some(Quantity(host.timeout)),
        sends: Some(host.sends_max),
        back_off: Some(Quantity(host.back_off)),
        back_off_max: Some(Quantity(host.back_off_max)),
        suspect: Some(Quantity(host.suspect_for)),
        queue_entries: Some(host.queue_entries),
        waiting_max: Some(host.waiting_max),
    }
}

fn target_of(target: &TargetConfig) -> TargetFile {
    let life = |life: Option<Span>| Some(Limit::written(life));
    let mut file = TargetFile {
        flights_max: Some(target.flights_max),
        command_life: life(target.command_life_max),
        packet_life: life(target.packet_life_max),
        ..TargetFile::default()
    };
    file.policy = Some(match &target.admission {
        Admission::Gimbal(_) => AdmissionName::Gimbal,
        Admission::Fifo { depth, waiting_max, credit } => {
            (file.depth, file.waiting_max, file.credit) = (Some(*depth), Some(*waiting_max), Some(*credit));
            AdmissionName::Fifo
        }
    });
    file
}

fn wire_of(target: &TargetConfig) -> WireFile {
    let (wire, sharing) = (&target.wire, target.stream.map(|stream| stream.sharing));
    let is_roce = matches!(sharing, Some(Sharing::Paced(_)));
    let bytes = |count: u32| Some(Quantity(Bytes::new(u64::from(count))));
    WireFile {
        transport: Some(match sharing {
            None => TransportName::Unpaced,
            Some(Sharing::Window(window)) if window.obeys_marks => TransportName::Dctcp,
            Some(Sharing::Window(_)) => TransportName::Tcp,
            Some(Sharing::Paced(_)) => TransportName::DcqcnPfc,
        }),
        timeout_min: target.stream.map(|stream| Quantity(stream.timeout_min)),
        window_max: match sharing {
            Some(Sharing::Window(window)) => bytes(window.max),
            _ => None,
        },
        dcqcn: match sharing {
            Some(Sharing::Paced(paced)) => Some(DcqcnFile { mtu: None, ..DcqcnFile::of_parameters(&paced.dcqcn) }),
            _ => None,
        },
        tcp_options: if is_roce { None } else { Some(wire.tcp_options) },
        segment: bytes(wire.segment_max),
        in_capsule: bytes(wire.in_capsule_max),
        host_data: bytes(wire.host_data_max),
        controller_data: bytes(wire.controller_data_max),
        ready: bytes(wire.ready_max),
        success_flag: Some(wire.success_flag),
        fast_retransmit: Some(wire.fast_retransmit),
        header_digest: Some(wire.framing.digests.header),
        data_digest: Some(wire.framing.digests.data),
    }
}
