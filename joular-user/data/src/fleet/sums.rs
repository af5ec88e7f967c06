//! Sums sources by service and energy label.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexmap::IndexSet;

use super::{
    names::{self, Name, Named},
    read::{ProcessKey, Source},
    unit::Unit,
    window::{NameIndex, Window},
};
use crate::{
    attribution::window_report::{ProcessRef, WindowReport},
    dataset::{
        read::{rollup::ReadRollupWindow, stacks::ReadStacks},
        write::RollupWindow,
    },
    events::ProcessInfo,
    model::{
        domain::{Domain, Label, Meter},
        target_text::TargetText,
        units::{MicroJoules, MonotonicNs, UnixMicros},
    },
    rollup::grouped::Branch,
    stacks::BranchIndex,
};

/// A window whose hosts have so much of it, in hundredths, is taken for whole: windows of hosts begin and end a little later
/// than those of the wall clock.
const WHOLE_PERCENT: u64 = 98;

/// A service, or what is of none; and how its energy came about. Energy of different labels is never added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) service: Option<TargetText>,
    pub(super) label: Option<Label>,
}

/// What is known of a unit so far.
pub(super) struct Sums {
    unit: Unit,
    services: BTreeMap<Key, Service>,
    /// By number of the window and host: how long the host was recorded, nanoseconds.
    recorded_ns: HashMap<(i64, String), u64>,
    /// The shortest windows that hosts recorded, nanoseconds.
    interval_ns: u64,
}

#[derive(Debug, Default)]
struct Service {
    names: IndexSet<Name>,
    named: Named,
    windows: BTreeMap<i64, Window>,
}

/// What a service has in a unit.
pub(super) struct Summed {
    pub(super) key: Key,
    /// What it was called until it was erased, where its file is one of several of services that were.
    pub(super) erased: Option<TargetText>,
    pub(super) interval_ns: u64,
    /// `None` if no energy was recorded.
    pub(super) domain: Option<Domain>,
    pub(super) processes: Vec<ProcessInfo>,
    pub(super) paths: BTreeSet<BranchIndex>,
    pub(super) windows: Vec<RollupWindow>,
}

/// A window of a source, with whose it is.
struct Of<'a> {
    number: i64,
    label: Option<Label>,
    processes: &'a HashMap<ProcessKey, Name>,
}

impl Sums {
    pub(super) fn new(unit: Unit) -> Self {
        Self { unit, services: BTreeMap::new(), recorded_ns: HashMap::new(), interval_ns: u64::MAX }
    }

    pub(super) fn add(&mut self, source: Source, stacks: &ReadStacks) {
        let Source { host, label, interval_ns, processes, windows, amounts } = source;
        self.interval_ns = self.interval_ns.min(interval_ns);
        for read in &windows {
            let number = self.unit.number(read.window.report.wall_start);
            let recorded = self.recorded_ns.entry((number, host.clone())).or_default();
            *recorded = recorded.saturating_add(read.window.report.length_ns);
            self.add_window(read, &Of { number, label, processes: &processes }, stacks);
        }
        for (start, key, amount) in amounts {
            let of = Of { number: self.unit.number(UnixMicros(start)), label, processes: &processes };
            let (key_of, name) = self.place(&of, &key.process);
            self.window(&key_of, of.number).add_amount(name, key, &amount);
        }
    }

