//! `record.series`: how many values a series may have, and what is expected of a run.

use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::plan::{Design, Plan, Scene};
use crate::resolve::Resolver;
use crate::san::{San, SanLoad};
use base::Span;
use topology::VertexKind;

/// A series of more values is refused, and one that turns out to have more ends early, with a
/// warning. Ours: some 100 MB of Parquet, which other programs still read at once.
pub const SERIES_VALUES_MAX: u64 = 20_000_000;
/// More places of one metric are not written one by one (`record::SERIES_PLACES_MAX`).
const PLACES_MAX: u64 = 256;
const DAY: Span = Span::secs(86_400);

/// What a series is expected to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesEstimate {
    /// Times at which the state is sampled.
    pub samples: u64,
    /// Values of all of them, roughly.
    pub values: u64,
}

impl Plan {
    /// What the series of a run are expected to come to; `None` without them, or where nothing is
    /// known of the length of the run.
    pub fn series_estimate(&self) -> Option<SeriesEstimate> {
        let interval = self.series?;
        let samples = match &self.scene {
            Scene::Wear(wear) => u64::from(wear.days) / days(interval).max(1) + 1,
            _ => (self.expected_length()?.as_ps() / interval.as_ps()).saturating_add(2),
        };
        Some(SeriesEstimate { samples, values: samples.saturating_mul(self.values_a_sample()) })
    }

    /// Days from one sample to the next, where nothing but wear is played.
    pub fn series_days(&self) -> Option<u32> {
        self.series.map(|interval| days(interval) as u32)
    }

    /// How long requests arrive, as far as the plan says it.
    fn expected_length(&self) -> Option<Span> {
        let (requests, duration, rate) = match &self.scene {
            Scene::Messages(messages) => return crate::warnings::expected_length(messages),
            Scene::Blox(blox) => (blox.io.requests, blox.io.duration, blox.requests_per_second),
            Scene::San(san) => san_length(san),
            Scene::Wear(_) => return None,
            Scene::SDirect(sdirect) => (sdirect.io.requests, sdirect.io.duration, sdirect.requests_per_second),
            Scene::Scalio(scalio) => (scalio.io.requests, scalio.io.duration, scalio.requests_per_second),
        };
        let by_rate = requests.zip(rate).map(|(requests, rate)| Span::from_ps_f64(requests as f64 / rate * 1e12));
        [duration, by_rate].into_iter().flatten().min()
    }

    /// Values that a sample has, roughly: the places of each metric, and those over all of them.
    fn values_a_sample(&self) -> u64 {
        let places = |count: u64| count.min(PLACES_MAX);
        let common = 8;
        common
            + match &self.scene {
                Scene::Messages(messages) => {
                    let each = if matches!(messages.design, Design::Edm(_)) { 6 } else { 5 };
                    places(messages.fabric.nodes.into()) * each
                }
                Scene::Blox(blox) => {
                    let (servers, clients) = (u64::from(blox.rack.servers), u64::from(blox.rack.clients));
                    let drives = servers * u64::from(blox.rack.ssds);
                    places(clients) + places(blox.io.volumes.into()) + places(servers) * 3 + places(drives) * 3
                }
                Scene::San(san) => {
                    let graph = &*san.fabric.graph;
                    let of = |kind| graph.vertices().iter().filter(|vertex| vertex.kind == kind).count() as u64;
                    let drives = of(VertexKind::Target) * u64::from(san.drives.per_target);
                    let ports = 2 * graph.links().len() as u64;
                    places(of(VertexKind::Host)) * 2 + places(drives) * 5 + places(ports) * 3
                }
                Scene::Wear(wear) => places(u64::from(wear.servers) * u64::from(wear.ssds)),
                Scene::SDirect(sdirect) => places(sdirect.machine.devices.into()) * 5,
                Scene::Scalio(scalio) => {
                    places(scalio.store.clients.into()) + places(scalio.store.devices.into()) * 3 + 16
                }
            }
    }
}

fn san_length(san: &San) -> (Option<u64>, Option<Span>, Option<f64>) {
    let (requests, duration) = san.io.limits();
    let rate = match &san.io.load {
        SanLoad::Requests { requests_per_second, .. } => *requests_per_second,
        SanLoad::Mixed { mixed, .. } => mixed.requests_per_second,
        SanLoad::Imitation { config, .. } => Some(config.shape.requests_per_second),
        SanLoad::Jobs { .. } | SanLoad::Trace(_) | SanLoad::Stores(_) => None,
    };
    (requests, duration, rate)
}

fn days(interval: Span) -> u64 {
    interval.as_ps() / DAY.as_ps()
}

impl Resolver<'_> {
    /// The interval of the series.
    pub(crate) fn series(&mut self, file: &ExperimentFile) -> Option<Span> {
        file.record.as_ref()?.series.map(|interval| interval.0)
    }

    /// Refuses an interval that does not suit the plan, and warns of one that shows nothing.
    pub(crate) fn check_series(&mut self, plan: &Plan) -> Option<String> {
        let interval = plan.series?;
        if matches!(plan.scene, Scene::Wear(_)) && !interval.as_ps().is_multiple_of(DAY.as_ps()) {
            let allowed = "whole days (\"24h\" and multiples), the steps of wear levelling";
            self.report("record.series", Problem::out_of_range(interval, allowed));
            return None;
        }
        let SeriesEstimate { samples, values } = plan.series_estimate()?;
        if values > SERIES_VALUES_MAX {
            let least = least_interval(plan, interval, values);
            self.conflict(
                "record.series",
                format!(
                    "{interval} makes about {values} values in {samples} samples, more than {SERIES_VALUES_MAX}; \
                     set it to {least} or more"
                ),
            );
            return None;
        }
        let is_longer = plan.expected_length().is_some_and(|length| length < interval);
        is_longer.then(|| {
            let length = plan.expected_length().unwrap_or_default();
            format!("record.series = {interval} is longer than the run, of about {length}: its begin and its end are sampled")
        })
    }
}

/// The least interval of two digits that makes no more values than are allowed.
fn least_interval(plan: &Plan, interval: Span, values: u64) -> Span {
    let least = interval.as_ps() as f64 * (values as f64 / SERIES_VALUES_MAX as f64);
    if let Scene::Wear(_) = plan.scene {
        return DAY * (least / DAY.as_ps() as f64).ceil().max(1.0) as u64;
    }
    let unit = 10_f64.powf((least.log10().floor() - 1.0).max(0.0));
    Span::from_ps_f64((least / unit).ceil() * unit)
}
