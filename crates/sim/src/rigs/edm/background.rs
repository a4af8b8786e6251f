//! Ordinary frames (IP, storage) that share every link with the memory messages: who sends them,
//! and what became of them.
//!
//! They are not requests of the workload. Every node sends every stream to uniformly chosen other
//! nodes, in bursts that arrive as a Poisson process of their own, for as long as the run lasts.

use super::EdmRigConfig;
use crate::slab::Slab;
use base::{Bytes, NodeId, Seed, Span, Stream, Time};
use edm::pcs::frame::{CHECK_BYTES, FrameBlocks, frame_blocks};
use edm::pcs::multiplex::Policy;
use edm::pcs::timing::block_time;
use hardware::EthernetStack;
use hdrhistogram::Histogram;
use plan::BackgroundStream;
use record::metric::{self, Meter};
use std::sync::Arc;

/// Latencies are kept in picoseconds.
const PS_PER_NS: f64 = 1e3;
/// MAC, PCS and layer-2 forwarding of frames: EDM runs beside the standard pipeline, which stays as
/// it is (paper 3.3).
const STACK: EthernetStack = EthernetStack::RAW;
/// Of latencies in picoseconds.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Ordinary traffic on the links that the memory messages use.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// What every node sends, and the room that switch ports have for it.
    pub frames: plan::Background,
    /// Who may send when memory and frames wait; [`Policy::None`] is a line without intra-frame
    /// preemption.
    pub preemption: Policy,
    /// Of its random streams, `background/<stream>/<node>`.
    pub seed: Seed,
}

/// One frame on its way through one plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The plane.
    pub plane: usize,
    /// Its stream's index.
    stream: u32,
    /// Who sent it.
    pub source: NodeId,
    /// To whom.
    pub target: NodeId,
    /// When it was handed to the MAC.
    created: Time,
    /// Counts all frames, in the order in which they were created.
    number: u64,
}

/// Frames that a node hands to its MAC together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    stream: u32,
    source: NodeId,
    target: NodeId,
    created: Time,
    /// Number of frames.
    pub frames: u32,
}

/// One stream of one node.
#[derive(Clone, Debug)]
struct Generator {
    stream: u32,
    node: NodeId,
    random: Stream,
    mean_gap_ps: f64,
    next: Time,
}

/// A stream and what became of it.
#[derive(Clone, Debug)]
struct Tally {
    config: BackgroundStream,
    blocks: FrameBlocks,
    sent: u64,
    delivered: u64,
    dropped: u64,
    /// Of the frames that were sent after the warm-up.
    latency_sum: Span,
    /// In picoseconds.
    latency: Histogram<u64>,
}

/// The fixed delays of a frame: what it crosses besides the links' blocks.
#[derive(Clone, Copy, Debug)]
pub struct FrameDelays {
    /// From the MAC's interface to the multiplexer behind the encoder.
    pub to_line: Span,
    /// Between the two ends of a line: transceivers and fibre.
    pub line: Span,
    /// From the decoder's input to the MAC's interface.
    pub from_line: Span,
    /// Layer-2 forwarding of the switch, from MAC to egress queue.
    pub forwarding: Span,
}

/// All background traffic of a rig.
pub struct Traffic {
    generators: Vec<Generator>,
    streams: Vec<Tally>,
    nodes: u32,
    /// The fixed delays.
    pub delays: FrameDelays,
    frames: Slab<Frame>,
    created: u64,
    /// The number of the last frame delivered, by source and target.
    newest: Vec<u64>,
    out_of_order: u64,
    last_delivery: Time,
    /// Latencies are those of frames that are sent from here on.
    measured_from: Time,
}

impl Traffic {
    /// Nothing sent yet.
    pub fn new(config: &EdmRigConfig, background: &Background) -> Traffic {
        let streams: Vec<Tally> = background.frames.streams.iter().cloned().map(Tally::new).collect();
        let generator = |stream: usize, node: u32| {
            let path = format!("background/{}/{node}", background.frames.streams[stream].name);
            let mean_gap_ps = streams[stream].mean_gap_ps(block_time(config.rate));
            let mut random = background.seed.stream(&path);
            let next = Time::ZERO + Span::from_ps_f64(random.exponential(mean_gap_ps));
            Generator { stream: stream as u32, node: NodeId(node), random, mean_gap_ps, next }
        };
        // A node without others has nobody to send to.
        let nodes = if config.nodes > 1 { config.nodes } else { 0 };
        let generators = (0..streams.len()).flat_map(|stream| (0..nodes).map(move |node| (stream, node)));
        Traffic {
            generators: generators.map(|(stream, node)| generator(stream, node)).collect(),
            nodes: config.nodes,
            delays: FrameDelays {
                to_line: STACK.mac + STACK.pcs,
                line: config.transceiver * 2 + config.propagation,
                from_line: STACK.pcs + STACK.mac,
                forwarding: STACK.forwarding,
            },
            frames: Slab::new(),
            created: 0,
            newest: vec![0; (config.nodes * config.nodes) as usize],
            out_of_order: 0,
            last_delivery: Time::ZERO,
            measured_from: Time::ZERO,
            streams,
        }
    }

    /// When each generator's next burst is at its multiplexer.
    pub fn next_bursts(&self) -> impl Iterator<Item = Time> {
        self.generators.iter().map(|generator| generator.next + self.delays.to_line)
    }

