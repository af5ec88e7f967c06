//! Divides the energy of handlers by counts of requests.

use super::{
    LEAST_SAMPLES, Needs, PerRequest, PerRoute, Route,
    counts::{Counts, Row},
    recorded::Coverage,
};
use crate::{
    model::{domain::Label, target_text::TargetText},
    report::{
        Format,
        measure::Measure,
        profile::Profile,
        ranking::{
            groups::Groups,
            slots::Slots,
            sums::{self, Figure},
        },
    },
};

/// Two routes of one handler.
pub(super) struct SameHandler {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) handler: TargetText,
}

/// Energy of routes, added up over the times in which requests were counted.
pub(super) struct Sums {
    /// By route.
    direct: Vec<Figure>,
    /// The same, with parts of what is of no handler, µJ.
    loaded: Vec<f64>,
    processes_uj: u64,
    no_handler_uj: u64,
    other_handlers_uj: u64,
}

impl Sums {
    pub(super) fn of(counts: &Counts) -> Self {
        let routes = counts.routes.len();
        Self {
            direct: vec![Figure::default(); routes],
            loaded: vec![0.0; routes],
            processes_uj: 0,
            no_handler_uj: 0,
            other_handlers_uj: 0,
        }
    }

    /// Adds what `rows` had in a time of which `profile` is.
    pub(super) fn add(&mut self, profile: &Profile, rows: &[Row]) -> Result<(), SameHandler> {
        let places = Places::of(profile, rows)?;
        let groups = Groups::of_paths(places.of_paths.clone(), places.count());
        let cells = sums::cells(profile, Measure::Energy, &Slots::each(profile, &groups), false);
        for (row, cell) in rows.iter().zip(&cells) {
            let sum = &mut self.direct[row.route];
            sum.plus(&cell.own);
            sum.samples = sum.samples.saturating_add(cell.own.samples);
        }
        self.share_out(profile, rows, &places);
        Ok(())
    }

    /// Divides what each process did outside of handlers, by what its handlers had.
    #[allow(clippy::cast_precision_loss, reason = "figures of physics")]
    fn share_out(&mut self, profile: &Profile, rows: &[Row], places: &Places) {
        let mut of_processes = vec![vec![0_u64; places.count()]; profile.catalog.processes.len()];
        for entry in &profile.entries {
            let process = profile.catalog.thread(entry.thread).process;
            let sum = &mut of_processes[process.index()][places.of_paths[entry.path.index()]];
            *sum = sum.saturating_add(entry.energy.0);
        }
        for sums in of_processes {
            let (other, none) = (sums[places.other()], sums[places.none()]);
            let handled = sums[..places.none()].iter().fold(0_u64, |sum, energy| sum.saturating_add(*energy));
            if handled == 0 {
                continue;
            }
            let whole = handled.saturating_add(none);
            self.processes_uj = self.processes_uj.saturating_add(whole);
            self.no_handler_uj = self.no_handler_uj.saturating_add(none);
            self.other_handlers_uj = self.other_handlers_uj.saturating_add(other);
            let load = whole as f64 / handled as f64;
            for (row, energy) in rows.iter().zip(&sums) {
                self.loaded[row.route] += *energy as f64 * load;
            }
        }
    }

    pub(super) fn finish(self, counts: &Counts, coverage: Coverage, label: Option<Label>, format: Format) -> PerRoute {
        let requests = counts.requests();
        let routes = counts.routes.iter().zip(&requests).zip(self.direct.iter().zip(&self.loaded));
        let route = |((route, requests), (direct, loaded)): ((&TargetText, &u64), (&Figure, &f64))| {
            let needs = needs(*requests, direct, *loaded);
            let (needs, why_not) = match needs {
                Ok(needs) => (Some(needs), None),
                Err(why) => (None, Some(why)),
            };
            let (energy_uj, samples) = (direct.amount, direct.samples);
            Route { route: route.clone(), requests: *requests, energy_uj, samples, needs, why_not }
        };
        PerRoute {
            routes: routes.map(route).collect(),
            processes_uj: self.processes_uj,
            no_handler_uj: self.no_handler_uj,
            other_handlers_uj: self.other_handlers_uj,
            coverage,
            energy_label: label.map(Label::name),
            label,
            format,
        }
    }
}

/// # Errors
/// Why there is no figure.
#[allow(clippy::cast_precision_loss, reason = "figures of physics")]
fn needs(requests: u64, direct: &Figure, loaded: f64) -> Result<Needs, String> {
    if requests == 0 {
        return Err("no request was counted".to_owned());
    }
    if direct.samples == 0 {
        return Err(
            "no sample is of a handler with such a name: write one of `report --by handler` into column handler"
                .to_owned(),
        );
    }
    if direct.samples < LEAST_SAMPLES {
        let samples = direct.samples;
        return Err(format!("{samples} samples are too few, {LEAST_SAMPLES} are needed: record for longer"));
    }
    let per_request = |scale: f64| {
        let of = |micros: u64| micros as f64 * scale / requests as f64 / 1e6;
        PerRequest { joules: of(direct.amount), low: of(direct.low), high: of(direct.high) }
    };
    // The part that a handler has of its process's energy is as uncertain as its own energy.
    Ok(Needs { direct: per_request(1.0), loaded: per_request(loaded / direct.amount.max(1) as f64) })
}

/// Which route each path is of.
struct Places {
    /// Number of the row, or one of the two that follow.
    of_paths: Vec<usize>,
    rows: usize,
}

impl Places {
    fn of(profile: &Profile, rows: &[Row]) -> Result<Self, SameHandler> {
        let (handlers, paths) = (&profile.catalog.handlers, &profile.catalog.paths);
        let mut places = Self { of_paths: Vec::new(), rows: rows.len() };
        let mut of_handlers = Vec::new();
        for handler in handlers.all() {
            let mut serving = rows.iter().enumerate().filter(|(_, row)| row.is_served_by(handler.method.raw()));
            let first = serving.next();
            if let (Some((_, first)), Some((_, second))) = (first, serving.next()) {
                return Err(SameHandler { first: first.route, second: second.route, handler: handler.method.clone() });
            }
            of_handlers.push(first.map_or(places.other(), |(row, _)| row));
        }
        let of_path = |path| handlers.number(path).and_then(|number| of_handlers.get(number)).copied();
        places.of_paths = paths.indices().map(|path| of_path(path).unwrap_or(places.none())).collect();
        Ok(places)
    }

    /// That of handlers of no route.
    const fn other(&self) -> usize {
        self.rows
    }

    /// That of paths without a handler.
    const fn none(&self) -> usize {
        self.rows + 1
    }

    const fn count(&self) -> usize {
        self.rows + 2
    }
}
