//! Plays a block trace as a load.

use super::{BlockRequest, BlockTrace};
use crate::generator::{Arrival, Source};
use crate::limits::Limits;
use crate::problem::{Checker, NODES_MAX, Problem};
use base::{Bytes, NodeId, Request, Span, Time};
use serde::Serialize;

/// How a trace is played. Clients are the nodes `0..clients`, volume `v` is the node `clients + v`;
/// volumes are dealt to the clients like cards, and a request comes from its volume's client.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayConfig {
    /// Number of clients.
    pub clients: u32,
    /// Number of volumes.
    pub volumes: u32,
    /// The device of the trace is which volume.
    pub devices: Devices,
    /// What times are multiplied with: 0.5 plays the trace twice as fast.
    pub time_scale: f64,
    /// The load ends after this many requests, or with the trace...
    pub requests: Option<u64>,
    /// ...or with the last request before this time.
    pub duration: Option<Span>,
}

/// Which device of a trace is which volume. Devices of one volume share its addresses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Devices {
    /// Device `d` is volume `d` modulo the number of volumes.
    Modulo,
    /// As listed: `(device, volume)`. Requests to a device that is not listed are a [`Problem`].
    Listed {
        /// In any order; of several entries for one device, the first counts.
        pairs: Vec<(u32, u32)>,
    },
    /// Every device is cut into stripes, which are distributed over the volumes, those of device
    /// `d` from volume `d` on. A whole request is sent to the volume of its first byte, and keeps
    /// its address: for volumes as large as the recorded devices. This spreads few devices over
    /// many volumes.
    Striped {
        /// How large a stripe is, more than 0.
        stripe: Bytes,
    },
}

impl ReplayConfig {
    /// What is impossible about playing `trace` like this, in the order of the fields.
    pub fn problems(&self, trace: &BlockTrace) -> Vec<Problem> {
        let mut check = Checker::default();
        check.range("clients", u64::from(self.clients), 1, u64::from(NODES_MAX) - 1);
        let volumes_max = u64::from(NODES_MAX).saturating_sub(u64::from(self.clients)).max(1);
        check.range("volumes", u64::from(self.volumes), 1, volumes_max);
        self.check_devices(trace, &mut check);
        self.check_times(trace, &mut check);
        check.problems()
    }

    fn check_devices(&self, trace: &BlockTrace, check: &mut Checker) {
        let pairs = match &self.devices {
            Devices::Modulo => return,
            Devices::Striped { stripe } => return check.range("devices.stripe", stripe.count(), 1, u64::MAX),
            Devices::Listed { pairs } => pairs,
        };
        for (index, (_device, volume)) in pairs.iter().enumerate() {
            let field = format!("devices.pairs[{index}].volume");
            check.range(field, u64::from(*volume), 0, u64::from(self.volumes.saturating_sub(1)));
        }
        let is_listed = |device: &u32| pairs.iter().any(|(listed, _)| listed == device);
        for device in trace.devices().iter().filter(|device| !is_listed(device)) {
            check.add(Problem::Empty { field: format!("devices.pairs (of device {device} in the trace)") });
        }
    }

    fn check_times(&self, trace: &BlockTrace, check: &mut Checker) {
        let last_ps = trace.requests.last().map_or(0, |last| last.at.as_ps());
        let end_ps = last_ps as f64 * self.time_scale;
        let good = self.time_scale > 0.0 && end_ps < Time::MAX.as_ps() as f64;
        let allowed = "a positive number that keeps the trace within 213 days";
        check.number("time_scale", self.time_scale, allowed, good);
    }

    fn volume_of(&self, device: u32, address: u64) -> u32 {
        match &self.devices {
            Devices::Modulo => device % self.volumes,
            Devices::Striped { stripe } => {
                let volumes = u64::from(self.volumes);
                ((address / stripe.count() % volumes + u64::from(device)) % volumes) as u32
            }
            Devices::Listed { pairs } => {
                let pair = pairs.iter().find(|(listed, _)| *listed == device);
                pair.expect("every device of the trace is listed, as was checked").1
            }
        }
    }
}

/// Plays a [`BlockTrace`]: an open loop in the order of its lines.
#[derive(Clone, Debug)]
pub struct Replay {
    config: ReplayConfig,
    requests: Vec<BlockRequest>,
    next: usize,
    limits: Limits,
}

impl Replay {
    /// A replay of all requests of `trace`, which it consumes.
    ///
    /// # Panics
    /// If `config` has [`problems`](ReplayConfig::problems) with this trace. Check external
    /// configurations first.
    pub fn new(config: ReplayConfig, trace: BlockTrace) -> Replay {
        let problems = config.problems(&trace);
        assert!(problems.is_empty(), "the replay was not checked: {}", problems[0]);
        let limits = Limits::new(config.requests, config.duration);
        Replay { config, requests: trace.requests, next: 0, limits }
    }

    /// Returns how many requests were handed out so far.
    pub fn made(&self) -> u64 {
        self.limits.made()
    }

    fn next(&mut self) -> Option<Arrival> {
        let BlockRequest { at, device, operation, address, bytes } = *self.requests.get(self.next)?;
        let at = Time::ZERO + Span::from_ps_f64(at.as_ps() as f64 * self.config.time_scale);
        let id = self.limits.admit(at)?;
        self.next += 1;
        let volume = self.config.volume_of(device, address);
        let (source, target) = (NodeId(volume % self.config.clients), NodeId(self.config.clients + volume));
        Some(Arrival { at, request: Request { id, operation, source, target, address, bytes } })
    }
}

impl Source for Replay {
    fn start(&mut self, out: &mut Vec<Arrival>) {
        out.extend(self.next());
    }

