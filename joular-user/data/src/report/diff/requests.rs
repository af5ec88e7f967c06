//! Compares joules per request: energy of the handlers of a route ÷ its requests, as `report --requests` has it.
//!
//! Replicates are whole runs, if both sides have enough of them and each time in which requests were counted is of one;
//! else these times, one after the other, as windows are of a comparison of watts ([`super::estimate`]). A route that has
//! too few samples on a side for a figure has no row, and a notice says so.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    Choices, Compared, Comparison, Key,
    again::Sides,
    estimate::{Estimate, MIN_RUNS, Replicates},
    gate, largest_first,
    sessions::Sessions,
    side::{Side, Spent},
    warnings,
};
use crate::{
    model::{target_text::TargetText, units::MicroJoules},
    report::{
        profile::WindowSpan,
        ranking::groups::NO_HANDLER,
        requests::{
            LEAST_SAMPLES, RequestsError,
            counts::{self, Counted, Counts, Row},
            recorded::Recorded,
        },
    },
    text::count,
};

/// Routes without a row that are named.
const NAMED: usize = 20;

/// Compares sides by the requests that were counted in files.
pub(super) fn compare(sides: Sides, choices: &Choices, files: [&Path; 2]) -> Result<Comparison, RequestsError> {
    let Sides { a, b, mut notices, obstacle } = sides;
    let counted = [OfSide::read(&a, files[0])?, OfSide::read(&b, files[1])?];
    for (name, side) in ["A", "B"].into_iter().zip(&counted) {
        notices.extend(side.notes.iter().map(|note| format!("{name}: {note}")));
    }
    let of_runs = counted.iter().all(OfSide::has_runs_enough);
    let sessions = Sessions::of(&a, &b);
    let pair = Pair { counted, of_runs, choices };
    let (mut rows, without) = pair.rows();
    notices.extend(said(&without));
    gate::judge(&mut rows, choices.margin, sessions);
    let compared: Vec<&TargetText> = rows.iter().map(|row| &row.key.name).collect();
    let mut total = pair.total(&compared);
    gate::judge(std::slice::from_mut(&mut total), choices.margin, sessions);
    largest_first(&mut rows);
    let times = pair.counted.each_ref().map(|side| side.spans.len());
    let mut found = warnings::of(&a, &b, obstacle.as_ref(), &total, choices);
    found.warnings.extend(warnings::too_few(sessions));
    notices.extend(warnings::apart(sessions));
    notices.extend(a.overview.skipped.line());
    let are_comparable = found.are_comparable();
    Ok(Comparison {
        of_runs,
        times: (!of_runs).then_some(times),
        sessions,
        total,
        phases: Vec::new(),
        rows,
        warnings: found.warnings,
        notices,
        are_comparable,
        a,
        b,
    })
}

/// Why routes have no row, of some of them.
fn said(without: &[String]) -> Vec<String> {
    let more = without.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{} more have no figure", count(more, "route")));
    without.iter().take(NAMED).cloned().chain(more).collect()
}

/// What a side spent while requests were counted.
struct OfSide<'a> {
    side: &'a Side,
    counts: Counts,
    /// Times in which requests were counted: first and last place in `by_time`, and the run if all its windows are of one.
    spans: Vec<(std::ops::Range<usize>, Option<usize>)>,
    /// Windows of the side in the order of time.
    by_time: Vec<usize>,
    /// By route: rows with different handlers.
    patterns: Vec<Vec<Row>>,
    notes: Vec<String>,
}

/// Energy and requests of some routes.
struct Series {
    requests: u64,
    spent: Spent,
    estimate: Estimate,
}

impl<'a> OfSide<'a> {
    fn read(side: &'a Side, file: &Path) -> Result<Self, RequestsError> {
        let mut counts = counts::read(file)?;
        let coverage = Recorded::of(&side.windows).keep(&mut counts);
        let mut by_time: Vec<usize> = (0..side.windows.len()).collect();
        by_time.sort_by_key(|window| side.windows[*window].start);
        let spans = counts.by_span.keys().map(|span| places(span, &side.windows, &by_time)).collect();
        let mut patterns: Vec<Vec<Row>> = vec![Vec::new(); counts.routes.len()];
        for row in counts.by_span.values().flat_map(BTreeMap::values) {
            let known = &mut patterns[row.route];
            if !known.iter().any(|other| other.is_like(row)) {
                known.push(row.clone());
            }
        }
        let read = Self { side, counts, spans, by_time, patterns, notes: coverage.notes().collect() };
        read.expect_own_handlers(file)?;
        Ok(read)
    }

