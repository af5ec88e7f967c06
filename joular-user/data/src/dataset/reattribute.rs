//! Divides a data set again under another policy, for `joular-bpf reattribute`. Its weights,
//! samples and measured energy stay. The code that a live run uses decides anew who gets which
//! joule, so the result is what a live run with that policy would have written, byte for byte.

use std::{collections::HashMap, path::Path};

use super::error::{DataSetError, Result};
use crate::{
    attribution::{
        Attributor,
        work::{Claimant, Factor, WindowWork},
    },
    dataset::{
        OutputDirectory,
        layout::FilePlace,
        read::{
            files::{self, FlushFiles, RunFiles},
            footer::Footer,
            method_spans,
            run_row::RunRow,
            stacks::ReadStacks,
            windows,
        },
        redacting,
        store::{self, Store},
        tables::{Branches, Methods, Stacks, Threads, Weights, list},
        write::RunRewriter,
    },
    events::{MachineKey, RunInfo},
    model::{
        policy::Policy,
        units::{Pid, Tid, UnixMicros},
    },
    redact::{CommandLines, Redaction},
};

/// Bound on a file of a table: rows are at most half a million, most of them small.
const MAX_COPIED_BYTES: u64 = 1 << 30;

/// What the time of a machine's threads counts for: by process, thread and its start.
pub type ThreadFactors = HashMap<(Pid, Tid, UnixMicros), Factor>;

/// What claimants' time counts for, learnt from measured energy.
#[derive(Clone, Debug)]
pub struct FittedFactors {
    /// The groups of threads that differ, as [`Policy::watts_by`] has them.
    pub by: String,
    /// Of threads by machine.
    pub threads: HashMap<MachineKey, ThreadFactors>,
    /// Of everything else.
    pub others: Factor,
}

impl FittedFactors {
    /// Of a claimant in a window of a machine, whose start times are wall-clock times.
    fn of(&self, of_machine: Option<&ThreadFactors>, window: &WindowWork, claimant: Claimant) -> Factor {
        let of_thread = |index: usize| {
            let thread = window.threads.get(index)?;
            let pid = window.processes.get(thread.process)?.pid;
            let start = UnixMicros(i64::try_from(thread.start_boottime_ns / 1000).ok()?);
            of_machine?.get(&(pid, thread.tid, start)).copied()
        };
        match claimant {
            Claimant::Thread(index) => of_thread(index).unwrap_or(self.others),
            Claimant::Idle => Factor::ONE,
            _ => self.others,
        }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    pub runs: u64,
    pub windows: u64,
}

/// Attributes a data set again, into a new directory that belongs to `owner`;
/// `policy_of` gives each run's policy.
///
/// # Errors
/// If a file cannot be read or written, or is damaged, or `policy_of` fails.
pub fn run<E: From<DataSetError>>(
    from: &Path,
    to: &Path,
    owner: Option<(u32, u32)>,
    policy_of: impl Fn(&RunInfo) -> Result<Policy, E>,
) -> Result<Rewritten, E> {
    with(from, to, owner, &Redaction::default().showing(CommandLines::Full), None, policy_of)
}

/// The same, with command lines as they are to be shown, and with fitted weights if there are any.
///
/// # Errors
/// As [`run`].
pub fn with<E: From<DataSetError>>(
    from: &Path,
    to: &Path,
    owner: Option<(u32, u32)>,
    redaction: &Redaction,
    factors: Option<&FittedFactors>,
    policy_of: impl Fn(&RunInfo) -> Result<Policy, E>,
) -> Result<Rewritten, E> {
    let to = OutputDirectory::create(to, owner).map_err(DataSetError::from)?;
    let rewriting = Rewriting { to: to.store(), redaction, factors };
    rewriting.all(files::find_with_rows(&store::open(from)?)?, |run| policy_of(run).map(Some))
}

/// The same of these runs, into a store. Runs for which `policy_of` gives no policy are left out.
///
/// # Errors
/// As [`run`].
pub(crate) fn of_runs<E: From<DataSetError>>(
    runs: Vec<(RunRow, RunFiles)>,
    to: &dyn Store,
    policy_of: impl Fn(&RunInfo) -> Result<Option<Policy>, E>,
) -> Result<Rewritten, E> {
    let redaction = Redaction::default().showing(CommandLines::Full);
    Rewriting { to, redaction: &redaction, factors: None }.all(runs, policy_of)
}

/// How a data set is written again.
struct Rewriting<'a> {
    to: &'a dyn Store,
    redaction: &'a Redaction,
    factors: Option<&'a FittedFactors>,
}

