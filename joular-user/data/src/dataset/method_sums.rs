//! Sums methods over the windows of a file.
//!
//! Table `methods` has a row for every method on any stack. Rows per window would be two thirds of
//! a data set, and would say nothing that `branches` and `stacks` do not say. So a row covers the
//! windows that were written together.

use std::collections::{BTreeMap, HashMap};

use crate::{
    attribution::window_report::{MethodRow, ProcessRef, Share, WindowReport},
    model::{
        domain::Label,
        frame::Frame,
        units::{MicroJoules, Pid, UnixMicros},
    },
    stacks::{FrameId, StackTable},
};

/// Sums over windows that follow each other.
#[derive(Debug, Default)]
pub(crate) struct MethodSums {
    /// `None` before the first window.
    pub(crate) span: Option<MethodSpan>,
    /// The table that [`FrameId`]s refer to, see [`StackTable::generation`].
    generation: u64,
    processes: BTreeMap<(Pid, u64), ProcessRef>,
    frames: HashMap<FrameId, Frame>,
    sums: HashMap<((Pid, u64), FrameId), MethodSum>,
}

/// The windows that the sums are of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MethodSpan {
    /// Of the first window.
    pub(crate) start: UnixMicros,
    pub(crate) length_ns: u64,
    /// The weakest of the shared domains.
    pub(crate) label: Option<Label>,
    pub(crate) ambiguous: bool,
}

/// Self and total figures.
#[derive(Clone, Copy, Debug, Default)]
struct MethodSum {
    own: ShareSum,
    total: ShareSum,
}

#[derive(Clone, Copy, Debug, Default)]
struct ShareSum {
    energy: MicroJoules,
    cpu_ns: u64,
    samples: u64,
    /// In µJ².
    variance: u128,
}

/// A method of a process over the span.
#[derive(Debug)]
pub struct SummedMethod<'a> {
    pub process: &'a ProcessRef,
    pub frame: &'a Frame,
    pub own: Share,
    pub total: Share,
}

impl MethodSums {
    /// Whether a window's methods can be added to those so far. A table of stacks that was built
    /// anew has other ids.
    pub(crate) const fn takes(&self, stacks: &StackTable) -> bool {
        self.span.is_none() || self.generation == stacks.generation()
    }

    pub(crate) fn add(&mut self, report: &WindowReport, stacks: &StackTable) {
        self.generation = stacks.generation();
        self.extend_span(report);
        for MethodRow { process, method, own, total } in &report.methods {
            let Some(process) = report.processes.get(*process) else { continue };
            let key = (process.pid, process.start_boottime_ns);
            // A process that changes its name has the latest one.
            match self.processes.get_mut(&key) {
                Some(known) if known.comm == process.comm => {}
                Some(known) => known.comm.clone_from(&process.comm),
                None => {
                    self.processes.insert(key, process.clone());
                }
            }
            self.frames.entry(*method).or_insert_with(|| stacks.frame(*method).clone());
            let sum = self.sums.entry((key, *method)).or_default();
            sum.own.add(own);
            sum.total.add(total);
        }
    }

    fn extend_span(&mut self, report: &WindowReport) {
        let (label, ambiguous) = (report.label(), report.is_ambiguous());
        let span = self.span.get_or_insert(MethodSpan { start: report.wall_start, length_ns: 0, label, ambiguous });
        span.length_ns = span.length_ns.saturating_add(report.length_ns);
        span.label = span.label.max(label);
        span.ambiguous |= ambiguous;
    }

    /// Rows that wait.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// The methods in the order of rows, which depends only on figures and names.
    pub(crate) fn methods(&self) -> Vec<SummedMethod<'_>> {
        let summed = |((key, id), sum): (&((Pid, u64), FrameId), &MethodSum)| {
            let (process, frame) = (self.processes.get(key)?, self.frames.get(id)?);
            Some(SummedMethod { process, frame, own: sum.own.share(), total: sum.total.share() })
        };
        let mut methods: Vec<_> = self.sums.iter().filter_map(summed).collect();
        methods.sort_by(|a, b| order(a).cmp(&order(b)));
        methods
    }
}

/// Sorts methods of one call path together: they have equal amounts, which take the least space
/// side by side.
fn order<'r>(method: &'r SummedMethod<'_>) -> impl Ord + use<'r> {
    let SummedMethod { process, frame, own, total } = method;
    (*process, own.cpu_ns, total.cpu_ns, &frame.class, *frame)
}

/// A standard deviation as table `methods` has it: to two significant digits, as errors are
/// usually given. All digits would take a quarter of the table.
pub(crate) fn two_digits(sigma: MicroJoules) -> MicroJoules {
    let unit = 10_u64.pow(sigma.0.checked_ilog10().unwrap_or(0).saturating_sub(1));
    let (digits, rest) = (sigma.0 / unit, sigma.0 % unit);
    MicroJoules((digits + u64::from(rest >= unit.div_ceil(2))).saturating_mul(unit))
}

impl ShareSum {
    fn add(&mut self, share: &Share) {
        self.energy = self.energy.saturating_add(share.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(share.cpu_ns);
        self.samples = self.samples.saturating_add(share.samples);
        let sigma = u128::from(share.sigma.0);
        self.variance = self.variance.saturating_add(sigma.saturating_mul(sigma));
    }

    fn share(&self) -> Share {
        let Self { energy, cpu_ns, samples, variance } = *self;
        let sigma = MicroJoules(u64::try_from(variance.isqrt()).unwrap_or(u64::MAX));
        Share { energy, cpu_ns, samples, sigma }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_has_two_digits() {
        for (sigma, written) in
            [(0, 0), (7, 7), (99, 99), (104, 100), (105, 110), (994, 990), (995, 1000), (12_345, 12_000)]
        {
            assert_eq!(two_digits(MicroJoules(sigma)), MicroJoules(written), "{sigma}");
        }
        assert_eq!(two_digits(MicroJoules(u64::MAX)), MicroJoules(18_000_000_000_000_000_000));
    }

    #[test]
    fn deviations_add_in_quadrature() {
        let mut sum = ShareSum::default();
        for sigma in [3, 4, 12] {
            sum.add(&Share { energy: MicroJoules(100), cpu_ns: 10, samples: 1, sigma: MicroJoules(sigma) });
        }
        let expected = Share { energy: MicroJoules(300), cpu_ns: 30, samples: 3, sigma: MicroJoules(13) };
        assert_eq!(sum.share(), expected);
    }
}
