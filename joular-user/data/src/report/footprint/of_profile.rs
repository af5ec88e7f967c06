//! Computes emissions and cost of each entry of a profile.
//!
//! With one factor they are the entry's energy times a constant. With factors by time, rows are read once
//! more in the order of time, and each counts with the factor of its window: these rows sum to the entries.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use foldhash::fast::RandomState;

use super::{
    Choices, Embodied, Footprint, FootprintError, Intensity, MICROJOULES_PER_KWH, YEAR_NS,
    factors::{Factors, Origin, Spanned},
};
use crate::{
    model::units::{MicroJoules, UnixMicros},
    report::profile::{
        App, Catalog, DataSet, EnergyRow, Filter, PathIndex, Profile, ThreadIndex, ThreadPath, Watch, WindowSpan,
    },
    text,
};

/// Emissions and cost of a selection.
#[derive(Clone, Debug)]
pub struct Footprints<'a> {
    pub choices: &'a Choices,
    /// In the order of [`Profile::entries`].
    pub entries: Vec<Footprint>,
    pub whole: Footprint,
    /// As it was measured: without the PUE.
    pub energy: MicroJoules,
    pub factor: Option<UsedFactor>,
    /// The selection's part of the time that all CPUs had.
    pub cpu_share: f64,
    /// Time of all runs' windows.
    pub recorded_ns: u64,
    /// `None`: nobody said what is reserved.
    pub reserved: Option<Reserved>,
    /// Units of work.
    pub work: Option<f64>,
}

/// What the CPUs that are reserved for the selection emit, used or not. They are a share of each host's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserved {
    pub share: f64,
    /// The share of the machine's static energy, without the PUE.
    pub static_energy: MicroJoules,
    /// Of the selection's energy and of the static one.
    pub operational_g: f64,
    /// Of the share of the hardware.
    pub embodied_g: f64,
}

/// The factors that emissions were computed with.
#[derive(Clone, Debug, PartialEq)]
pub struct UsedFactor {
    /// Weighted with energy; of a selection without energy the least.
    pub mean_g_per_kwh: f64,
    pub min_g_per_kwh: f64,
    pub max_g_per_kwh: f64,
    pub origins: Vec<Origin>,
}

/// Factors of windows, by run and start.
type ByWindow = HashMap<(usize, UnixMicros), f64, RandomState>;

/// Energy times factor, µJ · g/kWh.
type Weighted = HashMap<(ThreadIndex, PathIndex), f64, RandomState>;

/// Emissions and cost of a data set that is being read.
#[derive(Debug)]
pub struct Account<'a> {
    choices: &'a Choices,
    factor: Option<Factor>,
    work: Option<f64>,
    /// Energy times factor, if windows have different ones.
    weighted: Weighted,
    /// Rows of a window stand together.
    last: Option<((usize, UnixMicros), f64)>,
}

impl<'a> Account<'a> {
    /// # Errors
    /// If a file cannot be read or is damaged, factors are not of the time of the windows, or work is not counted
    /// by run.
    pub fn open(choices: &'a Choices, data: &DataSet, filter: &Filter) -> Result<Self, FootprintError> {
        let work = work(&choices.work, data.catalog.runs.len())?;
        let factor = Factor::of(choices, &data.windows(filter))?;
        Ok(Self { choices, factor, work, weighted: Weighted::default(), last: None })
    }

    /// Of the profile that the rows sum to.
    ///
    /// # Errors
    /// If more is reserved than the hosts have.
    pub fn of(self, profile: &Profile) -> Result<Footprints<'a>, FootprintError> {
        let weighted = self.wants_time().then_some(self.weighted);
        let (choices, mut factor) = (self.choices, self.factor);
        let rates = Rates::of(profile, choices, factor.as_ref(), weighted);
        let entries: Vec<Footprint> = profile.entries.iter().map(|entry| rates.footprint(profile, entry)).collect();
        let mut whole = Footprint::default();
        entries.iter().for_each(|entry| whole.plus(entry));
        let energy = profile.energy();
        if let Some(factor) = factor.as_mut().filter(|_| energy.0 > 0) {
            factor.used.mean_g_per_kwh = factor.used.clamped(whole.operational_g / (kwh(energy) * choices.pue));
        }
        let times = &profile.overview.run_times;
        let cpus_ns = times.iter().fold(0, |sum: u64, time| sum.saturating_add(time.cpu_ns));
        let cpu_ns = profile.entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.cpu_ns));
        let recorded_ns = times.iter().fold(0, |sum: u64, time| sum.saturating_add(time.length_ns));
        let factor = factor.map(|factor| factor.used);
        let reserved = match choices.reserved_cpus.zip(factor.as_ref()) {
            Some((cpus, used)) => {
                let share = share_of_hosts(cpus, recorded_ns, cpus_ns)?;
                Some(Reserved::of(choices, share, profile.overview.static_share, &whole, recorded_ns, used))
            }
            None => None,
        };
        Ok(Footprints {
            choices,
            entries,
            whole,
            energy,
            factor,
            cpu_share: text::percent(cpu_ns, cpus_ns) / 100.0,
            recorded_ns,
            reserved,
            work: self.work,
        })
    }
}

