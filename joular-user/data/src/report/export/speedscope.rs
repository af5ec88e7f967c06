//! Writes speedscope's own JSON (`file-format-schema.json` of its package): frames once, and for
//! each thread a "sampled" profile whose weights are µJ.
//!
//! Its units are times, bytes and none. The unit here is `none`, and names say µJ.

use std::{collections::HashMap, io::Write};

use serde::{Serialize, Serializer, ser::SerializeSeq};

use super::{ExportFormat, Exported, Result, Selection, Writer, origin};
use crate::{
    model::{frame::Frame, target_text::TargetText, units::MicroJoules},
    report::profile::{FrameIndex, Profile, ThreadPath},
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "speedscope", writer: Writer::Text(write) };

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
    #[serde(serialize_with = "frames")]
    frames: Vec<&'a Frame>,
}

#[derive(Serialize)]
struct FrameRow<'a> {
    name: TargetText,
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
    samples: (&'a Profile, &'a Numbers, &'a [ThreadPath]),
    #[serde(serialize_with = "weights")]
    weights: &'a [ThreadPath],
}

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let profile = selection.profile()?;
    let origin = origin(&profile.overview);
    let (numbers, used) = used_frames(&profile);
    let threads = profile.entries.chunk_by(|a, b| a.thread == b.thread);
    let mut profiles: Vec<Sampled<'_>> = threads.map(|entries| sampled(&profile, &numbers, entries, &origin)).collect();
    // What opens first is what spent most.
    profiles.sort_by_key(|profile| std::cmp::Reverse(profile.end_value));
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

/// Place of a frame in the file.
type Numbers = HashMap<FrameIndex, u32>;

/// The frames of the selection, in the order in which they are first used.
fn used_frames(profile: &Profile) -> (Numbers, Vec<&Frame>) {
    let paths = &profile.catalog.paths;
    let (mut numbers, mut used) = (Numbers::new(), Vec::new());
    for index in profile.entries.iter().flat_map(|entry| paths.path(entry.path)) {
        numbers.entry(*index).or_insert_with(|| {
            used.push(paths.frame(*index));
            u32::try_from(used.len() - 1).unwrap_or(u32::MAX)
        });
    }
    (numbers, used)
}

fn sampled<'a>(profile: &'a Profile, numbers: &'a Numbers, entries: &'a [ThreadPath], origin: &str) -> Sampled<'a> {
    let catalog = &profile.catalog;
    let name = entries.first().map_or_else(String::new, |entry| {
        let (thread, process) = (catalog.thread(entry.thread), catalog.process_of(entry.thread));
        let host = catalog.run_of(process).info.host.raw();
        let (pid, tid) = (process.pid.0, thread.tid.0);
        format!("{} ({tid}) of {} ({pid}) on {host}, µJ, {origin}", thread.name.raw(), process.title().raw())
    });
    Sampled {
        kind: "sampled",
        name,
        unit: "none",
        start_value: 0,
        end_value: entries.iter().map(|entry| entry.energy).sum::<MicroJoules>().0,
        samples: (profile, numbers, entries),
        weights: entries,
    }
}

fn frames<S: Serializer>(frames: &[&Frame], serializer: S) -> Result<S::Ok, S::Error> {
    let rows = frames.iter().map(|frame| FrameRow {
        name: frame.method(),
        file: frame.file.as_ref().or(frame.module.as_ref()),
        line: frame.line,
    });
    serializer.collect_seq(rows)
}

fn samples<S: Serializer>(
    (profile, numbers, entries): &(&Profile, &Numbers, &[ThreadPath]),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let paths = &profile.catalog.paths;
    let mut list = serializer.serialize_seq(Some(entries.len()))?;
    for entry in *entries {
        let frames: Vec<u32> = paths.path(entry.path).iter().filter_map(|frame| numbers.get(frame).copied()).collect();
        list.serialize_element(&frames)?;
    }
    list.end()
}

fn weights<S: Serializer>(entries: &[ThreadPath], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(entries.iter().map(|entry| entry.energy.0))
}
