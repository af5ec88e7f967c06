//! Shows what was moved through sockets and files (`--io`): columns of a table's rows, and the figures in files.

use joular_ebpf::abi::IoKind;
use serde_json::{Map, Value, json};

use super::{
    rows::{Ranking, Row},
    slots::Slots,
    text::{Column, rows},
};
use crate::{
    dataset::{column::Named as _, tables::io::bytes_of},
    model::byte_costs::BytesByKind,
    report::profile::{Profile, counted::add},
    text::figures::Places,
};

/// Bytes of a megabyte.
const MB: f64 = 1e6;

/// Which way bytes went, as people ask for it. Through sockets on this host, or to and from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Sent,
    Received,
    Read,
    Written,
    DeviceRead,
    DeviceWritten,
}

impl Way {
    pub const ALL: [Self; 6] =
        [Self::Sent, Self::Received, Self::Read, Self::Written, Self::DeviceRead, Self::DeviceWritten];

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Read => "read",
            Self::Written => "written",
            Self::DeviceRead => "device-read",
            Self::DeviceWritten => "device-written",
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Sent => "SENT MB",
            Self::Received => "RECEIVED MB",
            Self::Read => "READ MB",
            Self::Written => "WRITTEN MB",
            Self::DeviceRead => "DEVICE READ MB",
            Self::DeviceWritten => "DEVICE WRITTEN MB",
        }
    }

    const fn kinds(self) -> &'static [IoKind] {
        match self {
            Self::Sent => &[IoKind::Sent, IoKind::LocalSent],
            Self::Received => &[IoKind::Received, IoKind::LocalReceived],
            Self::Read => &[IoKind::Read],
            Self::Written => &[IoKind::Written],
            Self::DeviceRead => &[IoKind::DeviceRead],
            Self::DeviceWritten => &[IoKind::DeviceWritten],
        }
    }

    /// Bytes that went this way.
    pub fn of(self, bytes: &BytesByKind) -> u64 {
        self.kinds().iter().fold(0, |sum, kind| sum.saturating_add(bytes[*kind as usize]))
    }
}

/// What a row moved, on paths that end in it and on paths that contain it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowMoved {
    pub own: BytesByKind,
    pub total: BytesByKind,
}

/// What each slot moved; nothing if nothing was moved at all.
pub(super) fn sums(profile: &Profile, slots: &Slots<'_>) -> Vec<RowMoved> {
    if profile.moved.is_empty() {
        return Vec::new();
    }
    let mut sums = vec![RowMoved::default(); slots.count];
    for entry in &profile.moved.entries {
        for slot in slots.all_of(entry.thread, entry.path) {
            add(&mut sums[slot].total, &entry.bytes);
        }
        if let Some(slot) = slots.own_of(entry.thread, entry.path) {
            add(&mut sums[slot].own, &entry.bytes);
        }
    }
    sums
}

/// Kinds of bytes that there are in the selection.
fn moved_kinds(profile: &Profile) -> impl Iterator<Item = IoKind> {
    let whole = profile.moved.bytes();
    IoKind::ALL.into_iter().filter(move |kind| whole[*kind as usize] > 0)
}

/// Names of a row's figures in files, of itself and in total: `self_sent_bytes`.
pub fn names(profile: &Profile) -> impl Iterator<Item = String> {
    moved_kinds(profile).flat_map(|kind| ["self", "total"].map(|which| format!("{which}_{}", bytes_of(kind).name())))
}

/// A row's figures, in the order of their names.
pub fn cells(profile: &Profile, row: &Row) -> impl Iterator<Item = u64> {
    moved_kinds(profile).flat_map(|kind| [row.moved.own, row.moved.total].map(|bytes| bytes[kind as usize]))
}

/// Columns for people: what paths with the row moved, each way that there is.
pub fn columns(table: &Ranking, profile: &Profile) -> Vec<Column> {
    let whole = profile.moved.bytes();
    let prefix = if table.by.has_total() { "TOTAL " } else { "" };
    let column = |way: Way| Column {
        heading: format!("{prefix}{}", way.heading()),
        cells: rows(table).map(|row| megabytes(way.of(&row.moved.total))).collect(),
        expendable: if matches!(way, Way::DeviceRead | Way::DeviceWritten) { 5 } else { 4 },
    };
    Way::ALL.into_iter().filter(|way| way.of(&whole) > 0).map(column).collect()
}

/// With three digits; nothing for nothing.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: u64) -> String {
    let value = bytes as f64 / MB;
    if bytes == 0 { String::new() } else { Places::derived(value, 0.0).write(value) }
}

/// In the unit that it fills, so that little is not nothing.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.3} kB", bytes as f64 / 1e3),
        _ => format!("{:.3} MB", bytes as f64 / MB),
    }
}

/// What the selection moved, as a line; `None` if nothing.
pub fn line(profile: &Profile) -> Option<String> {
    let (moved, whole) = (&profile.moved, profile.moved.bytes());
    let part = |kind: IoKind| format!("{} {}", amount(whole[kind as usize]), words(kind));
    let parts: Vec<String> = moved_kinds(profile).map(part).collect();
    (!parts.is_empty()).then(|| format!("moved {}, by {} samples", parts.join(", "), moved.samples()))
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

/// What the selection moved, by the names of table `io`; nothing if nothing was moved.
pub fn totals(profile: &Profile) -> Option<Value> {
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

    #[test]
    fn each_kind_of_bytes_goes_one_way() {
        let all: Vec<IoKind> = Way::ALL.into_iter().flat_map(|way| way.kinds().iter().copied()).collect();
        assert!(IoKind::ALL.into_iter().all(|kind| all.contains(&kind)) && all.len() == IoKind::ALL.len(), "{all:?}");
    }
}
