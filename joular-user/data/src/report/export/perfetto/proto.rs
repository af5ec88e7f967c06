//! Defines the messages of Perfetto that are written, with their field numbers:
//! protos/perfetto/trace/perfetto_trace.proto of release 59. Optional fields are left out where
//! they have their default.

use prost::Message;

/// `BuiltinClock`.
pub(super) const REALTIME: u32 = 1;

/// `TracePacket.SequenceFlags`.
pub(super) const INCREMENTAL_STATE_CLEARED: u32 = 1;
pub(super) const NEEDS_INCREMENTAL_STATE: u32 = 2;

/// `TrackEvent.Type`.
pub(super) const TYPE_COUNTER: i32 = 4;

/// `TracePacket`, of whose `data` one field is set.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Packet {
    #[prost(uint64, tag = "8")]
    pub(super) timestamp: u64,
    #[prost(uint32, tag = "10")]
    pub(super) trusted_packet_sequence_id: u32,
    #[prost(uint32, tag = "13")]
    pub(super) sequence_flags: u32,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(message, optional, tag = "59")]
    pub(super) trace_packet_defaults: Option<Defaults>,
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "126")]
    pub(super) trace_attributes: Option<TraceAttributes>,
    #[prost(message, optional, tag = "135")]
    pub(super) stack_sample: Option<StackSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    #[prost(uint32, tag = "2")]
    pub(super) primary_trace_clock: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Clock {
    #[prost(uint32, tag = "1")]
    pub(super) clock_id: u32,
    #[prost(uint64, tag = "2")]
    pub(super) timestamp: u64,
}

/// `TracePacketDefaults`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Defaults {
    #[prost(uint32, tag = "58")]
    pub(super) timestamp_clock_id: u32,
    #[prost(message, optional, tag = "100")]
    pub(super) stack_sample_defaults: Option<StackSampleDefaults>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StackSampleDefaults {
    #[prost(string, tag = "1")]
    pub(super) source: String,
    #[prost(message, optional, tag = "2")]
    pub(super) primary_descriptor: Option<Counter>,
    #[prost(message, repeated, tag = "3")]
    pub(super) follower_descriptors: Vec<Counter>,
}

/// `StackSample.CounterDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Counter {
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "4")]
    pub(super) unit_str: String,
    #[prost(string, tag = "6")]
    pub(super) description: String,
}

impl Counter {
    pub(super) fn new(name: &str, unit: &str, description: &str) -> Self {
        Self { name: name.to_owned(), unit_str: unit.to_owned(), description: description.to_owned() }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StackSample {
    #[prost(message, optional, tag = "1")]
    pub(super) task_context: Option<TaskContext>,
    #[prost(uint64, tag = "6")]
    pub(super) callstack_iid: u64,
    #[prost(uint64, optional, tag = "11")]
    pub(super) primary_weight: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "14")]
    pub(super) follower_weights: Vec<u64>,
}

/// `StackSample.TaskContext`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TaskContext {
    #[prost(uint32, tag = "2")]
    pub(super) pid: u32,
    #[prost(uint32, tag = "3")]
    pub(super) tid: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub(super) uuid: u64,
    #[prost(uint64, tag = "5")]
    pub(super) parent_uuid: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterTrack>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(string, tag = "6")]
    pub(super) process_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(int64, tag = "2")]
    pub(super) tid: i64,
    #[prost(string, tag = "5")]
    pub(super) thread_name: String,
}

/// `CounterDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterTrack {
    #[prost(string, tag = "6")]
    pub(super) unit_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(int32, tag = "9")]
    pub(super) kind: i32,
    #[prost(uint64, tag = "11")]
    pub(super) track_uuid: u64,
    #[prost(double, optional, tag = "44")]
    pub(super) double_counter_value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TraceAttributes {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<Attribute>,
}

/// `TraceAttributes.Attribute`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "3")]
    pub(super) string_value: String,
}

impl Attribute {
    pub(super) fn new(key: &str, text: &str) -> Self {
        Self { key: key.to_owned(), string_value: text.to_owned() }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "5")]
    pub(super) function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "18")]
    pub(super) source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<Mapping>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedString {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) text: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Frame {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, tag = "2")]
    pub(super) function_name_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "5")]
    pub(super) source_path_iid: u64,
    #[prost(uint32, tag = "6")]
    pub(super) line_number: u32,
    #[prost(string, tag = "8")]
    pub(super) kind_str: String,
}

/// Frames root first.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(super) path_string_ids: Vec<u64>,
}
