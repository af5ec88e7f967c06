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
        work::Claimant,
    },
    dataset::{
        read::{files, files::RunFiles, run_row, stacks::ReadStacks, windows},
        reattribute::expect_weights,
        store,
        tables::Stacks,
    },
    events::RunInfo,
    model::{
        domain::{DividedBy, Domain, Label, Role},
        units::{Pid, Tid, UnixMicros},
    },
    report::{
        profile::{Catalog, Filter, Run},
        ranking::groups::Groups,
    },
};

/// Groups below this part of all CPU time are summed: windows tell little of them.
const LEAST_SHARE: f64 = 0.01;
/// Groups that are told apart at most.
const MOST_GROUPS: usize = 16;

/// What windows say of groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// Number of each group in the table of groups; `None`: everything else that ran.
    pub(super) groups: Vec<Option<usize>>,
    pub(super) observations: Vec<Observation>,
    /// Windows that were left out.
    pub(super) left_out: usize,
}

/// CPU seconds by group; not of threads that are in no group.
type Times = BTreeMap<Option<usize>, f64>;

#[derive(Debug)]
struct Reading<'a> {
    /// Group of a thread by process, thread and its start.
    places: HashMap<(Pid, Tid, UnixMicros), usize>,
    catalog: &'a Catalog,
    windows: Vec<(f64, Times)>,
    left_out: usize,
}

impl Observed {
    /// Reads the windows that `filter` allows.
    pub(super) fn read(root: &Path, filter: &Filter, catalog: &Catalog, groups: &Groups) -> Result<Self, WattsError> {
        let threads = catalog.threads.iter().enumerate();
        let places = threads.filter_map(|(index, thread)| {
            let pid = catalog.process(thread.process).pid;
            Some(((pid, thread.tid, thread.start), groups.of_thread(index)?))
        });
        let mut reading = Reading { places: places.collect(), catalog, windows: Vec::new(), left_out: 0 };
        let mut unmeasured = None;
        for files in files::find(&store::open(root)?)? {
            let row = run_row::read(&files.row)?;
            let Some(run) = reading.catalog.runs.iter().find(|run| run.info.run_id == row.info.run_id) else {
                continue;
            };
            let measured: Vec<&Domain> = row.info.domains.iter().filter(|domain| is_measured(domain)).collect();
            if measured.is_empty() {
                unmeasured = row.info.domains.iter().map(|domain| domain.label).max();
                continue;
            }
            reading.run(&files, &row.info, &measured, filter, run)?;
        }
        match unmeasured {
            Some(label) if reading.windows.is_empty() => Err(WattsError::NotMeasured { label }),
            _ => Ok(reading.finish()),
        }
    }
}

fn is_measured(domain: &Domain) -> bool {
    let is_by_cpu = matches!(domain.divided_by, DividedBy::CpuWeights | DividedBy::CpuWeightsByCoreType(_));
    domain.label == Label::Measured && domain.role == Role::Shared && is_by_cpu
}

fn is_of(audit: &DomainAudit, domain: &Domain) -> bool {
    (&audit.domain, audit.socket, audit.core) == (&domain.name, domain.socket, domain.core)
}

impl Reading<'_> {
    fn run(
        &mut self,
        files: &RunFiles,
        info: &RunInfo,
        measured: &[&Domain],
        filter: &Filter,
        run: &Run,
    ) -> Result<(), WattsError> {
        let span = filter.span(run);
        let (mut attributor, mut stacks) = (Attributor::new(info), ReadStacks::default());
        for (_, part) in &files.parts {
            expect_weights(part)?;
            if let Some(file) = part.file::<Stacks>() {
                stacks.read(file)?;
            }
            for window in windows::read(part, &info.domains, &stacks)?.0 {
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
            self.left_out += 1;
            return;
        }
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
            let times = self.times(report, &place, info);
            if !times.is_empty() {
                self.windows.push((joules, times));
            }
        }
    }

    /// CPU seconds in a place: weights, which sum to the time that was on its CPUs.
    #[allow(clippy::cast_precision_loss, reason = "for a fit")]
    fn times(&self, report: &WindowReport, place: &Domain, info: &RunInfo) -> Times {
        let group = |claimant: Claimant| {
            let Claimant::Thread(index) = claimant else { return None };
            let thread = report.threads.get(index)?;
            let pid = report.processes.get(thread.process)?.pid;
            let start = UnixMicros(i64::try_from(thread.start_boottime_ns / 1000).ok()?);
            self.places.get(&(pid, thread.tid, start)).copied()
        };
        let mut times = Times::new();
        weighed(place, &report.slices, &info.policy, |claimant, weight| {
            if weight > 0 {
                *times.entry(group(claimant)).or_default() += weight as f64;
            }
        });
        let all: f64 = times.values().sum();
        let is_busy = |claimant: Claimant| claimant != Claimant::Idle;
        let there = report
            .slices
            .iter()
            .filter(|slice| is_busy(slice.claimant) && place.socket.is_none_or(|socket| socket == slice.place.socket));
        let cpu_s = there.map(|slice| slice.slice.cpu_ns).sum::<u64>() as f64 / 1e9;
        times.values_mut().for_each(|time| *time *= cpu_s / all);
        times
    }

    /// Sums what is too little to be told apart.
    fn finish(self) -> Observed {
        let mut sums = Times::new();
        for (group, time) in self.windows.iter().flat_map(|(_, times)| times) {
            *sums.entry(*group).or_default() += time;
        }
        let all: f64 = sums.values().sum();
        let mut largest: Vec<(usize, f64)> = sums
            .iter()
            .filter_map(|(group, time)| Some(((*group)?, *time)))
            .filter(|(_, time)| *time >= LEAST_SHARE * all)
            .collect();
        largest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        largest.truncate(MOST_GROUPS);
        let mut groups: Vec<Option<usize>> = largest.iter().map(|(group, _)| Some(*group)).collect();
        let told: f64 = largest.iter().map(|(_, time)| time).sum();
        if told < all * (1.0 - 1e-9) {
            groups.push(None);
        }
        let place = |group: &Option<usize>| groups.iter().position(|known| known == group);
        let observation = |(joules, times): (f64, Times)| {
            let mut cpu_s = vec![0.0; groups.len()];
            for (group, time) in times {
                if let Some(sum) = place(&group).or_else(|| place(&None)).and_then(|place| cpu_s.get_mut(place)) {
                    *sum += time;
                }
            }
            Observation { joules, cpu_s }
        };
        let observations = self.windows.into_iter().map(observation).collect();
        Observed { groups, observations, left_out: self.left_out }
    }
}
