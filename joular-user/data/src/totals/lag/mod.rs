//! Bounds what the lag of energy counters does to phases.
//!
//! A counter shows the energy up to its last update. So a phase gets what its predecessor drew between that
//! update and the phase's begin, and lacks what it drew itself after the last update before its end. The lag
//! is half an update on average, so the phase is off by (update / 2) · ΔP, where ΔP is the difference of
//! power to what ran before it: always in the same direction, however often the phase is repeated. These
//! errors add up. Beside that, the lag varies evenly between 0 and an update at each end, which averages out.
//!
//! Powers are those of stretches, from one begin or end of a phase to the next. They lag, too: ΔP is measured
//! too small by about (update / 2) · (1 / length + 1 / length) of it, and is corrected for that. In stretches
//! of few updates that is too rough. There a phase is taken to be off by all that a whole update may hold: a
//! stretch drew at most its energy / (its length − update). Stretches that are not longer than an update say
//! nothing of powers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    attribution::window_report::{DomainAudit, WindowReport},
    model::{domain::Update, units::MicroJoules},
    text::seconds,
};

/// Standard deviations of a normal distribution within which 95 % are.
const NORMAL_95: f64 = 1.96;

/// Stretches of fewer updates are short.
const FEW_UPDATES: f64 = 10.0;

/// How far off the energy of phases may be. It shows as `0.123 J` or `at least 0.123 J`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lag {
    /// Errors in one direction, which add up.
    bias_joules: f64,
    /// Of errors that average out, joules squared.
    variance: f64,
    /// Whether that is the least it may be: the least update of a counter is all that is known of it, or a
    /// stretch is not longer than an update.
    pub is_least: bool,
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.is_least { "at least " } else { "" };
        write!(f, "{least}{:.3} J", self.joules())
    }
}

impl Lag {
    /// Half the width of an interval of at least about 95 %.
    pub fn joules(&self) -> f64 {
        self.bias_joules + NORMAL_95 * self.variance.sqrt()
    }

    /// Of a part of the energy.
    fn times(self, part: f64) -> Self {
        Self { bias_joules: part * self.bias_joules, variance: part.powi(2) * self.variance, ..self }
    }

    /// Of both together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            bias_joules: self.bias_joules + other.bias_joules,
            variance: self.variance + other.variance,
            is_least: self.is_least || other.is_least,
        }
    }
}

/// Energy of a domain in a stretch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    update: Update,
    measured: MicroJoules,
    attributed: MicroJoules,
    static_share: MicroJoules,
}

/// Windows in which the same phases are open. It has the domains whose counters were watched, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    length_ns: u64,
    domains: Vec<Spent>,
}

impl Stretch {
    /// Of a window, without domains.
    pub(crate) const fn new(length_ns: u64) -> Self {
        Self { length_ns, domains: Vec::new() }
    }

    /// Adds a domain.
    pub(crate) fn push(&mut self, spent: Spent) {
        self.domains.push(spent);
    }

    fn add(&mut self, other: &Self) {
        if self.domains.is_empty() {
            self.domains.clone_from(&other.domains);
        } else {
            self.domains.iter_mut().zip(&other.domains).for_each(|(sum, more)| sum.add(more));
        }
        self.length_ns = self.length_ns.saturating_add(other.length_ns);
    }

    /// Of a window; the domains that threads have a share of, and whose counters were watched.
    pub(super) fn of(report: &WindowReport) -> Self {
        let shared = report.domains.iter().filter(|audit| audit.is_shared);
        let spent = |audit: &DomainAudit| {
            Some(Spent::new(audit.update?, audit.measured, [audit.attributed, audit.static_share]))
        };
        Self { length_ns: report.length_ns, domains: shared.filter_map(spent).collect() }
    }

    fn joules(&self, domain: usize) -> f64 {
        self.domains.get(domain).map_or(0.0, |spent| spent.measured.joules())
    }
}

impl Spent {
    pub(crate) fn new(update: Update, measured: MicroJoules, [attributed, static_share]: [MicroJoules; 2]) -> Self {
        Self { update, measured, attributed, static_share }
    }

