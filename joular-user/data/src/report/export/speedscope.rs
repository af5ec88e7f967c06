//! Writes speedscope's own JSON (`file-format-schema.json` of its package): frames once, and for
//! each thread a "sampled" profile whose weights are µJ, and one for each measure of bytes and counts that it has some of.
//! Stacks of allocations end with classes.
//!
//! Its units are times, bytes and none. The unit of energy is `none`, and names say µJ.

use std::{borrow::Cow, collections::HashMap, io::Write};

use serde::{Serialize, Serializer};

use super::{ExportFormat, Exported, Result, Selection, Writer, origin};
use crate::{
    model::{frame::Frame, target_text::TargetText},
    report::{
        measure::{Measure, Unit},
        profile::{Fact, FrameIndex, PathIndex, Profile, ThreadIndex, ThreadPath},
    },
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "speedscope", writer: Writer::Text(write) };

/// The format's names of units.
const BYTES: &str = "bytes";
const NONE: &str = "none";

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: String,
    active_profile_index: u32,
    shared: Shared<'a>,
    profiles: Vec<Sampled<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<FrameRow<'a>>,
}

#[derive(Serialize)]
struct FrameRow<'a> {
    name: Cow<'a, TargetText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a TargetText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    #[serde(serialize_with = "samples")]
    samples: (&'a Profile, &'a Numbers, &'a Entries<'a>),
    #[serde(serialize_with = "weights")]
    weights: &'a Entries<'a>,
}

/// What a thread has on its paths.
enum Entries<'a> {
    Energy(&'a [ThreadPath]),
    Facts(Measure, Vec<Fact>),
}

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let profile = selection.profile()?;
    let origin = origin(&profile.overview);
    let (numbers, used) = used_frames(&profile);
    let mut all: Vec<Entries<'_>> =
        profile.entries.chunk_by(|a, b| a.thread == b.thread).map(Entries::Energy).collect();
    for measure in profile.measures_apart() {
        let facts: Vec<Fact> = profile.facts(measure).collect();
        all.extend(facts.chunk_by(|a, b| a.thread == b.thread).map(|facts| Entries::Facts(measure, facts.to_vec())));
    }
    // What opens first is what spent most; other measures come after all energy, one after the other.
    all.sort_by_cached_key(|entries| (entries.measure(), std::cmp::Reverse(entries.sum())));
    let profiles = all.iter().map(|entries| sampled(&profile, &numbers, entries, &origin)).collect();
    let file = File {
        schema: SCHEMA,
        name: format!("energy in µJ, {origin}"),
        exporter: format!("joular-bpf {}", env!("CARGO_PKG_VERSION")),
        active_profile_index: 0,
        shared: Shared { frames: used },
        profiles,
    };
    serde_json::to_writer(&mut *out, &file).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(Exported::of(&profile))
}

/// Places in the file.
struct Numbers {
    frames: HashMap<FrameIndex, u32>,
    /// Of the first class; the others follow in their order.
    classes: u32,
}

/// The frames of the selection, in the order in which they are first used, and classes of what was allocated.
fn used_frames(profile: &Profile) -> (Numbers, Vec<FrameRow<'_>>) {
    let paths = &profile.catalog.paths;
    let (mut numbers, mut used) = (HashMap::new(), Vec::new());
    let of_others = profile.measures_apart().flat_map(|measure| profile.facts(measure).map(|fact| fact.path));
    for index in profile.entries.iter().map(|entry| entry.path).chain(of_others).flat_map(|path| paths.path(path)) {
        numbers.entry(*index).or_insert_with(|| {
            used.push(FrameRow::of(paths.frame(*index)));
            place(used.len() - 1)
        });
    }
    let classes = place(used.len());
    let class = |name| FrameRow { name: Cow::Borrowed(name), file: None, line: None };
    used.extend(profile.measured.classes.iter().map(class));
    (Numbers { frames: numbers, classes }, used)
}

/// 2^32 of anything would need terabytes before this saturates.
fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl<'a> FrameRow<'a> {
    fn of(frame: &'a Frame) -> Self {
        Self { name: Cow::Owned(frame.method()), file: frame.file.as_ref().or(frame.module.as_ref()), line: frame.line }
    }
}

impl Entries<'_> {
    const fn measure(&self) -> Measure {
        match self {
            Self::Energy(_) => Measure::Energy,
            Self::Facts(measure, _) => *measure,
        }
    }

    fn sum(&self) -> u64 {
        self.weights().into_iter().fold(0, u64::saturating_add)
    }

    fn thread(&self) -> Option<ThreadIndex> {
        match self {
            Self::Energy(entries) => entries.first().map(|entry| entry.thread),
            Self::Facts(_, facts) => facts.first().map(|fact| fact.thread),
        }
    }

    /// Each path, and the class of what was allocated there.
    fn stacks(&self) -> Vec<(PathIndex, Option<usize>)> {
        match self {
            Self::Energy(entries) => entries.iter().map(|entry| (entry.path, None)).collect(),
            Self::Facts(_, facts) => facts.iter().map(|fact| (fact.path, fact.class)).collect(),
        }
    }

    fn weights(&self) -> Vec<u64> {
        match self {
            Self::Energy(entries) => entries.iter().map(|entry| entry.energy.0).collect(),
            Self::Facts(_, facts) => facts.iter().map(|fact| fact.amount).collect(),
        }
    }
}

fn sampled<'a>(profile: &'a Profile, numbers: &'a Numbers, entries: &'a Entries<'a>, origin: &str) -> Sampled<'a> {
    let catalog = &profile.catalog;
    let (unit, what) = match entries.measure() {
        Measure::Energy => (NONE, format!("µJ, {origin}")),
        measure if measure.unit() == Unit::Bytes => (BYTES, measure.title().to_lowercase()),
        measure => (NONE, measure.title().to_lowercase()),
    };
    let name = entries.thread().map_or_else(String::new, |index| {
        let (thread, process) = (catalog.thread(index), catalog.process_of(index));
        let host = catalog.run_of(process).info.host.raw();
        let (pid, tid) = (process.pid.0, thread.tid.0);
        format!("{} ({tid}) of {} ({pid}) on {host}, {what}", thread.name.raw(), process.title().raw())
    });
    Sampled {
        kind: "sampled",
        name,
        unit,
        start_value: 0,
        end_value: entries.sum(),
        samples: (profile, numbers, entries),
        weights: entries,
    }
}

fn samples<S: Serializer>(
    (profile, numbers, entries): &(&Profile, &Numbers, &Entries<'_>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let paths = &profile.catalog.paths;
    let stack = |(path, class): (PathIndex, Option<usize>)| {
        let frames = paths.path(path).iter().filter_map(|frame| numbers.frames.get(frame).copied());
        let class = class.filter(|class| *class < profile.measured.classes.len());
        frames.chain(class.map(|class| numbers.classes.saturating_add(place(class)))).collect::<Vec<u32>>()
    };
    serializer.collect_seq(entries.stacks().into_iter().map(stack))
}

fn weights<S: Serializer>(entries: &&Entries<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(entries.weights())
}
