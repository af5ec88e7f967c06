//! Sums what windows have beside threads and call paths: domains, CPU times, losses, and what they ran
//! under.

use crate::{
    attribution::window_report::{CpuAudit, DomainAudit, Part, WindowReport},
    events::{LossCount, WindowContext},
    model::units::MicroJoules,
};

pub(crate) fn add_cpu(sum: &mut CpuAudit, next: &CpuAudit) {
    let CpuAudit {
        elapsed_ns,
        busy_ns,
        idle_ns,
        unslotted_ns,
        switches,
        target_ns,
        other_ns,
        kernel_ns,
        profiler_ns,
        samples,
        inexact_ns,
    } = sum;
    for (sum, next) in [
        (elapsed_ns, next.elapsed_ns),
        (busy_ns, next.busy_ns),
        (idle_ns, next.idle_ns),
        (unslotted_ns, next.unslotted_ns),
        (switches, next.switches),
        (target_ns, next.target_ns),
        (other_ns, next.other_ns),
        (kernel_ns, next.kernel_ns),
        (profiler_ns, next.profiler_ns),
        (samples, next.samples),
        (inexact_ns, next.inexact_ns),
    ] {
        *sum = sum.saturating_add(next);
    }
}

pub(crate) fn add_losses(sum: &mut Vec<LossCount>, next: &[LossCount]) {
    for loss in next {
        match sum.iter_mut().find(|known| known.cause == loss.cause) {
            Some(known) => known.count = known.count.saturating_add(loss.count),
            None => sum.push(loss.clone()),
        }
    }
}

/// Adds the energy of a domain in the next window. What is not known of one window is not known of all.
pub(super) fn add_domain(sum: &mut DomainAudit, next: &DomainAudit) {
    let both = |sum: Option<MicroJoules>, next: Option<MicroJoules>| Some(sum?.saturating_add(next?));
    sum.measured = sum.measured.saturating_add(next.measured);
    sum.attributed = sum.attributed.saturating_add(next.attributed);
    sum.static_share = sum.static_share.saturating_add(next.static_share);
    // What is owed stays what it was at the beginning.
    sum.unattributed = sum.unattributed.plus(next.unattributed);
    sum.floor = both(sum.floor, next.floor);
    sum.check = both(sum.check, next.check);
    for part in Part::ALL {
        sum.parts.set(part, both(sum.parts.get(part), next.parts.get(part)));
    }
    sum.merged = sum.merged.max(next.merged);
    // Energy of a failed read comes later: after the last window, later than this sum.
    sum.fault = sum.fault.filter(|fault| fault.is_ambiguous()).or(next.fault);
    sum.read_delay_ns = next.read_delay_ns;
}

/// What windows ran under.
#[derive(Debug, Default)]
pub(super) struct Sum {
    known: Option<WindowContext>,
    /// Frequency × busy time, kHz · ns, and the busy time of windows whose frequency is known.
    frequency: u128,
    frequency_ns: u128,
}

impl Sum {
    pub(super) fn add(&mut self, report: &WindowReport) {
        let Some(next) = &report.context else { return };
        if let Some(khz) = next.mean_frequency_khz {
            let busy_ns = u128::from(report.cpu.busy_ns) + u128::from(report.cpu.unslotted_ns);
            self.frequency = self.frequency.saturating_add(u128::from(khz) * busy_ns);
            self.frequency_ns = self.frequency_ns.saturating_add(busy_ns);
        }
        let Some(known) = &mut self.known else {
            self.known = Some(next.clone());
            return;
        };
        if known.governor != next.governor {
            known.governor = Some(WindowContext::MIXED.to_owned());
        }
        known.steal_ns = known.steal_ns.zip(next.steal_ns).map(|(sum, next)| sum.saturating_add(next));
        known.temperature_millicelsius = known.temperature_millicelsius.max(next.temperature_millicelsius);
        known.suspended_ns = known.suspended_ns.saturating_add(next.suspended_ns);
        known.clock_step_us = known.clock_step_us.saturating_add(next.clock_step_us);
    }

    pub(super) fn finish(self) -> Option<WindowContext> {
        let mean = self.frequency.checked_div(self.frequency_ns).and_then(|khz| u64::try_from(khz).ok());
        Some(WindowContext { mean_frequency_khz: mean, ..self.known? })
    }
}
