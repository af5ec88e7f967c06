//! Makes the thread activity diagram: which thread ran when, where, and what it spent.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{clock::Clock, strings::Strings};
use crate::{
    attribution::{window_report::Category, work::Place},
    model::units::MicroJoules,
    report::{
        profile::{Amounts, Catalog, EnergyRow, PlaceRow, ThreadIdentity, ThreadIndex},
        tree::{OTHERS, process_title},
    },
    text::count,
};

/// Threads with a line of their own: those with most energy.
const LINES: usize = 120;

pub(super) struct Activity {
    clock: Clock,
    cells: HashMap<(ThreadIndex, usize), Amounts>,
    /// Time by thread, bucket and place.
    places: HashMap<(ThreadIdentity, usize, Place), u64>,
    seen: BTreeSet<Place>,
}

impl Activity {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, cells: HashMap::new(), places: HashMap::new(), seen: BTreeSet::new() }
    }

    pub(super) fn take_place(&mut self, row: &PlaceRow) {
        self.seen.insert(row.place);
        let bucket = self.clock.bucket(row.window_start, row.window_ns);
        let time = self.places.entry((row.thread, bucket, row.place)).or_default();
        *time = time.saturating_add(row.cpu_ns);
    }

    pub(super) fn take(&mut self, _: &Catalog, row: &EnergyRow) {
        let bucket = self.clock.bucket(row.window_start, row.window_ns);
        self.cells.entry((row.thread, bucket)).or_default().plus(&row.amounts());
    }

    /// The diagram. Threads are in the order of their processes and energy; those without a line of
    /// their own share the last one.
    pub(super) fn diagram(&self, catalog: &Catalog, strings: &mut Strings) -> Diagram {
        let mut sums = vec![Amounts::default(); catalog.threads.len()];
        for ((thread, _), amounts) in &self.cells {
            sums[thread.index()].plus(amounts);
        }
        let weight = |thread: &ThreadIndex| (sums[thread.index()].energy, sums[thread.index()].cpu_ns);
        let mut order: Vec<ThreadIndex> =
            self.cells.keys().map(|(thread, _)| *thread).collect::<BTreeSet<_>>().into_iter().collect();
        order.sort_by_key(|thread| std::cmp::Reverse(weight(thread)));
        let rest = order.split_off(order.len().min(LINES));
        let mut processes = HashMap::new();
        for thread in &order {
            let sum: &mut MicroJoules = processes.entry(catalog.thread(*thread).process).or_default();
            *sum = sum.saturating_add(sums[thread.index()].energy);
        }
        order.sort_by_key(|thread| {
            let process = catalog.thread(*thread).process;
            (std::cmp::Reverse(processes[&process]), process, std::cmp::Reverse(weight(thread)))
        });
        let lines: HashMap<ThreadIndex, usize> =
            order.iter().copied().zip(0..).chain(rest.iter().map(|thread| (*thread, order.len()))).collect();
        let mut rows: Vec<Line> = order.iter().map(|thread| Line::of(catalog, *thread, strings)).collect();
        if !rest.is_empty() {
            rows.push(Line {
                name: strings.place(&format!("{OTHERS} ({})", count(rest.len(), "thread"))),
                ..Line::default()
            });
        }
        let is_placed = self.seen.len() > 1;
        let mut cells: HashMap<(usize, usize), Amounts> = HashMap::new();
        for ((thread, bucket), amounts) in &self.cells {
            cells.entry((lines[thread], *bucket)).or_default().plus(amounts);
        }
        let mut cells: Vec<((usize, usize), Amounts)> = cells.into_iter().collect();
        cells.sort_by_key(|(place, _)| *place);
        let places: Vec<Place> = self.seen.iter().copied().collect();
        let most = if is_placed { self.most_used(&places) } else { HashMap::new() };
        for ((line, bucket), amounts) in cells {
            let row = &mut rows[line];
            row.buckets.push(bucket);
            row.energy_uj.push(amounts.energy.0);
            row.cpu_us.push(amounts.cpu_ns / 1000);
            row.sum.plus(&amounts);
            if let Some(thread) = order.get(line).filter(|_| is_placed) {
                let place = most.get(&(catalog.identity(*thread), bucket)).map_or(-1, |(place, _)| *place);
                row.places.push(place);
            }
        }
        for row in &mut rows {
            (row.total_uj, row.total_cpu_ns, row.samples) = (row.sum.energy.0, row.sum.cpu_ns, row.sum.samples);
        }
        Diagram { rows, places: places.iter().map(|place| (place.socket, place.core)).collect() }
    }

    /// The place where each thread was longest in each bucket, and for how long.
    fn most_used(&self, places: &[Place]) -> HashMap<(ThreadIdentity, usize), (i64, u64)> {
        let mut most: HashMap<(ThreadIdentity, usize), (i64, u64)> = HashMap::new();
        for ((thread, bucket, place), cpu_ns) in &self.places {
            let place = places.binary_search(place).ok().and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
            let best = most.entry((*thread, *bucket)).or_insert((place, *cpu_ns));
            // Of equal times the first place, whatever order they come in.
            if (*cpu_ns, std::cmp::Reverse(place)) > (best.1, std::cmp::Reverse(best.0)) {
                *best = (place, *cpu_ns);
            }
        }
        most
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Diagram {
    rows: Vec<Line>,
    /// Socket and core; one if nothing tells places apart.
    places: Vec<(u32, u32)>,
}

/// A thread's cells, those that have anything.
#[derive(Debug, Default, Serialize)]
struct Line {
    /// -1: several.
    process: i64,
    name: usize,
    tid: u32,
    category: &'static str,
    total_uj: u64,
    total_cpu_ns: u64,
    samples: u64,
    buckets: Vec<usize>,
    energy_uj: Vec<u64>,
    cpu_us: Vec<u64>,
    /// In the diagram's places; empty if there is only one.
    places: Vec<i64>,
    #[serde(skip)]
    sum: Amounts,
}

impl Line {
    fn of(catalog: &Catalog, index: ThreadIndex, strings: &mut Strings) -> Self {
        let thread = catalog.thread(index);
        let process = process_title(catalog, catalog.process(thread.process));
        Self {
            process: strings.maybe(Some(process.raw())),
            name: strings.place(thread.name.raw()),
            tid: thread.tid.0,
            category: Category::name(thread.category),
            ..Self::default()
        }
    }
}
