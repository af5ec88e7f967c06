//! Audits a data set from its files alone, for `joular-bpf audit`: every microjoule must stand
//! where it belongs. The audit checks each window:
//!
//! 1. Measured energy is attributed, static or an item, exactly ([`identity`]).
//! 2. Threads sum to what was attributed, branches to threads, methods to all;
//!    parts of JVMs and qualities of stacks sum to their processes.
//! 3. The energy of network and disk is what the bytes in table `io` cost by the run's model.
//! 4. All of it follows from the weights and samples that stand beside it: the audit
//!    attributes the window again, and every figure must be the same.

mod identity;
mod methods;
mod rollup;
mod sums;

use std::{path::Path, sync::Arc};

use serde::Serialize;

use self::sums::{JVMS, QUALITY, WrittenSum};
use super::error::Result;
use crate::{
    attribution::{
        Attributor,
        window_report::{CpuAudit, WindowReport},
    },
    dataset::read::{
        files::{self, RunFiles},
        run_row::{RunRow, RunTotals},
        stacks::ReadStacks,
        windows::{self, ReadWindow},
    },
    dataset::store::{self, Store},
    dataset::tables::{Methods, Stacks},
    model::units::MicroJoules,
    stacks::StackTable,
    text::count,
};

/// How many differences are shown one by one; more are only counted.
const MAX_TOLD: usize = 50;

/// What the audit of a run found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunAudit {
    pub run_id: String,
    pub windows: u64,
    pub measured_uj: u64,
    pub attributed_uj: u64,
    pub static_uj: u64,
    pub unattributed_uj: u64,
    /// Of the attributed energy: joular-bpf itself.
    pub profiler_uj: u64,
    pub samples: u64,
    pub lost: u64,
    /// Rows of threads, branches and methods that were derived again.
    pub threads: u64,
    pub branches: u64,
    pub methods: u64,
    pub quality: u64,
    pub jvms: u64,
    pub collections: u64,
    /// Paths that were charged for a collector, in all windows.
    pub charges: u64,
    /// Rows that belong to no window. Only a run that was cut off may have some.
    pub rows_without_window: u64,
    pub has_ended: bool,
    /// Windows in which the time of a CPU is not exact, because it came online or went offline.
    pub inexact_times: u64,
    /// Windows whose energy is not certain or came late.
    pub ambiguous: u64,
    pub read_failed: u64,
    /// Weakest label of its energies.
    pub label: Option<&'static str>,
    /// How many figures are wrong, and the first of them.
    pub differences: u64,
    pub told: Vec<String>,
}

impl RunAudit {
    fn differs(&mut self, what: String) {
        self.differences += 1;
        if self.told.len() < MAX_TOLD {
            self.told.push(what);
        }
    }

    /// Compares two figures that must be equal.
    fn expect<T: PartialEq + std::fmt::Display>(&mut self, window: u64, what: &str, found: T, expected: T) {
        if found != expected {
            self.differs(format!("window {window}: {what} is {found}, should be {expected}"));
        }
    }
}

/// Audits all runs of a data set.
///
/// # Errors
/// If a file cannot be read or contradicts itself so that there is nothing to
/// compare; differences in figures are not errors but what the audits find.
pub fn run(data: &Path) -> Result<Vec<RunAudit>> {
    of_store(&store::open(data)?)
}

/// Audits all runs of a store.
///
/// # Errors
/// As [`run`].
pub fn of_store(store: &Arc<dyn Store>) -> Result<Vec<RunAudit>> {
    files::find_with_rows(store)?.iter().map(audit_run).collect()
}

