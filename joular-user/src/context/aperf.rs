//! Counts how fast CPUs ran while they were not idle, by the registers APERF and MPERF of x86.
//!
//! Both count only while the CPU is not idle: APERF at the frequency it has, MPERF at the frequency
//! of the time stamp counter (Intel SDM, volume 3, section 15.2; AMD APM, volume 2, section 17.3.2).
//! So ΔAPERF / ΔMPERF · ΔTSC / Δt is the mean frequency of the busy time, exact for the whole window.
//! The kernel's PMU `msr` has all three as perf events, on processors that have them. Reading one
//! interrupts its CPU, so at most [`MOST_READS`] CPUs are counted on, spread over the machine.

use std::{path::Path, time::Instant};

use super::MOST_READS;
use crate::energy::{
    perf_pmu::counters::{EventOnCpu, PerfCounter, PerfEvents},
    sysfs,
};

/// Below the root of sysfs.
const PMU: &str = "bus/event_source/devices/msr";

/// No processor is faster: 100 GHz.
const MOST_KHZ: u128 = 100_000_000;

pub(super) struct Aperf {
    cpus: Vec<OnCpu>,
    tsc: Box<dyn PerfCounter>,
    last_tsc: u64,
    last_look: Instant,
}

struct OnCpu {
    aperf: Box<dyn PerfCounter>,
    mperf: Box<dyn PerfCounter>,
    last: (u64, u64),
}

impl Aperf {
    /// Opens the counters; `None` where the processor has none or they may not be read.
    pub(super) fn open(sys_root: &Path, cpu_root: &Path, events: &dyn PerfEvents) -> Option<Self> {
        let pmu = sys_root.join(PMU);
        let pmu_type = sysfs::read_value(&pmu.join("type")).ok()?.parse().ok()?;
        let config = |event: &str| config(&sysfs::read_value(&pmu.join("events").join(event)).ok()?);
        let (aperf, mperf, tsc) = (config("aperf")?, config("mperf")?, config("tsc")?);
        let open = |config, cpu| events.open(EventOnCpu { pmu_type, config, cpu }).ok();
        let ids: Vec<u32> = sysfs::numbered(cpu_root, "cpu").ok()?.into_iter().map(|(cpu, _)| cpu).collect();
        let on_cpu = |cpu| Some((cpu, OnCpu { aperf: open(aperf, cpu)?, mperf: open(mperf, cpu)?, last: (0, 0) }));
        // Those that are offline cannot be opened.
        let (opened, cpus): (Vec<u32>, Vec<OnCpu>) = spread(&ids).filter_map(on_cpu).unzip();
        let tsc = open(tsc, *opened.first()?)?;
        let mut found = Self { cpus, tsc, last_tsc: 0, last_look: Instant::now() };
        found.mean_khz();
        Some(found)
    }

    /// Since the last call; `None` if nothing ran on any of the CPUs.
    pub(super) fn mean_khz(&mut self) -> Option<u64> {
        let (now, tsc) = (Instant::now(), self.tsc.count().ok()?);
        let elapsed_ns = now.duration_since(self.last_look).as_nanos();
        let ticks = tsc.saturating_sub(std::mem::replace(&mut self.last_tsc, tsc));
        self.last_look = now;
        let (mut actual, mut base) = (0_u64, 0_u64);
        for cpu in &mut self.cpus {
            // One that went offline no longer counts.
            let (Ok(aperf), Ok(mperf)) = (cpu.aperf.count(), cpu.mperf.count()) else { continue };
            let last = std::mem::replace(&mut cpu.last, (aperf, mperf));
            actual = actual.saturating_add(aperf.saturating_sub(last.0));
            base = base.saturating_add(mperf.saturating_sub(last.1));
        }
        mean(actual, base, ticks, elapsed_ns)
    }
}

impl std::fmt::Debug for Aperf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aperf").field("cpus", &self.cpus.len()).finish_non_exhaustive()
    }
}

/// kHz of `actual` cycles in the time of `base` ticks, of which `ticks` come in `elapsed_ns`.
fn mean(actual: u64, base: u64, ticks: u64, elapsed_ns: u128) -> Option<u64> {
    let base_khz = (u128::from(ticks) * 1_000_000).checked_div(elapsed_ns)?;
    let khz = u128::from(actual).checked_mul(base_khz)?.checked_div(base.into())?;
    u64::try_from(khz).ok().filter(|khz| (1..=MOST_KHZ).contains(&u128::from(*khz)))
}

