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
use crate::report::{
    measure::Measure,
    profile::{Fact, PathIndex, Profile, ThreadIndex, ThreadPath},
};

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

/// Type and unit of each value of a sample. What `--counters` counted comes after them, and then what was allocated and
/// moved.
const SAMPLE_TYPES: [(&str, &str); 3] = [("energy", "microjoules"), ("cpu", "nanoseconds"), ("samples", "count")];

/// Bytes that were allocated, by samples that are not those of CPU time. Without allocations these values are left out.
const ALLOCATED_TYPES: [(&str, &str); 2] = [("alloc_space", "bytes"), ("alloc_samples", "count")];

/// What each value of a sample is.
struct Values {
    /// Type and unit.
    types: Vec<(&'static str, &'static str)>,
    /// Measures of bytes, and where their values are.
    places: Vec<(Measure, usize)>,
}

impl Values {
    fn of(profile: &Profile) -> Self {
        let counted = profile.measured.counters().map(|counter| (counter.name(), "count"));
        let mut types: Vec<_> = SAMPLE_TYPES.into_iter().chain(counted).collect();
        let mut places = Vec::new();
        for measure in profile.measures_of_bytes() {
            places.push((measure, types.len()));
            match measure {
                Measure::Allocated => types.extend(ALLOCATED_TYPES),
                measure => types.push((measure.name(), "bytes")),
            }
        }
        Self { types, places }
    }
}

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let profile = selection.profile()?;
    let mut out = GzEncoder::new(out, Compression::default());
    let mut dictionary = Dictionary::new();
    let values = Values::of(&profile);
    for (kind, unit) in &values.types {
        let strings = &mut dictionary.strings;
        let value_type = ValueType { kind: strings.number(kind).into(), unit: strings.number(unit).into() };
        protobuf::message(&mut out, field::SAMPLE_TYPE, &value_type)?;
    }
    for entry in &profile.entries {
        protobuf::message(&mut out, field::SAMPLE, &sample(&profile, entry, &values, &mut dictionary))?;
    }
    for (measure, place) in &values.places {
        for fact in profile.facts(*measure) {
            let mut value = vec![0; values.types.len()];
            value[*place] = signed(fact.amount);
            if *measure == Measure::Allocated {
                value[place + 1] = signed(fact.sampled.samples);
            }
            protobuf::message(&mut out, field::SAMPLE, &of_bytes(&profile, &fact, value, &mut dictionary))?;
        }
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

fn sample(profile: &Profile, entry: &ThreadPath, values: &Values, dictionary: &mut Dictionary) -> Sample {
    let measured = &profile.measured;
    let counts = measured.counters().map(|counter| measured.of_entry(Measure::Counted(counter), entry));
    let mut value: Vec<i64> =
        [entry.energy.0, entry.cpu_ns, entry.samples].into_iter().chain(counts).map(signed).collect();
    value.resize(values.types.len(), 0);
    Sample {
        location_id: locations(profile, entry.path, dictionary),
        value,
        label: labels(profile, entry.thread, dictionary),
    }
}

/// The class is a label: `pprof -tagleaf=class` makes it the leaf.
fn of_bytes(profile: &Profile, fact: &Fact, value: Vec<i64>, dictionary: &mut Dictionary) -> Sample {
    let mut label = labels(profile, fact.thread, dictionary);
    label.extend(profile.class_of(fact).map(|class| text(dictionary, "class", class.raw())));
    Sample { location_id: locations(profile, fact.path, dictionary), value, label }
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