fn audit_run((row, files): &(RunRow, RunFiles)) -> Result<RunAudit> {
    let label = row.info.domains.iter().map(|domain| domain.label).max().map(crate::model::domain::Label::name);
    let mut audit = RunAudit { run_id: row.info.run_id.clone(), label, has_ended: true, ..RunAudit::default() };
    if row.rolled_up_from_ns.is_some() {
        return rollup::audit_run(audit, files, row);
    }
    let mut attributor = Attributor::new(&row.info);
    let mut stacks = ReadStacks::default();
    for (_, part) in &files.parts {
        if let Some(file) = part.file::<Stacks>() {
            stacks.read(file)?;
        }
        let mut methods = methods::Methods::read(part.file::<Methods>())?;
        let mut quality = sums::read(part.named(QUALITY.table), &QUALITY)?;
        let mut jvms = sums::read(part.named(JVMS.table), &JVMS)?;
        let (windows, left) = windows::read(part, &row.info.domains, &stacks)?;
        for window in windows {
            let start = window.work.wall_start.0;
            let rows = Derived {
                quality: quality.remove(&start).unwrap_or_default(),
                jvms: jvms.remove(&start).unwrap_or_default(),
            };
            identity::check_models(&mut audit, &window.work, &row.info.domains);
            let report = audit_window(&mut audit, window, rows, &mut attributor, &stacks.table);
            methods.window(&mut audit, &report, &stacks.table);
        }
        let sums = quality.values().chain(jvms.values()).map(Vec::len);
        let without = left + methods.end(&mut audit) + sums.sum::<usize>();
        audit.rows_without_window += without as u64;
    }
    match &row.end {
        Some((_, totals)) => compare_totals(&mut audit, totals),
        None => audit.has_ended = false,
    }
    // A run that was cut off may have written other tables and not the windows.
    if audit.has_ended && audit.rows_without_window > 0 {
        audit.differs(format!("{} rows belong to no window, and SQL would count them", audit.rows_without_window));
    }
    Ok(audit)
}

/// Rows of a window that follow from its branches.
struct Derived {
    quality: Vec<WrittenSum>,
    jvms: Vec<WrittenSum>,
}

fn audit_window(
    audit: &mut RunAudit,
    window: ReadWindow,
    rows: Derived,
    attributor: &mut Attributor,
    table: &StackTable,
) -> WindowReport {
    let ReadWindow { work, shares, thread_energies, branch_shares, collection_energies, charged, rows_agree } = window;
    audit.expect(work.index, "that all its rows agree on what is the window's", rows_agree, true);
    audit.expect(work.index, "the window's number", work.index, audit.windows);
    identity::check(audit, &work, &shares, &thread_energies, &branch_shares);
    let report = attributor.attribute(work, table);
    identity::compare_domains(audit, &report, &shares);
    for (thread, [energy, by_bytes]) in report.threads.iter().zip(thread_energies) {
        audit.expect(report.index, &format!("energy_uj of thread {}", thread.tid), energy, thread.energy);
        audit.expect(report.index, &format!("by_bytes_uj of thread {}", thread.tid), by_bytes, thread.by_bytes);
    }
    audit.expect(report.index, "the number of branches", branch_shares.len(), report.branches.len());
    for (row, written) in report.branches.iter().zip(branch_shares) {
        let name = |column| format!("{column} of branch {} of a thread", table.stack_id(row.branch));
        audit.expect(report.index, &name("stack_id"), written.stack_id, table.stack_id(row.branch));
        audit.expect(report.index, &name("energy_uj"), written.energy, row.energy);
        audit.expect(report.index, &name("by_bytes_uj"), written.by_bytes, row.by_bytes);
        audit.expect(report.index, &name("cpu_ns"), written.cpu_ns, row.cpu_ns);
    }
    for (row, energy) in report.collections.iter().zip(collection_energies) {
        audit.expect(report.index, "energy_uj of a collection", energy, row.energy);
    }
    audit.expect(report.index, "the number of paths charged for a collector", charged.len(), report.charges.len());
    for (row, charged) in report.charges.iter().zip(charged) {
        let name = |column| format!("{column} of branch {} of thread {}", table.stack_id(row.branch), row.tid);
        let [allocated, survived] = charged;
        audit.expect(report.index, &name("gc_charged_uj"), allocated, row.charged);
        audit.expect(report.index, &name("gc_charged_by_survival_uj"), survived, row.charged_by_survival);
    }
    sums::compare(audit, report.index, &QUALITY, sums::of_qualities(&report), rows.quality);
    sums::compare(audit, report.index, &JVMS, sums::of_jvms(&report), rows.jvms);
    add(audit, &report);
    report
}