    /// The burst that a generator was to send, and when its next one is at the multiplexer.
    pub fn burst(&mut self, index: u32) -> (Burst, Time) {
        let generator = &mut self.generators[index as usize];
        let Generator { stream, node: source, next: created, .. } = *generator;
        // Uniform over all but the node itself.
        let drawn = generator.random.below(u64::from(self.nodes - 1)) as u32;
        let target = NodeId(if drawn < source.0 { drawn } else { drawn + 1 });
        generator.next += Span::from_ps_f64(generator.random.exponential(generator.mean_gap_ps));
        let tally = &mut self.streams[stream as usize];
        let frames = tally.config.burst_frames;
        tally.sent += u64::from(frames);
        (Burst { stream, source, target, created, frames }, generator.next + self.delays.to_line)
    }

    /// The node that a generator belongs to.
    pub fn node(&self, generator: u32) -> NodeId {
        self.generators[generator as usize].node
    }

    /// Puts one frame of `burst` on its way through `plane`; its number.
    pub fn create(&mut self, burst: &Burst, plane: usize) -> u32 {
        self.created += 1;
        let Burst { stream, source, target, created, .. } = *burst;
        self.frames.insert(Frame { plane, stream, source, target, created, number: self.created })
    }

    /// The frame with this number.
    pub fn frame(&self, index: u32) -> Frame {
        self.frames[index]
    }
    /// Its blocks on a line.
    pub fn blocks(&self, index: u32) -> FrameBlocks {
        self.streams[self.frame(index).stream as usize].blocks
    }
    /// Its bytes in a queue.
    pub fn bytes(&self, index: u32) -> Bytes {
        self.streams[self.frame(index).stream as usize].config.frame
    }

    /// A frame is with its receiver. `counts` is whether its plane is the one whose frames are
    /// counted.
    pub fn deliver(&mut self, index: u32, at: Time, counts: bool) {
        let frame = self.frames.remove(index);
        if !counts {
            return;
        }
        let pair = (frame.source.0 * self.nodes + frame.target.0) as usize;
        self.out_of_order += u64::from(frame.number < self.newest[pair]);
        self.newest[pair] = self.newest[pair].max(frame.number);
        self.last_delivery = self.last_delivery.max(at);
        let tally = &mut self.streams[frame.stream as usize];
        tally.delivered += 1;
        if frame.created >= self.measured_from {
            tally.took(at - frame.created);
        }
    }

    /// A full queue or a dead link has dropped a frame.
    pub fn drop(&mut self, index: u32, counts: bool) {
        let frame = self.frames.remove(index);
        if !counts {
            return;
        }
        self.streams[frame.stream as usize].dropped += 1;
    }

    /// What became of the frames; those of `plane` are under way.
    pub fn measure(&self, plane: usize, meter: &mut Meter) {
        let sum = |field: fn(&Tally) -> u64| self.streams.iter().map(field).sum::<u64>() as f64;
        let under_way = self.frames.iter().filter(|(_, frame)| frame.plane == plane).count();
        meter.count(metric::background_frames_sent, sum(|tally| tally.sent));
        meter.count(metric::background_frames_delivered, sum(|tally| tally.delivered));
        meter.count(metric::background_frames_dropped, sum(|tally| tally.dropped));
        meter.put(metric::background_frames_under_way, under_way as f64);
        meter.count(metric::background_frames_out_of_order, self.out_of_order as f64);
        // Of whole frames; bits a nanosecond are gigabits a second.
        let bits = sum(|tally| tally.delivered * tally.config.frame.count() * 8);
        let node_time_ns = self.last_delivery.as_ns_f64() * f64::from(self.nodes);
        meter.ratio(metric::background_delivered_gbps_per_node, bits, node_time_ns);
        for tally in self.streams.iter().filter(|tally| !tally.latency.is_empty()) {
            let name = &tally.config.name;
            let mean = tally.latency_sum.as_ns_f64() / tally.latency.len() as f64;
            meter.put(metric::background_stream_latency_mean_ns.at(&[name]), mean);
            let latencies = Arc::new(tally.latency.clone());
            meter.percentile(metric::background_stream_latency_p99_ns.at(&[name]), 0.99, &latencies, PS_PER_NS);
        }
    }

    /// Latencies begin anew, with frames that are sent from now on.
    pub fn end_warm_up(&mut self, now: Time) {
        self.measured_from = now;
        for tally in &mut self.streams {
            tally.latency_sum = Span::ZERO;
            tally.latency.reset();
        }
    }
}

impl Tally {
    fn new(config: BackgroundStream) -> Tally {
        let blocks = frame_blocks(config.frame.count() as usize - CHECK_BYTES);
        let latency = Histogram::new(SIGNIFICANT_DIGITS).expect("three significant digits are allowed");
        Tally { config, blocks, sent: 0, delivered: 0, dropped: 0, latency_sum: Span::ZERO, latency }
    }

    fn mean_gap_ps(&self, block: Span) -> f64 {
        let burst = block * (self.blocks.total() * u64::from(self.config.burst_frames));
        burst.as_ps() as f64 / self.config.load
    }

    fn took(&mut self, latency: Span) {
        self.latency_sum += latency;
        self.latency.record(latency.as_ps()).expect("a histogram that resizes itself takes every value");
    }
}