    /// # Errors
    /// If two routes have a handler in common: its energy is of both.
    fn expect_own_handlers(&self, file: &Path) -> Result<(), RequestsError> {
        for key in self.handlers() {
            let mut routes = (0..self.patterns.len()).filter(|route| self.serves(&[*route], key));
            if let (Some(first), Some(second)) = (routes.next(), routes.next()) {
                return Err(RequestsError::SameHandler {
                    path: file.to_owned(),
                    first: self.counts.routes[first].clone(),
                    second: self.counts.routes[second].clone(),
                    handler: key.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn handlers(&self) -> impl Iterator<Item = &'a Key> {
        self.side.rows.keys().filter(|key| key.name.raw() != NO_HANDLER)
    }

    fn serves(&self, routes: &[usize], handler: &Key) -> bool {
        let mut patterns = routes.iter().flat_map(|route| &self.patterns[*route]);
        patterns.any(|row| row.is_served_by(handler.name.raw()))
    }

    /// Whether each time is of one run, and these are enough.
    fn has_runs_enough(&self) -> bool {
        let runs: Option<BTreeSet<usize>> = self.spans.iter().map(|(_, run)| *run).collect();
        runs.is_some_and(|runs| runs.len() >= MIN_RUNS)
    }

    fn route(&self, name: &TargetText) -> Option<usize> {
        self.counts.routes.iter().position(|route| route == name)
    }

    /// What routes spent and how many requests they had.
    #[allow(clippy::cast_precision_loss, reason = "figures of physics")]
    fn series(&self, routes: &[usize], of_runs: bool) -> Series {
        let served = self.handlers().filter(|key| self.serves(routes, key));
        let mut of_windows = vec![0_u64; self.side.windows.len()];
        let mut all = Spent::default();
        for spent in served.filter_map(|key| self.side.rows.get(key)) {
            all.energy = all.energy.saturating_add(spent.energy);
            all.samples = all.samples.saturating_add(spent.samples);
            all.inferred = all.inferred.saturating_add(spent.inferred);
            all.sampling += spent.sampling;
            for (window, energy) in &spent.by_window {
                of_windows[*window] = of_windows[*window].saturating_add(energy.0);
            }
        }
        let mut sums = vec![0_u64];
        for window in &self.by_time {
            let before = sums.last().copied().unwrap_or_default();
            sums.push(before.saturating_add(of_windows[*window]));
        }
        let mut times: Vec<Time> = Vec::new();
        for ((range, run), rows) in self.spans.iter().zip(self.counts.by_span.values()) {
            let mut counted = routes.iter().filter_map(|route| rows.get(route)).peekable();
            if counted.peek().is_some() {
                let requests = counted.fold(0_u64, |sum, row| sum.saturating_add(row.count));
                times.push(Time { run: *run, requests, energy_uj: sums[range.end].saturating_sub(sums[range.start]) });
            }
        }
        let requests = times.iter().fold(0_u64, |sum, time| sum.saturating_add(time.requests));
        let energy = times.iter().fold(0_u64, |sum, time| sum.saturating_add(time.energy_uj));
        // What samples say of all of it holds for the part that requests were counted in.
        let part = energy as f64 / all.energy.0.max(1) as f64;
        let spent = Spent {
            energy: MicroJoules(energy),
            samples: part_of(all.samples, part),
            inferred: MicroJoules(part_of(all.inferred.0, part)),
            by_window: Vec::new(),
            sampling: all.sampling * part,
        };
        let estimate = estimate(&times, of_runs, spent.sampling / 1e12);
        Series { requests, spent, estimate }
    }
}

/// Requests and energy of a time in which they were counted.
struct Time {
    run: Option<usize>,
    requests: u64,
    energy_uj: u64,
}

#[allow(clippy::cast_precision_loss, reason = "figures of physics")]
fn estimate(times: &[Time], of_runs: bool, sampling: f64) -> Estimate {
    let mut sums: Vec<(u64, u64)> = times.iter().map(|time| (time.requests, time.energy_uj)).collect();
    if of_runs {
        let mut runs: BTreeMap<Option<usize>, (u64, u64)> = BTreeMap::new();
        for time in times {
            let (requests, energy) = runs.entry(time.run).or_default();
            (*requests, *energy) = (requests.saturating_add(time.requests), energy.saturating_add(time.energy_uj));
        }
        // A run without a request says nothing of what one needs.
        sums = runs.into_values().filter(|(requests, _)| *requests > 0).collect();
    }
    let exposures: Vec<f64> = sums.iter().map(|(requests, _)| *requests as f64).collect();
    let energies: Vec<(usize, f64)> =
        sums.iter().map(|(_, energy)| MicroJoules(*energy).joules()).enumerate().collect();
    let replicates = if of_runs { Replicates::of_runs(exposures) } else { Replicates::of_windows(exposures) };
    replicates.estimate(&energies, sampling)
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a number that fits"
)]
fn part_of(whole: u64, part: f64) -> u64 {
    (whole as f64 * part.clamp(0.0, 1.0)).round() as u64
}

/// Where the windows of a time are in the order of time, and their run if it is one.
fn places(span: &Counted, windows: &[WindowSpan], by_time: &[usize]) -> (std::ops::Range<usize>, Option<usize>) {
    let before = |moment| by_time.partition_point(|window| windows[*window].start < moment);
    let begin = span.begin.map_or(0, before);
    let end = span.end.map_or(by_time.len(), before).max(begin);
    let runs: BTreeSet<usize> = by_time[begin..end].iter().map(|window| windows[*window].run).collect();
    let run = runs.first().copied().filter(|_| runs.len() == 1);
    (begin..end, run)
}

/// Both sides, ready for routes to be compared.
struct Pair<'a> {
    counted: [OfSide<'a>; 2],
    of_runs: bool,
    choices: &'a Choices,
}

impl Pair<'_> {
    /// Routes that have a figure on both sides, and why others have none.
    fn rows(&self) -> (Vec<Compared>, Vec<String>) {
        let [a, b] = &self.counted;
        let names: BTreeSet<&TargetText> = a.counts.routes.iter().chain(&b.counts.routes).collect();
        let (mut rows, mut without) = (Vec::new(), Vec::new());
        for name in names {
            let of = |side: &OfSide<'_>, which: &str| {
                let series = side.route(name).map(|route| side.series(&[route], self.of_runs));
                figure(series).map_err(|why| format!("{name}: {why} in {which}"))
            };
            match (of(a, "A"), of(b, "B")) {
                (Ok(of_a), Ok(of_b)) => rows.push(self.compare(Key::named(name.clone()), [of_a, of_b])),
                (Err(why), _) | (_, Err(why)) => without.push(why),
            }
        }
        (rows, without)
    }

    /// A request of any of these routes.
    fn total(&self, routes: &[&TargetText]) -> Compared {
        let of = |side: &OfSide<'_>| {
            let routes: Vec<usize> = routes.iter().filter_map(|name| side.route(name)).collect();
            side.series(&routes, self.of_runs)
        };
        self.compare(Key::named("total"), self.counted.each_ref().map(of))
    }

