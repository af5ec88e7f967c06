//! Joins the sessions of a baseline to one side of a comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::target_text::TargetText,
    report::{
        diff::{CompareBy, Key, Side, side::Spent},
        profile::{Overview, WindowSpan},
    },
};

impl Side {
    /// Adds a session; rows are `by` this.
    pub(super) fn with(self, session: Self, by: CompareBy) -> Self {
        let (runs, windows) = (self.runs.len(), self.windows.len());
        let number = self.sessions.iter().max().map_or(0, |last| last + 1);
        let keys: BTreeSet<&Key> = self.rows.keys().chain(session.rows.keys()).collect();
        let rows = keys.into_iter().map(|key| {
            let sum = self.spent(key, by).and_then(&session.spent(key, by), windows);
            (key.clone(), sum)
        });
        let rows = rows.collect();
        let names: BTreeSet<&TargetText> = self.phases.keys().chain(session.phases.keys()).collect();
        let phases = names.into_iter().map(|name| {
            let [one, other] = [&self, &session].map(|side| side.phases.get(name).cloned().unwrap_or_default());
            (name.clone(), one.and_then(&other, windows))
        });
        let phases = phases.collect();
        let shifted = session.windows.iter().map(|window| WindowSpan { run: window.run + runs, ..*window });
        Self {
            store: None,
            is_whole: self.is_whole && session.is_whole,
            windows: self.windows.into_iter().chain(shifted).collect(),
            runs: self.runs.into_iter().chain(session.runs).collect(),
            sessions: self.sessions.into_iter().chain(session.sessions.iter().map(|of_one| of_one + number)).collect(),
            overview: self.overview.with(session.overview),
            window_count: self.window_count.saturating_add(session.window_count),
            cpu_ns: self.cpu_ns.saturating_add(session.cpu_ns),
            total: self.total.and_then(&session.total, windows),
            phases,
            rows,
            cpu_of_windows: self.cpu_of_windows.into_iter().chain(session.cpu_of_windows).collect(),
            has_measure: self.has_measure || session.has_measure,
            data: self.data,
            is_baseline: self.is_baseline,
            // A baseline keeps none.
            lags: BTreeMap::new(),
        }
    }
}

impl Overview {
    /// What a baseline has of it.
    fn with(mut self, session: Self) -> Self {
        self.label = self.label.max(session.label);
        let sources: BTreeSet<String> = self.sources.into_iter().chain(session.sources).collect();
        self.sources = sources.into_iter().collect();
        self.ambiguous = self.ambiguous.saturating_add(session.ambiguous);
        self.duration_ns = self.duration_ns.saturating_add(session.duration_ns);
        self.load.add(session.load);
        self
    }
}

impl Spent {
    /// Errors of rows of one thread compensate each other, so the sum of their variances is too large, not too small.
    pub(super) fn plus(self, other: &Self) -> Self {
        self.and_then(other, 0)
    }

    /// With what follows after so many windows.
    fn and_then(mut self, later: &Self, windows: usize) -> Self {
        self.energy = self.energy.saturating_add(later.energy);
        self.inferred = self.inferred.saturating_add(later.inferred);
        self.samples = self.samples.saturating_add(later.samples);
        self.by_window.extend(later.by_window.iter().map(|(window, amount)| (window + windows, *amount)));
        self.sampling += later.sampling;
        self
    }
}