/// At most [`MOST_READS`] of the CPUs, at equal distances.
fn spread(cpus: &[u32]) -> impl Iterator<Item = u32> {
    cpus.iter().copied().step_by(cpus.len().div_ceil(MOST_READS).max(1))
}

/// `event=0x01`.
fn config(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("event=0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        io,
        sync::Arc,
        sync::atomic::{AtomicU64, Ordering::Relaxed},
    };

    use super::{super::fake_tree::FakeTree, *};

    /// Counters by the event's number; those of CPU 3 cannot be opened.
    #[derive(Default)]
    struct Registers {
        by_event: [Arc<AtomicU64>; 3],
        opened: Cell<usize>,
    }

    struct Register(Arc<AtomicU64>);

    impl PerfEvents for Registers {
        fn open(&self, event: EventOnCpu) -> io::Result<Box<dyn PerfCounter>> {
            assert_eq!(event.pmu_type, 15);
            if event.cpu == 3 {
                return Err(io::Error::from_raw_os_error(libc::ENODEV));
            }
            self.opened.set(self.opened.get() + 1);
            Ok(Box::new(Register(self.by_event[usize::try_from(event.config).unwrap()].clone())))
        }
    }

    impl PerfCounter for Register {
        fn count(&mut self) -> io::Result<u64> {
            Ok(self.0.load(Relaxed))
        }
    }

    fn tree(cpus: u32) -> FakeTree {
        let tree = FakeTree::new();
        for (file, text) in [
            ("type", "15\n"),
            ("events/tsc", "event=0x00\n"),
            ("events/aperf", "event=0x01\n"),
            ("events/mperf", "event=0x02\n"),
        ] {
            tree.write(&format!("sys/{PMU}/{file}"), text);
        }
        (0..cpus).for_each(|cpu| tree.write(&format!("cpu/cpu{cpu}/online"), "1\n"));
        tree
    }

    fn open(tree: &FakeTree, registers: &Registers) -> Option<Aperf> {
        Aperf::open(tree.roots().sys, tree.roots().cpu, registers)
    }

    #[test]
    fn a_frequency_is_the_time_stamp_counters_times_the_ratio() {
        // 2 · 10⁹ ticks in a second; one and a half cycles for each of 500 · 10⁶ busy ticks.
        assert_eq!(mean(750_000_000, 500_000_000, 2_000_000_000, 1_000_000_000), Some(3_000_000));
        for (actual, base, ticks, elapsed_ns) in [(1, 0, 1, 1), (1, 1, 1, 0), (0, 5, 1, 1), (u64::MAX, 1, u64::MAX, 1)]
        {
            assert_eq!(mean(actual, base, ticks, elapsed_ns), None);
        }
    }

    #[test]
    fn windows_have_what_was_counted_in_them_and_an_idle_one_nothing() {
        let (tree, registers) = (tree(4), Registers::default());
        let mut aperf = open(&tree, &registers).unwrap();
        assert_eq!(aperf.cpus.len(), 3, "one is offline");
        let [tsc, cycles, base] = &registers.by_event;
        tsc.fetch_add(u64::MAX / 4, Relaxed);
        assert_eq!(aperf.mean_khz(), None, "nothing ran");
        cycles.fetch_add(3_000, Relaxed);
        base.fetch_add(2_000, Relaxed);
        let begin = aperf.last_look;
        tsc.fetch_add(1_000, Relaxed);
        let khz = aperf.mean_khz();
        let elapsed_ns = aperf.last_look.duration_since(begin).as_nanos();
        assert_eq!(khz, mean(9_000, 6_000, 1_000, elapsed_ns));
    }

    #[test]
    fn large_machines_are_counted_on_few_cpus() {
        let (tree, registers) = (tree(256), Registers::default());
        assert_eq!(open(&tree, &registers).unwrap().cpus.len(), MOST_READS);
        assert_eq!(registers.opened.get(), 2 * MOST_READS + 1);
        assert_eq!(spread(&(0..100).collect::<Vec<_>>()).last(), Some(98));
        assert_eq!(spread(&[]).count(), 0);
    }

    #[test]
    fn a_processor_without_the_registers_has_none() {
        let without = tree(2);
        without.remove(&format!("sys/{PMU}/events"));
        without.write(&format!("sys/{PMU}/events/tsc"), "event=0x00\n");
        assert!(open(&without, &Registers::default()).is_none());
        assert!(open(&tree(0), &Registers::default()).is_none());
        for (text, expected) in [("event=0x1f\n", Some(31)), ("event=1", None), ("event=0x", None), ("", None)] {
            assert_eq!(config(text), expected, "{text:?}");
        }
    }
}
