//! Time series: what is sampled while a run goes on. Each metric is declared once, in the table
//! below; schema, documentation, `rackweave describe` and the figures of pages use it.

use crate::ledger::Place;
use base::Time;

/// How the values of a metric are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesForm {
    /// The value at the time of the sample.
    State,
    /// The sum since the sample before.
    Count,
}

/// The figure of a page that a metric belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesFigure {
    /// Payload by time.
    Throughput,
    /// Requests by time.
    Requests,
    /// What waits.
    Queues,
    /// Blocks that a drive can write.
    FreeBlocks,
    /// What senders may still send.
    Credits,
    /// Hits and misses.
    Cache,
    /// Drives that collect garbage.
    Collection,
    /// Wear of drives.
    Wear,
    /// Exchanges of drives.
    Swaps,
}

/// A value over all places of one metric, at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The sum.
    Total,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// Where a value of a series was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesPlace {
    /// In the whole rack: the sum over all places, or a value that has no place.
    Total,
    /// At the place with the largest value.
    Max,
    /// At the place with the smallest value.
    Min,
    /// At this place.
    At(Place),
}

/// One value of a series: a row of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesRow {
    /// The time of the sample, from the start of the run; zero where `day` counts.
    pub at: Time,
    /// The day of wear levelling, from 1; zero elsewhere.
    pub day: u32,
    /// The metric.
    pub metric: Series,
    /// The place.
    pub place: SeriesPlace,
    /// The value, in the metric's unit.
    pub value: f64,
}

/// A declared metric of series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesDefinition {
    /// The name in the column `metric`.
    pub name: &'static str,
    /// The form of its values.
    pub form: SeriesForm,
    /// The unit.
    pub unit: &'static str,
    /// The figure that shows it.
    pub figure: SeriesFigure,
    /// Values over all places that are written beside those of places, or in their stead.
    pub over: &'static [Over],
    /// The places; `None`: it has none, and each value is of the whole rack.
    pub place: Option<fn(u32) -> Place>,
    /// The runs that have it.
    pub runs: &'static str,
    doc: &'static [&'static str],
}

/// Values of more places than this, at one time, are written as their sum and extremes only.
pub const SERIES_PLACES_MAX: usize = 256;

