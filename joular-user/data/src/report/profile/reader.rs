//! Reads a data set file by file: first what rows are about ([`DataSet::open`]), then the rows
//! themselves, as often as they are wanted ([`DataSet::scan`]). Memory holds what rows are about,
//! and one batch of rows.

use std::{collections::HashMap, path::Path, sync::Arc};

use foldhash::fast::RandomState;

use super::{
    catalog::{Catalog, PathIndex, Process, ProcessIndex, Run, Thread, ThreadIndex},
    charges::Charges,
    filter::{Allowed, Filter},
    frame_columns::FrameColumns,
    inference,
    overview::Amounts,
    process_columns::ProcessColumns,
    row::{DividedBy, EnergyRow, PooledColumns},
    sources::{Choice, ReadFrom, read_run},
    thread_columns::ThreadColumns,
    windows::RunWindows,
};
use crate::{
    attribution::window_report::Category,
    dataset::{
        column::Table as _,
        error::{DataSetError, Result},
        read::{
            columns::Columns,
            decode_ahead,
            files::RunFiles,
            marks::{self, ReadEvent},
        },
        store::{self, Store},
        tables::{Branches, Marks, Processes, Stacks, processes, shared, stacks, work},
    },
    events::MachineKey,
    model::units::{MicroJoules, Pid, Tid, UnixMicros},
};

/// Phases that a message names.
const MAX_NAMED: usize = 20;

/// Identity of a process or, with a thread's, of a thread on a host. Runs of a recording know it by the same
/// start.
type ProcessKey = (usize, u32, i64);
type ThreadKey = (ProcessIndex, u32, i64);

/// A data set whose runs, processes and stacks are known.
#[derive(Debug, Default)]
pub struct DataSet {
    pub catalog: Catalog,
    pub(super) files: Vec<RunFiles>,
    /// For each run, the first one on its host: a recording may have several.
    pub(super) hosts: Vec<usize>,
    processes: HashMap<ProcessKey, ProcessIndex, RandomState>,
    threads: HashMap<ThreadKey, ThreadIndex, RandomState>,
    /// Places of paths by `stack_id`, which is the same in all runs.
    paths: HashMap<i64, PathIndex, RandomState>,
    /// The other way round.
    pub(crate) stack_ids: Vec<i64>,
    /// The whole windows of each run.
    pub(super) windows: Vec<RunWindows>,
    /// As [`Filter::exact_names`].
    pub(super) has_exact_names: bool,
    /// Whether everything may be seen: see [`Filter::access`].
    is_whole_seen: bool,
    /// What it was read from, if there was a choice.
    pub(super) read_from: Option<ReadFrom>,
    /// Energy, time and samples of rows that [`Self::scan`] left out because they belong
    /// to no window: a crash took it.
    pub left_out: Amounts,
    /// Energy of collectors that [`Self::scan`] gave to paths that are charged for it.
    pub gc_charged: MicroJoules,
    /// Energy of collectors that is charged to nobody then, because no allocation causes it.
    pub gc_kept: MicroJoules,
}

impl DataSet {
    /// Reads everything that rows refer to, of the runs that `filter` allows.
    ///
    /// # Errors
    /// If there is no run, or a file cannot be read or is damaged.
    pub fn open(root: &Path, filter: &Filter) -> Result<Self> {
        let Some(choice) = filter.sources.choice(root, filter)? else {
            return Self::of_store(&store::open(root)?, filter);
        };
        match Self::chosen(root, filter, &choice) {
            Err(error) => match choice.instead(root, &error) {
                Some(recorded) => Self::chosen(root, filter, &recorded).map_err(|of_runs| match of_runs {
                    // There is nothing but sums.
                    DataSetError::NoRun { .. } => error,
                    of_runs => of_runs,
                }),
                None => Err(error),
            },
            data => data,
        }
    }

    fn chosen(root: &Path, filter: &Filter, choice: &Choice) -> Result<Self> {
        let data = Self::of_runs(choice.runs(root, filter)?, filter)?;
        Ok(Self { read_from: Some(choice.read_from.clone()), ..data })
    }

