//! Reads the settings that a machine's power depends on, for calibrations.
//!
//! Limits of idle states certainly change what an idle machine draws. Governor, energy preference
//! and turbo change how fast the little runs that runs on an idle machine, and on some processors
//! the clock of what the cores share.

use std::{fmt, path::Path};

use joular_data::events::WindowContext;
use serde::{Deserialize, Serialize};

use super::{Roots, common, name, name_in};
use crate::energy::sysfs;

/// Most idle states of a CPU; the kernel has 10.
const MAX_STATES: usize = 16;
/// The kernel's command line is at most 4 KiB long.
const CMDLINE_BYTES: u64 = 4096;
/// Most limits that are kept.
const MAX_LIMITS: usize = 16;

/// Parameters of the kernel that limit idle states.
const PARAMETERS: [&str; 6] =
    ["intel_idle.max_cstate", "processor.max_cstate", "idle", "cpuidle.off", "intel_idle.states_off", "nohlt"];
/// Modules that can be told a limit.
const MODULES: [&str; 2] = ["intel_idle", "processor"];

/// What cannot be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerSettings {
    /// Frequency governor, or `mixed`.
    pub governor: Option<String>,
    /// `energy_performance_preference`, or `mixed`.
    pub energy_preference: Option<String>,
    /// `on` or `off`.
    pub turbo: Option<String>,
    /// Names of the idle states that CPUs may use, with those that are disabled marked.
    pub idle_states: Option<String>,
    /// Limits of idle states given at boot.
    pub idle_limits: Option<String>,
}

impl PowerSettings {
    /// Reads what there is.
    pub fn read(roots: Roots<'_>) -> Self {
        let policies = sysfs::numbered(&roots.cpu.join("cpufreq"), "policy").unwrap_or_default();
        let of_policies = |file: &str| {
            let names: Vec<String> = policies.iter().filter_map(|(_, policy)| name_in(&policy.join(file))).collect();
            common(names.iter().map(String::as_str))
        };
        Self {
            governor: of_policies("scaling_governor"),
            energy_preference: of_policies("energy_performance_preference"),
            turbo: turbo(roots.cpu),
            idle_states: idle_states(roots.cpu),
            idle_limits: idle_limits(roots),
        }
    }

    /// Names and values, for people: first what certainly changes idle power.
    pub fn facts(&self) -> [(&'static str, &Option<String>); 5] {
        [
            ("idle states", &self.idle_states),
            ("limits of idle states", &self.idle_limits),
            ("frequency governor", &self.governor),
            ("energy preference", &self.energy_preference),
            ("turbo", &self.turbo),
        ]
    }
}

/// How many of [`PowerSettings::facts`] certainly change idle power.
pub const CERTAIN: usize = 2;

impl fmt::Display for PowerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.facts().into_iter().filter_map(|(what, value)| Some((what, value.as_ref()?)));
        let texts: Vec<String> = known.map(|(what, value)| format!("{what} {}", value.escape_debug())).collect();
        f.write_str(if texts.is_empty() { "not known" } else { "" })?;
        f.write_str(&texts.join("; "))
    }
}

fn turbo(cpu_root: &Path) -> Option<String> {
    let flag = |file: &str| match sysfs::read_value(&cpu_root.join(file)).ok()?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    let is_on = flag("intel_pstate/no_turbo").map(|off| !off).or_else(|| flag("cpufreq/boost"))?;
    Some(if is_on { "on" } else { "off" }.to_owned())
}