    fn add_window(&mut self, read: &ReadRollupWindow, of: &Of<'_>, stacks: &ReadStacks) {
        let rest = Key { service: None, label: of.label };
        self.window(&rest, of.number).own.add(read);
        let report = &read.window.report;
        let mut places = Vec::with_capacity(report.threads.len());
        for thread in &report.threads {
            let Some(process) = report.processes.get(thread.process) else {
                places.push(None);
                continue;
            };
            let (key, name) = self.place(of, process);
            if key.service.is_some() {
                self.window(&rest, of.number).own.give(thread);
                self.window(&key, of.number).own.take(thread, read.fault);
            }
            self.window(&key, of.number).add_thread(name, thread);
            places.push(Some((key, name)));
        }
        for (row, pooled) in report.branches.iter().zip(&read.window.pooled) {
            let Some(Some((key, name))) = places.get(row.thread) else { continue };
            let Some(thread) = report.threads.get(row.thread) else { continue };
            let branch = Branch::of(row, *pooled);
            let stack_id = stacks.table.stack_id(row.branch);
            self.window(key, of.number).add_branch(*name, thread.category, stack_id, &branch);
        }
        for (process, thread) in &read.window.threads {
            let (key, name) = self.place(of, process);
            self.window(&key, of.number).add_own(name, thread);
        }
    }

    /// Whose a process is, and its place there.
    fn place(&mut self, of: &Of<'_>, process: &ProcessRef) -> (Key, NameIndex) {
        let known = of.processes.get(&(process.pid, process.start_boottime_ns)).cloned();
        let name = known.unwrap_or_default().or_comm(|| process.comm.clone());
        let key = Key { service: name.service.clone(), label: of.label };
        let service = self.services.entry(key.clone()).or_default();
        service.named.add(&name, &process.comm);
        let place = match service.names.get_index_of(&name) {
            Some(known) => known,
            None => service.names.insert_full(name).0,
        };
        (key, place)
    }

    fn window(&mut self, key: &Key, number: i64) -> &mut Window {
        if !self.services.contains_key(key) {
            self.services.insert(key.clone(), Service::default());
        }
        self.services.entry(key.clone()).or_default().windows.entry(number).or_default()
    }

    /// Each service with its windows, in order.
    pub(super) fn finish(self, stacks: &ReadStacks) -> impl Iterator<Item = Summed> {
        let Self { unit, services, recorded_ns, interval_ns } = self;
        let window_ns = unit.tier.window_us().cast_unsigned().saturating_mul(1000);
        let mut lengths: BTreeMap<i64, u64> = BTreeMap::new();
        for ((number, _), recorded_ns) in recorded_ns {
            let longest = lengths.entry(number).or_default();
            *longest = (*longest).max(recorded_ns);
        }
        for length in lengths.values_mut() {
            *length = if *length >= window_ns / 100 * WHOLE_PERCENT { window_ns } else { *length };
        }
        services.into_iter().map(move |(key, service)| summed(key, service, unit, interval_ns, &lengths, stacks))
    }
}

fn summed(
    key: Key,
    Service { names, named, windows }: Service,
    unit: Unit,
    interval_ns: u64,
    lengths: &BTreeMap<i64, u64>,
    stacks: &ReadStacks,
) -> Summed {
    let domain = key.label.map(|label| Domain::new("all", None, "sums", label, Meter::Power));
    let refs = named.refs();
    let processes: Vec<ProcessRef> = names.iter().filter_map(|name| refs.get(name).cloned()).collect();
    let paths = windows.values().flat_map(|window| window.paths(stacks)).collect();
    let windows = windows.into_iter().zip(0..).map(|((number, window), index)| {
        let wall_start = UnixMicros(number.saturating_mul(unit.tier.window_us()));
        let start = MonotonicNs(wall_start.0.unsigned_abs().saturating_mul(1000));
        let length_ns = lengths.get(&number).copied().unwrap_or_default();
        let whole = WindowReport { index, start, wall_start, length_ns, ..WindowReport::default() };
        window.finish(whole, domain.as_ref(), &processes, stacks)
    });
    let windows = windows.collect();
    let processes = refs.iter().map(|(name, process)| names::info(name, process)).collect();
    Summed { key, erased: None, interval_ns, domain, processes, paths, windows }
}

impl Summed {
    /// Energy of all windows.
    pub(super) fn measured(&self) -> MicroJoules {
        self.windows.iter().flat_map(|window| &window.report.domains).map(|domain| domain.measured).sum()
    }
}
