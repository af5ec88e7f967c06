//! Writes pprof: gzipped `profile.proto` (github.com/google/pprof, proto/profile.proto).
//!
//! Samples are written as they are made and tables after them, because fields of a protocol buffer
//! may come in any order.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use prost::Message;

use super::{
    ExportFormat, Exported, Result, Selection, Writer, dictionary::Dictionary, origin, protobuf, signed,
    timeline::unix_ns,
};
use crate::report::profile::{AllocatedPath, PathIndex, Profile, ThreadIndex, ThreadPath};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "pprof", writer: Writer::Binary(write) };

/// Numbers of the fields of message `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// Leaf first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Type and unit of each value of a sample. What `--counters` counted comes after them, and then what was allocated.
const SAMPLE_TYPES: [(&str, &str); 3] = [("energy", "microjoules"), ("cpu", "nanoseconds"), ("samples", "count")];

/// Bytes that were allocated, by samples that are not those of CPU time. Without allocations these values are left out.
const ALLOCATED_TYPES: [(&str, &str); 2] = [("alloc_space", "bytes"), ("alloc_samples", "count")];

/// Of these values an entry of one kind has none.
const NOTHING: [u64; 2] = [0; 2];

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let profile = selection.profile()?;
    let mut out = GzEncoder::new(out, Compression::default());
    let mut dictionary = Dictionary::new();
    let counted = profile.counted.counters.iter().map(|counter| (counter.name(), "count"));
    let allocated = ALLOCATED_TYPES.into_iter().filter(|_| !profile.allocated.is_empty());
    for (kind, unit) in SAMPLE_TYPES.into_iter().chain(counted).chain(allocated) {
        let strings = &mut dictionary.strings;
        let value_type = ValueType { kind: strings.number(kind).into(), unit: strings.number(unit).into() };
        protobuf::message(&mut out, field::SAMPLE_TYPE, &value_type)?;
    }
    for entry in &profile.entries {
        protobuf::message(&mut out, field::SAMPLE, &sample(&profile, entry, &mut dictionary))?;
    }
    for entry in &profile.allocated.entries {
        protobuf::message(&mut out, field::SAMPLE, &allocation(&profile, entry, &mut dictionary))?;
    }
    write_about(&profile, &mut dictionary, &mut out)?;
    write_tables(&dictionary, &mut out)?;
    out.finish()?;
    Ok(Exported::of(&profile))
}

/// Ids are places in the tables plus 1: 0 means none.
fn id(place: u32) -> u64 {
    u64::from(place) + 1
}

fn sample(profile: &Profile, entry: &ThreadPath, dictionary: &mut Dictionary) -> Sample {
    let counters = profile.counted.counters.len();
    let counts =
        (0..counters).map(|at| profile.counted.of(entry).and_then(|counts| counts.get(at)).copied().unwrap_or(0));
    let allocated = NOTHING.into_iter().filter(|_| !profile.allocated.is_empty());
    let value = [entry.energy.0, entry.cpu_ns, entry.samples].into_iter().chain(counts).chain(allocated);
    Sample {
        location_id: locations(profile, entry.path, dictionary),
        value: value.map(signed).collect(),
        label: labels(profile, entry.thread, dictionary),
    }
}

/// The class is a label: `pprof -tagleaf=class` makes it the leaf.
fn allocation(profile: &Profile, entry: &AllocatedPath, dictionary: &mut Dictionary) -> Sample {
    let others = std::iter::repeat_n(0, SAMPLE_TYPES.len() + profile.counted.counters.len());
    let mut label = labels(profile, entry.thread, dictionary);
    label.extend(profile.allocated.class_of(entry).map(|class| text(dictionary, "class", class.raw())));
    Sample {
        location_id: locations(profile, entry.path, dictionary),
        value: others.chain([entry.bytes, entry.samples]).map(signed).collect(),
        label,
    }
}

fn locations(profile: &Profile, path: PathIndex, dictionary: &mut Dictionary) -> Vec<u64> {
    let paths = &profile.catalog.paths;
    paths.path(path).iter().rev().map(|frame| id(dictionary.location(paths, *frame))).collect()
}

fn labels(profile: &Profile, thread: ThreadIndex, dictionary: &mut Dictionary) -> Vec<Label> {
    let catalog = &profile.catalog;
    let (thread, process) = (catalog.thread(thread), catalog.process_of(thread));
    let mut labels = vec![
        text(dictionary, "thread", thread.name.raw()),
        text(dictionary, "process", process.title().raw()),
        text(dictionary, "category", thread.category.name()),
        text(dictionary, "host", catalog.run_of(process).info.host.raw()),
    ];
    let mut number =
        |key: &str, num: u32| Label { key: dictionary.strings.number(key).into(), str: 0, num: num.into() };
    labels.extend([number("pid", process.pid.0), number("tid", thread.tid.0)]);
    labels
}

fn text(dictionary: &mut Dictionary, key: &str, text: &str) -> Label {
    let strings = &mut dictionary.strings;
    Label { key: strings.number(key).into(), str: strings.number(text).into(), num: 0 }
}

fn write_about(profile: &Profile, dictionary: &mut Dictionary, out: &mut dyn Write) -> Result<()> {
    let overview = &profile.overview;
    if let Some((start, _)) = overview.span {
        protobuf::integer(out, field::TIME_NANOS, signed(unix_ns(start)))?;
    }
    protobuf::integer(out, field::DURATION_NANOS, signed(overview.duration_ns))?;
    let comments =
        [format!("energy: {}", origin(overview)), format!("written by joular-bpf {}", env!("CARGO_PKG_VERSION"))];
    for comment in comments {
        protobuf::integer(out, field::COMMENT, dictionary.strings.number(&comment).into())?;
    }
    let (default, _) = SAMPLE_TYPES[0];
    protobuf::integer(out, field::DEFAULT_SAMPLE_TYPE, dictionary.strings.number(default).into())?;
    Ok(())
}

fn write_tables(dictionary: &Dictionary, out: &mut dyn Write) -> Result<()> {
    for (place, name) in (0..).zip(&dictionary.modules) {
        let mapping = Mapping {
            id: id(place),
            filename: (*name).into(),
            // All true: nobody needs to look for symbols.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        };
        protobuf::message(out, field::MAPPING, &mapping)?;
    }
    for (place, location) in (0..).zip(&dictionary.locations) {
        let line = Line { function_id: id(location.function), line: location.line.unwrap_or(0).into() };
        let location = Location { id: id(place), mapping_id: id(location.module), line: vec![line] };
        protobuf::message(out, field::LOCATION, &location)?;
    }
    for (place, function) in (0..).zip(&dictionary.functions) {
        let function = Function {
            id: id(place),
            name: function.name.into(),
            system_name: function.system_name.into(),
            filename: function.file.into(),
        };
        protobuf::message(out, field::FUNCTION, &function)?;
    }
    for text in dictionary.strings.texts() {
        protobuf::bytes(out, field::STRING_TABLE, text.as_bytes())?;
    }
    Ok(())
}