fn add(audit: &mut RunAudit, report: &WindowReport) {
    audit.windows += 1;
    audit.threads += report.threads.len() as u64;
    audit.branches += report.branches.len() as u64;
    audit.quality += report.qualities.len() as u64;
    audit.jvms += report.jvms.len() as u64;
    audit.collections += report.collections.len() as u64;
    audit.charges += report.charges.len() as u64;
    for domain in &report.domains {
        audit.measured_uj = audit.measured_uj.saturating_add(domain.measured.0);
        audit.attributed_uj = audit.attributed_uj.saturating_add(domain.attributed.0);
        audit.static_uj = audit.static_uj.saturating_add(domain.static_share.0);
        audit.unattributed_uj = audit.unattributed_uj.saturating_add(domain.unattributed.total().0);
        audit.profiler_uj = audit.profiler_uj.saturating_add(domain.unattributed.profiler.0);
    }
    audit.samples = audit.samples.saturating_add(report.cpu.samples);
    audit.lost = report.losses.iter().fold(audit.lost, |sum, loss| sum.saturating_add(loss.count));
    audit.ambiguous += u64::from(report.domains.iter().any(|domain| domain.is_ambiguous()));
    audit.read_failed += u64::from(report.domains.iter().any(|domain| domain.read_failed()));
}

/// Checks the run's own row, written at its end, against the windows.
fn compare_totals(audit: &mut RunAudit, totals: &RunTotals) {
    let figures = [
        ("windows", totals.windows, audit.windows),
        ("measured_uj", totals.measured_uj, audit.measured_uj),
        ("attributed_uj", totals.attributed_uj, audit.attributed_uj),
        ("static_uj", totals.static_uj, audit.static_uj),
        ("profiler_uj", totals.profiler_uj, audit.profiler_uj),
        ("unattributed_uj", totals.unattributed_uj, audit.unattributed_uj),
        ("samples", totals.samples, audit.samples),
        ("lost", totals.lost, audit.lost),
    ];
    for (name, written, found) in figures {
        if written != found {
            audit.differs(format!("the run's {name} is {written}, its windows have {found}"));
        }
    }
}

fn sum(energies: impl IntoIterator<Item = MicroJoules>) -> MicroJoules {
    energies.into_iter().sum()
}

/// Whether the audit of every run found nothing wrong.
pub fn is_well(audits: &[RunAudit]) -> bool {
    audits.iter().all(|audit| audit.differences == 0)
}

/// The audit as text for people.
pub fn text(audits: &[RunAudit]) -> String {
    use std::fmt::Write as _;
    let joules = |uj: u64| MicroJoules(uj).joules();
    let mut text = String::new();
    for audit in audits {
        let label = audit.label.unwrap_or("no energy source");
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "run {}: {}, {:.6} J ({label})\n  = {:.6} J attributed + {:.6} J static + {:.6} J unattributed",
            audit.run_id.escape_debug(),
            audit.windows,
            joules(audit.measured_uj),
            joules(audit.attributed_uj),
            joules(audit.static_uj),
            joules(audit.unattributed_uj),
        );
        let _ = writeln!(
            text,
            "  derived again: {} thread, {} branch, {} method, {} quality and {} JVM rows",
            audit.threads, audit.branches, audit.methods, audit.quality, audit.jvms
        );
        if audit.collections + audit.charges > 0 {
            let _ =
                writeln!(text, "  and {} collection rows with {} charges for them", audit.collections, audit.charges);
        }
        if !audit.has_ended {
            let rows = count(audit.rows_without_window, "row");
            let _ = writeln!(text, "  it did not end properly: {rows} of its last files without a window");
        }
        if audit.inexact_times > 0 {
            let _ = writeln!(
                text,
                "  in {} the times of CPUs are not exact: {}",
                count(audit.inexact_times, "window"),
                CpuAudit::WHY_INEXACT
            );
        }
        if audit.ambiguous + audit.read_failed > 0 {
            let _ = writeln!(
                text,
                "  {} ambiguous, {} with failed reads: see windows.fault",
                count(audit.ambiguous, "window"),
                audit.read_failed
            );
        }
        let told = audit.told.iter().map(|told| format!("  WRONG: {}\n", told.escape_debug()));
        text.extend(told);
        let untold = audit.differences.saturating_sub(audit.told.len() as u64);
        if untold > 0 {
            let _ = writeln!(text, "  … and {untold} more");
        }
    }
    let differences: u64 = audits.iter().map(|audit| audit.differences).sum();
    text.push_str(&match differences {
        0 => "every microjoule is accounted for\n".to_owned(),
        count => format!("{count} figures are wrong\n"),
    });
    text
}
