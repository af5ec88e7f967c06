//! Sums methods over the windows of a file.
//!
//! Table `methods` has a row for every method on any stack. Rows per window would be two thirds of
//! a data set, and would say nothing that `branches` and `stacks` do not say. So a row covers the
//! windows that were written together.

use std::collections::{BTreeMap, HashMap};

use crate::{
    attribution::window_report::{MethodRow, ProcessRef, Share, WindowReport, pools},
    model::{
        domain::Label,
        frame::Frame,
        units::{MicroJoules, Pid, UnixMicros},
    },
    sampling::Pool,
    stacks::{FrameId, StackTable},
};

/// Wall-clock times of windows that follow each other may be this far apart: they are rounded.
const LARGEST_GAP_US: u64 = 1_000;

/// Sums over windows that follow each other.
#[derive(Debug, Default)]
pub(crate) struct MethodSums {
    /// `None` before the first window.
    pub(crate) span: Option<MethodSpan>,
    /// The table that [`FrameId`]s refer to, see [`StackTable::frames_generation`].
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

impl MethodSpan {
    /// µs since 1970.
    fn end(&self) -> i64 {
        self.start.0.saturating_add(i64::try_from(self.length_ns / 1000).unwrap_or(i64::MAX))
    }
}

/// Self and total figures.
#[derive(Clone, Copy, Debug, Default)]
struct MethodSum {
    own: Share,
    total: Share,
}

/// A method of a process over the span.
#[derive(Debug)]
pub struct SummedMethod<'a> {
    /// In the table of stacks of these windows.
    pub id: FrameId,
    pub process: &'a ProcessRef,
    pub frame: &'a Frame,
    pub own: Share,
    pub total: Share,
    /// Standard deviations of self and total energy from sampling, of this span alone.
    pub sigmas: [MicroJoules; 2],
}

impl MethodSums {
    /// Whether a window's methods can be added to those so far. A table of stacks that was built
    /// anew has other ids. After a suspend, or when the clock was set forward, windows do not follow
    /// each other, and a row says only where its windows start and how long they are together.
    pub(crate) fn takes(&self, report: &WindowReport, stacks: &StackTable) -> bool {
        let follows = |span: &MethodSpan| span.end().abs_diff(report.wall_start.0) < LARGEST_GAP_US;
        self.span.as_ref().is_none_or(|span| self.generation == stacks.frames_generation() && follows(span))
    }

    pub(crate) fn add(&mut self, report: &WindowReport, stacks: &StackTable) {
        self.generation = stacks.frames_generation();
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
            sum.own.plus(own);
            sum.total.plus(total);
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
        let pools = self.pools();
        let summed = |((key, id), sum): (&((Pid, u64), FrameId), &MethodSum)| {
            let (process, frame) = (self.processes.get(key)?, self.frames.get(id)?);
            let MethodSum { own, total } = *sum;
            let pool = pools.get(key)?;
            let sigmas = [own, total].map(|share| sigma(pool, &share));
            Some(SummedMethod { id: *id, process, frame, own, total, sigmas })
        };
        let mut methods: Vec<_> = self.sums.iter().filter_map(summed).collect();
        methods.sort_by(|a, b| order(a).cmp(&order(b)));
        methods
    }

    fn pools(&self) -> BTreeMap<(Pid, u64), Pool> {
        pools(self.sums.iter().map(|((process, _), sum)| (*process, &sum.own)))
    }
}

/// Sorts methods of one call path together: they have equal amounts, which take the least space
/// side by side.
fn order<'r>(method: &'r SummedMethod<'_>) -> impl Ord + use<'r> {
    let SummedMethod { process, frame, own, total, .. } = method;
    (*process, own.cpu_ns, total.cpu_ns, &frame.class, *frame)
}

/// That of a share which no sample is of is not given, as nothing is known of it.
fn sigma(pool: &Pool, share: &Share) -> MicroJoules {
    if share.samples == 0 {
        return MicroJoules(0);
    }
    pool.interval(share.energy, &share.sampled()).sigma()
}

/// An error's figure as table `methods` has it: to two significant digits, as errors are usually
/// given. All digits would take a quarter of the table.
pub(crate) fn two_digits(figure: u128) -> u64 {
    let unit = 10_u128.pow(figure.checked_ilog10().unwrap_or(0).saturating_sub(1));
    let (digits, rest) = (figure / unit, figure % unit);
    let rounded = (digits + u128::from(rest >= unit.div_ceil(2))).saturating_mul(unit);
    // Columns are signed.
    u64::try_from(rounded).unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_ends_where_windows_leave_a_gap() {
        let stacks = StackTable::default();
        let window = |second: i64, late_us: i64| WindowReport {
            wall_start: UnixMicros(second * 1_000_000 + late_us),
            length_ns: 1_000_000_000,
            ..WindowReport::default()
        };
        let mut sums = MethodSums::default();
        assert!(sums.takes(&window(7, 0), &stacks), "the first one");
        for second in 7..9 {
            sums.add(&window(second, 0), &stacks);
        }
        for (next, is_taken) in
            [((9, 0), true), ((9, 999), true), ((9, -999), true), ((9, 1_000), false), ((60, 0), false)]
        {
            assert_eq!(sums.takes(&window(next.0, next.1), &stacks), is_taken, "{next:?}");
        }
    }

    #[test]
    fn an_error_has_two_digits() {
        for (figure, written) in
            [(0, 0), (7, 7), (99, 99), (104, 100), (105, 110), (994, 990), (995, 1000), (12_345, 12_000)]
        {
            assert_eq!(two_digits(figure), written, "{figure}");
        }
        assert_eq!(two_digits(u128::MAX), i64::MAX.unsigned_abs());
    }

    /// With one sample in each window, every window says "all" or "nothing".
    #[test]
    fn a_window_with_one_sample_adds_to_the_error() {
        let mut sum = Share::default();
        for _ in 0..50 {
            sum.plus(&Share {
                energy: MicroJoules(1_000),
                cpu_ns: 10,
                samples: 1,
                squares: 1_000_000,
                ..Share::default()
            });
        }
        assert_eq!((sum.energy.0, sum.squares), (50_000, 50_000_000));
        let mut whole = sum;
        whole.plus(&sum);
        // Half of a hundred samples: five standard deviations of a coin are 5 000 µJ of 100 000, and
        // the four samples more that Wilson's interval has make it a little narrower.
        let sigma = sigma(&Pool::of(whole.sampled()), &sum);
        assert!((4_850..=5_000).contains(&sigma.0), "{sigma:?}");
    }
}
