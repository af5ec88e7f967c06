//! Writes a rollup of a run: its long windows, as files of the data set.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    flush::{FlushWriter, write_long},
    rows::{Rows, of},
    run_row,
};
use crate::{
    attribution::{
        allocated::SampledBy,
        window_report::{BranchRow, Category, MethodRow, ProcessRef, Share, ThreadRow, WindowReport},
    },
    dataset::{
        buffer::Buffer,
        layout::FilePlace,
        method_sums::{MethodSums, two_digits},
        store::Store,
        tables::{
            AmountRecord, Amounts, MethodRecord, RollupBranchRecord, RollupBranches, RollupMethodRecord, RollupMethods,
            RunRecord, Stacks, ThreadRecord, Threads, WindowKey, Work, amounts, rollup::Inferred,
        },
    },
    events::{ProcessInfo, RunEnd, RunInfo},
    model::{measure::Measure, units::Pid},
    output::Result,
    sampling::Sampled,
    stacks::{BranchIndex, FrameId, StackTable},
    totals::RunSums,
};

/// A window of a rollup.
#[derive(Debug, Default)]
pub(crate) struct RollupWindow {
    /// Each of its threads stands for all threads of a category in a process.
    pub(crate) report: WindowReport,
    /// Parallel to the report's branches.
    pub(crate) pooled: Vec<Pooled>,
    /// The threads themselves.
    pub(crate) threads: Vec<(ProcessRef, ThreadRow)>,
    /// Bytes and counts; empty where a window was read.
    pub(crate) amounts: BTreeMap<AmountKey, Amount>,
}

/// What an amount of a measure is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AmountKey {
    pub(crate) process: ProcessRef,
    pub(crate) category: Category,
    pub(crate) stack_id: i64,
    pub(crate) measure: Measure,
    /// Of allocated bytes.
    pub(crate) class: Option<String>,
    pub(crate) sampled_by: Option<SampledBy>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) amount: u64,
    pub(crate) sampled: Sampled,
}

impl Amount {
    pub(crate) fn add(&mut self, amount: u64, sampled: &Sampled) {
        self.amount = self.amount.saturating_add(amount);
        self.sampled.plus(sampled);
    }
}

/// What a branch of several windows and threads has beside its sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pooled {
    /// Sum over its samples of the squared energy that each stands for, µJ².
    pub(crate) squares: u128,
    pub(crate) inferred: Inferred,
}

impl Pooled {
    pub(crate) const NONE: Self =
        Self { squares: 0, inferred: Inferred { energy_uj: 0, cpu_ns: 0, squares_uj2: 0, unsampled_uj: 0 } };

    /// With squares to two digits, as they are written: as recorded, and with what is inferred.
    pub(crate) fn rounded(self) -> Self {
        let shown = two_digits(self.squares.saturating_add_signed(self.inferred.squares_uj2.into()));
        let squares = two_digits(self.squares);
        let squares_uj2 = shown.cast_signed().saturating_sub(squares.cast_signed());
        Self { squares: squares.into(), inferred: Inferred { squares_uj2, ..self.inferred } }
    }
}

/// Writes one run.
pub(crate) struct RollupWriter<'a> {
    store: &'a dyn Store,
    info: RunInfo,
    from_ns: u64,
    rows: Rows,
    branches: Buffer<RollupBranches>,
    methods: Buffer<RollupMethods>,
    /// Methods since the last row of them.
    method_sums: MethodSums,
    inferred: InferredMethods,
    sums: RunSums,
}

impl<'a> RollupWriter<'a> {
    /// `info` has the length of the new windows, `from_ns` is that of the recorded ones.
    pub(crate) fn start(store: &'a dyn Store, info: RunInfo, from_ns: u64) -> Result<Self> {
        run_row::must_be_new(store, &info)?;
        let writer = Self {
            store,
            rows: Rows::at_wall_clock(&info),
            info,
            from_ns,
            branches: Buffer::new(),
            methods: Buffer::new(),
            method_sums: MethodSums::default(),
            inferred: InferredMethods::new(),
            sums: RunSums::default(),
        };
        writer.publish_row(None)?;
        Ok(writer)
    }

    pub(crate) const fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Describes processes and stacks, before the window that is the first of them. Where rows of the recorded run are copied
    /// this is not needed.
    pub(crate) fn describe(
        &mut self,
        first: &WindowReport,
        processes: &[ProcessInfo],
        paths: &BTreeSet<BranchIndex>,
        stacks: &StackTable,
    ) -> Result<()> {
        processes.iter().for_each(|info| self.rows.process(info));
        // While a key is taken, it alone has the run's id, which rows of processes have as well.
        let boot = self.rows.boot(first);
        self.rows.process_rows(Some((first.wall_start, boot)))?;
        self.rows.with_key(first, |rows, key| rows.rows_of_stacks(key, paths, stacks).map_err(of::<Stacks>()))
    }

    pub(crate) fn window(&mut self, window: &RollupWindow, stacks: &StackTable) -> Result<()> {
        self.sums.add(&window.report);
        if !self.method_sums.takes(&window.report, stacks) {
            self.method_rows()?;
        }
        self.method_sums.add(&window.report, stacks);
        add_inferred(&mut self.inferred, window, stacks);
        let branches = &mut self.branches;
        self.rows.with_key(&window.report, |rows, key| {
            rows.process_sums(key, &window.report)?;
            for (process, thread) in &window.threads {
                let work = Work::of_thread(thread);
                rows.tables.threads.push(&ThreadRecord { key, process, thread, work }).map_err(of::<Threads>())?;
            }
            for (of_what, amount) in &window.amounts {
                rows.tables.amounts.push(&amount_record(key, of_what, amount)).map_err(of::<Amounts>())?;
            }
            branch_rows(key, window, stacks, branches)
        })
    }

