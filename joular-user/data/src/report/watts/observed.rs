//! Reads from a data set what the fit starts from: each window's energy beyond idling, and the CPU time of each group of
//! threads.
//!
//! Only energy that was measured counts, and only where CPU time divides it: a model made energy of CPU time, so nothing
//! can be learnt from it. Windows whose reads failed, or hold energy of others, are left out.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use super::{WattsError, fit::Observation};
use crate::{
    attribution::{
        Attributor,
        claims::weighed,
        window_report::{DomainAudit, WindowReport},
        work::{Claimant, Factor},
    },
    dataset::{
        read::{files::RunFiles, span::Span, stacks::ReadStacks, windows},
        reattribute::expect_weights,
        store,
        tables::Stacks,
    },
    events::RunInfo,
    model::{
        domain::{Domain, Role},
        units::{MicroJoules, Pid, Tid, UnixMicros},
    },
    report::{
        profile::{Catalog, Filter, Process, Run},
        ranking::groups::Groups,
    },
};

/// Groups below this part of all CPU time are summed: windows tell little of them.
const LEAST_SHARE: f64 = 0.01;
/// Groups that are told apart at most.
const MOST_GROUPS: usize = 16;

/// What windows say of the groups of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Number of each group in the table of groups; `None`: everything else that ran.
    pub(super) groups: Vec<Option<usize>>,
    pub(super) observations: Vec<Observation>,
    /// Groups of the table that are part of everything else.
    pub(super) summed: usize,
}

/// What was left out, and what energy contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quality {
    /// Windows without a good reading.
    pub(super) windows_left_out: usize,
    /// Runs whose energy was not measured.
    pub(super) runs_left_out: usize,
    pub(super) has_idle_apart: bool,
}

/// CPU seconds by group; not of threads that are in no group.
type Times = BTreeMap<Option<usize>, f64>;

#[derive(Debug)]
struct Reading<'a> {
    catalog: &'a Catalog,
    tables: &'a [Groups],
    /// Threads of the run's host by process, thread and its start.
    threads: HashMap<(Pid, Tid, UnixMicros), usize>,
    /// Energy, and times by table.
    windows: Vec<(f64, Vec<Times>)>,
    quality: Quality,
}

/// Reads the windows that `filter` allows, for each of these tables.
pub(super) fn read(
    root: &Path,
    filter: &Filter,
    catalog: &Catalog,
    tables: &[Groups],
) -> Result<(Vec<Observed>, Quality), WattsError> {
    let (threads, windows, quality) = (HashMap::new(), Vec::new(), Quality::default());
    let mut reading = Reading { catalog, tables, threads, windows, quality };
    let mut unmeasured = None;
    for (row, files) in filter.unreadable.with_rows(&store::open(root)?, &filter.part(), |run| filter.may_allow(run))? {
        let is_it = |run: &&Run| (&run.info.run_id, run.info.machine()) == (&row.info.run_id, row.info.machine());
        let Some(run) = catalog.runs.iter().find(is_it) else { continue };
        let measured: Vec<&Domain> = row.info.domains.iter().filter(|domain| is_measured(domain)).collect();
        if measured.is_empty() {
            unmeasured = row.info.domains.iter().map(|domain| domain.label).max();
            reading.quality.runs_left_out += 1;
            continue;
        }
        reading.run(&files, &row.info, &measured, &filter.span(run))?;
    }
    if let Some(label) = unmeasured.filter(|_| reading.windows.is_empty()) {
        return Err(WattsError::NotMeasured { label });
    }
    let observed = (0..tables.len()).map(|table| reading.observed(table)).collect();
    Ok((observed, reading.quality))
}

fn is_measured(domain: &Domain) -> bool {
    domain.label.is_measured() && domain.role == Role::Shared && domain.divided_by.is_by_cpu_weights()
}

fn is_of(audit: &DomainAudit, domain: &Domain) -> bool {
    (&audit.domain, audit.socket, audit.core) == (&domain.name, domain.socket, domain.core)
}