/// The part of the hosts' CPUs that so many of each are.
#[allow(clippy::cast_precision_loss, reason = "times of runs")]
fn share_of_hosts(reserved: f64, recorded_ns: u64, cpus_ns: u64) -> Result<f64, FootprintError> {
    let cpus = cpus_ns as f64 / recorded_ns.max(1) as f64;
    // Windows have parts of a microsecond that not every CPU has.
    if cpus > 0.0 && reserved > cpus * 1.001 {
        return Err(FootprintError::Reserved { reserved, cpus: cpus.round() });
    }
    Ok(if cpus > 0.0 { (reserved / cpus).min(1.0) } else { 0.0 })
}

impl Reserved {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of energy, and times"
    )]
    fn of(
        choices: &Choices,
        share: f64,
        of_host: MicroJoules,
        whole: &Footprint,
        recorded_ns: u64,
        used: &UsedFactor,
    ) -> Self {
        let static_energy = MicroJoules((of_host.0 as f64 * share).round() as u64);
        let of_static_g = kwh(static_energy) * choices.pue * used.mean_g_per_kwh;
        let of_host_g = |embodied: Embodied| embodied.host_g * recorded_ns as f64 / (embodied.lifetime_years * YEAR_NS);
        Self {
            share,
            static_energy,
            operational_g: whole.operational_g + of_static_g,
            embodied_g: choices.embodied.map_or(0.0, |embodied| of_host_g(embodied) * share),
        }
    }
}

/// Only windows with different factors need rows. In the order of time, all of them sum to the profile.
impl Watch for Account<'_> {
    fn wants_time(&self) -> bool {
        self.factor.as_ref().is_some_and(|factor| factor.by_window.is_some())
    }

    fn in_time(&mut self, _: &Catalog, row: &EnergyRow) {
        let Some(by_window) = self.factor.as_ref().and_then(|factor| factor.by_window.as_ref()) else { return };
        let key = (row.run, row.window_start);
        let factor = match self.last {
            Some((known, factor)) if known == key => factor,
            // A scan has rows of whole windows only.
            _ => by_window.get(&key).copied().unwrap_or_default(),
        };
        self.last = Some((key, factor));
        *self.weighted.entry((row.thread, row.path)).or_default() += microjoules(row.energy) * factor;
    }
}

/// As [`Profile::read_watched`], with emissions and cost.
///
/// # Errors
/// If there is no run, or as [`Account::open`].
pub fn read<'a>(
    root: &Path,
    filter: &Filter,
    app: Option<&App>,
    choices: &'a Choices,
    as_recorded: &mut dyn FnMut(&Catalog, &EnergyRow),
) -> Result<(Profile, Footprints<'a>), FootprintError> {
    let mut data = DataSet::open(root, filter)?;
    let mut account = Account::open(choices, &data, filter)?;
    let overview = data.overview(filter)?;
    let summed = data.sums(filter, as_recorded)?;
    let profile = Profile::of(data, summed, overview, filter, app, &mut account)?;
    let footprints = account.of(&profile)?;
    Ok((profile, footprints))
}

impl Footprints<'_> {
    /// Kilowatt-hours of the selection, with the PUE.
    pub fn kwh(&self) -> f64 {
        kwh(self.energy) * self.choices.pue
    }

    /// Grams per unit of work, of what the selection used.
    pub fn grams_per_work(&self) -> Option<f64> {
        self.choices.carbon.as_ref().and_then(|_| Some(self.whole.grams() / self.work?))
    }

    /// Software Carbon Intensity: grams per unit of work, of what is reserved.
    pub fn sci_g(&self) -> Option<f64> {
        let reserved = self.reserved?;
        Some((reserved.operational_g + reserved.embodied_g) / self.work?)
    }
}

impl UsedFactor {
    /// A mean that rounding has not moved out of what it is the mean of.
    fn clamped(&self, mean: f64) -> f64 {
        mean.max(self.min_g_per_kwh).min(self.max_g_per_kwh)
    }
}

fn work(counts: &[f64], runs: usize) -> Result<Option<f64>, FootprintError> {
    if counts.len() > 1 && counts.len() != runs {
        return Err(FootprintError::Work { counts: counts.len(), runs });
    }
    Ok((!counts.is_empty()).then(|| counts.iter().sum()))
}

