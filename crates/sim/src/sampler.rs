//! Samples the state of a run at equal intervals of virtual time, for `record.series`.
//!
//! A sample at a time is taken before the first event at that time or later, without an event of
//! its own: it shows what was true before the events of that time, and the run stays the same.

use base::{Bytes, Operation, Request, Span, Time};
use hardware::Cpu;
use hardware::ssd::SolidState;
use record::{Outcome, SERIES_PLACES_MAX, Series, SeriesForm, SeriesPlace, SeriesRow, Sink, SinkError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Collects the values of one sample. A rig reports the state of its parts to it.
#[derive(Default)]
pub struct Probe {
    readings: Vec<Reading>,
}

/// One value of a place; of a metric that counts, a total since the run began.
#[derive(Clone, Copy)]
struct Reading {
    metric: Series,
    /// The number of the place; of no meaning where the metric has no places.
    index: u32,
    value: f64,
}

impl Probe {
    /// Reports a metric without places.
    pub fn put(&mut self, metric: Series, value: f64) {
        self.readings.push(Reading { metric, index: 0, value });
    }

    /// Reports a metric of each of its places, numbered from `first`.
    pub fn put_each(&mut self, metric: Series, first: u32, values: impl Iterator<Item = f64>) {
        let readings = (first..).zip(values).map(|(index, value)| Reading { metric, index, value });
        self.readings.extend(readings);
    }

    /// Reports the free blocks of drives with a translation layer, numbered from 0.
    pub fn put_drives<'a>(&mut self, drives: impl Iterator<Item = &'a SolidState>) {
        let drives: Vec<&SolidState> = drives.collect();
        let of = |read: fn(&SolidState) -> u32| drives.iter().map(move |drive| f64::from(read(drive)));
        self.put_each(Series::FreeBlocks, 0, of(|drive| drive.layer().free_blocks()));
        self.put_each(Series::FreeBlocksOfDie, 0, of(|drive| drive.layer().fewest_free_blocks()));
        self.put_each(Series::Collecting, 0, of(|drive| u32::from(drive.is_collecting())));
    }

    /// Reports the work that cores have before them.
    pub fn put_cores(&mut self, now: Time, cpu: &Cpu) {
        self.put_each(Series::CoreBacklog, 0, cpu.backlogs(now).map(Span::as_ns_f64));
    }

    /// Reports a metric of the place with a number.
    pub fn put_at(&mut self, metric: Series, index: u32, value: f64) {
        self.readings.push(Reading { metric, index, value });
    }
}

/// When samples are taken, and what the driver itself counts for them.
pub(crate) struct Sampler {
    interval: Span,
    /// The time of the next sample; [`Time::MAX`] without series.
    due: Time,
    requests: Requests,
    probe: Probe,
    /// The totals of the sample before, by metric and place.
    totals: BTreeMap<(Series, u32), f64>,
    rows: Vec<SeriesRow>,
    /// Values so far, and at most.
    written: u64,
    values_max: u64,
    /// When the series has ended early, as it had too many values.
    full_at: Option<Time>,
}

/// Requests since the run began. Those whose end is known ahead of time wait for it.
#[derive(Default)]
struct Requests {
    begun: u64,
    ended: u64,
    finished_bytes: u64,
    received: Vec<u64>,
    about: Vec<u64>,
    ahead: BinaryHeap<Reverse<(Time, u64, Payload)>>,
    /// Ends that were put into `ahead`: those of one time leave it in their order.
    pushed: u64,
}

/// The payload of a request that has ended, by its nodes; zero unless it finished.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Payload {
    bytes: u64,
    receiver: usize,
    target: usize,
}

impl Sampler {
    /// Samples at time zero and then at each interval; without one, never.
    pub fn new(interval: Option<Span>) -> Sampler {
        Sampler {
            interval: interval.unwrap_or(Span::ZERO),
            due: interval.map_or(Time::MAX, |_| Time::ZERO),
            requests: Requests::default(),
            probe: Probe::default(),
            totals: BTreeMap::new(),
            rows: Vec::new(),
            written: 0,
            values_max: plan::SERIES_VALUES_MAX,
            full_at: None,
        }
    }

    /// Whether a sample is due before the events of `now`.
    #[inline(always)]
    pub fn is_due(&self, now: Time) -> bool {
        self.due <= now
    }

