//! Says what a selection allocated, moved and counted in all: lines for people, and JSON.

use joular_ebpf::abi::IoKind;
use serde_json::{Map, Value, json};

use super::beside::{per_joule, scaled};
use crate::{
    dataset::{column::Named as _, tables::io::bytes_of},
    model::counter::Counter,
    report::{measure::Unit, profile::Profile},
    text::seconds,
};

/// A line for each counter, for what was allocated, and for what was moved, as far as there is any of it.
pub fn lines(profile: &Profile) -> Vec<String> {
    counted(profile).into_iter().chain(allocated(profile)).chain(moved(profile)).collect()
}

fn counted(profile: &Profile) -> Vec<String> {
    let sums = profile.counted.sums(&profile.entries);
    let energy = profile.energy();
    let line = |(counter, sum): (&Counter, &u64)| {
        let per_joule = Some(per_joule(*sum, energy)).filter(|text| !text.is_empty());
        let per_joule = per_joule.map_or(String::new(), |text| format!(", {text} per J"));
        format!("counted {sum} {}{per_joule}", counter.name())
    };
    profile.counted.counters.iter().zip(&sums).map(line).collect()
}

fn allocated(profile: &Profile) -> Option<String> {
    let allocated = &profile.allocated;
    let megabytes = |bytes: u64| scaled(bytes, Unit::Bytes);
    let time = seconds(profile.overview.duration_ns);
    let rate = if time > 0.0 { megabytes(allocated.bytes()) / time } else { 0.0 };
    let by_cpu_time = match allocated.bytes_by_cpu_time() {
        0 => String::new(),
        bytes => format!(
            "; of {:.3} MB the place is inferred from samples of CPU time, and the class is unknown",
            megabytes(bytes)
        ),
    };
    (!allocated.is_empty()).then(|| {
        format!(
            "allocated {:.3} MB, {rate:.3} MB/s, by {} samples{by_cpu_time}",
            megabytes(allocated.bytes()),
            allocated.samples()
        )
    })
}

fn moved(profile: &Profile) -> Option<String> {
    let (moved, whole) = (&profile.moved, profile.moved.bytes());
    let part = |kind: IoKind| format!("{} {}", amount(whole[kind as usize]), words(kind));
    let parts: Vec<String> = moved_kinds(profile).map(part).collect();
    (!parts.is_empty()).then(|| format!("moved {}, by {} samples", parts.join(", "), moved.samples()))
}

/// Kinds of bytes that there are in the selection.
fn moved_kinds(profile: &Profile) -> impl Iterator<Item = IoKind> {
    let whole = profile.moved.bytes();
    IoKind::ALL.into_iter().filter(move |kind| whole[*kind as usize] > 0)
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
    let sums = profile.counted.sums(&profile.entries);
    profile.counted.counters.iter().zip(sums).map(|(counter, sum)| (counter.name().to_owned(), json!(sum))).collect()
}

/// Nothing if nothing was allocated.
pub fn allocated_json(profile: &Profile) -> Option<Value> {
    let allocated = &profile.allocated;
    (!allocated.is_empty()).then(|| {
        json!({
            "bytes": allocated.bytes(),
            "samples": allocated.samples(),
            "by_cpu_time_bytes": allocated.bytes_by_cpu_time(),
        })
    })
}

/// By the names of table `io`; nothing if nothing was moved.
pub fn moved_json(profile: &Profile) -> Option<Value> {
    let whole = profile.moved.bytes();
    let bytes = moved_kinds(profile).map(|kind| (bytes_of(kind).name().into_owned(), json!(whole[kind as usize])));
    let samples = [("samples".to_owned(), json!(profile.moved.samples()))];
    (!profile.moved.is_empty()).then(|| Value::Object(Map::from_iter(bytes.chain(samples))))
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
