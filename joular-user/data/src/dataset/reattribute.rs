//! Divides a data set again under another policy, for `joular-bpf reattribute`. Its weights,
//! samples and measured energy stay. The code that a live run uses decides anew who gets which
//! joule, so the result is what a live run with that policy would have written, byte for byte.

use std::{path::Path, sync::Arc};

use super::error::{DataSetError, Result};
use crate::{
    attribution::Attributor,
    dataset::{
        OutputDirectory,
        layout::FilePlace,
        read::{
            files::{self, FlushFiles, RunFiles},
            footer::Footer,
            method_spans,
            run_row::{self, RunRow},
            stacks::ReadStacks,
            windows,
        },
        redacting,
        store::{self, Store},
        tables::{Branches, Methods, Stacks, Threads, Weights, list},
        write::RunRewriter,
    },
    events::RunInfo,
    model::policy::Policy,
    redact::{CommandLines, Redaction},
};

/// Bound on a file of a table: rows are at most half a million, most of them small.
const MAX_COPIED_BYTES: u64 = 1 << 30;

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
    run_redacted(from, to, owner, &Redaction::default().showing(CommandLines::Full), policy_of)
}

/// The same, with command lines as they are to be shown.
///
/// # Errors
/// As [`run`].
pub fn run_redacted<E: From<DataSetError>>(
    from: &Path,
    to: &Path,
    owner: Option<(u32, u32)>,
    redaction: &Redaction,
    policy_of: impl Fn(&RunInfo) -> Result<Policy, E>,
) -> Result<Rewritten, E> {
    let to = OutputDirectory::create(to, owner).map_err(DataSetError::from)?;
    shown(&store::open(from)?, to.store(), redaction, |run| policy_of(run).map(Some))
}

/// The same from store to store. Runs for which `policy_of` gives no policy are left out.
///
/// # Errors
/// As [`run`].
pub fn of_store<E: From<DataSetError>>(
    from: &Arc<dyn Store>,
    to: &dyn Store,
    policy_of: impl Fn(&RunInfo) -> Result<Option<Policy>, E>,
) -> Result<Rewritten, E> {
    shown(from, to, &Redaction::default().showing(CommandLines::Full), policy_of)
}

fn shown<E: From<DataSetError>>(
    from: &Arc<dyn Store>,
    to: &dyn Store,
    redaction: &Redaction,
    policy_of: impl Fn(&RunInfo) -> Result<Option<Policy>, E>,
) -> Result<Rewritten, E> {
    let mut rewritten = Rewritten::default();
    for files in files::find(from)? {
        let mut row = run_row::read(&files.row)?;
        let Some(policy) = policy_of(&row.info)? else { continue };
        let is_same = policy == row.info.policy;
        row.info = RunInfo { policy, ..row.info.redacted(redaction) };
        rewritten.windows += rewrite(&files, row, is_same, to, redaction)?;
        rewritten.runs += 1;
    }
    Ok(rewritten)
}

/// `is_same`: the policy, so that what the run's first window owes to the run before it holds.
fn rewrite(files: &RunFiles, row: RunRow, is_same: bool, to: &dyn Store, redaction: &Redaction) -> Result<u64> {
    let info = row.info;
    let mut attributor = Attributor::new(&info);
    let mut stacks = ReadStacks::default();
    let mut windows = 0;
    let domains = info.domains.clone();
    let mut writer = RunRewriter::start(to, info)?;
    for (place, part) in &files.parts {
        expect_weights(part)?;
        copy_unchanged(place, part, &writer, redaction)?;
        if let Some(file) = part.file::<Stacks>() {
            stacks.read(file)?;
        }
        let mut spans = method_spans::read(part.file::<Methods>())?;
        for mut window in windows::read(part, &domains, &stacks)?.0 {
            if !is_same {
                window.work.domains.iter_mut().for_each(|domain| domain.owed = None);
            }
            let begins_sum = spans.begins(window.work.wall_start.0, window.work.length_ns);
            writer.window(&attributor.attribute(window.work, &stacks.table), &stacks.table, begins_sum)?;
            windows += 1;
        }
        writer.publish(place)?;
    }
    writer.end(row.end.as_ref().map(|(end, _)| end))?;
    Ok(windows)
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
