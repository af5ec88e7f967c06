//! Derives standard deviations as table `methods` had them before it had squares: a window's own,
//! added in quadrature. They are 0 where a window has one sample, so nothing reads them; but they
//! must be what was written.

use std::collections::HashMap;

use crate::{
    attribution::window_report::{MethodRow, Share, WindowReport},
    dataset::method_sums::SummedMethod,
    model::units::{MicroJoules, Pid},
    stacks::FrameId,
};

/// Variances of the self and total energy of methods, by process and method, µJ².
#[derive(Default)]
pub(super) struct Deviations {
    variances: HashMap<((Pid, u64), FrameId), [u128; 2]>,
}

impl Deviations {
    pub(super) fn add(&mut self, report: &WindowReport) {
        let mut samples = vec![0_u64; report.processes.len()];
        for branch in &report.branches {
            let process = report.threads.get(branch.thread).map(|thread| thread.process);
            if let Some(sum) = process.and_then(|process| samples.get_mut(process)) {
                *sum = sum.saturating_add(branch.samples);
            }
        }
        for MethodRow { process, method, own, total } in &report.methods {
            let (Some(process), Some(samples)) = (report.processes.get(*process), samples.get(*process)) else {
                continue;
            };
            let variances = self.variances.entry(((process.pid, process.start_boottime_ns), *method)).or_default();
            for (variance, share) in variances.iter_mut().zip([own, total]) {
                let sigma = u128::from(deviation(share, *samples).0);
                *variance = variance.saturating_add(sigma.saturating_mul(sigma));
            }
        }
    }

    pub(super) fn of(&self, method: &SummedMethod<'_>) -> [MicroJoules; 2] {
        let key = ((method.process.pid, method.process.start_boottime_ns), method.id);
        let variances = self.variances.get(&key).copied().unwrap_or_default();
        variances.map(|variance| MicroJoules(u64::try_from(variance.isqrt()).unwrap_or(u64::MAX)))
    }
}

/// `energy · √((1 − p) / (p · n))` with `p = samples / n`.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an error estimate; the operands are far below 2^53 and not negative"
)]
fn deviation(share: &Share, of: u64) -> MicroJoules {
    if share.samples == 0 || of == 0 {
        return MicroJoules(0);
    }
    let p = (share.samples as f64 / of as f64).min(1.0);
    let relative = ((1.0 - p) / (p * of as f64)).sqrt();
    MicroJoules((share.energy.0 as f64 * relative).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windows_deviation_is_binomial() {
        let share = Share { energy: MicroJoules(1_000_000), samples: 594, ..Share::default() };
        // p = 10 %, n = 5940 (99 Hz for 60 s): 3.9 % of the value.
        assert!((38_900..=39_000).contains(&deviation(&share, 5_940).0));
        let without = Share { energy: MicroJoules(5), ..Share::default() };
        assert_eq!(deviation(&without, 10), MicroJoules(0));
    }
}