    /// The same for a store.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn of_store(store: &Arc<dyn Store>, filter: &Filter) -> Result<Self> {
        let read = |files: &RunFiles| read_run(files, filter);
        let parts = [filter.part()];
        Self::of_runs(filter.unreadable.runs(store, (&parts, false), |run| filter.may_allow(run), read)?, filter)
    }

    /// The same for runs whose files are known.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of_files(runs: Vec<RunFiles>, filter: &Filter) -> Result<Self> {
        let read = |files: RunFiles| Ok((read_run(&files, filter)?, files));
        Self::of_runs(runs.into_iter().map(read).collect::<Result<_>>()?, filter)
    }

    /// Without any run.
    pub(super) fn empty(filter: &Filter) -> Self {
        let is_whole_seen = filter.access.is_everything();
        Self { has_exact_names: filter.exact_names, is_whole_seen, ..Self::default() }
    }

    pub(super) fn add_runs(&mut self, runs: impl IntoIterator<Item = (Run, RunFiles)>) {
        let mut first: HashMap<MachineKey, usize> = HashMap::new();
        for (index, run) in self.catalog.runs.iter().enumerate() {
            first.entry(run.info.machine().key()).or_insert(index);
        }
        for (run, files) in runs {
            let index = self.catalog.runs.len();
            self.hosts.push(*first.entry(run.info.machine().key()).or_insert(index));
            self.catalog.runs.push(run);
            self.files.push(files);
        }
    }

    fn of_runs(mut runs: Vec<(Run, RunFiles)>, filter: &Filter) -> Result<Self> {
        let mut data = Self::empty(filter);
        filter.keep_runs(&mut runs);
        if !filter.access.is_everything() {
            runs = filter.access.runs_of(runs, filter)?;
        }
        data.add_runs(runs);
        data.must_have_phases(filter)?;
        data.read_processes(filter)?;
        data.read_stacks(filter)?;
        data.read_windows(filter)?;
        filter.access.hide_others(&mut data.catalog);
        if filter.handler_rules.is_some() {
            data.catalog.handlers = filter.find_handlers(&data.catalog.paths);
        }
        Ok(data)
    }

    /// What happened in a run, as its programs said: at most so many events.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub(crate) fn events(&self, run: usize, most: usize) -> Result<Vec<ReadEvent>> {
        // They may be about any process.
        if !self.is_whole_seen {
            return Ok(Vec::new());
        }
        marks::read_events(&self.files::<Marks>(run), most)
    }

    /// Asking for phases that no run has is a mistake; what is shown would be nothing.
    fn must_have_phases(&self, filter: &Filter) -> Result<()> {
        let runs = &self.catalog.runs;
        let Some(first) = self.files.first().filter(|_| !filter.phases.allow_all()) else { return Ok(()) };
        if runs.iter().any(|run| filter.phases_of(run).next().is_some()) {
            return Ok(());
        }
        let mut known: Vec<_> = runs.iter().flat_map(|run| &run.phases).map(|phase| &phase.path).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.iter().take(MAX_NAMED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(DataSetError::NoPhase { path: first.row.path(), known })
    }

    /// Calls `take` for every row of the windows, processes and threads that `filter` allows, as it was
    /// recorded, or with the energy of collectors where [`Filter::charge_gc`] wants it. Conditions on methods are ignored.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn scan(&mut self, filter: &Filter, take: &mut dyn FnMut(&Catalog, &EnergyRow)) -> Result<()> {
        let mut allowed = Allowed::default();
        (self.left_out, self.gc_charged, self.gc_kept) = (Amounts::default(), MicroJoules(0), MicroJoules(0));
        self.must_have_charges(filter)?;
        self.expect(&[Branches::NAME]);
        let files = self.allowed::<Branches>(filter);
        if filter.charge_gc.is_none() {
            return decode_ahead::batches_of_runs(&files, |run, columns| {
                filter.stop.check()?;
                self.take_branches(run, columns, filter, &mut allowed, take)
            });
        }
        for (run, (files, span)) in files.iter().enumerate() {
            let mut charges = Charges::read(self, run, filter)?;
            decode_ahead::batches(files, span, |columns| {
                filter.stop.check()?;
                let mut take_row = |catalog: &Catalog, row: &EnergyRow| charges.pass(catalog, row, take);
                self.take_branches(run, columns, filter, &mut allowed, &mut take_row)
            })?;
            self.gc_charged = self.gc_charged.saturating_add(charges.to_selected);
            self.gc_kept = self.gc_kept.saturating_add(charges.kept);
            charges.finish(&self.catalog, take);
        }
        Ok(())
    }

    fn take_branches(
        &mut self,
        run: usize,
        columns: &Columns<'_>,
        filter: &Filter,
        allowed: &mut Allowed,
        take: &mut dyn FnMut(&Catalog, &EnergyRow),
    ) -> Result<()> {
        let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
        let (stacks, energies) = (columns.ints(work::STACK_ID)?, columns.ints(shared::ENERGY_UJ)?);
        let (times, samples) = (columns.ints(shared::CPU_NS)?, columns.ints(shared::SAMPLES)?);
        let mut threads = ThreadColumns::of(columns)?;
        let pooled = PooledColumns::of(columns)?;
        let by_bytes = columns.ints(shared::BY_BYTES_UJ)?;
        let span = filter.span(&self.catalog.runs[run]);
        // Rows of a window stand together, and those of a thread, so the last answers are kept.
        let (mut last, mut last_allowed) = (None, None);
        for index in 0..columns.rows() {
            let window_start = UnixMicros(starts.get(index)?);
            let is_whole = match last {
                Some((start, is_whole)) if start == window_start => is_whole,
                _ => self.is_whole(run, window_start),
            };
            last = Some((window_start, is_whole));
            if !span.allows(window_start) {
                continue;
            }
            let thread = threads.thread(self, run, index)?;
            let is_allowed = match last_allowed {
                Some(is_allowed) if threads.is_as_before => is_allowed,
                _ => allowed.thread(&self.catalog, filter, thread),
            };
            last_allowed = Some(is_allowed);
            if !is_allowed {
                continue;
            }
            let amounts = Amounts {
                energy: MicroJoules(energies.natural(index)?),
                cpu_ns: times.natural(index)?,
                samples: samples.natural(index)?,
                ..Amounts::default()
            };
            if !is_whole {
                self.left_out.plus(&amounts);
                continue;
            }
            let path = self.path_of(stacks.get(index)?, columns)?;
            let row = EnergyRow {
                run,
                window_start,
                window_ns: lengths.natural(index)?,
                thread,
                path,
                energy: amounts.energy,
                cpu_ns: amounts.cpu_ns,
                samples: amounts.samples,
                inferred: None,
                pooled: pooled.as_ref().map(|pooled| pooled.of_row(index)).transpose()?,
                divided_by: DividedBy::CpuTime,
            };
            let by_bytes = MicroJoules(by_bytes.natural(index)?);
            row.apart(by_bytes).for_each(|row| take(&self.catalog, &row));
        }
        Ok(())
    }

    /// The path that rows of `columns` refer to by this id.
    pub(super) fn path_of(&self, stack_id: i64, columns: &Columns<'_>) -> Result<PathIndex> {
        let path = self.paths.get(&stack_id).copied();
        path.ok_or_else(|| columns.damaged(format!("stack {stack_id} is not in table stacks")))
    }

    /// The path that stands for time without a sample, if there is any.
    pub(crate) fn no_sample(&self) -> Option<PathIndex> {
        inference::no_sample(&self.catalog.paths)
    }

    /// Whether a run's window is in table `windows`.
    pub(super) fn is_whole(&self, run: usize, start: UnixMicros) -> bool {
        self.windows.get(run).is_some_and(|windows| windows.contains_key(&start))
    }

    /// A process by its identity. One that table `processes` lacks is known by name only.
    pub(super) fn process_index(&mut self, run: usize, pid: u32, start: i64, comm: &str) -> ProcessIndex {
        let host = self.hosts.get(run).copied().unwrap_or(run);
        // Its own rows tell no more than what may be seen of it.
        let comm = if self.is_whole_seen { comm } else { "" };
        *self.processes.entry((host, pid, start)).or_insert_with(|| {
            let process =
                Process { run: host, pid: Pid(pid), start: UnixMicros(start), comm: comm.into(), ..Process::default() };
            self.catalog.processes.push(process);
            ProcessIndex::of(self.catalog.processes.len() - 1)
        })
    }

    /// A thread by its identity. It has the name and the category of its last row.
    pub(super) fn thread_index(
        &mut self,
        process: ProcessIndex,
        tid: Tid,
        start: UnixMicros,
        name: &str,
        category: Category,
    ) -> ThreadIndex {
        let threads = &mut self.catalog.threads;
        let index = *self.threads.entry((process, tid.0, start.0)).or_insert_with(|| {
            threads.push(Thread { process, tid, start, name: name.into(), category });
            ThreadIndex::of(threads.len() - 1)
        });
        let thread = &mut threads[index.index()];
        if thread.name != name {
            thread.name = name.into();
        }
        thread.category = category;
        index
    }

    /// A thread that rows of `branches` are about.
    pub(super) fn known_thread(
        &self,
        run: usize,
        (pid, process_start): (u32, i64),
        (tid, start): (Tid, UnixMicros),
    ) -> Option<ThreadIndex> {
        let host = self.hosts.get(run).copied().unwrap_or(run);
        let process = self.processes.get(&(host, pid, process_start))?;
        self.threads.get(&(*process, tid.0, start.0)).copied()
    }

    /// Later rows of a process are later knowledge.
    pub(super) fn read_processes(&mut self, filter: &Filter) -> Result<()> {
        self.expect(&[Processes::NAME]);
        decode_ahead::batches_of_runs(&self.whole::<Processes>(), |run, columns| {
            filter.stop.check()?;
            self.take_processes(run, columns)
        })
    }

    fn take_processes(&mut self, run: usize, columns: &Columns<'_>) -> Result<()> {
        let (pids, starts) = (columns.ints(shared::PID)?, columns.times(processes::PROCESS_START)?);
        let known = ProcessColumns::of(columns)?;
        for row in 0..columns.rows() {
            // It ended before the first window did: no row is about it.
            let Some(start) = starts.maybe(row) else { continue };
            let index = self.process_index(run, pids.natural(row)?, start, known.comm.get(row)?);
            let process = &mut self.catalog.processes[index.index()];
            *process = known.known(row, process)?;
        }
        Ok(())
    }

    fn read_stacks(&mut self, filter: &Filter) -> Result<()> {
        self.expect(&[Stacks::NAME]);
        decode_ahead::batches_of_runs(&self.whole::<Stacks>(), |_, columns| {
            filter.stop.check()?;
            self.take_stacks(columns)
        })
    }

    /// Of a stack that is described again the first description counts.
    fn take_stacks(&mut self, columns: &Columns<'_>) -> Result<()> {
        let stack_ids = columns.ints(stacks::STACK_ID)?;
        let structs = columns.structs(stacks::FRAMES)?;
        let nested = columns.nested(&structs.values);
        let mut frames = FrameColumns::of(&nested)?;
        for row in 0..columns.rows() {
            let stack_id = stack_ids.get(row)?;
            let range = structs.range(row).filter(|range| !range.is_empty());
            let range = range.ok_or_else(|| columns.damaged("a stack's frames are not in the file"))?;
            if !self.paths.contains_key(&stack_id) {
                let of_path = range.map(|row| frames.index(self, row)).collect::<Result<Vec<_>>>()?;
                self.paths.insert(stack_id, self.catalog.paths.push(of_path));
                self.stack_ids.push(stack_id);
            }
        }
        Ok(())
    }
}
