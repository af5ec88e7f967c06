//! Reads the windows of one flush: the work that each was made from, and the shares that were
//! written.
//!
//! Table `windows` is written last and says which windows are whole. Rows of other tables that
//! belong to none of them are left from a crash.

pub(super) mod audit_rows;
mod collector_rows;
mod io_rows;
mod losses;
mod traffic_rows;
pub(super) mod work_rows;

use std::collections::HashMap;

use self::{
    audit_rows::AuditRow,
    collector_rows::{ChargeRead, CollectionRead},
    io_rows::MovedRead,
    traffic_rows::{AllocatedRead, MissesRead},
    work_rows::{BranchRead, ThreadRead, WeightRead},
};
pub(crate) use self::{
    audit_rows::{Shares, UnattributedColumns},
    losses::LossColumns,
};
use super::{files::FlushFiles, stacks::ReadStacks};
use crate::{
    attribution::{
        collector::{ChargeRow, CollectionRow},
        counter::Delta,
        shown_parts::{self, Beside},
        window_report::{BranchRow, ProcessRef, ThreadRow},
        work::{Claimant, ClaimedSlice, DomainWork, WindowWork},
    },
    dataset::{
        column::Table as _,
        error::{DataSetError, Result},
        store::StoredFile,
        tables::{Allocations, Branches, Collections, Counters, GcCharges, Io, Threads, Weights, Windows},
    },
    events::SampleKind,
    model::{
        domain::{DividedBy, Domain, FaultCause, Role},
        units::{MicroJoules, MonotonicNs, UnixMicros},
    },
};

/// A window as it was written.
#[derive(Clone, Debug)]
pub(crate) struct ReadWindow {
    pub(crate) work: WindowWork,
    /// What each domain's row says, in the order of rows.
    pub(crate) shares: Vec<Shares>,
    /// Parallel to the work's threads: energy, and the part that goes by bytes.
    pub(crate) thread_energies: Vec<[MicroJoules; 2]>,
    /// In the order of attribution, which may be more than the work's branches: paths that only have energy by bytes
    /// follow from it.
    pub(crate) branch_shares: Vec<WrittenBranch>,
    /// What its collections and charges say, in the order of the work's.
    pub(crate) collection_energies: Vec<MicroJoules>,
    pub(crate) charged: Vec<[MicroJoules; 2]>,
    /// Whether the columns that are the window's, repeated on each row, agree.
    pub(crate) rows_agree: bool,
}

/// What a row of `branches` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenBranch {
    /// Index into the work's threads.
    pub(crate) thread: usize,
    pub(crate) stack_id: i64,
    pub(crate) energy: MicroJoules,
    /// Of `energy`.
    pub(crate) by_bytes: MicroJoules,
    pub(crate) cpu_ns: u64,
}

/// Start of a window, which is its key in every table.
pub(crate) type Start = i64;

/// Identity of a thread in a data set: process, its start, thread, its start.
type ThreadId = (u32, i64, u32, i64);

