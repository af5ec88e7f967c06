//! Finds what a CPU of each type of a hybrid processor draws when it gets busy, and what two busy hyper-threads of a core draw
//! relative to one.
//!
//! The first busy CPU wakes what all CPUs share, and whatever that draws is no CPU's. So each power is the difference between
//! two loads that both keep the package awake ([`Steps`]), divided by the time for which more CPUs were busy. The little else
//! that runs does not count as the loop's. The power of all measured domains is taken together. The loop is one of plain
//! integer instructions: other code may have other ratios.

use joular_data::model::{
    cores::{CoreBasis, CoreType, ONE_PERMILLE},
    domain::Domain,
};
use serde::{Deserialize, Serialize};

use super::{
    baseline::{IdleWindow, LEAST_WINDOWS, is_measurable},
    statistics::Summary,
};
use crate::kernel::{core_types::CoreKind, cpus::Cpu};

/// A busy CPU that draws less than this, in µW, is lost in the noise of the others' power.
const LEAST_UW: u64 = 100_000;

/// No processor has coefficients outside of these, in thousandths.
const PLAUSIBLE_PERMILLE: std::ops::RangeInclusive<u64> = 10..=100_000;

/// Two hyper-threads that draw more than this relative to one were not measured alone.
const MOST_SMT_PERMILLE: u64 = 2_200;

/// Cores of a type that are loaded: more of them would run at a lower frequency than a few do.
const MOST_CORES: usize = 4;

/// A load that kept fewer CPUs busy in addition, in millionths of a CPU, did not run.
const LEAST_ADDED_PPM: u64 = 500_000;

/// CPUs that are loaded one load after the other, to measure cores of a type. Each load has those of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    pub name: String,
    /// One CPU: of the type, or of another one where the type has a single core.
    pub first: Vec<u32>,
    /// One CPU of each core.
    pub cores: Vec<u32>,
    /// Both hyper-threads of each core; empty if cores have no second one.
    pub threads: Vec<u32>,
}

/// Power of one more busy CPU of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorePower {
    /// As in [`CoreType`].
    pub name: String,
    /// The CPUs that ran.
    pub cpus: Vec<u32>,
    pub microwatts: Summary,
    /// Frequency at the end of the load; 0 if it is not known.
    pub kilohertz: u64,
}

/// Power of two busy hyper-threads of a core relative to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtRatio {
    /// The CPUs that ran.
    pub cpus: Vec<u32>,
    pub permille: Summary,
}

impl SmtRatio {
    /// As a policy has it.
    pub fn policy_permille(&self) -> Option<u32> {
        u32::try_from(self.permille.typical.clamp(1_000, 2_000)).ok()
    }
}

impl Steps {
    /// For each type, whichever can be measured. CPUs with high numbers are taken, because low ones serve most interrupts.
    pub fn of(kinds: &[CoreKind], online: &[Cpu]) -> Vec<Self> {
        let has = |kind: &CoreKind, cpu: &Cpu| kind.cpus.contains(&cpu.id);
        let steps = |kind: &CoreKind| {
            let is_first = |cpu: &&Cpu| cpu.sibling.is_none_or(|sibling| cpu.id < sibling);
            let cores: Vec<&Cpu> = online.iter().filter(|cpu| has(kind, cpu)).filter(is_first).collect();
            let last = *cores.last()?;
            let of_socket: Vec<&Cpu> = cores.into_iter().filter(|cpu| cpu.socket == last.socket).collect();
            let cores = of_socket.get(of_socket.len().saturating_sub(MOST_CORES)..)?;
            let other = || online.iter().rev().find(|cpu| !has(kind, cpu));
            let first = if cores.len() > 1 { last } else { other()? };
            let mut with_cores = vec![first.id];
            with_cores.extend(cores.iter().map(|cpu| cpu.id).filter(|cpu| *cpu != first.id));
            let siblings: Option<Vec<u32>> = cores.iter().map(|cpu| cpu.sibling).collect();
            let threads = siblings.map_or_else(Vec::new, |siblings| [with_cores.as_slice(), &siblings].concat());
            Some(Self { name: kind.name.clone(), first: vec![first.id], cores: with_cores, threads })
        };
        kinds.iter().filter_map(steps).collect()
    }
}

