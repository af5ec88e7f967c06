//! What the threads of the made-up run move through sockets and files.

use std::{collections::BTreeMap, path::Path};

use joular_ebpf::abi::{IoKind, Place, ThreadKey};

use super::{
    OutputDirectory, ParquetOutput,
    fixture::{FLUSH_NS, events, play_run},
};
use crate::{
    events::{Event, IoSample, ThreadIo, ThreadTime, WindowIo},
    model::{byte_costs::ByteCosts, domain::Domain, policy::Policy},
};

/// Every thread moves bytes of every kind, those of targets by two paths or, every third, by none that was seen.
pub(super) fn moved(window: &Event) -> Option<Event> {
    let Event::Window(window) = window else { return None };
    let key = |time: &ThreadTime| ThreadKey::new(time.tid.0, time.start_boottime_ns, Place::new(0, 0)).0;
    let thread = |time: &ThreadTime, kind: IoKind| ThreadIo {
        tid: time.tid,
        pid: time.pid,
        thread_key: key(time),
        kind,
        bytes: 1_000_003 * u64::from(time.tid.0) + kind as u64,
        calls: 3,
    };
    let sample = |time: &ThreadTime, kind: IoKind, stack: u64| IoSample {
        tid: time.tid,
        pid: time.pid,
        thread_key: key(time),
        kind,
        stack,
        bytes: stack * 1_000,
        samples: stack,
    };
    let is_seen = |time: &&ThreadTime| !time.tid.0.is_multiple_of(3) && [1, 2].contains(&time.pid.0);
    let of_thread = |time| IoKind::ALL.map(|kind| thread(time, kind));
    let of_seen = |time| IoKind::ALL.into_iter().flat_map(move |kind| [2, 3].map(|stack| sample(time, kind, stack)));
    Some(Event::Io(Box::new(WindowIo {
        counts_devices: window.index % 2 == 0,
        threads: window.threads.iter().flat_map(of_thread).collect(),
        samples: window.threads.iter().filter(is_seen).flat_map(of_seen).collect(),
    })))
}

/// What each target's thread and each group moves in the whole run, by the claimant's name and thread, and by kind. What
/// is not counted of devices is none.
pub(crate) fn moved_in_all() -> BTreeMap<(&'static str, u32), [u64; IoKind::ALL.len()]> {
    let mut all = BTreeMap::new();
    for event in events(Policy::default()) {
        let Event::Io(io) = event else { continue };
        for thread in &io.threads {
            let claimant = match thread.pid.0 {
                1 | 2 => ("thread", thread.tid.0),
                99 => ("profiler", 0),
                0 => ("kernel", 0),
                _ => ("other_processes", 0),
            };
            let sums: &mut [u64; IoKind::ALL.len()] = all.entry(claimant).or_default();
            if io.counts_devices || !matches!(thread.kind, IoKind::DeviceRead | IoKind::DeviceWritten) {
                sums[thread.kind as usize] += thread.bytes;
            }
        }
    }
    all
}

/// The run with a network card and a disk, whose energy goes by bytes.
pub(crate) fn write_with_devices(root: &Path, policy: Policy) {
    let network = ByteCosts { sent_pj: 2_070, received_pj: 1_300, ..ByteCosts::default() };
    let disk = ByteCosts { device_read_pj: 9_000, device_written_pj: 9_200, ..ByteCosts::default() };
    let directory = OutputDirectory::create(root, None).unwrap();
    play_run(ParquetOutput::new(directory, FLUSH_NS), policy, |run| {
        run.domains.push(Domain::per_byte("network", "network", 1_000_000, network));
        run.domains.push(Domain::per_byte("disk", "disk", 2_000_000, disk));
    });
}