/// The windows of a flush, in their order, and how many rows of other tables
/// belong to none of them. `stacks` must hold its stacks.
pub(crate) fn read(part: &FlushFiles, domains: &[Domain], stacks: &ReadStacks) -> Result<(Vec<ReadWindow>, usize)> {
    let audits = part.file::<Windows>().map(audit_rows::read).transpose()?.unwrap_or_default();
    let mut threads = grouped(part.file::<Threads>(), work_rows::threads)?;
    let mut branches = grouped(part.file::<Branches>(), work_rows::branches)?;
    let mut weights = grouped(part.file::<Weights>(), work_rows::weights)?;
    let mut collections = grouped(part.file::<Collections>(), collector_rows::collections)?;
    let mut charges = grouped(part.file::<GcCharges>(), collector_rows::charges)?;
    // Most data sets are divided by nothing of these.
    let goes = |by: fn(&DividedBy) -> bool| domains.iter().any(|domain| by(&domain.divided_by));
    let file = part.file::<Io>().filter(|_| goes(|by| matches!(by, DividedBy::Bytes(_))));
    let mut moved = grouped(file, io_rows::moved)?;
    let file = part.file::<Allocations>().filter(|_| goes(|by| *by == DividedBy::Allocation));
    let mut allocated = grouped(file, traffic_rows::allocated)?;
    let file = part.file::<Counters>().filter(|_| goes(|by| *by == DividedBy::CacheMisses));
    let mut misses = grouped(file, traffic_rows::misses)?;
    let mut windows = Vec::new();
    for rows in audits.chunk_by(|a, b| a.start == b.start) {
        let Some(first) = rows.first() else { continue };
        let mut rows_of = RowsOf {
            threads: threads.remove(&first.start).unwrap_or_default(),
            branches: branches.remove(&first.start).unwrap_or_default(),
            weights: weights.remove(&first.start).unwrap_or_default(),
            collections: collections.remove(&first.start).unwrap_or_default(),
            charges: charges.remove(&first.start).unwrap_or_default(),
            moved: moved.remove(&first.start).unwrap_or_default(),
            allocated: allocated.remove(&first.start).unwrap_or_default(),
            misses: misses.remove(&first.start).unwrap_or_default(),
        };
        let damaged = |problem| DataSetError::Damaged {
            path: part.file::<Windows>().map_or_else(|| Windows::NAME.into(), StoredFile::path),
            problem: format!("window {}: {problem}", first.index),
        };
        windows.push(rows_of.window(rows, domains, stacks).map_err(damaged)?);
    }
    let left = [
        rows_left(&threads),
        rows_left(&branches),
        rows_left(&weights),
        rows_left(&collections),
        rows_left(&charges),
        rows_left(&moved),
        rows_left(&allocated),
        rows_left(&misses),
    ];
    Ok((windows, left.into_iter().sum()))
}

/// Rows of no window.
fn rows_left<T>(rows: &Grouped<T>) -> usize {
    rows.values().map(Vec::len).sum()
}

type Grouped<T> = HashMap<Start, Vec<T>>;