/// Declares the metrics: a line has a name, the form, the unit, the figure, the places with the
/// values over all of them, and the runs that have it.
macro_rules! series {
    ($( $(#[doc = $doc:literal])+ $variant:ident $name:literal: $form:ident [$unit:literal] in $figure:ident
        $(at $place:ident over $($over:ident)+)?, $runs:literal; )+) => {
        /// A metric of series.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Series { $( $(#[doc = $doc])+ $variant, )+ }

        impl Series {
            /// Every metric, in the order of the documentation.
            pub const ALL: &'static [Series] = &[$(Series::$variant),+];
            /// Their names.
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the declaration.
            pub const fn definition(self) -> SeriesDefinition {
                match self { $(
                    Series::$variant => SeriesDefinition {
                        name: $name,
                        form: SeriesForm::$form,
                        unit: $unit,
                        figure: SeriesFigure::$figure,
                        over: &[$($(Over::$over),+)?],
                        place: series!(@ $($place)?),
                        runs: $runs,
                        doc: &[$($doc),+],
                    },
                )+ }
            }
        }
    };
    (@) => { None };
    (@ $place:ident) => { Some(Place::$place) };
}

series! {
    /// Requests that the workload began.
    RequestsBegun "requests_begun": Count ["requests"] in Requests, "every run with requests";
    /// Requests that ended, however they did.
    RequestsEnded "requests_ended": Count ["requests"] in Requests, "every run with requests";
    /// Requests that had begun and had not ended.
    RequestsOutstanding "requests_outstanding": State ["requests"] in Requests, "every run with requests";
    /// Payload of requests that finished.
    FinishedBytes "finished_bytes": Count ["B"] in Throughput, "every run with requests";
    /// Payload of requests that finished, by the node that received it: the source of a read, the
    /// target of a write.
    ReceivedBytes "received_bytes": Count ["B"] in Throughput at Host over Max, "every run with requests";
    /// Payload of requests that finished, by the memory, volume or drive that they were about.
    TargetBytes "target_bytes": Count ["B"] in Throughput at Target over Max, "every run with requests";

    /// Bytes that wait at a switch or an adapter for the link of a port; a packet that is being
    /// sent no longer waits. Of EDM, what the link has yet to send; with background traffic,
    /// frames. Ports of a SAN have the number of the channel that leaves them.
    PortQueueBytes "port_queue_bytes": State ["B"] in Queues at Port over Total Max, "messages, SAN, volumes";
    /// Packets that wait at a switch or an adapter for the link of a port.
    PortQueuePackets "port_queue_packets": State ["packets"] in Queues at Port over Total Max,
        "rivals of EDM, SAN, volumes";
    /// Demands that wait at EDM's switch for the port of their data's receiver.
    DemandsWaiting "demands_waiting": State ["messages"] in Queues at Port over Total Max, "design edm";
    /// Bytes of ordinary frames that wait in a host for its uplink.
    HostQueueBytes "host_queue_bytes": State ["B"] in Queues at Host over Total Max,
        "design edm with background traffic";
    /// I/Os that wait in a host for credit or for room in a queue pair.
    HostWaiting "host_waiting": State ["I/Os"] in Queues at Host over Total Max, "SAN";
    /// Commands that a target has and has not answered.
    TargetCommands "target_commands": State ["commands"] in Queues at Target over Total Max, "SAN";
    /// Requests that a storage server has and has not answered.
    ServerRequests "server_requests": State ["requests"] in Queues at Target over Total Max, "volumes";
    /// Commands that a drive has and has not done.
    DriveCommands "drive_commands": State ["commands"] in Queues at Drive over Total Max,
        "SAN, devices, key-value stores";
    /// Calls that wait for tokens of a drive.
    TokenCalls "calls_waiting": State ["calls"] in Queues at Drive over Total Max, "designs leed and leed-ditto";
    /// Work that a core of the server has been given and has not done.
    CoreBacklog "core_backlog_ns": State ["ns"] in Queues at Core over Total Max,
        "key-value stores; devices with software";
    /// Bytes in the buffers of the NIC's logic.
    NicBytes "nic_held_bytes": State ["B"] in Queues, "designs s-direct and target-offload";

    /// Free blocks of a drive, those for collection included, as of its last command. Of volumes,
    /// free blocks of the vSSDs on it.
    FreeBlocks "free_blocks": State ["blocks"] in FreeBlocks at Drive over Total Min,
        "SAN, volumes and devices on flash with a translation layer";
    /// Free blocks of the die with the fewest.
    FreeBlocksOfDie "free_blocks_of_a_die_min": State ["blocks"] in FreeBlocks at Drive over Min,
        "SAN, volumes and devices on flash with a translation layer";
    /// Whether a drive collects: 1 while one of its dies, or a vSSD on it, has begun and not ended.
    /// The total is the number of drives that do.
    Collecting "collecting": State ["drives"] in Collection at Drive over Total,
        "SAN, volumes and devices on flash with a translation layer";

    /// Payload that has been granted and has not arrived, by its sender (EDM and Fastpass), or by
    /// the receiver that credited it (receiver-driven).
    GrantedBytes "granted_bytes": State ["B"] in Credits at Host over Total Max,
        "designs edm, fastpass and receiver-driven";
    /// The sum of a host's congestion windows, or the payload that its credits let it still send
    /// (CXL).
    WindowBytes "window_bytes": State ["B"] in Credits at Host over Total Min,
        "designs with DCTCP's windows, cxl; SAN with windows";
    /// Rate at which a host's protocol lets it send, summed over its flows with something to send.
    SendRate "send_rate_bps": State ["b/s"] in Credits at Host over Total Max,
        "designs with DCQCN; SAN with paced flows";
    /// The sum of a target's congestion windows, which limit the data of reads.
    TargetWindowBytes "target_window_bytes": State ["B"] in Credits at Target over Total Min, "SAN with windows";
    /// Rate at which a target's protocol lets it send, summed over its flows.
    TargetSendRate "target_send_rate_bps": State ["b/s"] in Credits at Target over Total Max, "SAN with paced flows";
    /// Bandwidth that reads have booked on a port's link for their answers.
    ReservedRate "reserved_bps": State ["b/s"] in Credits at Port over Total Max, "design san";
    /// I/Os that credit lets a host still send, summed over its sessions in use.
    CreditLeft "credit_left": State ["I/Os"] in Credits at Host over Total Min, "SAN with credits";
    /// I/Os that Gimbal lets all tenants of a drive have outstanding.
    GimbalCredits "gimbal_credits": State ["I/Os"] in Credits at Drive over Total Min, "SAN with Gimbal";
    /// Tokens of a drive that calls have taken.
    TokensTaken "tokens_taken": State ["tokens"] in Credits at Drive over Total Max, "designs leed and leed-ditto";

    /// Reads that a client's or the box's cache answered.
    CacheHits "cache_hits": Count ["requests"] in Cache, "key-value stores with a cache";
    /// Reads that went to flash.
    CacheMisses "cache_misses": Count ["requests"] in Cache, "key-value stores with a cache";

    /// Erases of a block, mean over the drives of the rack.
    ErasesMean "erases_mean": State ["erases"] in Wear, "wear levelling";
    /// Erases of a block of a drive, on the mean of its blocks.
    Erases "erases": State ["erases"] in Wear at Drive over Max Min, "wear levelling";
    /// Swaps of the contents of two drives.
    Swaps "swaps": Count ["swaps"] in Swaps, "wear levelling";
}

impl SeriesDefinition {
    /// Returns the meaning, in a sentence or two.
    pub fn doc(&self) -> String {
        self.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the kinds of place of its rows, as the column `place` has them.
    pub fn places(&self) -> Vec<&'static str> {
        let own = self.place.map(|place| SeriesPlace::At(place(0)).name());
        let over = self.over.iter().map(|over| over.place().name());
        match own {
            Some(own) => [own].into_iter().chain(over).collect(),
            None => vec![SeriesPlace::Total.name()],
        }
    }
}

impl SeriesForm {
    /// Returns the word in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            SeriesForm::State => "at the time",
            SeriesForm::Count => "since the sample before",
        }
    }
}