    /// Makes rows of the methods of all windows since the last call.
    pub(crate) fn method_rows(&mut self) -> Result<()> {
        let sums = std::mem::take(&mut self.method_sums);
        let inferred = std::mem::take(&mut self.inferred);
        let Some(span) = sums.span else { return Ok(()) };
        let Self { rows, methods: buffer, .. } = self;
        rows.with_span(&span, |key| {
            for method in &sums.methods() {
                let process = (method.process.pid, method.process.start_boottime_ns);
                let [inferred_self_uj, inferred_total_uj] =
                    inferred.get(&(process, method.id)).copied().unwrap_or_default();
                let method = MethodRecord { key, method };
                let record = RollupMethodRecord { method, inferred_self_uj, inferred_total_uj };
                buffer.push(&record).map_err(of::<RollupMethods>())?;
            }
            Ok(())
        })
    }

    /// Rows of the fullest table.
    pub(crate) fn load(&self) -> usize {
        self.rows.load().max(self.branches.load()).max(self.methods.load())
    }

    /// Writes the windows since the last call. `windows` is last, as in every data set.
    pub(crate) fn publish(&mut self, place: &FilePlace) -> Result<()> {
        self.method_rows()?;
        let Self { store, info, rows, branches, methods, .. } = self;
        write_long(*store, info, place, branches)?;
        write_long(*store, info, place, methods)?;
        rows.tables.each(&mut FlushWriter { store: *store, info, place })
    }

    /// Writes the run's row as it was at its end, if it had one.
    pub(crate) fn end(self, end: Option<&RunEnd>) -> Result<()> {
        self.publish_row(end)
    }

    fn publish_row(&self, end: Option<&RunEnd>) -> Result<()> {
        let end = end.map(|end| (end, &self.sums));
        run_row::publish_record(self.store, &RunRecord { run: &self.info, end, rolled_up_from_ns: Some(self.from_ns) })
    }
}

fn amount_record<'a>(key: WindowKey<'a>, of_what: &'a AmountKey, amount: &Amount) -> AmountRecord<'a> {
    let AmountKey { process, category, stack_id, measure, class, sampled_by } = of_what;
    AmountRecord {
        key,
        process,
        category: *category,
        stack_id: *stack_id,
        measure: *measure,
        class: class.as_deref(),
        sampled_by: *sampled_by,
        amount: amount.amount,
        samples: amount.sampled.samples,
        milli_per_sample: amounts::milli_per_sample(amount.amount, &amount.sampled),
    }
}

fn branch_rows(
    key: WindowKey<'_>,
    RollupWindow { report, pooled, .. }: &RollupWindow,
    stacks: &StackTable,
    rows: &mut Buffer<RollupBranches>,
) -> Result<()> {
    for (branch, pooled) in report.branches.iter().zip(pooled) {
        let Some(thread) = report.threads.get(branch.thread) else { continue };
        let Some(process) = report.processes.get(thread.process) else { continue };
        let record = RollupBranchRecord {
            key,
            process,
            category: thread.category,
            stack_id: stacks.stack_id(branch.branch),
            work: Work::of_branch(branch),
            squares_uj2: u64::try_from(pooled.squares).unwrap_or(u64::MAX),
            inferred: pooled.inferred,
        };
        rows.push(&record).map_err(of::<RollupBranches>())?;
    }
    Ok(())
}

/// By process and method: by itself, and with what it called.
pub(crate) type InferredMethods = HashMap<((Pid, u64), FrameId), [i64; 2]>;

/// Adds the energy that methods get, or give, where light windows are divided by samples of several.
pub(crate) fn add_inferred(
    sums: &mut InferredMethods,
    RollupWindow { report, pooled, .. }: &RollupWindow,
    stacks: &StackTable,
) {
    for (branch, pooled) in report.branches.iter().zip(pooled) {
        let energy_uj = pooled.inferred.energy_uj;
        let thread = report.threads.get(branch.thread);
        let Some(process) = thread.and_then(|thread| report.processes.get(thread.process)) else { continue };
        let process = (process.pid, process.start_boottime_ns);
        let mut add = |method: FrameId, place: usize| {
            let sum = &mut sums.entry((process, method)).or_default()[place];
            *sum = sum.saturating_add(energy_uj);
        };
        stacks.leaf_method(branch.branch).into_iter().for_each(|leaf| add(leaf, 0));
        stacks.distinct_methods(branch.branch).into_iter().for_each(|method| add(method, 1));
    }
}

/// Methods of a window, with squares as its branches have them.
pub(crate) fn method_rows(report: &WindowReport, pooled: &[Pooled], stacks: &StackTable) -> Vec<MethodRow> {
    let mut shares: BTreeMap<(usize, FrameId), (Share, Share)> = BTreeMap::new();
    for (branch, Pooled { squares, .. }) in report.branches.iter().zip(pooled) {
        let Some(thread) = report.threads.get(branch.thread) else { continue };
        let BranchRow { energy, cpu_ns, samples, by_bytes, branch: path, .. } = *branch;
        let share = Share { energy, cpu_ns, samples, by_bytes, squares: *squares, ..Share::default() };
        if let Some(leaf) = stacks.leaf_method(path) {
            shares.entry((thread.process, leaf)).or_default().0.plus(&share);
        }
        for method in stacks.distinct_methods(path) {
            shares.entry((thread.process, method)).or_default().1.plus(&share);
        }
    }
    let row = |((process, method), (own, total))| MethodRow { process, method, own, total };
    shares.into_iter().map(row).collect()
}