    fn after_arrival(&mut self, _taken: &Arrival) -> Option<Arrival> {
        self.next()
    }

    fn after_end(&mut self, _now: Time, _finished: &Request) -> Option<Arrival> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Beyond, Inversions, Tolerance, read_block_trace};
    use super::*;
    use base::{Operation, RequestId};

    fn trace() -> BlockTrace {
        let text = "100 0 8 8 1\n110 1 16 64 0\n140 5 0 1 1\n";
        let tolerance = Tolerance { volume: None, beyond: Beyond::Refuse, skip_bad: 0, inversions: Inversions::Refuse };
        read_block_trace("small.trace", &tolerance, text.as_bytes()).unwrap()
    }

    fn config() -> ReplayConfig {
        ReplayConfig {
            clients: 2,
            volumes: 4,
            devices: Devices::Modulo,
            time_scale: 1.0,
            requests: None,
            duration: None,
        }
    }

    fn play(config: ReplayConfig) -> Vec<Arrival> {
        let mut replay = Replay::new(config, trace());
        let mut played = Vec::new();
        replay.start(&mut played);
        while let Some(next) = replay.after_arrival(played.last().unwrap()) {
            played.push(next);
        }
        assert_eq!(replay.made(), played.len() as u64);
        played
    }

    fn problems(config: ReplayConfig) -> Vec<String> {
        config.problems(&trace()).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_trace_is_played_as_recorded_and_large_requests_stay_whole() {
        let arrival = |id, at, operation, source, target, address, bytes| Arrival {
            at: Time::ns(at),
            request: Request {
                id: RequestId(id),
                operation,
                source: NodeId(source),
                target: NodeId(target),
                address,
                bytes: Bytes::new(bytes),
            },
        };
        let expected = [
            arrival(0, 0, Operation::Read, 0, 2, 4_096, 4_096),
            arrival(1, 10, Operation::Write, 1, 3, 8_192, 32_768),
            arrival(2, 40, Operation::Read, 1, 3, 0, 512),
        ];
        assert_eq!(play(config()), expected);
    }

    #[test]
    fn time_is_scaled_and_the_limits_hold() {
        let times = |config| play(config).iter().map(|arrival| arrival.at).collect::<Vec<_>>();
        assert_eq!(times(ReplayConfig { time_scale: 2.5, ..config() }), [0, 25, 100].map(Time::ns));
        assert_eq!(times(ReplayConfig { requests: Some(1), ..config() }), [Time::ZERO]);
        let until = |ns| times(ReplayConfig { duration: Some(Span::ns(ns)), ..config() }).len();
        assert_eq!((until(10), until(11)), (1, 2), "the end itself is too late");
    }

    #[test]
    fn listed_devices_go_to_their_volumes() {
        let devices = Devices::Listed { pairs: vec![(0, 3), (1, 0), (5, 3)] };
        let targets: Vec<u32> =
            play(ReplayConfig { devices, ..config() }).iter().map(|each| each.request.target.0).collect();
        assert_eq!(targets, [5, 2, 5]);
    }

    #[test]
    fn stripes_are_dealt_to_the_volumes_from_that_of_the_device_on() {
        let targets = |bytes| -> Vec<u32> {
            let devices = Devices::Striped { stripe: Bytes::new(bytes) };
            play(ReplayConfig { devices, ..config() }).iter().map(|each| each.request.target.0 - 2).collect()
        };
        // First bytes 4096, 8192 and 0 of the devices 0, 1 and 5.
        assert_eq!(targets(4096), [1, 3, 1]);
        assert_eq!(targets(4097), [0, 2, 1]);
        let none = ReplayConfig { devices: Devices::Striped { stripe: Bytes::ZERO }, ..config() };
        assert_eq!(problems(none), ["devices.stripe: 0 is outside 1..=18446744073709551615"]);
    }

    #[test]
    fn every_problem_names_its_field() {
        assert_eq!(problems(config()), [""; 0]);
        let devices = Devices::Listed { pairs: vec![(0, 4), (1, 0)] };
        assert_eq!(
            problems(ReplayConfig { devices, ..config() }),
            [
                "devices.pairs[0].volume: 4 is outside 0..=3",
                "devices.pairs (of device 5 in the trace): is empty, at least one entry is needed"
            ]
        );
        let scale = |time_scale| problems(ReplayConfig { time_scale, ..config() });
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e16] {
            assert_eq!(
                scale(bad),
                [format!("time_scale: {bad} is not a positive number that keeps the trace within 213 days")]
            );
        }
        assert_eq!(problems(ReplayConfig { volumes: 0, ..config() })[0], "volumes: 0 is outside 1..=1048574");
    }

    #[test]
    fn published_traces_are_played_whole_where_they_are_at_hand() {
        let path = format!("{}/../../../shared/data/traces/tpcc-small.trace", env!("CARGO_MANIFEST_DIR"));
        let Ok(file) = std::fs::File::open(&path) else { return };
        let volume = Some(Bytes::new(64 << 30));
        let tolerance = Tolerance { volume, beyond: Beyond::Fold, skip_bad: 0, inversions: Inversions::Sort };
        let trace = read_block_trace("tpcc", &tolerance, std::io::BufReader::new(file)).unwrap();
        let mut replay = Replay::new(config(), trace);
        let mut next = Vec::new();
        replay.start(&mut next);
        while let Some(arrival) = next.pop() {
            assert!(arrival.request.address + arrival.request.bytes.count() <= 64 << 30);
            next.extend(replay.after_arrival(&arrival));
        }
        assert_eq!(replay.made(), 6_999);
    }
}