impl Over {
    /// Returns the place of its rows.
    pub const fn place(self) -> SeriesPlace {
        match self {
            Over::Total => SeriesPlace::Total,
            Over::Max => SeriesPlace::Max,
            Over::Min => SeriesPlace::Min,
        }
    }

    /// Returns the value over some values; `None` over none.
    pub fn of(self, values: impl Iterator<Item = f64>) -> Option<f64> {
        match self {
            Over::Total => values.reduce(|a, b| a + b),
            Over::Max => values.reduce(f64::max),
            Over::Min => values.reduce(f64::min),
        }
    }
}

/// The kinds of place before those of [`Place`].
const OVER: [SeriesPlace; 3] = [SeriesPlace::Total, SeriesPlace::Max, SeriesPlace::Min];

impl SeriesPlace {
    /// The names of all kinds of place, in the order of their numbers.
    pub(crate) const NAMES: [&'static str; OVER.len() - 1 + Place::NAMES.len()] = {
        let mut names = ["total"; OVER.len() - 1 + Place::NAMES.len()];
        (names[1], names[2]) = ("max", "min");
        let mut kind = 1;
        while kind < Place::NAMES.len() {
            names[OVER.len() - 1 + kind] = Place::NAMES[kind];
            kind += 1;
        }
        names
    };

    /// Returns the number of the kind, and the index of the place within it.
    pub(crate) fn numbers(self) -> (u8, u32) {
        match self {
            SeriesPlace::At(place) => {
                let (kind, index) = place.numbers();
                (kind + OVER.len() as u8 - 1, index)
            }
            over => (OVER.iter().position(|other| *other == over).unwrap_or(0) as u8, 0),
        }
    }