impl Reading<'_> {
    fn run(&mut self, files: &RunFiles, info: &RunInfo, measured: &[&Domain], span: &Span) -> Result<(), WattsError> {
        let here = |process: &Process| self.catalog.run_of(process).info.machine() == info.machine();
        let threads = self.catalog.threads.iter().enumerate().filter_map(|(index, thread)| {
            let process = self.catalog.process(thread.process);
            here(process).then_some(((process.pid, thread.tid, thread.start), index))
        });
        self.threads = threads.collect();
        let (mut attributor, mut stacks) = (Attributor::new(info), ReadStacks::default());
        for (_, part) in &files.parts {
            expect_weights(part).map_err(WattsError::of_part)?;
            if let Some(file) = part.file::<Stacks>() {
                stacks.read(file)?;
            }
            for mut window in windows::read(part, &info.domains, &stacks)?.0 {
                // What was fitted before is not what was measured.
                window.work.slices.iter_mut().for_each(|claimed| claimed.factor = Factor::ONE);
                let report = attributor.attribute(window.work, &stacks.table);
                if span.allows(report.wall_start) {
                    self.window(&report, info, measured);
                }
            }
        }
        Ok(())
    }

    /// Takes a window: one observation of each socket, or one of the machine where a meter is of all of it.
    fn window(&mut self, report: &WindowReport, info: &RunInfo, measured: &[&Domain]) {
        let audits = || report.domains.iter().filter(|audit| measured.iter().any(|domain| is_of(audit, domain)));
        if audits().count() < measured.len() || audits().any(|audit| audit.fault.is_some() || audit.merged > 0) {
            self.quality.windows_left_out += 1;
            return;
        }
        self.quality.has_idle_apart |= audits().any(|audit| audit.static_share > MicroJoules(0));
        let mut sockets: Vec<Option<u32>> = measured.iter().map(|domain| domain.socket).collect();
        sockets.sort_unstable();
        sockets.dedup();
        if sockets.contains(&None) {
            sockets = vec![None];
        }
        for socket in sockets {
            let here = |of: Option<u32>| socket.is_none() || of == socket;
            let energy = audits().filter(|audit| here(audit.socket));
            let joules: f64 = energy.map(|audit| audit.measured.joules() - audit.static_share.joules()).sum();
            let Some(domain) = measured.iter().find(|domain| here(domain.socket)) else { continue };
            let place = Domain { socket, core: None, ..(*domain).clone() };
            let by_thread = self.times(report, &place, info);
            if !by_thread.is_empty() {
                let of_table = |groups: &Groups| {
                    let mut times = Times::new();
                    for (thread, time) in &by_thread {
                        *times.entry(thread.and_then(|thread| groups.of_thread(thread))).or_default() += time;
                    }
                    times
                };
                self.windows.push((joules, self.tables.iter().map(of_table).collect()));
            }
        }
    }

    /// CPU seconds in a place by thread: weights, which sum to the time that was on its CPUs.
    #[allow(clippy::cast_precision_loss, reason = "for a fit")]
    fn times(&self, report: &WindowReport, place: &Domain, info: &RunInfo) -> Times {
        let thread_of = |claimant: Claimant| {
            let Claimant::Thread(index) = claimant else { return None };
            let thread = report.threads.get(index)?;
            let pid = report.processes.get(thread.process)?.pid;
            let start = UnixMicros(i64::try_from(thread.start_boottime_ns / 1000).ok()?);
            self.threads.get(&(pid, thread.tid, start)).copied()
        };
        let mut times = Times::new();
        weighed(place, &report.slices, &info.policy, |claimant, weight| {
            if weight > 0 {
                *times.entry(thread_of(claimant)).or_default() += weight as f64;
            }
        });
        let all: f64 = times.values().sum();
        let there = report.slices.iter().filter(|slice| {
            slice.claimant != Claimant::Idle && place.socket.is_none_or(|socket| socket == slice.place.socket)
        });
        let cpu_s = there.map(|slice| slice.slice.cpu_ns).sum::<u64>() as f64 / 1e9;
        times.values_mut().for_each(|time| *time *= cpu_s / all);
        times
    }

    /// What windows say of a table. Sums what is too little to be told apart.
    fn observed(&self, table: usize) -> Observed {
        let windows = || self.windows.iter().filter_map(|(joules, times)| Some((*joules, times.get(table)?)));
        let mut sums = Times::new();
        for (group, time) in windows().flat_map(|(_, times)| times) {
            *sums.entry(*group).or_default() += time;
        }
        let all: f64 = sums.values().sum();
        let named = sums.iter().filter_map(|(group, time)| Some(((*group)?, *time)));
        let mut largest: Vec<(usize, f64)> = named.clone().filter(|(_, time)| *time >= LEAST_SHARE * all).collect();
        largest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        largest.truncate(MOST_GROUPS);
        let summed = named.count() - largest.len();
        let mut groups: Vec<Option<usize>> = largest.iter().map(|(group, _)| Some(*group)).collect();
        if summed > 0 || sums.contains_key(&None) {
            groups.push(None);
        }
        let place = |group: &Option<usize>| groups.iter().position(|known| known == group);
        let observation = |(joules, times): (f64, &Times)| {
            let mut cpu_s = vec![0.0; groups.len()];
            for (group, time) in times {
                if let Some(sum) = place(group).or_else(|| place(&None)).and_then(|place| cpu_s.get_mut(place)) {
                    *sum += time;
                }
            }
            Observation { joules, cpu_s }
        };
        let observations = windows().map(observation).collect();
        Observed { groups, observations, summed }
    }
}
