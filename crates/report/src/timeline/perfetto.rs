//! The messages of a Perfetto trace that timelines use: protos/perfetto/trace in its repository.
//! Field numbers are those of that format.

use prost::Message;

/// A trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A track or an event on one.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// A row of the timeline.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// Makes a track one of numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// The begin or end of a slice, or a number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// A named value of a slice.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}

/// `TrackEvent.Type`.
pub(super) const SLICE_BEGIN: i32 = 1;
pub(super) const SLICE_END: i32 = 2;
pub(super) const COUNTER: i32 = 4;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
pub(super) const EXPLICIT: i32 = 3;
/// `TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED`.
pub(super) const CLEARED: u32 = 1;

impl DebugAnnotation {
    pub fn number(name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { name: Some(name.to_owned()), uint_value: Some(value), string_value: None }
    }

    pub fn text(name: &str, value: impl Into<String>) -> DebugAnnotation {
        DebugAnnotation { name: Some(name.to_owned()), uint_value: None, string_value: Some(value.into()) }
    }
}
