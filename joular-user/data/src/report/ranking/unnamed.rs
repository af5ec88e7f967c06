//! Says how much of the selection has no name, and what would give it one.
//!
//! Some programs make code while they run, and write names for it if they are started with an option. Their stacks show
//! which programs these are: between the root and the code without a name stands the file that runs it.

use std::collections::BTreeMap;

use crate::{
    model::{
        frame::{Frame, FrameKind, Marker},
        units::MicroJoules,
    },
    report::profile::{OUTSIDE_APP, PathIndex, ProcessIndex, Profile},
    text::{escape, share},
};

/// Markers that are shown one by one; there are a dozen.
const MOST_MARKERS: usize = 4;
/// What a process's code without a name must have of its energy, in percent, to be worth a hint.
const MUCH: f64 = 25.0;
/// The same, of the energy of the selection.
const NOT_NEGLIGIBLE: f64 = 1.0;

/// A program that makes code while it runs.
struct Program {
    name: &'static str,
    /// Whether a file on a path, by its name, is the program's.
    has: fn(&str) -> bool,
    /// Begins the names that its option gives, if such names leave other code without one.
    prefix: Option<&'static str>,
    advice: &'static str,
}

/// Sources: Node.js, "Diagnostics: Using Linux perf"; .NET, "Debugging and profiling settings"; Python, "Python support for
/// the Linux perf profiler".
static PROGRAMS: [Program; 3] = [
    Program {
        name: "Node.js",
        has: |file| matches!(file, "node" | "nodejs") || file.starts_with("libnode.so"),
        prefix: None,
        advice: "start it with --perf-basic-prof, or with NODE_OPTIONS=--perf-basic-prof in its environment",
    },
    Program {
        name: ".NET",
        has: |file| file == "libcoreclr.so",
        prefix: None,
        advice: "start it with DOTNET_PerfMapEnabled=1 in its environment",
    },
    Program {
        name: "Python",
        has: |file| file.starts_with("python3") || file.starts_with("libpython3"),
        prefix: Some("py::"),
        advice: "start it, of version 3.12 or later, with -X perf, or with PYTHONPERFSUPPORT=1 in its environment",
    },
];

/// Energy of paths whose leaf has no name, by marker. Code without symbols is unresolved whichever
/// file it is in.
pub fn by_marker(profile: &Profile) -> BTreeMap<&str, MicroJoules> {
    let mut markers: BTreeMap<&str, MicroJoules> = BTreeMap::new();
    for entry in &profile.entries {
        let leaf = leaf(profile, entry.path);
        let marker = leaf.filter(|leaf| leaf.kind == FrameKind::Marker || leaf.is_unresolved());
        if let Some(leaf) = marker.filter(|leaf| leaf.name != OUTSIDE_APP) {
            let name = if leaf.is_unresolved() { Marker::Unresolved.name() } else { leaf.name.raw() };
            let energy = markers.entry(name).or_default();
            *energy = energy.saturating_add(entry.energy);
        }
    }
    markers
}

fn leaf(profile: &Profile, path: PathIndex) -> Option<&Frame> {
    profile.catalog.paths.frames_of(path).next_back()
}

/// How much of the selection has no name. As the application sees it, all of it has one.
pub fn line(profile: &Profile) -> String {
    let (markers, whole) = (by_marker(profile), profile.energy());
    let mut ranked: Vec<_> = markers.iter().collect();
    ranked.sort_by_key(|(name, energy)| (std::cmp::Reverse(**energy), **name));
    let part = |energy: MicroJoules| share(energy, whole);
    let parts: Vec<String> = ranked
        .iter()
        .take(MOST_MARKERS)
        .map(|(name, energy)| format!("{} {:.1} %", escape(name), part(**energy)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("Of the selection's energy {:.1} % has no name{parts}", part(markers.values().copied().sum()))
}

/// What would give names to much of the energy of processes, one line for each process and program; those with most
/// energy come first.
pub fn hints(profile: &Profile) -> Vec<String> {
    let mut wholes: BTreeMap<ProcessIndex, MicroJoules> = BTreeMap::new();
    let mut unnamed: BTreeMap<(ProcessIndex, usize), MicroJoules> = BTreeMap::new();
    let add = |sum: &mut MicroJoules, energy| *sum = sum.saturating_add(energy);
    for entry in &profile.entries {
        let process = profile.catalog.thread(entry.thread).process;
        add(wholes.entry(process).or_default(), entry.energy);
        if let Some(program) = program_without_names(profile, entry.path) {
            add(unnamed.entry((process, program)).or_default(), entry.energy);
        }
    }
    let is_much = |((process, _), energy): &(&(ProcessIndex, usize), &MicroJoules)| {
        let of_process = wholes.get(process).map_or(0.0, |whole| share(**energy, *whole));
        of_process >= MUCH && share(**energy, profile.energy()) >= NOT_NEGLIGIBLE
    };
    let mut ranked: Vec<_> = unnamed.iter().filter(is_much).collect();
    ranked.sort_by_key(|(key, energy)| (std::cmp::Reverse(**energy), **key));
    let hint = |((process, program), energy): (&(ProcessIndex, usize), &MicroJoules)| {
        let (Program { name, advice, .. }, process) = (&PROGRAMS[*program], *process);
        let part = share(*energy, wholes.get(&process).copied().unwrap_or_default());
        let process = profile.catalog.process(process);
        let title = escape(process.title().raw());
        format!("{part:.1} % of the energy of {title} (pid {}) is code of {name} without a name: {advice}", process.pid)
    };
    ranked.into_iter().map(hint).collect()
}

/// The program, as an index into [`PROGRAMS`], that made the code that a path ends in, if that has no name.
fn program_without_names(profile: &Profile, path: PathIndex) -> Option<usize> {
    leaf(profile, path).filter(|leaf| leaf.is_unresolved())?;
    let frames = || profile.catalog.paths.frames_of(path);
    let of_file = |program: &Program| {
        frames().any(|frame| frame.module.as_ref().is_some_and(|module| (program.has)(module.raw())))
    };
    let has_names = |prefix: &str| frames().any(|frame| frame.name.raw().starts_with(prefix));
    PROGRAMS.iter().position(|program| of_file(program) && !program.prefix.is_some_and(has_names))
}