    /// The time of the next sample.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Whether there are series.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.due != Time::MAX
    }

    /// A request begins now.
    #[inline(always)]
    pub fn begins(&mut self) {
        self.requests.begun += 1;
    }

    /// A request ends at `end`, now or later.
    pub fn ends(&mut self, end: Time, request: &Request, outcome: Outcome) {
        let bytes = if outcome == Outcome::Finished { request.bytes } else { Bytes::ZERO };
        let receiver = if request.operation == Operation::Write { request.target } else { request.source };
        let payload = Payload { bytes: bytes.count(), receiver: receiver.index(), target: request.target.index() };
        if end < self.due {
            return self.requests.count(payload);
        }
        self.requests.pushed += 1;
        self.requests.ahead.push(Reverse((end, self.requests.pushed, payload)));
    }

    /// Takes the sample that is due; `state` reports what the rig has.
    pub fn sample(&mut self, state: impl FnOnce(&mut Probe), sink: &mut dyn Sink) -> Result<(), SinkError> {
        let at = self.due;
        self.due = at.checked_add(self.interval).unwrap_or(Time::MAX);
        self.requests.pass(|end| end < at);
        self.read(state);
        self.write(at, 0, sink)
    }

    /// Takes the sample of a day's end, of a run without requests.
    pub fn sample_day(
        &mut self,
        day: u32,
        state: impl FnOnce(&mut Probe),
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        self.probe.readings.clear();
        state(&mut self.probe);
        self.write(Time::ZERO, day, sink)
    }

    /// Takes the last sample, at a time after all events of a run that has stopped.
    pub fn finish(&mut self, at: Time, state: impl FnOnce(&mut Probe), sink: &mut dyn Sink) -> Result<(), SinkError> {
        self.requests.pass(|end| end < at);
        self.due = Time::MAX;
        self.read(state);
        self.write(at, 0, sink)
    }

    /// What a reader must know about the series.
    pub fn warning(&self) -> Option<String> {
        let at = self.full_at?;
        Some(format!(
            "record.series: the series end at {} us, after {} values; a longer interval than {} covers the whole run",
            at.as_ps() as f64 / 1e6,
            self.written,
            self.interval
        ))
    }

    fn read(&mut self, state: impl FnOnce(&mut Probe)) {
        self.probe.readings.clear();
        self.requests.report(&mut self.probe);
        state(&mut self.probe);
    }

    fn write(&mut self, at: Time, day: u32, sink: &mut dyn Sink) -> Result<(), SinkError> {
        self.rows.clear();
        let readings = std::mem::take(&mut self.probe.readings);
        for group in readings.chunk_by(|one, next| one.metric == next.metric) {
            self.rows_of((at, day), group);
        }
        self.probe.readings = readings;
        self.written += self.rows.len() as u64;
        if self.written > self.values_max {
            (self.full_at, self.due) = (Some(at), Time::MAX);
        }
        sink.series(&self.rows)
    }

    /// The rows of one metric: of its places, unless there are too many, and over all of them.
    fn rows_of(&mut self, (at, day): (Time, u32), group: &[Reading]) {
        let metric = group[0].metric;
        let definition = metric.definition();
        let first = self.rows.len();
        for reading in group {
            let value = match definition.form {
                SeriesForm::State => reading.value,
                SeriesForm::Count => {
                    let before = self.totals.insert((metric, reading.index), reading.value).unwrap_or(0.0);
                    reading.value - before
                }
            };
            let place = definition.place.map_or(SeriesPlace::Total, |place| SeriesPlace::At(place(reading.index)));
            self.rows.push(SeriesRow { at, day, metric, place, value });
        }
        let values = |rows: &[SeriesRow]| rows.iter().map(|row| row.value).collect::<Vec<_>>();
        let values = values(&self.rows[first..]);
        if values.len() > SERIES_PLACES_MAX {
            self.rows.truncate(first);
        }
        for over in definition.over {
            if let Some(value) = over.of(values.iter().copied()) {
                self.rows.push(SeriesRow { at, day, metric, place: over.place(), value });
            }
        }
    }
}

impl Requests {
    fn count(&mut self, payload: Payload) {
        self.ended += 1;
        self.finished_bytes += payload.bytes;
        for (nodes, node) in [(&mut self.received, payload.receiver), (&mut self.about, payload.target)] {
            if nodes.len() <= node {
                nodes.resize(node + 1, 0);
            }
            nodes[node] += payload.bytes;
        }
    }

    /// Counts the ends that have passed.
    fn pass(&mut self, has_passed: impl Fn(Time) -> bool) {
        while let Some(Reverse((end, _, payload))) = self.ahead.peek().copied()
            && has_passed(end)
        {
            self.ahead.pop();
            self.count(payload);
        }
    }

