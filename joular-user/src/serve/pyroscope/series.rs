//! Sums a type of profiles over time, by labels.
//!
//! Time is cut into steps from the request's start on. The point at `t` is about the windows that start in
//! `[t, t + step)`, so all points sum to the selection's total, but for power. A step in which nobody ran has no point.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    path::Path,
    time::Duration,
};

use joular_data::{
    dataset::DataSetError,
    fleet::choice::View,
    model::units::UnixMicros,
    report::profile::{AmountRow, Catalog, DataSet, Filter, Overview, ThreadIndex, Watch},
};

use super::{
    Reading,
    labels::{Owner, PROFILE_TYPE, beyond_sums},
    messages::{AVERAGE, LabelPair, Point, SUM, SelectSeriesRequest, SelectSeriesResponse, Series},
    selection::Selection,
    types::ProfileType,
    understood,
};
use crate::{query::Refusal, serve::question::Bounds};

/// More points than anybody can look at.
const MOST_POINTS: usize = 500_000;

pub fn select(request: &SelectSeriesRequest, bounds: &Bounds<'_>) -> Result<Reading<SelectSeriesResponse>, Refusal> {
    understood(&request.stack_trace_selector, &[])?;
    let kind = ProfileType::parse(&request.profile_type)?;
    let selection = Selection::new(&[&request.label_selector], request.start, request.end)?;
    let step = Duration::try_from_secs_f64(request.step).unwrap_or_default().as_micros();
    // Points are a millisecond apart at least.
    let Some(step_us) = i64::try_from(step).ok().filter(|step| *step >= 1000) else {
        return Err(Refusal::bad(format!("step: {} is not a number of seconds, 0.001 or more", request.step)));
    };
    if ![SUM, AVERAGE].contains(&request.aggregation) {
        return Err(Refusal::bad(format!("aggregation: {} is not one of {SUM}, {AVERAGE}", request.aggregation)));
    }
    let mut views = beyond_sums(request.group_by.iter().map(String::as_str));
    views.push(View::Steps { from_us: selection.since().map(|since| since.0), step_us });
    if kind == Some(ProfileType::Power) || request.aggregation == AVERAGE {
        views.push(View::Windows);
    }
    let (request, filter) = (request.clone(), selection.filter_showing(views, kind, bounds));
    Ok(Box::new(move |place| {
        let (Some(kind), Some(filter)) = (kind, filter) else { return Ok(SelectSeriesResponse::default()) };
        let read = || Sums::read(place, kind, &filter, (selection.since(), step_us), &request.group_by);
        let sums = filter.unreadable.reading(read)?;
        if sums.points > MOST_POINTS {
            let message = format!("there are more than {MOST_POINTS} points: ask for a longer step, or less time");
            return Err(Refusal::bad(message));
        }
        let limit = usize::try_from(request.limit).ok().filter(|limit| *limit > 0);
        Ok(SelectSeriesResponse { series: sums.series(request.aggregation == AVERAGE, limit.unwrap_or(usize::MAX)) })
    }))
}

/// What is summed for a point.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    amount: u64,
    /// Windows of which it is; those of several runs count each.
    windows: u64,
    last: Option<(usize, UnixMicros)>,
}

/// A type of profiles by labels and step.
struct Sums<'a> {
    kind: ProfileType,
    from_us: i64,
    step_us: i64,
    by: &'a [String],
    /// When the selection's windows begin and end.
    span: (UnixMicros, UnixMicros),
    places: HashMap<Vec<LabelPair>, usize>,
    groups: Vec<BTreeMap<i64, Sum>>,
    of_threads: HashMap<ThreadIndex, usize>,
    points: usize,
}

impl<'a> Sums<'a> {
    fn read(
        place: &Path,
        kind: ProfileType,
        filter: &Filter,
        (from, step_us): (Option<UnixMicros>, i64),
        by: &'a [String],
    ) -> Result<Self, DataSetError> {
        let mut data = DataSet::open(place, filter)?;
        let Overview { span, .. } = data.overview(filter)?;
        let span = span.unwrap_or_default();
        let mut sums = Self {
            kind,
            from_us: from.unwrap_or(span.0).0,
            step_us,
            by,
            span,
            places: HashMap::new(),
            groups: Vec::new(),
            of_threads: HashMap::new(),
            points: 0,
        };
        let is_of_bytes = matches!(kind, ProfileType::Allocated | ProfileType::Moved(_));
        let summed = data.sums(filter, &mut |catalog, row| {
            if !is_of_bytes {
                sums.add(catalog, row.thread, (row.run, row.window_start), kind.of_row(row));
            }
        })?;
        if is_of_bytes {
            data.measured(filter, &summed, &mut sums)?;
        }
        Ok(sums)
    }

