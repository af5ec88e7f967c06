//! Says what a selection allocated, moved and counted in all: lines for people, and JSON.

use joular_ebpf::abi::IoKind;
use serde_json::{Map, Value, json};

use super::beside::{per_joule, scaled};
use crate::{
    attribution::allocated::SampledBy,
    dataset::tables::io::bytes_of,
    model::counter::Counter,
    report::{
        measure::{Measure, Unit, Way},
        profile::Profile,
    },
    text::{count, seconds},
};

/// A line for each counter, for what was allocated, and for what was moved, as far as there is any of it.
pub fn lines(profile: &Profile) -> Vec<String> {
    counted(profile).into_iter().chain(allocated(profile)).chain(moved(profile)).collect()
}

fn counted(profile: &Profile) -> Vec<String> {
    let energy = profile.energy();
    let line = |counter: Counter| {
        let sum = profile.measured.amount(Measure::Counted(counter));
        let per_joule = Some(per_joule(sum, energy)).filter(|text| !text.is_empty());
        let per_joule = per_joule.map_or(String::new(), |text| format!(", {text} per J"));
        format!("counted {sum} {}{per_joule}", counter.name())
    };
    profile.measured.counters().map(line).collect()
}

fn allocated(profile: &Profile) -> Option<String> {
    let (measured, of) = (&profile.measured, Measure::Allocated);
    let megabytes = |bytes: u64| scaled(bytes, Unit::Bytes);
    let (time, all) = (seconds(profile.overview.duration_ns), megabytes(measured.amount(of)));
    let rate = if time > 0.0 { all / time } else { 0.0 };
    let mut line = format!("allocated {all:.3} MB, {rate:.3} MB/s, by {}", count(measured.samples(of), "sample"));
    for (by, what) in [
        (SampledBy::AllocationInStep, "threads allocated in step with their buffers, so intervals are wide"),
        (SampledBy::CpuTime, "the place is inferred from samples of CPU time, and the class is unknown"),
    ] {
        let bytes = measured.allocated_by(by);
        if bytes > 0 {
            line.push_str(&format!("; of {:.3} MB {what}", megabytes(bytes)));
        }
    }
    measured.has(of).then_some(line)
}

fn moved(profile: &Profile) -> Option<String> {
    let part = |(kind, bytes)| format!("{} {}", amount(bytes), words(kind));
    let parts: Vec<String> = moved_kinds(profile).map(part).collect();
    (!parts.is_empty()).then(|| format!("moved {}, by {}", parts.join(", "), count(moved_samples(profile), "sample")))
}

/// Kinds of bytes that there are in the selection.
fn moved_kinds(profile: &Profile) -> impl Iterator<Item = (IoKind, u64)> {
    let bytes = |kind: IoKind| (kind, profile.measured.amount(Measure::Moved(Way::of_kind(kind))));
    IoKind::ALL.into_iter().map(bytes).filter(|(_, bytes)| *bytes > 0)
}

/// Calls that were sampled.
pub(in crate::report) fn moved_samples(profile: &Profile) -> u64 {
    let samples = Way::APART.map(|way| profile.measured.samples(Measure::Moved(way)));
    samples.into_iter().fold(0, u64::saturating_add)
}

/// In the unit that it fills, so that little is not nothing.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.3} kB", bytes as f64 / 1e3),
        _ => format!("{:.3} MB", bytes as f64 / 1e6),
    }
}

const fn words(kind: IoKind) -> &'static str {
    match kind {
        IoKind::Sent => "sent",
        IoKind::Received => "received",
        IoKind::LocalSent => "sent on this host",
        IoKind::LocalReceived => "received on this host",
        IoKind::Read => "read from files",
        IoKind::Written => "written to files",
        IoKind::DeviceRead => "read from devices",
        IoKind::DeviceWritten => "written to devices",
    }
}

/// By the counters' names.
pub fn counted_json(profile: &Profile) -> Map<String, Value> {
    let sum = |counter| (Counter::name(counter).to_owned(), json!(profile.measured.amount(Measure::Counted(counter))));
    profile.measured.counters().map(sum).collect()
}

/// Nothing if nothing was allocated.
pub fn allocated_json(profile: &Profile) -> Option<Value> {
    let (measured, of) = (&profile.measured, Measure::Allocated);
    measured.has(of).then(|| {
        json!({
            "bytes": measured.amount(of),
            "samples": measured.samples(of),
            "by_cpu_time_bytes": measured.allocated_by(SampledBy::CpuTime),
            "in_step_bytes": measured.allocated_by(SampledBy::AllocationInStep),
        })
    })
}

/// By the names of table `io`; nothing if nothing was moved.
pub fn moved_json(profile: &Profile) -> Option<Value> {
    let bytes = moved_kinds(profile).map(|(kind, bytes)| (bytes_of(kind).name().into_owned(), json!(bytes)));
    let mut moved: Map<String, Value> = bytes.collect();
    if moved.is_empty() {
        return None;
    }
    moved.insert("samples".to_owned(), json!(moved_samples(profile)));
    Some(Value::Object(moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_unit_that_they_fill() {
        let shown = [0, 999, 1_000, 63_217, 999_999, 1_000_000, 12_345_678_900].map(amount);
        assert_eq!(shown, ["0 B", "999 B", "1.000 kB", "63.217 kB", "999.999 kB", "1.000 MB", "12345.679 MB"]);
    }
}