/// Microwatts for each CPU that was busy under a load and not under the one before; `None` if too few windows are certain.
pub fn added_cpu_microwatts(domains: &[Domain], before: &[IdleWindow], after: &[IdleWindow]) -> Option<Summary> {
    let base_uw = summary(before.iter().filter_map(|window| machine_microwatts(domains, window)))?.typical;
    let base_ppm = summary(before.iter().filter_map(busy_cpus_ppm))?.typical;
    let added = |window: &IdleWindow| {
        let added_uw = machine_microwatts(domains, window)?.saturating_sub(base_uw);
        let added_ppm = busy_cpus_ppm(window)?.checked_sub(base_ppm).filter(|ppm| *ppm >= LEAST_ADDED_PPM)?;
        u64::try_from(u128::from(added_uw) * 1_000_000 / u128::from(added_ppm)).ok()
    };
    summary(after.iter().filter_map(added))
}

/// What two busy hyper-threads draw relative to one, from what one core draws more if it is busy, and its second hyper-thread.
pub fn smt_permille(core: Summary, thread: Summary) -> Option<Summary> {
    let one = u64::from(ONE_PERMILLE);
    let permille = |microwatts: u64| {
        let of_core = u128::from(microwatts) * u128::from(one) / u128::from(core.typical.max(1));
        u64::try_from(of_core).unwrap_or(u64::MAX)
    };
    let both = |microwatts: u64| permille(microwatts).saturating_add(one);
    let [least, typical] = [thread.least, thread.typical].map(both);
    let is_plausible = core.typical >= LEAST_UW && typical <= MOST_SMT_PERMILLE;
    is_plausible.then_some(Summary { least, typical, spread: permille(thread.spread), ..thread })
}

/// Of enough figures.
fn summary(figures: impl Iterator<Item = u64>) -> Option<Summary> {
    Summary::of(figures).filter(|summary| summary.count as usize >= LEAST_WINDOWS)
}

/// Busy CPUs on average, in millionths.
fn busy_cpus_ppm(window: &IdleWindow) -> Option<u64> {
    let ppm = (u128::from(window.busy_ns) * 1_000_000).checked_div(u128::from(window.read_ns))?;
    u64::try_from(ppm).ok()
}

/// All domains together.
fn machine_microwatts(domains: &[Domain], window: &IdleWindow) -> Option<u64> {
    let mut measurable = domains.iter().enumerate().filter(|(_, domain)| is_measurable(domain)).peekable();
    measurable.peek()?;
    measurable.map(|(index, _)| window.microwatts(index)).sum()
}

/// Gives types the coefficients that were measured, or leaves them as they are if any type was not
/// measured, or not plausibly.
pub fn apply(types: &mut [CoreType], powers: &[CorePower]) {
    let power_of = |of: &CoreType| powers.iter().find(|power| power.name == of.name);
    let Some(first) = types.first().and_then(power_of).cloned() else { return };
    let coefficients = |of: &CoreType| {
        let power = power_of(of)?;
        let permille = |ratio: u128| u64::try_from(ratio).ok().filter(|ratio| PLAUSIBLE_PERMILLE.contains(ratio));
        let one = u128::from(ONE_PERMILLE);
        let time = permille(u128::from(power.microwatts.typical) * one / u128::from(first.microwatts.typical))?;
        let cycles = match (first.kilohertz, power.kilohertz) {
            (0, _) | (_, 0) => time,
            (fast, slow) => permille(u128::from(time) * u128::from(fast) / u128::from(slow))?,
        };
        Some((u32::try_from(time).ok()?, u32::try_from(cycles).ok()?))
    };
    if first.microwatts.typical < LEAST_UW {
        return;
    }
    let Some(found) = types.iter().map(coefficients).collect::<Option<Vec<_>>>() else { return };
    for (of, (time_permille, cycles_permille)) in types.iter_mut().zip(found) {
        (of.time_permille, of.cycles_permille) = (time_permille, cycles_permille);
        of.basis = CoreBasis::Calibrated;
    }
}

#[cfg(test)]
#[path = "cores_tests.rs"]
mod tests;