    fn report(&self, probe: &mut Probe) {
        probe.put(Series::RequestsBegun, self.begun as f64);
        probe.put(Series::RequestsEnded, self.ended as f64);
        probe.put(Series::RequestsOutstanding, (self.begun - self.ended) as f64);
        probe.put(Series::FinishedBytes, self.finished_bytes as f64);
        for (metric, nodes) in [(Series::ReceivedBytes, &self.received), (Series::TargetBytes, &self.about)] {
            probe.put_each(metric, 0, nodes.iter().map(|bytes| *bytes as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{NodeId, RequestId};

    fn request(bytes: u64) -> Request {
        let (id, operation, address) = (RequestId(0), Operation::Read, 0);
        Request { id, operation, source: NodeId(0), target: NodeId(1), address, bytes: Bytes::new(bytes) }
    }

    #[derive(Default)]
    struct Kept(Vec<SeriesRow>);
    impl Sink for Kept {
        fn row(&mut self, _: &record::Row) -> Result<(), SinkError> {
            Ok(())
        }
        fn series(&mut self, rows: &[SeriesRow]) -> Result<(), SinkError> {
            self.0.extend_from_slice(rows);
            Ok(())
        }
    }

    fn finished(kept: &Kept) -> Vec<(u64, f64)> {
        let rows = kept.0.iter().filter(|row| row.metric == Series::FinishedBytes);
        rows.map(|row| (row.at.as_ps(), row.value)).collect()
    }

    /// An end may be known before its time, and then counts at its time.
    #[test]
    fn an_end_that_is_known_ahead_counts_in_its_own_interval() {
        let (mut sampler, mut kept) = (Sampler::new(Some(Span::ps(10))), Kept::default());
        sampler.sample(|_| (), &mut kept).unwrap();
        for end in [25, 9, 10, 19, 20] {
            sampler.begins();
            sampler.ends(Time::ps(end), &request(end), Outcome::Finished);
        }
        for _ in 0..3 {
            sampler.sample(|_| (), &mut kept).unwrap();
        }
        assert_eq!(finished(&kept), [(0, 0.0), (10, 9.0), (20, 29.0), (30, 45.0)]);
        assert!(!sampler.is_due(Time::ps(39)) && sampler.is_due(Time::ps(40)));
    }

    #[test]
    fn what_did_not_finish_has_ended_and_delivered_nothing() {
        let (mut sampler, mut kept) = (Sampler::new(Some(Span::ps(10))), Kept::default());
        sampler.begins();
        sampler.ends(Time::ps(3), &request(64), Outcome::Lost);
        sampler.finish(Time::ps(4), |_| (), &mut kept).unwrap();
        let value = |metric| kept.0.iter().find(|row| row.metric == metric).map(|row| row.value);
        assert_eq!((value(Series::RequestsEnded), value(Series::FinishedBytes)), (Some(1.0), Some(0.0)));
        assert!(!sampler.is_on());
    }

    #[test]
    fn many_places_are_told_by_their_sum_and_extremes_alone() {
        let rows_of = |places: u32| {
            let (mut sampler, mut kept) = (Sampler::new(Some(Span::ps(10))), Kept::default());
            let state = |probe: &mut Probe| probe.put_each(Series::PortQueueBytes, 0, (0..places).map(f64::from));
            sampler.sample(state, &mut kept).unwrap();
            kept.0.retain(|row| row.metric == Series::PortQueueBytes);
            kept.0
        };
        assert_eq!(rows_of(256).len(), 258);
        let over: Vec<(SeriesPlace, f64)> = rows_of(257).iter().map(|row| (row.place, row.value)).collect();
        assert_eq!(over, [(SeriesPlace::Total, 257.0 * 128.0), (SeriesPlace::Max, 256.0)]);
    }

    #[test]
    fn a_series_that_is_full_ends_with_a_warning() {
        let (mut sampler, mut kept) = (Sampler::new(Some(Span::us(1))), Kept::default());
        sampler.values_max = 10;
        while sampler.is_due(Time::secs(1)) {
            sampler.sample(|_| (), &mut kept).unwrap();
        }
        assert_eq!(kept.0.len(), 12, "three samples of the four metrics of every run");
        let warning = sampler.warning().unwrap_or_default();
        assert!(warning.starts_with("record.series: the series end at 2 us, after 12 values"), "{warning}");
        assert_eq!(Sampler::new(None).warning(), None);
    }
}
