//! Reads what a window ran under: how fast the CPUs ran, under which governor, what the hypervisor
//! took, how hot the processor was; and the settings that idle power depends on.
//!
//! Joules of two runs can be compared only if the machine was in the same state, so every window
//! keeps it. Reading has to cost little on hosts with hundreds of CPUs. So each window reads at most
//! [`MOST_READS`] files of a kind.

mod aperf;
mod frequency;
mod governor;
pub mod settings;
mod steal;
mod temperature;

use std::path::Path;

use joular_data::events::{CpuTimes, WindowContext};

use self::{aperf::Aperf, frequency::Frequency, governor::Governors, steal::Steal, temperature::Temperature};
use crate::energy::{
    perf_pmu::counters::{KernelEvents, PerfEvents},
    sysfs,
};

/// Files of a kind that are read in a window. One costs about 10 µs.
const MOST_READS: usize = 16;

/// Longest name of a governor, a sensor or a setting. The kernel's are at most 16 bytes.
const MAX_NAME_BYTES: usize = 32;

/// Where it is read from.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// Usually `/sys/devices/system/cpu`.
    pub cpu: &'a Path,
    /// Usually `/sys`.
    pub sys: &'a Path,
    /// Usually `/proc`.
    pub proc: &'a Path,
}

/// Reads the context of one window after the other.
#[derive(Debug)]
pub struct ContextReader {
    aperf: Option<Aperf>,
    frequency: Frequency,
    governors: Governors,
    steal: Steal,
    temperature: Temperature,
}

impl ContextReader {
    /// Finds what the machine has.
    pub fn new(roots: Roots<'_>) -> Self {
        Self::with(roots, &KernelEvents)
    }

    fn with(roots: Roots<'_>, events: &dyn PerfEvents) -> Self {
        Self {
            aperf: Aperf::open(roots.sys, roots.cpu, events),
            frequency: Frequency::new(roots.cpu),
            governors: Governors::new(roots.cpu),
            steal: Steal::new(roots.proc),
            temperature: Temperature::new(roots.sys),
        }
    }

    /// What the window that has just ended ran under, without what the clocks did. `cpus` are its
    /// CPU times.
    pub fn window(&mut self, cpus: &[CpuTimes]) -> WindowContext {
        let counted_khz = self.aperf.as_mut().and_then(Aperf::mean_khz);
        WindowContext {
            mean_frequency_khz: counted_khz.or_else(|| self.frequency.mean_khz(cpus)),
            governor: self.governors.look(),
            steal_ns: self.steal.since_last_ns(),
            temperature_millicelsius: self.temperature.hottest_millicelsius(),
            ..WindowContext::default()
        }
    }
}

/// A short name as the kernel gives it; `None` if the file is absent or holds anything else.
fn name_in(path: &Path) -> Option<String> {
    name(&sysfs::read_value(path).ok()?)
}

fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let is_name =
        !text.is_empty() && text.len() <= MAX_NAME_BYTES && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_name.then(|| text.to_owned())
}

/// The one name that all have, or [`WindowContext::MIXED`]; `None` without any.
fn common<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut common: Option<&str> = None;
    for name in names {
        match common {
            Some(other) if other != name => return Some(WindowContext::MIXED.to_owned()),
            _ => common = Some(name),
        }
    }
    common.map(ToOwned::to_owned)
}

#[cfg(test)]
mod fake_tree;

#[cfg(test)]
mod tests {
    use super::{fake_tree::FakeTree, *};

    #[test]
    fn a_machine_that_tells_nothing_has_nothing_but_no_steal() {
        let tree = FakeTree::new();
        tree.write("proc/cpuinfo", "flags\t\t: fpu vme sse2\n");
        assert_eq!(
            ContextReader::new(tree.roots()).window(&[CpuTimes { busy_ns: 5, ..CpuTimes::default() }]),
            WindowContext { steal_ns: Some(0), ..WindowContext::default() }
        );
    }

    #[test]
    fn a_window_has_all_that_the_machine_tells() {
        let tree = FakeTree::new();
        tree.write("cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n");
        tree.write("cpu/cpufreq/policy0/scaling_governor", "schedutil\n");
        tree.write("proc/cpuinfo", "flags\t\t: fpu hypervisor sse2\n");
        tree.write("proc/stat", "cpu  1 2 3 4 5 6 7 80 9 10\n");
        tree.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
        tree.write("sys/class/thermal/thermal_zone0/temp", "51000\n");
        let mut reader = ContextReader::new(tree.roots());
        tree.write("proc/stat", "cpu  1 2 3 4 5 6 7 83 9 10\n");
        assert_eq!(
            reader.window(&[CpuTimes { busy_ns: 5, ..CpuTimes::default() }]),
            WindowContext {
                mean_frequency_khz: Some(2_400_000),
                governor: Some("schedutil".into()),
                steal_ns: Some(30_000_000),
                temperature_millicelsius: Some(51_000),
                ..WindowContext::default()
            }
        );
    }

    #[test]
    fn names_that_differ_are_mixed() {
        for (names, expected) in
            [(&[][..], None), (&["a"], Some("a")), (&["a", "a"], Some("a")), (&["a", "b"], Some("mixed"))]
        {
            assert_eq!(common(names.iter().copied()).as_deref(), expected, "{names:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_name_that_is_not_one(text in proptest::prelude::any::<String>()) {
            if let Some(name) = name(&text) {
                proptest::prop_assert!((1..=MAX_NAME_BYTES).contains(&name.len()));
                proptest::prop_assert!(name.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{:?}", name);
            }
        }

        /// Whatever stands in the files.
        #[test]
        fn no_tree_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
            let tree = FakeTree::new();
            for path in [
                "cpu/cpu0/cpufreq/scaling_cur_freq",
                "cpu/cpufreq/policy0/scaling_governor",
                "cpu/cpufreq/policy0/energy_performance_preference",
                "cpu/intel_pstate/no_turbo",
                "cpu/cpu0/cpuidle/state0/name",
                "cpu/cpu0/cpuidle/state0/disable",
                "proc/cpuinfo",
                "proc/stat",
                "proc/cmdline",
                "sys/class/hwmon/hwmon0/name",
                "sys/class/thermal/thermal_zone0/type",
                "sys/class/thermal/thermal_zone0/temp",
            ] {
                tree.write(path, &bytes);
            }
            let mut reader = ContextReader::new(tree.roots());
            let context = reader.window(&[CpuTimes { busy_ns: u64::MAX, ..CpuTimes::default() }]);
            let _ = settings::PowerSettings::read(tree.roots());
            proptest::prop_assert!(context.mean_frequency_khz.is_none_or(|khz| khz <= 100_000_000));
        }
    }
}