    fn compare(&self, key: Key, [a, b]: [Series; 2]) -> Compared {
        Compared::between(key, [a.spent, b.spent], [a.estimate, b.estimate], true, self.choices)
    }
}

/// # Errors
/// Why there is no figure.
fn figure(series: Option<Series>) -> Result<Series, String> {
    let series = series.filter(|series| series.requests > 0).ok_or("no request was counted")?;
    match series.spent.samples {
        0 => Err("no sample is of a handler with such a name".to_owned()),
        samples if samples < LEAST_SAMPLES => {
            Err(format!("{} are too few, {LEAST_SAMPLES} are needed,", count(samples, "sample")))
        }
        _ => Ok(series),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::UnixMicros;

    #[test]
    fn a_figure_needs_requests_and_samples_enough() {
        let series = |requests, samples| Series {
            requests,
            spent: Spent { samples, ..Spent::default() },
            estimate: Estimate::new(1.0, None, 0.0),
        };
        assert!(figure(Some(series(1, LEAST_SAMPLES))).is_ok());
        for (series, why) in [
            (None, "no request was counted"),
            (Some(series(0, 100)), "no request was counted"),
            (Some(series(1, 0)), "no sample is of a handler with such a name"),
            (Some(series(1, 29)), "29 samples are too few, 30 are needed,"),
        ] {
            assert_eq!(figure(series).err().unwrap(), why);
        }
        let many: Vec<String> = (0..25).map(|route| route.to_string()).collect();
        assert_eq!((said(&many).len(), said(&many)[NAMED].as_str()), (NAMED + 1, "5 routes more have no figure"));
        assert_eq!(said(&many[..3]), many[..3]);
    }

    #[test]
    fn a_time_has_the_windows_that_begin_in_it_and_a_run_if_all_are_of_one() {
        let window = |run, second: i64| WindowSpan { run, start: UnixMicros(second), length_ns: 1000 };
        let windows = [window(0, 10), window(0, 11), window(1, 9), window(1, 12)];
        let by_time = [2, 0, 1, 3];
        let at = |moment: Option<i64>| moment.map(UnixMicros);
        for (begin, end, expected) in [
            (Some(10), Some(12), (1..3, Some(0))),
            (Some(9), Some(11), (0..2, None)),
            (None, Some(10), (0..1, Some(1))),
            (Some(12), None, (3..4, Some(1))),
            (Some(20), Some(30), (4..4, None)),
        ] {
            let span = Counted { begin: at(begin), end: at(end) };
            assert_eq!(places(&span, &windows, &by_time), expected, "{span:?}");
        }
    }

    #[test]
    fn runs_are_replicates_with_all_their_times() {
        let time = |run, requests, energy_uj| Time { run: Some(run), requests, energy_uj };
        let times = [
            time(0, 1, 3_000_000),
            time(0, 1, 1_000_000),
            time(1, 4, 12_000_000),
            time(2, 2, 8_000_000),
            time(3, 0, 5),
        ];
        // 2, 3 and 4 J per request.
        let by_run = estimate(&times, true, 0.0);
        assert_eq!((by_run.rate, by_run.freedom), (3.0, 2.0));
        let by_time = estimate(&times, false, 0.0);
        assert!((by_time.rate - 24.000_005 / 8.0).abs() < 1e-9 && by_time.variance.is_none(), "{by_time:?}");
    }
}