    /// Returns the place with these numbers, if there is one.
    pub(crate) fn of(kind: u8, index: u32) -> Option<SeriesPlace> {
        match OVER.get(usize::from(kind)) {
            Some(over) => Some(*over),
            None => Place::of(kind + 1 - OVER.len() as u8, index).map(SeriesPlace::At),
        }
    }

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        SeriesPlace::NAMES[usize::from(self.numbers().0)]
    }
}

impl std::fmt::Display for SeriesPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SeriesPlace::At(_) => write!(out, "{} {}", self.name(), self.numbers().1),
            over => write!(out, "{}", over.name()),
        }
    }
}

impl SeriesRow {
    /// An empty row, for the reader to fill in.
    pub(crate) const BLANK: SeriesRow =
        SeriesRow { at: Time::ZERO, day: 0, metric: Series::RequestsBegun, place: SeriesPlace::Total, value: 0.0 };
}

const PAGE: &str = "\
# Time series

<!-- Made by `BLESS=1 cargo test -p record --test record series_page` from crates/record/src/series.rs. -->

`record.series = \"10us\"` samples a run's state every 10 us of virtual time. The samples are Parquet
parts beside the records ([records](records.md)), and the page of a run or sweep draws them. Without
the key nothing is sampled; with it, records and summaries are the same to the byte.

A sample at a time *t* shows what was true before the events of *t*: a request that begins or ends
at *t* counts in the next sample. Samples are at 0, at each whole multiple of `record.series`, and
one picosecond after the end of the run. That last sample shows what was true after all events.
Values are

- `at the time`: the state at the time of the sample;
- `since the sample before`: a sum over the interval, whose begin counts and whose end does not. Its
  rows sum to the total of the run exactly.

**Places** are the kinds of place that have a row of their own, with a number: `port 3` is
`place = 'port'` and `place_index = 3`. `total`, `max` and `min` are over all places of the metric.
Where a metric has more than 256 places, only those over all of them are written.

| metric | unit | value | places | runs | meaning |
| --- | --- | --- | --- | --- | --- |
";

/// Returns the content of docs/reference/series.md.
pub fn series_page() -> String {
    let rows = Series::ALL.iter().map(|series| {
        let SeriesDefinition { name, unit, form, runs, .. } = series.definition();
        let (places, doc) = (series.definition().places().join(", "), series.definition().doc());
        format!("| `{name}` | {unit} | {} | {places} | {runs} | {doc} |\n", form.name())
    });
    PAGE.to_owned() + &rows.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_numbers_that_lead_back_to_it() {
        let places = [SeriesPlace::Total, SeriesPlace::Max, SeriesPlace::Min];
        let at = [Place::Host(0), Place::Port(3), Place::Core(1), Place::Drive(70_000)].map(SeriesPlace::At);
        for place in places.into_iter().chain(at) {
            let (kind, index) = place.numbers();
            assert_eq!(SeriesPlace::of(kind, index), Some(place));
        }
        assert_eq!(SeriesPlace::of(SeriesPlace::NAMES.len() as u8, 0), None);
        assert_eq!(SeriesPlace::At(Place::Drive(7)).to_string(), "drive 7");
        assert_eq!(SeriesPlace::Max.to_string(), "max");
    }

    #[test]
    fn every_series_is_declared_once_with_its_unit_and_meaning() {
        for (index, series) in Series::ALL.iter().enumerate() {
            let definition = series.definition();
            assert_eq!((*series as usize, definition.name), (index, Series::NAMES[index]));
            assert!(!Series::NAMES[..index].contains(&definition.name), "{}", definition.name);
            let doc = definition.doc();
            let longest = doc.split(". ").map(|sentence| sentence.split_whitespace().count()).max();
            assert!(doc.ends_with('.') && longest.is_some_and(|words| words <= 30), "{doc}");
            assert_eq!(definition.place.is_none(), definition.over.is_empty(), "{}", definition.name);
            for (end, unit) in [("_bytes", "B"), ("_ns", "ns"), ("_bps", "b/s")] {
                assert!(!definition.name.ends_with(end) || definition.unit == unit, "{}", definition.name);
            }
        }
    }
}
