//! A rack that nobody has started: its roles as they are at their first start, on simulated
//! hardware, and the load of its file.

use super::model::{Host, Kind, Link, Model, SLEEPS};
use super::run::Life;
use super::simulate::{Load, PageAsk};
use crate::configs::{self, door_node, name_of};
use crate::journal::{Beginning, State};
use base::{NodeId, Seed, Span, Time};
use blox::Page;
use plan::rack::{OrderName, PAGE, Rack};
use runtime::times::Times;

/// When hosts begin: by then every role knows its place.
const BEGIN: Time = Time::secs(1);
/// From a sender, through the wire, to a role. That of the switch has its pipeline behind it.
const WIRE: Span = Span::ns(10);
/// The switch's pipeline, as in an experiment of RackBlox (`rack.pipeline`).
const PIPELINE: Span = Span::ns(600);
/// A page and its headers at 50 Gb/s, the rate of the paper's testbed (3.7).
const PAGE_TIME: Span = Span::ns(670);
/// Pages that are open at a time at each door while volumes are filled.
const FILL_DEPTH: u64 = 64;
/// Software of a host a packet, as in an experiment of RackBlox (`rack.host`).
const HOST: Span = Span::us(1);

/// All roles of a rack at their first start.
pub fn first_lives(rack: &Rack) -> Vec<Life> {
    let storage = (0..rack.storage.len()).map(|server| State::Storage {
        server,
        starts: 0,
        adopted: Vec::new(),
        values: Vec::new(),
    });
    let doors = (0..rack.doors.len()).map(|door| State::Door { door, start: (door as u64 + 1) << 40 });
    let rest = [State::Control { state: None }, State::Switch { hello: 1 << 32 }];
    let life = |(node, state)| Life {
        beginning: Beginning {
            program: env!("CARGO_PKG_VERSION").into(),
            rack: configs::version(rack),
            name: name_of(rack, NodeId(node)),
            node,
            boot: String::new(),
            clock_ns: 0,
            processors: 0,
            state,
        },
        start: Time::ZERO,
        end: Time::ZERO,
        ends: false,
    };
    (0..).zip(storage.chain(doors).chain(rest)).map(life).collect()
}

impl Model {
    /// Links and roles of the hardware that experiments of RackBlox have by default. A packet that
    /// is taken or sent after a wake-up occupies a server or a door for 1 us, and with a page for
    /// 0.67 us more, its time on a link of 50 Gb/s. The
    /// switch takes 0.6 us, any number of packets at a time, and sends a page on as it comes.
    /// Roles are awake at once.
    pub fn of_hardware() -> Model {
        let ns = |span: Span| span.as_ps() / 1_000;
        let ends = Kind::ALL.into_iter().flat_map(|from| Kind::ALL.map(|to| (from, to)));
        let link = |(from, to)| {
            let pipeline = if from == Kind::Switch { PIPELINE } else { Span::ZERO };
            Link { from, to, least_ns: ns(WIRE + pipeline), packets: 0, lost: 0 }
        };
        let host = |kind| {
            let times = if kind == Kind::Switch { [Span::ZERO; 2] } else { [HOST, HOST + PAGE_TIME] };
            let [short, page] = times.map(|span| Times::from(vec![ns(span)]));
            let pair = || [short.clone(), page.clone()];
            Host {
                wake_ns: [(); SLEEPS.len() + 1].map(|()| vec![0].into()),
                packet_ns: [short.clone(), page.clone(), short.clone(), page.clone()],
                ask_ns: pair(),
                turn_ns: pair(),
                leave_ns: [(); 2].map(|()| vec![0].into()),
                late_ns: vec![0].into(),
                rest_ns: Default::default(),
            }
        };
        let hosts = Kind::ALL.map(|kind| (kind, host(kind))).into();
        Model { links: ends.map(link).collect(), hosts, ..Model::default() }
    }
}

/// The loads of the rack's file.
pub fn planned_load(rack: &Rack, seed: Seed) -> Load {
    let mut load = Load::default();
    for one in &rack.loads {
        let door = door_node(rack, one.door);
        let pages = (rack.volumes[one.volume].size.count() / PAGE.count()).max(1);
        let ask = |at, page, is_write| {
            let (volume, page, ended, soon) = (one.volume as u32, Page(page), 0, None);
            PageAsk { at, door, volume, page, is_write, ended, soon }
        };
        if one.fill {
            load.fill.extend((0..pages).map(|page| ask(BEGIN, page, true).of_depth(page, FILL_DEPTH)));
        }
        let mut stream = seed.stream(&format!("load/{}", rack.doors[one.door].name));
        let mut at = BEGIN;
        for number in 0..one.requests {
            if let Some(rate) = one.rate {
                at += Span::ps((stream.exponential(1.0 / rate) * 1e12) as u64);
            }
            let page = match one.order {
                OrderName::Random => stream.below(pages),
                OrderName::Sequential => number % pages,
            };
            let ask = ask(at, page, stream.unit() >= one.reads);
            load.pages.push(if one.rate.is_some() { ask } else { ask.of_depth(number, one.depth.into()) });
        }
    }
    load.pages.sort_by_key(|page| page.at);
    load
}