    fn add(&mut self, catalog: &Catalog, thread: ThreadIndex, window: (usize, UnixMicros), amount: u64) {
        // There is no answer any more.
        if self.points > MOST_POINTS {
            return;
        }
        let group = match self.of_threads.get(&thread) {
            Some(group) => *group,
            None => self.group(catalog, thread),
        };
        let step = window.1.0.saturating_sub(self.from_us).div_euclid(self.step_us);
        let Some(steps) = self.groups.get_mut(group) else { return };
        let before = steps.len();
        let sum = steps.entry(step).or_default();
        sum.amount = sum.amount.saturating_add(amount);
        // Rows of a window stand together.
        if sum.last != Some(window) {
            (sum.windows, sum.last) = (sum.windows + 1, Some(window));
        }
        self.points += steps.len() - before;
    }

    /// The group of a thread that was not met before.
    fn group(&mut self, catalog: &Catalog, thread: ThreadIndex) -> usize {
        let owner = Owner::of(catalog, thread);
        let pair = |name: &String| {
            let value = if name == PROFILE_TYPE { Some(self.kind.id()) } else { owner.value(name) };
            value.map(|value| LabelPair { name: name.clone(), value })
        };
        let mut labels: Vec<LabelPair> = self.by.iter().filter_map(pair).collect();
        labels.sort_unstable();
        labels.dedup();
        let next = self.groups.len();
        let group = *self.places.entry(labels).or_insert(next);
        if group == next {
            self.groups.push(BTreeMap::new());
        }
        self.of_threads.insert(thread, group);
        group
    }

    /// The series that have most, in the order of their labels.
    fn series(self, is_average: bool, most: usize) -> Vec<Series> {
        let total = |group: usize| self.groups.get(group).map_or(0, total);
        let mut groups: Vec<(&Vec<LabelPair>, usize)> =
            self.places.iter().map(|(labels, group)| (labels, *group)).collect();
        groups.sort_by_cached_key(|(labels, group)| (Reverse(total(*group)), *labels));
        groups.truncate(most);
        groups.sort_unstable();
        let one = |(labels, group): (&Vec<LabelPair>, usize)| {
            let steps = self.groups.get(group).into_iter().flatten();
            let points = steps.map(|(step, sum)| self.point(*step, sum, is_average)).collect();
            Series { labels: labels.clone(), points }
        };
        groups.into_iter().map(one).collect()
    }

    #[allow(clippy::cast_precision_loss, reason = "the protocol has doubles: 2^53 µJ, 9 GJ, are exact")]
    fn point(&self, step: i64, sum: &Sum, is_average: bool) -> Point {
        let begin = self.from_us.saturating_add(step.saturating_mul(self.step_us));
        let value = sum.amount as f64;
        let value = match self.kind {
            // Microjoules by microseconds.
            ProfileType::Power => value / self.covered_us(begin) as f64,
            _ if is_average => value / sum.windows.max(1) as f64,
            _ => value,
        };
        Point { value, timestamp: begin.div_euclid(1000) }
    }

    /// How much of a step is between the first window's start and the last one's end. Elsewhere there are no data.
    fn covered_us(&self, begin: i64) -> i64 {
        let end = begin.saturating_add(self.step_us).min(self.span.1.0);
        end.saturating_sub(begin.max(self.span.0.0)).max(1)
    }
}

fn total(steps: &BTreeMap<i64, Sum>) -> u64 {
    steps.values().fold(0, |total, sum| total.saturating_add(sum.amount))
}

impl Watch for Sums<'_> {
    fn amount(&mut self, catalog: &Catalog, row: &AmountRow<'_>) {
        if row.is_path_allowed && self.kind.measure().includes(row.part.measure) {
            self.add(catalog, row.thread, (row.run, row.window_start), row.part.amount);
        }
    }
}
