//! Writes OpenTelemetry profiles: one `ProfilesData` of package
//! `opentelemetry.proto.profiles.v1development`, as in PyPI's opentelemetry-proto 1.45.2 (a table
//! of stacks, one type of value per profile).
//!
//! A resource is a process. Each has three profiles over the same samples: energy, CPU time, and
//! the number of samples; and one for each counter of `--counters`. A process that allocated or moved bytes has one more
//! for each such measure. Samples of allocations have the class as an attribute.

mod proto;
pub mod resource;

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
};

use self::{
    proto::{
        Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile as OtlpProfile, ProfilesDictionary,
        ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
    },
    resource::{InstrumentationScope, KeyValue, Resource, Value},
};
use super::{
    ExportFormat, Exported, Result, Selection, Writer, dictionary::Dictionary, origin, protobuf, signed,
    timeline::unix_ns,
};
use crate::{
    model::{
        frame::{Frame, FrameKind},
        target_text::TargetText,
    },
    report::{
        measure::Measure,
        profile::{Fact, PathIndex, Process, ProcessIndex, Profile, ThreadIndex, ThreadPath},
    },
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "otlp", writer: Writer::Binary(write) };

/// Numbers of the fields of message `ProfilesData`.
const RESOURCE_PROFILES: u32 = 1;
const DICTIONARY: u32 = 2;

/// Type and unit of a profile's values, and what an entry has of them.
type OfEntry<'a> = (&'static str, &'static str, Box<dyn Fn(&ThreadPath) -> u64 + 'a>);

/// What entries have: energy, and what is divided as it is.
fn of_entries(profile: &Profile) -> impl Iterator<Item = OfEntry<'_>> {
    let always: [OfEntry<'_>; 3] = [
        ("energy", "uJ", Box::new(|entry| entry.energy.0)),
        ("cpu", "ns", Box::new(|entry| entry.cpu_ns)),
        ("samples", "count", Box::new(|entry| entry.samples)),
    ];
    let measured = &profile.measured;
    always.into_iter().chain(measured.counters().map(move |counter| -> OfEntry<'_> {
        let of = move |entry: &ThreadPath| measured.of_entry(Measure::Counted(counter), entry);
        (counter.name(), "count", Box::new(of))
    }))
}

/// What samples refer to.
struct Tables {
    dictionary: Dictionary,
    stacks: Vec<Stack>,
    stack_places: HashMap<PathIndex, i32>,
    attributes: Vec<KeyValueAndUnit>,
    thread_attributes: HashMap<ThreadIndex, Vec<i32>>,
    kind_attributes: HashMap<FrameKind, Vec<i32>>,
    class_attributes: HashMap<usize, i32>,
}

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let profile = selection.profile()?;
    write_profile(&profile, out)?;
    Ok(Exported::of(&profile))
}

/// A profile as `ProfilesData`, which is also the body of a request to a collector: there the message is called
/// `ExportProfilesServiceRequest`, and has the same fields.
///
/// # Errors
/// If `out` fails.
pub fn write_profile(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut tables = Tables::new();
    let catalog = &profile.catalog;
    let mut processes: BTreeMap<ProcessIndex, OfProcess<'_>> = BTreeMap::new();
    for entry in &profile.entries {
        processes.entry(catalog.thread(entry.thread).process).or_default().entries.push(entry);
    }
    for measure in profile.measures_of_bytes() {
        for fact in profile.facts(measure) {
            let of_process = processes.entry(catalog.thread(fact.thread).process).or_default();
            of_process.bytes.entry(measure).or_default().push(fact);
        }
    }
    for (process, of_process) in processes {
        let resource = resource_profiles(profile, catalog.process(process), &of_process, &mut tables);
        protobuf::message(out, RESOURCE_PROFILES, &resource)?;
    }
    protobuf::message(out, DICTIONARY, &tables.dictionary(profile))
}

/// Entries of a process, by thread and path.
#[derive(Default)]
struct OfProcess<'a> {
    entries: Vec<&'a ThreadPath>,
    bytes: BTreeMap<Measure, Vec<Fact>>,
}