    fn add(&mut self, more: &Self) {
        self.measured = self.measured.saturating_add(more.measured);
        self.attributed = self.attributed.saturating_add(more.attributed);
        self.static_share = self.static_share.saturating_add(more.static_share);
    }

    /// The targets' part of what is divided; all of it if nothing was, because the counter did not advance.
    fn share(&self) -> f64 {
        let divided = self.measured.joules() - self.static_share.joules();
        if divided > 0.0 { (self.attributed.joules() / divided).min(1.0) } else { 1.0 }
    }
}

/// Follows a run's windows, and says of each phase that ends how far off it may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lags {
    /// The stretch that has not ended.
    now: Stretch,
    /// The one before it.
    before: Stretch,
    run: Stretch,
    /// Of the open phases, by path: what ran before each.
    begun: BTreeMap<String, Stretch>,
}

impl Lags {
    pub(crate) fn window(&mut self, window: &Stretch) {
        self.now.add(window);
        self.run.add(window);
    }

    /// Takes the paths that are open after a window. Returns those that have ended, each with its error.
    pub(crate) fn opened(&mut self, open: &BTreeSet<String>) -> Vec<(String, Lag)> {
        if self.begun.keys().eq(open) {
            return Vec::new();
        }
        let ended: Vec<String> = self.begun.keys().filter(|path| !open.contains(*path)).cloned().collect();
        let lag = |path: String| {
            let before = self.begun.remove(&path)?;
            Some((path, of_phase(&before, &self.now, &self.run)?))
        };
        let lags = ended.into_iter().filter_map(lag).collect();
        // Stretches without a window stand for nothing that ran.
        if self.now.length_ns > 0 {
            self.before = std::mem::take(&mut self.now);
        }
        for path in open {
            self.begun.entry(path.clone()).or_insert_with(|| self.before.clone());
        }
        lags
    }
}

/// The error of a phase that follows `before` and ends with `last`; `None` if no counter was watched.
fn of_phase(before: &Stretch, last: &Stretch, run: &Stretch) -> Option<Lag> {
    let of_domain = |(domain, spent): (usize, &Spent)| {
        let energies = [before, last].map(|stretch| (seconds(stretch.length_ns), stretch.joules(domain)));
        let mean_watts = run.joules(domain) / seconds(run.length_ns);
        of_domain(spent.update, energies, mean_watts).times(spent.share())
    };
    last.domains.iter().enumerate().map(of_domain).reduce(Lag::plus)
}

/// The error in all energy of a domain, by the lengths and energies of both stretches.
fn of_domain(update: Update, stretches: [(f64, f64); 2], mean_watts: f64) -> Lag {
    let update_s = f64::from(update.interval_us) / 1e6;
    let shortest_s = stretches.iter().map(|(length_s, _)| *length_s).fold(f64::INFINITY, f64::min);
    let watts = stretches.map(|(length_s, joules)| if length_s > 0.0 { joules / length_s } else { 0.0 });
    let largest = |values: [f64; 2]| values[0].max(values[1]);
    if shortest_s >= FEW_UPDATES * update_s {
        let measured = 1.0 - update_s / 2.0 * stretches.iter().map(|(length_s, _)| 1.0 / length_s).sum::<f64>();
        let bias_joules = update_s / 2.0 * (watts[1] - watts[0]).abs() / measured;
        // Of an even distribution, at both ends.
        let variance = update_s.powi(2) / 12.0 * watts.iter().map(|watts| watts.powi(2)).sum::<f64>();
        Lag { bias_joules, variance, is_least: update.is_least }
    } else if shortest_s > update_s {
        let most_watts = stretches.map(|(length_s, joules)| joules / (length_s - update_s));
        Lag { bias_joules: update_s * largest(most_watts), variance: 0.0, is_least: update.is_least }
    } else {
        let of_update = update_s * largest(watts).max(mean_watts);
        let of_both = stretches.iter().map(|(_, joules)| joules).sum::<f64>().max(update_s * mean_watts);
        Lag { bias_joules: of_update.min(of_both), variance: 0.0, is_least: true }
    }
}

#[cfg(test)]
mod simulation;