#[derive(Debug)]
struct Factor {
    used: UsedFactor,
    /// If windows have different ones.
    by_window: Option<ByWindow>,
}

impl Factor {
    fn of(choices: &Choices, windows: &[WindowSpan]) -> Result<Option<Self>, FootprintError> {
        let Some(carbon) = &choices.carbon else { return Ok(None) };
        let mut factor = match &carbon.intensity {
            Intensity::GramsPerKwh(figure) => Self::one(*figure, BTreeSet::from([Origin::default()])),
            Intensity::ByTime(factors) => Self::by_time(factors, windows)?,
        };
        for origin in &mut factor.used.origins {
            origin.source = origin.source.take().or_else(|| carbon.source.clone());
        }
        Ok(Some(factor))
    }

    fn one(g_per_kwh: f64, origins: BTreeSet<Origin>) -> Self {
        Self::between(g_per_kwh, g_per_kwh, origins)
    }

    fn between(min_g_per_kwh: f64, max_g_per_kwh: f64, origins: BTreeSet<Origin>) -> Self {
        let origins = origins.into_iter().collect();
        let used = UsedFactor { mean_g_per_kwh: min_g_per_kwh, min_g_per_kwh, max_g_per_kwh, origins };
        Self { used, by_window: None }
    }

    fn by_time(factors: &Factors, windows: &[WindowSpan]) -> Result<Self, FootprintError> {
        let mut origins = BTreeSet::new();
        let mut by_window = ByWindow::default();
        let (mut min, mut max) = (f64::INFINITY, 0.0_f64);
        for window in windows {
            let Spanned { mean_g_per_kwh, min_g_per_kwh, max_g_per_kwh } = factors
                .over((window.start, window.end()), &mut origins)
                .ok_or_else(|| outside(window, factors.range()))?;
            (min, max) = (min.min(min_g_per_kwh), max.max(max_g_per_kwh));
            by_window.insert((window.run, window.start), mean_g_per_kwh);
        }
        // Without windows there is no energy.
        let factor = Self::between(if windows.is_empty() { 0.0 } else { min }, max, origins);
        Ok(if min < max { Self { by_window: Some(by_window), ..factor } } else { factor })
    }
}

fn outside(window: &WindowSpan, (from, until): (UnixMicros, UnixMicros)) -> FootprintError {
    FootprintError::Outside { window: text::time(window.start), from: text::time(from), until: text::time(until) }
}

/// What makes emissions and cost of energy and CPU time.
struct Rates {
    g_per_uj: f64,
    weighted: Option<Weighted>,
    pue: f64,
    cost_per_uj: f64,
    /// Of each run: grams per nanosecond of a CPU.
    embodied_g_per_ns: Vec<f64>,
}

impl Rates {
    fn of(profile: &Profile, choices: &Choices, factor: Option<&Factor>, weighted: Option<Weighted>) -> Self {
        let per_uj = |per_kwh: f64| per_kwh * choices.pue / MICROJOULES_PER_KWH;
        let embodied = choices.embodied.map_or(0.0, |host| host.host_g / (host.lifetime_years * YEAR_NS));
        let of_cpus = |time: &crate::report::profile::RunTime| embodied * ratio(time.length_ns, time.cpu_ns);
        Self {
            g_per_uj: factor.map_or(0.0, |factor| per_uj(factor.used.min_g_per_kwh)),
            weighted,
            pue: choices.pue,
            cost_per_uj: choices.price.as_ref().map_or(0.0, |price| per_uj(price.per_kwh)),
            embodied_g_per_ns: profile.overview.run_times.iter().map(of_cpus).collect(),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "emissions have a few digits")]
    fn footprint(&self, profile: &Profile, entry: &ThreadPath) -> Footprint {
        let energy = microjoules(entry.energy);
        let run = profile.catalog.process_of(entry.thread).run;
        let operational_g = match &self.weighted {
            Some(sums) => {
                let sum = sums.get(&(entry.thread, entry.path)).copied().unwrap_or_default();
                sum * self.pue / MICROJOULES_PER_KWH
            }
            None => energy * self.g_per_uj,
        };
        let embodied = self.embodied_g_per_ns.get(run).copied().unwrap_or_default();
        Footprint { operational_g, embodied_g: entry.cpu_ns as f64 * embodied, cost: energy * self.cost_per_uj }
    }
}

#[allow(clippy::cast_precision_loss, reason = "emissions have a few digits")]
fn microjoules(energy: MicroJoules) -> f64 {
    energy.0 as f64
}

fn kwh(energy: MicroJoules) -> f64 {
    microjoules(energy) / MICROJOULES_PER_KWH
}

#[allow(clippy::cast_precision_loss, reason = "emissions have a few digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
