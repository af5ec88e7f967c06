//! The table of methods: what each had as the leaf and anywhere on a branch, with
//! the error that sampling makes (see the head of `report/profile`).

use std::collections::HashMap;

use serde::Serialize;

use super::strings::Strings;
use crate::{
    report::{
        profile::{Amounts, Entry, Profile},
        tree::{Label, NodeKind, OTHERS},
    },
    units::MicroJoules,
};

/// Methods with a row of their own: more than anyone looks through.
const ROWS: usize = 2_000;

/// Of a normal distribution, on each side: 95 % is within.
const SIGMAS: f64 = 1.96;

/// What a method has in one thread, and in all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    amounts: Amounts,
    /// Of the current thread: Σ energy, Σ energy² / samples.
    thread_uj: f64,
    squares: f64,
    /// Of the threads before.
    variance: f64,
}

impl Sums {
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn add(&mut self, entry: &Entry) {
        let more = Amounts { energy: entry.energy, cpu_ns: entry.cpu_ns, samples: entry.samples };
        self.amounts.plus(&more);
        self.thread_uj += entry.energy.0 as f64;
        self.squares += entry.squares;
    }

    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn end_thread(&mut self, whole: MicroJoules) {
        let share = if whole.0 == 0 { 0.0 } else { (self.thread_uj / whole.0 as f64).min(1.0) };
        self.variance += (1.0 - share) * self.squares;
        (self.thread_uj, self.squares) = (0.0, 0.0);
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, never negative")]
    fn error_uj(&self) -> u64 {
        (SIGMAS * self.variance.max(0.0).sqrt()).round() as u64
    }
}

/// A row of the table.
#[derive(Debug, Serialize)]
pub(super) struct Method {
    name: usize,
    kind: usize,
    /// Signature or library; -1 for neither.
    detail: i64,
    self_uj: u64,
    self_error_uj: u64,
    /// `None` for several methods: a branch may have more than one of them.
    total_uj: Option<u64>,
    total_error_uj: u64,
    self_cpu_ns: u64,
    self_samples: u64,
}

/// The methods with most energy, by self and total, and the others together.
pub(super) fn of(profile: &Profile, strings: &mut Strings, kind_of: impl Fn(NodeKind) -> usize) -> Vec<Method> {
    let (labels, label_of) = labels(profile);
    let sums = sums(profile, &label_of, labels.len());
    let mut order: Vec<usize> =
        (0..labels.len()).filter(|label| sums[*label].1.amounts != Amounts::default()).collect();
    let weight = |label: &usize| {
        (
            sums[*label].0.amounts.energy.max(MicroJoules(sums[*label].1.amounts.energy.0 / 4)),
            sums[*label].1.amounts.cpu_ns,
        )
    };
    order.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| labels[*a].cmp(&labels[*b])));
    let rest = order.split_off(order.len().min(ROWS));
    let mut rows: Vec<Method> = Vec::with_capacity(order.len() + 1);
    for label in order {
        let (own, total) = &sums[label];
        let label = &labels[label];
        rows.push(Method {
            name: strings.place(&label.name),
            kind: kind_of(label.kind),
            detail: strings.maybe(label.detail()),
            self_uj: own.amounts.energy.0,
            self_error_uj: own.error_uj(),
            total_uj: Some(total.amounts.energy.0),
            total_error_uj: total.error_uj(),
            self_cpu_ns: own.amounts.cpu_ns,
            self_samples: own.amounts.samples,
        });
    }
    if !rest.is_empty() {
        let mut all = Amounts::default();
        rest.iter().for_each(|label| all.plus(&sums[*label].0.amounts));
        rows.push(Method {
            name: strings.place(&format!("{OTHERS} ({} methods)", rest.len())),
            kind: kind_of(NodeKind::Others),
            detail: -1,
            self_uj: all.energy.0,
            self_error_uj: 0,
            total_uj: None,
            total_error_uj: 0,
            self_cpu_ns: all.cpu_ns,
            self_samples: all.samples,
        });
    }
    rows
}

/// The distinct labels, and which each frame has.
fn labels(profile: &Profile) -> (Vec<Label>, Vec<usize>) {
    let mut labels: Vec<Label> = Vec::new();
    let mut places: HashMap<Label, usize> = HashMap::new();
    let place = |frame| {
        *places.entry(Label::of_frame(frame)).or_insert_with_key(|label| {
            labels.push(label.clone());
            labels.len() - 1
        })
    };
    let label_of = profile.catalog.paths.frames().iter().map(place).collect();
    (labels, label_of)
}

/// Self and total of each label. Entries come by thread.
fn sums(profile: &Profile, label_of: &[usize], labels: usize) -> Vec<(Sums, Sums)> {
    let mut sums = vec![(Sums::default(), Sums::default()); labels];
    // Entry, from 1, that last counted for a total, so that recursion counts once.
    let mut counted = vec![0_usize; labels];
    let mut touched: Vec<usize> = Vec::new();
    let mut number = 0;
    for entries in profile.entries.chunk_by(|a, b| a.thread == b.thread) {
        for entry in entries {
            number += 1;
            let path = profile.catalog.paths.path(entry.path);
            for label in path.iter().map(|frame| label_of[frame.index()]) {
                if counted[label] != number {
                    counted[label] = number;
                    sums[label].1.add(entry);
                    touched.push(label);
                }
            }
            if let Some(leaf) = path.last() {
                sums[label_of[leaf.index()]].0.add(entry);
            }
        }
        let whole = entries.first().map_or(MicroJoules(0), |entry| profile.threads[entry.thread.index()].energy);
        for label in touched.drain(..) {
            sums[label].0.end_thread(whole);
            sums[label].1.end_thread(whole);
        }
    }
    sums
}