fn grouped<T>(
    file: Option<&StoredFile>,
    read: impl Fn(&super::columns::Columns<'_>, &mut Grouped<T>) -> Result<()>,
) -> Result<Grouped<T>> {
    let mut rows = Grouped::new();
    if let Some(file) = file {
        super::columns::TableFile::open(file)?.batches(|columns| read(columns, &mut rows))?;
    }
    Ok(rows)
}

/// What the other tables say of one window.
struct RowsOf {
    threads: Vec<ThreadRead>,
    branches: Vec<BranchRead>,
    weights: Vec<WeightRead>,
    collections: Vec<CollectionRead>,
    charges: Vec<ChargeRead>,
    moved: Vec<MovedRead>,
    allocated: Vec<AllocatedRead>,
    misses: Vec<MissesRead>,
}

impl RowsOf {
    fn window(&mut self, rows: &[AuditRow], domains: &[Domain], stacks: &ReadStacks) -> Result<ReadWindow, String> {
        let first = rows.first().ok_or("it has no row")?;
        // As attribution orders threads, whatever the file's order.
        self.threads.sort_by_key(|thread| (thread.id.0, thread.id.2, thread.id.3));
        let positions: HashMap<ThreadId, usize> =
            self.threads.iter().enumerate().map(|(position, thread)| (thread.id, position)).collect();
        let (mut processes, threads) = self.threads_and_processes();
        let (collections, collection_energies) = self.collection_rows(&mut processes);
        let (charges, charged) = self.charge_rows(&mut processes, stacks)?;
        let (branches, branch_shares) = self.branch_rows(&positions, stacks)?;
        Ok(ReadWindow {
            shares: rows.iter().filter_map(|row| row.shares.clone()).collect(),
            thread_energies: self.threads.iter().map(|thread| [thread.energy, thread.by_bytes]).collect(),
            branch_shares,
            collection_energies,
            charged,
            rows_agree: rows.iter().all(|row| {
                (row.length_ns, row.index, row.cpu) == (first.length_ns, first.index, first.cpu)
                    && row.losses == first.losses
                    && row.context == first.context
            }),
            work: WindowWork {
                index: first.index,
                // Start times in a data set are wall-clock times, and so is this.
                start: MonotonicNs(u64::try_from(first.start).unwrap_or(0).saturating_mul(1000)),
                wall_start: UnixMicros(first.start),
                length_ns: first.length_ns,
                domains: domain_work(rows, domains)?,
                slices: self.slices(&positions)?,
                processes,
                threads,
                branches,
                cpu: first.cpu,
                context: first.context.clone(),
                // Nothing is divided by marks, and table `marks` is copied as it is.
                marks: Vec::new(),
                counts: self.counts(&positions)?,
                allocations: self.allocations(&positions, stacks)?,
                collections,
                charges,
                moved: self.moved(&positions, stacks)?,
                losses: first.losses.clone(),
            },
        })
    }

    fn threads_and_processes(&self) -> (Vec<ProcessRef>, Vec<ThreadRow>) {
        let mut processes: Vec<ProcessRef> = Vec::new();
        let mut positions: HashMap<(u32, i64), usize> = HashMap::new();
        let rows = self.threads.iter().map(|thread| {
            let process = *positions.entry((thread.id.0, thread.id.1)).or_insert_with(|| {
                processes.push(thread.process());
                processes.len() - 1
            });
            thread.row(process)
        });
        let rows = rows.collect();
        (processes, rows)
    }

    /// Rows without energy, in the order of attribution, and the figures that were written.
    fn branch_rows(
        &self,
        positions: &HashMap<ThreadId, usize>,
        stacks: &ReadStacks,
    ) -> Result<(Vec<BranchRow>, Vec<WrittenBranch>), String> {
        let mut rows = Vec::with_capacity(self.branches.len());
        let mut written = Vec::with_capacity(self.branches.len());
        for read in &self.branches {
            let thread = place(positions, &read.thread)?;
            let branch = stacks.get(read.stack_id).ok_or_else(|| format!("stack {} has no row", read.stack_id))?;
            let row = BranchRow {
                thread,
                // The table holds no others.
                kind: SampleKind::CpuTime,
                branch,
                cpu_ns: read.cpu_ns,
                samples: read.samples,
                energy: MicroJoules(0),
                by_bytes: MicroJoules(0),
            };
            let BranchRead { stack_id, energy, by_bytes, cpu_ns, .. } = *read;
            written.push(WrittenBranch { thread, stack_id, energy, by_bytes, cpu_ns });
            if !read.is_by_bytes() {
                rows.push((thread, stack_id, row));
            }
        }
        rows.sort_by_key(|(thread, stack_id, _)| (*thread, *stack_id));
        written.sort_by_key(|written| (written.thread, written.stack_id));
        Ok((rows.into_iter().map(|(.., row)| row).collect(), written))
    }

    /// In the order of attribution: processes, and of one the order in which they began.
    fn collection_rows(&self, processes: &mut Vec<ProcessRef>) -> (Vec<CollectionRow>, Vec<MicroJoules>) {
        let row = |read: &CollectionRead| {
            let process = position(processes, &read.process);
            (CollectionRow { process, ..read.row.clone() }, read.written)
        };
        let mut rows: Vec<_> = self.collections.iter().map(row).collect();
        rows.sort_by(|(a, _), (b, _)| {
            (a.process, a.since_start_ns, &a.collector).cmp(&(b.process, b.since_start_ns, &b.collector))
        });
        rows.into_iter().unzip()
    }

    /// In the order of attribution: processes, threads, stacks.
    fn charge_rows(
        &self,
        processes: &mut Vec<ProcessRef>,
        stacks: &ReadStacks,
    ) -> Result<(Vec<ChargeRow>, Vec<[MicroJoules; 2]>), String> {
        let mut rows = Vec::with_capacity(self.charges.len());
        for read in &self.charges {
            let branch = stacks.get(read.stack_id).ok_or_else(|| format!("stack {} has no row", read.stack_id))?;
            let row = read.row(position(processes, &read.process()), branch);
            rows.push(((row.process, row.start_boottime_ns, row.tid, read.stack_id), row, read.written));
        }
        rows.sort_by_key(|(order, ..)| *order);
        Ok(rows.into_iter().map(|(_, row, written)| (row, written)).unzip())
    }

    fn slices(&self, positions: &HashMap<ThreadId, usize>) -> Result<Vec<ClaimedSlice>, String> {
        let claimed = |read: &WeightRead| {
            let claimant = match read.claimant {
                Ok(group) => group,
                Err(id) => Claimant::Thread(place(positions, &id)?),
            };
            Ok(ClaimedSlice { claimant, place: read.place, slice: read.slice, factor: read.factor })
        };
        let mut slices = self.weights.iter().map(claimed).collect::<Result<Vec<_>, String>>()?;
        slices.sort_by_key(|claimed| (claimed.claimant, claimed.place));
        Ok(slices)
    }
}

fn place(positions: &HashMap<ThreadId, usize>, thread: &ThreadId) -> Result<usize, String> {
    positions.get(thread).copied().ok_or_else(|| format!("thread {} has no row", thread.2))
}

/// Where a process is in the list. One that has no thread in the window is added.
fn position(processes: &mut Vec<ProcessRef>, process: &ProcessRef) -> usize {
    let is_it = |known: &ProcessRef| (known.pid, known.start_boottime_ns) == (process.pid, process.start_boottime_ns);
    processes.iter().position(is_it).unwrap_or_else(|| {
        processes.push(process.clone());
        processes.len() - 1
    })
}

/// The rows of a window are those of the domains that count, in their order; the other domains are
/// columns in these rows.
fn domain_work(rows: &[AuditRow], domains: &[Domain]) -> Result<Vec<DomainWork>, String> {
    let mut rows_left = rows.iter().filter(|row| row.domain.is_some());
    let mut work = vec![DomainWork::default(); domains.len()];
    let mut row_of: Vec<Option<&AuditRow>> = vec![None; domains.len()];
    for (index, domain) in domains.iter().enumerate() {
        if matches!(domain.role, Role::Shared | Role::Unshared) {
            let row = rows_left.next().ok_or_else(|| format!("domain {} has no row", domain.name))?;
            if row.domain.as_deref() != Some(&domain.name) || row.socket != domain.socket {
                return Err(format!("domain {} has another one's row", domain.name));
            }
            work[index] = row.work.clone();
            row_of[index] = Some(row);
        }
    }
    if rows_left.next().is_some() {
        return Err("it has more rows than the run has domains".to_owned());
    }
    add_beside(&mut work, domains, &row_of);
    Ok(work)
}

/// A column holds the sum of its kind. The first domain of the kind gets it and the others get
/// nothing, which gives the same sum.
fn add_beside(work: &mut [DomainWork], domains: &[Domain], row_of: &[Option<&AuditRow>]) {
    let mut seen: Vec<(usize, Beside)> = Vec::new();
    for (place, work) in shown_parts::places(domains).into_iter().zip(work) {
        let Some((whole, beside)) = place else { continue };
        let row = row_of.get(whole).copied().flatten();
        let shown = row.and_then(|row| match beside {
            Beside::Part(part) => row.parts.get(part),
            Beside::Check => row.check,
        });
        let is_first = !seen.contains(&(whole, beside));
        seen.push((whole, beside));
        work.delta = match shown {
            Some(measured) if is_first => Delta { measured, ..Delta::default() },
            Some(_) => Delta::default(),
            None => Delta { fault: Some(FaultCause::Unreadable), ..Delta::default() },
        };
    }
}