fn resource_profiles(
    profile: &Profile,
    process: &Process,
    of_process: &OfProcess<'_>,
    tables: &mut Tables,
) -> ResourceProfiles {
    let OfProcess { entries, bytes } = of_process;
    let mut profiles: Vec<OtlpProfile> =
        of_entries(profile).map(|value| one_of_entries(profile, entries, tables, &value)).collect();
    for (measure, facts) in bytes {
        let samples = facts.iter().map(|fact| of_bytes(profile, fact, tables)).collect();
        let name = if *measure == Measure::Allocated { "alloc_space" } else { measure.name() };
        profiles.push(otlp_profile(profile, tables, (name, "By"), samples));
    }
    let scope = InstrumentationScope::own(vec![KeyValue::text("joular.energy.origin", &origin(&profile.overview))]);
    let resource = Resource { attributes: about(profile, process) };
    ResourceProfiles { resource: Some(resource), scope_profiles: vec![ScopeProfiles { scope: Some(scope), profiles }] }
}

/// Attributes of a process, by OpenTelemetry's semantic conventions where they have a name.
fn about(profile: &Profile, process: &Process) -> Vec<KeyValue> {
    let run = &profile.catalog.run_of(process).info;
    let mut attributes = vec![
        KeyValue::text("service.name", process.service.as_ref().unwrap_or(process.title()).raw()),
        KeyValue::text("host.name", run.host.raw()),
        KeyValue::number("process.pid", process.pid.0.into()),
        KeyValue::text("process.executable.name", process.comm.raw()),
    ];
    let known = [
        ("process.runtime.version", &process.jvm_version),
        ("container.id", &process.container),
        ("service.version", &process.version),
        ("k8s.pod.uid", &process.pod),
        ("k8s.pod.name", &process.pod_name),
        ("k8s.namespace.name", &process.namespace),
    ];
    attributes.extend(known.into_iter().filter_map(|(key, text)| Some(KeyValue::text(key, text.as_ref()?.raw()))));
    attributes.extend(resource::of_host(&run.identity));
    attributes
}

fn one_of_entries(
    profile: &Profile,
    entries: &[&ThreadPath],
    tables: &mut Tables,
    (kind, unit, value): &OfEntry<'_>,
) -> OtlpProfile {
    let samples = entries.iter().map(|entry| Sample {
        stack_index: tables.stack(profile, entry.path),
        attribute_indices: tables.thread(profile, entry.thread),
        values: vec![signed(value(entry))],
    });
    let samples = samples.collect();
    otlp_profile(profile, tables, (kind, unit), samples)
}

/// A path on which a thread allocated or moved bytes.
fn of_bytes(profile: &Profile, fact: &Fact, tables: &mut Tables) -> Sample {
    let mut attribute_indices = tables.thread(profile, fact.thread);
    let class = fact.class.zip(profile.class_of(fact));
    attribute_indices.extend(class.map(|(place, name)| tables.class(place, name)));
    Sample { stack_index: tables.stack(profile, fact.path), attribute_indices, values: vec![signed(fact.amount)] }
}

fn otlp_profile(
    profile: &Profile,
    tables: &mut Tables,
    (kind, unit): (&str, &str),
    samples: Vec<Sample>,
) -> OtlpProfile {
    let sample_type = ValueType { type_strindex: tables.text(kind), unit_strindex: tables.text(unit) };
    OtlpProfile {
        sample_type: Some(sample_type),
        samples,
        time_unix_nano: profile.overview.span.map_or(0, |(start, _)| unix_ns(start)),
        duration_nano: profile.overview.duration_ns,
    }
}

impl Tables {
    /// The first row of each table means nothing.
    fn new() -> Self {
        Self {
            dictionary: Dictionary::new(),
            stacks: vec![Stack::default()],
            stack_places: HashMap::new(),
            attributes: vec![KeyValueAndUnit::default()],
            thread_attributes: HashMap::new(),
            kind_attributes: HashMap::new(),
            class_attributes: HashMap::new(),
        }
    }

    fn text(&mut self, text: &str) -> i32 {
        index(self.dictionary.strings.number(text))
    }

    fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key_strindex = self.text(key);
        self.attributes.push(KeyValueAndUnit { key_strindex, value: Some(value.into()), unit_strindex: 0 });
        i32::try_from(self.attributes.len() - 1).unwrap_or(i32::MAX)
    }

    fn stack(&mut self, profile: &Profile, path: PathIndex) -> i32 {
        if let Some(stack) = self.stack_places.get(&path) {
            return *stack;
        }
        let paths = &profile.catalog.paths;
        let leaf_first = paths.path(path).iter().rev();
        let location_indices = leaf_first.map(|frame| index(self.dictionary.location(paths, *frame)) + 1).collect();
        self.stacks.push(Stack { location_indices });
        let place = i32::try_from(self.stacks.len() - 1).unwrap_or(i32::MAX);
        self.stack_places.insert(path, place);
        place
    }

    fn thread(&mut self, profile: &Profile, index: ThreadIndex) -> Vec<i32> {
        if let Some(attributes) = self.thread_attributes.get(&index) {
            return attributes.clone();
        }
        let thread = profile.catalog.thread(index);
        let attributes = vec![
            self.attribute("thread.id", Value::Int(thread.tid.0.into())),
            self.attribute("thread.name", Value::Text(thread.name.raw().to_owned())),
            self.attribute("joular.thread.category", Value::Text(thread.category.name().to_owned())),
        ];
        self.thread_attributes.insert(index, attributes.clone());
        attributes
    }

    fn class(&mut self, place: usize, name: &TargetText) -> i32 {
        if let Some(attribute) = self.class_attributes.get(&place) {
            return *attribute;
        }
        let attribute = self.attribute("joular.allocated.class", Value::Text(name.raw().to_owned()));
        self.class_attributes.insert(place, attribute);
        attribute
    }

    fn kind(&mut self, frame: &Frame) -> Vec<i32> {
        if let Some(attributes) = self.kind_attributes.get(&frame.kind) {
            return attributes.clone();
        }
        let mut attributes = vec![self.attribute("joular.frame.kind", Value::Text(frame.kind.name().to_owned()))];
        if let Some(convention) = frame_type(frame.kind) {
            attributes.push(self.attribute("profile.frame.type", Value::Text(convention.to_owned())));
        }
        self.kind_attributes.insert(frame.kind, attributes.clone());
        attributes
    }

    fn dictionary(mut self, profile: &Profile) -> ProfilesDictionary {
        let locations = std::mem::take(&mut self.dictionary.locations);
        let mut location_table = vec![Location::default()];
        for location in &locations {
            let line = location.line.unwrap_or(0).into();
            location_table.push(Location {
                mapping_index: index(location.module) + 1,
                lines: vec![Line { function_index: index(location.function) + 1, line }],
                attribute_indices: self.kind(profile.catalog.paths.frame(location.frame)),
            });
        }
        let functions = self.dictionary.functions.iter().map(|function| Function {
            name_strindex: index(function.name),
            system_name_strindex: index(function.system_name),
            filename_strindex: index(function.file),
        });
        let modules = self.dictionary.modules.iter().map(|name| Mapping { filename_strindex: index(*name) });
        ProfilesDictionary {
            mapping_table: std::iter::once(Mapping::default()).chain(modules).collect(),
            location_table,
            function_table: std::iter::once(Function::default()).chain(functions).collect(),
            link_table: vec![Link::default()],
            string_table: self.dictionary.strings.texts().to_vec(),
            attribute_table: self.attributes,
            stack_table: self.stacks,
        }
    }
}

/// `profile.frame.type` of the semantic conventions.
const fn frame_type(kind: FrameKind) -> Option<&'static str> {
    match kind {
        FrameKind::Interpreted
        | FrameKind::Compiled
        | FrameKind::CompiledC1
        | FrameKind::CompiledC2
        | FrameKind::Inlined
        | FrameKind::NativeWrapper => Some("jvm"),
        FrameKind::Stub | FrameKind::Vm | FrameKind::Native => Some("native"),
        FrameKind::Kernel => Some("kernel"),
        FrameKind::Marker => None,
    }
}

fn index(place: u32) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX - 1)
}
