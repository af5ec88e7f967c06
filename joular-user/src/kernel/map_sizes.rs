//! Decides how large the kernel's maps are: what a window can hold at most, from the number of CPUs and threads, and the
//! sampling frequency.

use std::fs;

use super::{bank_maps::Capacity, programs::LoadOptions};

/// Map sizes for what a window can hold at most.
pub(super) struct MapSizes {
    pub threads: Capacity,
    pub samples: Capacity,
    pub ring_bytes: u32,
}

impl MapSizes {
    pub fn of(options: &LoadOptions, cpus: usize) -> Self {
        let per_second = u64::from(options.frequency_hz) * cpus as u64;
        let per_window = per_second * options.interval_ns.div_ceil(1_000_000_000);
        let bounded = |wanted: u64, least: u32, most: u32| {
            u32::try_from(wanted.next_power_of_two()).unwrap_or(most).clamp(least, most)
        };
        const LEAST_THREADS: u32 = 16_384;
        const MOST_THREADS: u32 = 1 << 20;
        const LEAST_SAMPLES: u32 = 4_096;
        const MOST_SAMPLES: u32 = 1 << 18;
        // A thread that moves between cores has a slot for each.
        let places = if options.per_core { (cpus as u64).clamp(1, 8) } else { 1 };
        Self {
            // Twice the threads there are now: they come and go in bursts.
            threads: Capacity {
                first: bounded(2 * thread_count() * places, LEAST_THREADS, MOST_THREADS),
                most: MOST_THREADS,
            },
            // Every sample of a window may have a key of its own.
            samples: Capacity { first: bounded(2 * per_window, LEAST_SAMPLES, MOST_SAMPLES), most: MOST_SAMPLES },
            // Two seconds of nothing but new stacks of 128 frames: so long it may go
            // unread on a machine that is busier than it can be.
            ring_bytes: bounded(2 * per_second * 1024, 1 << 21, 1 << 26),
        }
    }
}

/// Threads on the host now, from the fourth field of /proc/loadavg.
fn thread_count() -> u64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok())
        .unwrap_or(4_096)
}
