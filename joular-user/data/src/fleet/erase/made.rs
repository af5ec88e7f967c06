//! Makes the rows of the one process that stands for the erased ones of a rolled-up run.

use std::{
    collections::{BTreeSet, HashMap},
    slice,
};

use super::{
    rules::erased_key,
    source::{erased_path, has, in_source},
};
use crate::{
    attribution::{
        counter::Delta,
        window_report::{DomainAudit, WindowReport},
    },
    dataset::{
        erasing::Keys,
        error::{DataSetError, Result},
        read::{
            columns::TableFile,
            files::{FlushFiles, RunFiles},
            method_spans,
            rollup::{self, ReadRollupWindow},
            run_row::RunRow,
            stacks::ReadStacks,
        },
        store::Store,
        tables::{Amounts, Methods, Stacks},
        write::{Amount, AmountKey, RollupWindow, RollupWriter},
    },
    events::RunInfo,
    fleet::{
        names::{self, Name, erased_process},
        read::{Source, take_amounts},
        window::Window,
    },
    model::units::MicroJoules,
    rollup::grouped::Branch,
};

/// Writes them to a store, as files of the run's parts, and returns the energy of what had not been erased before.
///
/// # Errors
/// If the run is no rollup, or a file cannot be read.
pub(super) fn of_rollup(run: &RunFiles, row: &RunRow, keys: &Keys, to: &dyn Store) -> Result<MicroJoules> {
    let not_rolled_up = || {
        let problem =
            "it is as recorded, and only rollups can be erased in part: remove it, or ship windows of a minute";
        DataSetError::Damaged { path: run.row.path(), problem: problem.to_owned() }
    };
    let from_ns = row.rolled_up_from_ns.ok_or_else(not_rolled_up)?;
    let mut stacks = ReadStacks::default();
    // An interrupted erasure may have left rows of it without its own.
    let path = erased_path(&mut stacks);
    let mut writer = RollupWriter::start(to, row.info.clone(), from_ns)?;
    let (mut energy, mut is_described) = (MicroJoules(0), false);
    for (place, part) in &run.parts {
        let mut source = source(part, &mut stacks)?;
        energy = energy.saturating_add(newly(&source, keys));
        in_source(&mut source, keys, &mut stacks);
        let mut amounts: HashMap<i64, Vec<(AmountKey, Amount)>> = HashMap::new();
        for (start, key, amount) in source.amounts.into_iter().filter(|(_, key, _)| has(keys, &key.process)) {
            amounts.entry(start).or_default().push((key, amount));
        }
        let mut spans = method_spans::read(part.file::<Methods>())?;
        for read in &source.windows {
            let amounts = amounts.remove(&read.window.report.wall_start.0).unwrap_or_default();
            let window = summed(read, keys, amounts, &row.info, &stacks);
            if spans.begins(window.report.wall_start.0, window.report.length_ns) {
                writer.method_rows()?;
            }
            if !is_described && has_rows(&window) {
                is_described = true;
                let info = names::info(&Name::erased(), &erased_process());
                let paths: BTreeSet<_> = stacks.get(path).into_iter().collect();
                writer.describe(&window.report, &[info], &paths, &stacks.table)?;
            }
            writer.window(&window, &stacks.table)?;
        }
        writer.publish(place)?;
    }
    Ok(energy)
}

fn has_rows(window: &RollupWindow) -> bool {
    !(window.threads.is_empty() && window.report.branches.is_empty() && window.amounts.is_empty())
}

/// What a part of a run has. Names of processes are not needed.
fn source(part: &FlushFiles, stacks: &mut ReadStacks) -> Result<Source> {
    if let Some(file) = part.file::<Stacks>() {
        stacks.read(file)?;
    }
    let mut amounts = Vec::new();
    if let Some(file) = part.file::<Amounts>() {
        TableFile::open(file)?.batches(|columns| take_amounts(columns, |_| true, &mut amounts))?;
    }
    let (windows, _) = rollup::read(part, stacks)?;
    Ok(Source { windows, amounts, ..Source::default() })
}

/// Energy of what has not been erased before.
fn newly(source: &Source, keys: &Keys) -> MicroJoules {
    let erased = Keys::from([erased_key()]);
    let threads = source.windows.iter().flat_map(|read| &read.window.threads);
    threads.filter(|(process, _)| has(keys, process) && !has(&erased, process)).map(|(_, thread)| thread.energy).sum()
}

/// What the erased processes have in a window.
fn summed(
    read: &ReadRollupWindow,
    keys: &Keys,
    amounts: Vec<(AmountKey, Amount)>,
    info: &RunInfo,
    stacks: &ReadStacks,
) -> RollupWindow {
    let report = &read.window.report;
    let is_erased = |process: usize| report.processes.get(process).is_some_and(|process| has(keys, process));
    let mut window = Window::default();
    for thread in report.threads.iter().filter(|thread| is_erased(thread.process)) {
        window.add_thread(0, thread);
    }
    for (row, pooled) in report.branches.iter().zip(&read.window.pooled) {
        let Some(thread) = report.threads.get(row.thread).filter(|thread| is_erased(thread.process)) else { continue };
        window.add_branch(0, thread.category, stacks.table.stack_id(row.branch), &Branch::of(row, *pooled));
    }
    for (_, thread) in read.window.threads.iter().filter(|(process, _)| has(keys, process)) {
        window.add_own(0, thread);
    }
    for (key, amount) in amounts {
        window.add_amount(0, key, &amount);
    }
    let whole = WindowReport {
        index: report.index,
        start: report.start,
        wall_start: report.wall_start,
        length_ns: report.length_ns,
        ..WindowReport::default()
    };
    let mut window = window.finish(whole, None, slice::from_ref(&erased_process()), stacks);
    // Rows say how far the energies of their window can be trusted.
    let delta = Delta { fault: read.fault, ..Delta::default() };
    window.report.domains = info.domains.iter().map(|domain| DomainAudit::new(domain, &delta)).collect();
    window
}