impl Rewriting<'_> {
    fn all<E: From<DataSetError>>(
        &self,
        runs: Vec<(RunRow, RunFiles)>,
        policy_of: impl Fn(&RunInfo) -> Result<Option<Policy>, E>,
    ) -> Result<Rewritten, E> {
        let mut rewritten = Rewritten::default();
        for (mut row, files) in runs {
            let Some(mut policy) = policy_of(&row.info)? else { continue };
            if let Some(factors) = self.factors {
                // A model of CPU time says itself what threads draw.
                let has_weights = row.info.domains.iter().any(|domain| domain.divided_by.is_by_cpu_weights());
                policy.watts_by = has_weights.then(|| factors.by.clone());
            }
            let is_same = policy == row.info.policy && self.factors.is_none();
            row.info = RunInfo { policy, ..row.info.redacted(self.redaction) };
            rewritten.windows += self.run(&files, row, is_same)?;
            rewritten.runs += 1;
        }
        Ok(rewritten)
    }

    /// `is_same`: the policy, so that what the run's first window owes to the run before it holds.
    fn run(&self, files: &RunFiles, row: RunRow, is_same: bool) -> Result<u64> {
        let info = row.info;
        let mut attributor = Attributor::new(&info);
        let mut stacks = ReadStacks::default();
        let mut windows = 0;
        let mut writer = RunRewriter::start(self.to, info.clone())?;
        for (place, part) in &files.parts {
            expect_weights(part)?;
            copy_unchanged(place, part, &writer, self.redaction)?;
            if let Some(file) = part.file::<Stacks>() {
                stacks.read(file)?;
            }
            let mut spans = method_spans::read(part.file::<Methods>())?;
            for mut window in windows::read(part, &info.domains, &stacks)?.0 {
                if !is_same {
                    window.work.domains.iter_mut().for_each(|domain| domain.owed = None);
                }
                self.weigh(&mut window.work, &info);
                let begins_sum = spans.begins(window.work.wall_start.0, window.work.length_ns);
                writer.window(&attributor.attribute(window.work, &stacks.table), &stacks.table, begins_sum)?;
                windows += 1;
            }
            writer.publish(place)?;
        }
        writer.end(row.end.as_ref().map(|(end, _)| end))?;
        Ok(windows)
    }

    /// Gives claimants their factors. Those of a run that is not to have any are taken away.
    fn weigh(&self, work: &mut WindowWork, info: &RunInfo) {
        let of_machine = self.factors.and_then(|factors| factors.threads.get(&info.machine().key()));
        let mut slices = std::mem::take(&mut work.slices);
        for claimed in &mut slices {
            match (&info.policy.watts_by, self.factors) {
                (None, _) => claimed.factor = Factor::ONE,
                (Some(_), Some(factors)) => claimed.factor = factors.of(of_machine, work, claimed.claimant),
                (Some(_), None) => {}
            }
        }
        work.slices = slices;
    }
}

/// Without the table that says who ran, nobody would get anything.
pub(crate) fn expect_weights(part: &FlushFiles) -> Result<()> {
    match part.file::<Threads>().or_else(|| part.file::<Branches>()) {
        Some(file) if part.file::<Weights>().is_none() => Err(DataSetError::NoWeights { path: file.path() }),
        _ => Ok(()),
    }
}

fn copy_unchanged(place: &FilePlace, part: &FlushFiles, writer: &RunRewriter<'_>, redaction: &Redaction) -> Result<()> {
    for table in list::unchanged_by_policy() {
        if let Some(file) = part.named(table) {
            // Its version is checked, which nothing else does of a file that is only copied.
            Footer::read(file)?;
            writer.copy(table, place, &redacting::file(table, file, MAX_COPIED_BYTES, redaction)?)?;
        }
    }
    Ok(())
}
