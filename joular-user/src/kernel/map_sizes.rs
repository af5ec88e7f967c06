//! Decides how large the kernel's maps are: what a window can hold at most, from the number of CPUs and threads, and the
//! sampling frequency.

use std::fs;

use super::{bank_maps::Capacity, programs::LoadOptions};

/// Map sizes for what a window can hold at most.
pub(super) struct MapSizes {
    pub threads: Capacity,
    pub samples: Capacity,
    pub ring_bytes: u32,
    /// Stacks that are known in the kernel.
    pub stacks: u32,
    /// Records of what threads move.
    pub io_threads: Capacity,
    /// Records of what threads allocate.
    pub allocating_threads: Capacity,
    /// Threads of which something is kept from one window to the next.
    pub kept_threads: u32,
}

impl MapSizes {
    pub fn of(options: &LoadOptions, cpus: usize) -> Self {
        Self::for_threads(options, cpus, thread_count())
    }

    fn for_threads(options: &LoadOptions, cpus: usize, now: u64) -> Self {
        let per_second = u64::from(options.frequency_hz) * cpus as u64;
        let per_window = per_second * options.interval_ns.div_ceil(1_000_000_000);
        let bounded = |wanted: u64, least: u32, most: u32| {
            u32::try_from(wanted.next_power_of_two()).unwrap_or(most).clamp(least, most)
        };
        const LEAST_THREADS: u32 = 16_384;
        const MOST_THREADS: u32 = 1 << 20;
        const LEAST_SAMPLES: u32 = 4_096;
        const MOST_SAMPLES: u32 = 1 << 18;
        const LEAST_STACKS: u32 = 1 << 16;
        const MOST_STACKS: u32 = 1 << 20;
        const LEAST_RECORDS: u32 = 1 << 13;
        const MOST_RECORDS: u32 = 1 << 20;
        const LEAST_KEPT: u32 = 1 << 16;
        const MOST_KEPT: u32 = 1 << 20;
        let records = |wanted| Capacity { first: bounded(wanted, LEAST_RECORDS, MOST_RECORDS), most: MOST_RECORDS };
        // A thread that moves between cores has a slot for each.
        let places = if options.per_core { (cpus as u64).clamp(1, 8) } else { 1 };
        Self {
            // Twice the threads there are now: they come and go in bursts.
            threads: Capacity { first: bounded(2 * now * places, LEAST_THREADS, MOST_THREADS), most: MOST_THREADS },
            // Every sample of a window may have a key of its own.
            samples: Capacity { first: bounded(2 * per_window, LEAST_SAMPLES, MOST_SAMPLES), most: MOST_SAMPLES },
            // Two seconds of nothing but new stacks of 128 frames: so long it may go
            // unread on a machine that is busier than it can be.
            ring_bytes: bounded(2 * per_second * 1024, 1 << 21, 1 << 26),
            // As many as are taken in 20 seconds: one that is used is known for longer (`pipeline/stack_age.rs`).
            stacks: bounded(20 * per_second, LEAST_STACKS, MOST_STACKS),
            // Of what a thread sends, receives, reads and writes it has a record each.
            io_threads: records(4 * now),
            allocating_threads: records(2 * now),
            // Those that have ended are forgotten at once, or when they were used least recently.
            kept_threads: bounded(4 * now, LEAST_KEPT, MOST_KEPT),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Sampler, Told, cpus::CPU_ROOT};

    fn sizes(frequency_hz: u32, cpus: usize, threads: u64) -> MapSizes {
        let options = LoadOptions {
            sampler: Sampler::Event,
            frequency_hz,
            interval_ns: 1_000_000_000,
            all_targets: false,
            told: Told::default(),
            log: false,
            cpu_root: CPU_ROOT.into(),
            per_core: false,
            cycles: None,
            counters: Vec::new(),
            allocations: true,
            io: true,
        };
        MapSizes::for_threads(&options, cpus, threads)
    }

    #[test]
    fn every_thread_there_is_has_its_records_in_the_first_window() {
        for threads in [100_u64, 3_000, 20_000, 200_000] {
            let sizes = sizes(99, 4, threads);
            // Each may send, receive, read and write.
            assert!(u64::from(sizes.io_threads.first) >= 4 * threads, "{threads} threads move bytes");
            assert!(u64::from(sizes.allocating_threads.first) >= 2 * threads, "{threads} threads allocate");
            assert!(u64::from(sizes.kept_threads) >= threads && u64::from(sizes.threads.first) >= threads);
        }
        assert_eq!(sizes(99, 4, u64::from(u32::MAX)).io_threads.first, 1 << 20, "there is a bound");
    }

    #[test]
    fn known_stacks_are_as_many_as_can_be_taken_in_twenty_seconds() {
        for (frequency_hz, cpus, stacks) in
            [(99, 2, 1 << 16), (99, 64, 1 << 17), (999, 64, 1 << 20), (997, 8, 1 << 18), (9_999, 512, 1 << 20)]
        {
            assert_eq!(sizes(frequency_hz, cpus, 100).stacks, stacks, "{cpus} CPUs at {frequency_hz} Hz");
        }
    }
}