/// `POLL, C1, C6 (off)`: a state that only some CPUs may use is `mixed`.
fn idle_states(cpu_root: &Path) -> Option<String> {
    /// A state's name, and whether each CPU may use it.
    type States = Vec<(String, Vec<bool>)>;
    let mut states: States = Vec::new();
    for (_, cpu) in sysfs::numbered(cpu_root, "cpu").ok()? {
        let of_cpu = sysfs::numbered(&cpu.join("cpuidle"), "state").unwrap_or_default();
        for (_, state) in of_cpu.iter().take(MAX_STATES) {
            let Some(name) = name_in(&state.join("name")) else { continue };
            let is_off = sysfs::read_value(&state.join("disable")).is_ok_and(|flag| flag == "1");
            match states.iter().position(|(other, _)| *other == name) {
                Some(known) => states[known].1.push(!is_off),
                None if states.len() < MAX_STATES => states.push((name, vec![!is_off])),
                None => {}
            }
        }
    }
    let text = |(name, cpus): &(String, Vec<bool>)| match (cpus.contains(&true), cpus.contains(&false)) {
        (true, true) => format!("{name} ({})", WindowContext::MIXED),
        (false, true) => format!("{name} (off)"),
        _ => name.clone(),
    };
    (!states.is_empty()).then(|| states.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// Limits on the kernel's command line and of the modules; `none` where there is no limit.
fn idle_limits(roots: Roots<'_>) -> Option<String> {
    let cmdline = sysfs::read_start(&roots.proc.join("cmdline"), CMDLINE_BYTES).ok();
    let mut limits = cmdline.as_deref().map(limits_of).unwrap_or_default();
    let mut is_known = cmdline.is_some();
    for module in MODULES {
        let file = roots.sys.join("module").join(module).join("parameters/max_cstate");
        if let Some(limit) = name_in(&file) {
            limits.push(format!("{module} {limit}"));
            is_known = true;
        }
    }
    is_known.then(|| if limits.is_empty() { "none".to_owned() } else { limits.join(", ") })
}

fn limits_of(cmdline: &str) -> Vec<String> {
    let is_limit = |word: &&str| PARAMETERS.contains(&word.split('=').next().unwrap_or_default());
    cmdline.split_ascii_whitespace().filter(is_limit).filter_map(name).take(MAX_LIMITS).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::fake_tree::FakeTree, *};

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    /// Two CPUs with a policy and three idle states each.
    fn tree() -> FakeTree {
        let tree = FakeTree::new();
        for cpu in 0..2 {
            tree.write(&format!("cpu/cpufreq/policy{cpu}/scaling_governor"), "powersave\n");
            tree.write(&format!("cpu/cpufreq/policy{cpu}/energy_performance_preference"), "balance_power\n");
            for (state, name) in ["POLL", "C1", "C6"].iter().enumerate() {
                tree.write(&format!("cpu/cpu{cpu}/cpuidle/state{state}/name"), name);
                tree.write(&format!("cpu/cpu{cpu}/cpuidle/state{state}/disable"), "0\n");
            }
        }
        tree.write("cpu/intel_pstate/no_turbo", "0\n");
        tree.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet\n");
        tree
    }

    #[test]
    fn settings_are_read_as_the_kernel_gives_them() {
        let tree = tree();
        let found = PowerSettings::read(tree.roots());
        let expected = PowerSettings {
            governor: some("powersave"),
            energy_preference: some("balance_power"),
            turbo: some("on"),
            idle_states: some("POLL, C1, C6"),
            idle_limits: some("none"),
        };
        assert_eq!(found, expected);
        assert_eq!(
            found.to_string(),
            "idle states POLL, C1, C6; limits of idle states none; frequency governor powersave; \
             energy preference balance_power; turbo on"
        );
        assert_eq!(PowerSettings::read(FakeTree::new().roots()), PowerSettings::default());
        assert_eq!(PowerSettings::default().to_string(), "not known");
    }

    #[test]
    fn every_change_shows() {
        type Change = (&'static str, &'static str, fn(&PowerSettings) -> &Option<String>, &'static str);
        let changes: [Change; 8] = [
            ("cpu/cpufreq/policy1/scaling_governor", "performance", |of| &of.governor, "mixed"),
            ("cpu/cpufreq/policy0/energy_performance_preference", "power", |of| &of.energy_preference, "mixed"),
            ("cpu/intel_pstate/no_turbo", "1", |of| &of.turbo, "off"),
            ("cpu/cpu1/cpuidle/state2/disable", "1", |of| &of.idle_states, "POLL, C1, C6 (mixed)"),
            ("cpu/cpu1/cpuidle/state3/name", "haltpoll idle\n", |of| &of.idle_states, "POLL, C1, C6, haltpoll idle"),
            (
                "proc/cmdline",
                "quiet intel_idle.max_cstate=1 idle=poll x",
                |of| &of.idle_limits,
                "intel_idle.max_cstate=1, idle=poll",
            ),
            ("sys/module/intel_idle/parameters/max_cstate", "1\n", |of| &of.idle_limits, "intel_idle 1"),
            ("cpu/cpufreq/boost", "0", |of| &of.turbo, "on"),
        ];
        for (path, text, of, expected) in changes {
            let tree = tree();
            tree.write(path, text);
            assert_eq!(of(&PowerSettings::read(tree.roots())).as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn a_state_that_no_cpu_may_use_is_off() {
        let tree = tree();
        for cpu in 0..2 {
            tree.write(&format!("cpu/cpu{cpu}/cpuidle/state2/disable"), "1\n");
        }
        assert_eq!(PowerSettings::read(tree.roots()).idle_states, some("POLL, C1, C6 (off)"));
    }

    #[test]
    fn boost_says_turbo_where_intels_driver_does_not() {
        for (text, expected) in [("1\n", some("on")), ("0\n", some("off")), ("2\n", None)] {
            let tree = FakeTree::new();
            tree.write("cpu/cpufreq/boost", text);
            assert_eq!(PowerSettings::read(tree.roots()).turbo, expected);
        }
    }
}
