//! Hosts, targets and the wire between them: from keys to the programs' parameters, and back.

use super::file::{AdmissionName, HostFile, RetryName, StackName, TargetFile, TransportName, WireFile};
use super::{EndTimes, Passing, San, SanFabric};
use crate::design_file::{DcqcnFile, DesignName};
use crate::error::Problem;
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
use topology::{VertexId, VertexKind};
use transport::config::Dcqcn;
use transport::framing::roce_ack_wire;

/// The longest that a drive may take for one command; ours, ten times what a write behind garbage collection takes at worst.
const DRIVE_TIME_MAX: Span = Span::ms(100);
/// NVMe/TCP counts data in 32 bits; no PDU here has more.
const DATA_MAX: Bytes = Bytes::kib(8 << 10);
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
    pub fabric: &'a SanFabric,
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
    pub(super) fn end_times(&mut self, file: &HostFile) -> EndTimes {
        let usual = file.stack.unwrap_or(StackName::Spdk).ends();
        let ends = EndTimes {
            host_send: file.send.map_or(usual.host_send, Plain::plain),
            host_complete: file.complete.map_or(usual.host_complete, Plain::plain),
            per_4_kib: file.per_4_kib.map_or(usual.per_4_kib, Plain::plain),
            target_receive: file.target_receive.map_or(usual.target_receive, Plain::plain),
            target_send: file.target_send.map_or(usual.target_send, Plain::plain),
        };
        let spans = [
            ("send", ends.host_send),
            ("complete", ends.host_complete),
            ("per_4_kib", ends.per_4_kib),
            ("target_receive", ends.target_receive),
            ("target_send", ends.target_send),
        ];
        spans.into_iter().for_each(|(key, span)| self.at_most(&format!("host.{key}"), span, Span::secs(1)));
        ends
    }

    pub(super) fn wire(&mut self, file: &WireFile, passing: &Passing, has_header: bool) -> WireConfig {
        let mut bytes = |key: &str, given: Option<Quantity<Bytes>>, default: Bytes, least: Bytes| {
            let value = given.map_or(default, Plain::plain);
            if !(least..=DATA_MAX).contains(&value) {
                self.report(&format!("wire.{key}"), Problem::out_of_range(value, format!("{least}..={DATA_MAX}")));
            }
            value.count() as u32
        };
        let (pdu, one) = (Bytes::kib(128), Bytes::new(1));
        WireConfig {
            mtu: passing.mtu.count() as u32,
            tcp_options: match file.transport {
                Some(TransportName::DcqcnPfc) => ROCE_BEYOND_TCP,
                _ => file.tcp_options.unwrap_or(12),
            },
            has_header,
            framing: Framing {
                digests: Digests {
                    header: file.header_digest.unwrap_or(false),
                    data: file.data_digest.unwrap_or(false),
                },
                alignment: 0,
            },
            segment_max: bytes("segment", file.segment, Bytes::kib(4), one),
            in_capsule_max: bytes("in_capsule", file.in_capsule, Bytes::ZERO, Bytes::ZERO),
            host_data_max: bytes("host_data", file.host_data, pdu, one),
            controller_data_max: bytes("controller_data", file.controller_data, pdu, one),
            ready_max: bytes("ready", file.ready, pdu, one),
            success_flag: file.success_flag.unwrap_or(false),
            fast_retransmit: file.fast_retransmit.unwrap_or(true),
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
        let usual = if name == TransportName::DcqcnPfc { QUEUE_PAIR_TIMEOUT } else { Span::ms(1) };
        let timeout_min = file.timeout_min.map_or(usual, Plain::plain);
        self.positive("wire.timeout_min", timeout_min >= Span::us(1), timeout_min);
        self.at_most("wire.timeout_min", timeout_min, Span::secs(60));
        let sharing = match name {
            TransportName::Unpaced => return None,
            TransportName::Tcp | TransportName::Dctcp => Sharing::Window(WindowConfig {
                initial: INITIAL_SEGMENTS * wire.mtu,
                max: self.window_max(file),
                obeys_marks: name == TransportName::Dctcp,
            }),
            TransportName::DcqcnPfc => Sharing::Paced(PacedConfig {
                dcqcn: self.dcqcn(&file.dcqcn.clone().unwrap_or_default(), ways.fabric, wire),
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

    fn window_max(&mut self, file: &WireFile) -> u32 {
        let window_max = file.window_max.map_or(Bytes::kib(288), Plain::plain);
        let windows = Bytes::kib(16)..=Bytes::kib(1 << 20);
        if !windows.contains(&window_max) {
            let allowed = format!("{}..={}", windows.start(), windows.end());
            self.report("wire.window_max", Problem::out_of_range(window_max, allowed));
        }
        window_max.count() as u32
    }

    /// The rival's parameters, where links have the rate of a host's.
    fn dcqcn(&mut self, file: &DcqcnFile, fabric: &SanFabric, wire: &WireConfig) -> Dcqcn {
        let graph = &fabric.graph;
        let first = graph.of_kind(VertexKind::Host).find_map(|host| graph.hops(host).first());
        let shown = Ground::shown(DesignName::Dcqcn);
        let ground = first.map_or(shown, |hop| Ground { rate: graph.link(hop.channel.link()).rate, ..shown });
        let config = file.parameters(&ground);
        self.refuse_key("wire.dcqcn.mtu", "packets are those of `fabric.mtu` and `wire.segment`");
        for (key, needs) in file.idle_keys(&config) {
            self.conflict(&format!("wire.dcqcn.{key}"), format!("`{key}` goes only with {needs}"));
        }
        self.check_dcqcn("wire.dcqcn", &config);
        Dcqcn { mtu: Bytes::new(u64::from(wire.segment_max)), ..config }
    }

    pub(super) fn target(
        &mut self,
        file: &TargetFile,
        gimbal: GimbalConfig,
        (wire, stream): (WireConfig, Option<StreamConfig>),
        queue_entries: u16,
        design: DesignName,
    ) -> TargetConfig {
        let ours = if design == DesignName::San { AdmissionName::Gimbal } else { AdmissionName::Fifo };
        let lives =
            [("command_life", file.command_life, Span::ms(50)), ("packet_life", file.packet_life, Span::ms(20))];
        let [command_life_max, packet_life_max] = lives.map(|(key, given, default)| {
            let life = given.map_or(Some(default), Limit::plain);
            if let Some(life) = life {
                self.positive(&format!("target.{key}"), life >= Span::us(1), life);
                self.at_most(&format!("target.{key}"), life, Span::secs(3_600));
            }
            life
        });
        TargetConfig {
            wire,
            admission: match file.policy.unwrap_or(ours) {
                AdmissionName::Gimbal => Admission::Gimbal(gimbal),
                AdmissionName::Fifo => Admission::Fifo {
                    depth: file.depth.unwrap_or(256),
                    waiting_max: file.waiting_max.unwrap_or(16_384),
                    credit: file.credit.unwrap_or(32),
                },
            },
            drives: Vec::new(),
            sessions: Vec::new(),
            queue_entries,
            lanes: 1,
            flights_max: file.flights_max.unwrap_or(65_536),
            command_life_max,
            packet_life_max,
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
            waiting_max: file.waiting_max.unwrap_or(65_536),
            probe: file.probe.map_or(probe, Plain::plain),
            timeout: file.timeout.map_or(timeout, Plain::plain),
            sends_max: file.sends.unwrap_or(3),
            back_off: file.back_off.map_or(Span::us(10), Plain::plain),
            back_off_max: file.back_off_max.map_or(Span::ms(1), Plain::plain),
            suspect_for: file.suspect.map_or(Span::ms(100), Plain::plain),
            retry: self.retry(file, target),
            stream: target.stream,
            links: Vec::new(),
        };
        self.check_times(&config);
        config
    }

    fn check_times(&mut self, config: &HostConfig) {
        let spans = [
            ("probe", config.probe),
            ("timeout", config.timeout),
            ("back_off", config.back_off),
            ("back_off_max", config.back_off_max),
            ("suspect", config.suspect_for),
        ];
        for (key, span) in spans {
            self.positive(&format!("host.{key}"), span >= Span::us(1), span);
            self.at_most(&format!("host.{key}"), span, Span::secs(3_600));
        }
        if config.back_off > config.back_off_max {
            let reason = format!("{} is longer than back_off_max = {}", config.back_off, config.back_off_max);
            self.conflict("host.back_off", reason);
        }
    }

    fn retry(&mut self, file: &HostFile, target: &TargetConfig) -> RetryPolicy {
        let name = file.retry.unwrap_or(RetryName::CrossControllerReset);
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
