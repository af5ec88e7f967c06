//! Defines a session of a baseline, and makes it of a side and a side of it.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};

use super::Keep;
use crate::{
    events::RunInfo,
    model::{
        domain::{Domain, Label, Meter},
        policy::Policy,
        target_text::TargetText,
        units::{MicroJoules, UnixMicros},
    },
    report::{
        diff::{Key, Side, side::Spent},
        profile::{Load, Overview, Run, WindowSpan},
    },
    text::time,
};

/// Unknown keys are ignored: in a file of version 2, keys of the whole file stand beside these.
#[derive(Debug, Serialize, Deserialize)]
pub struct Session {
    /// As the user named it.
    name: Option<String>,
    is_whole: bool,
    label: Option<Label>,
    sources: Vec<String>,
    ambiguous_readings: u64,
    duration_ns: u64,
    load: Load,
    contexts: Vec<Context>,
    runs: Vec<OneRun>,
    total: Row,
    phases: Vec<Row>,
    rows: Vec<Row>,
    /// Rows of the data set that are not here, or are summed in one.
    pub rows_left_out: usize,
}

/// What decides whether runs can be compared; most runs share one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    host: TargetText,
    version: String,
    kernel: String,
    cpu_model: String,
    sockets: u32,
    online_cpus: u32,
    sampling_event: String,
    frequency_hz: u32,
    interval_ns: u64,
    energy_source: String,
    domains: Vec<String>,
    policy: Policy,
    /// That of the policy, which does not write it.
    #[serde(default)]
    watts_by: Option<String>,
}

/// A run, in the order of starts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneRun {
    run_id: String,
    started: UnixMicros,
    /// Place in `contexts`.
    context: usize,
    windows: usize,
    length_ns: u64,
    cpu_ns: u64,
    work: Option<f64>,
}

/// What the total, a phase or a row has, in the unit of the measure.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: TargetText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<TargetText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<TargetText>,
    /// By run.
    amounts: Vec<u64>,
    inferred: u64,
    samples: u64,
    sampling_variance: f64,
}

impl Context {
    fn of(run: &RunInfo) -> Self {
        let mut domains: Vec<String> = run.domains.iter().map(|domain| domain.name.clone()).collect();
        domains.sort();
        domains.dedup();
        Self {
            host: run.host.clone(),
            version: run.version.clone(),
            kernel: run.kernel.clone(),
            cpu_model: run.cpu_model.clone(),
            sockets: run.sockets,
            online_cpus: run.online_cpus,
            sampling_event: run.sampling_event.clone(),
            frequency_hz: run.frequency_hz,
            interval_ns: run.interval_ns,
            energy_source: run.energy_source.clone(),
            domains,
            policy: run.policy.clone(),
            watts_by: run.policy.watts_by.clone(),
        }
    }

    fn run(&self, run: &OneRun, label: Option<Label>) -> Run {
        let Self { host, version, kernel, cpu_model, sampling_event, energy_source, watts_by, .. } = self.clone();
        let domain =
            |name: &String| Domain::new(name, None, &energy_source, label.unwrap_or(Label::Modelled), Meter::Power);
        let info = RunInfo {
            run_id: run.run_id.clone(),
            started: run.started,
            sockets: self.sockets,
            online_cpus: self.online_cpus,
            frequency_hz: self.frequency_hz,
            interval_ns: self.interval_ns,
            domains: self.domains.iter().map(domain).collect(),
            host,
            version,
            kernel,
            cpu_model,
            sampling_event,
            energy_source,
            policy: Policy { watts_by, ..self.policy.clone() },
            ..RunInfo::default()
        };
        Run { info, ..Run::default() }
    }
}

impl Session {
    /// Of a side that has only the rows that are kept.
    pub fn of(side: &Side, keep: &Keep, rows_left_out: usize) -> Self {
        let mut order: Vec<usize> = (0..side.runs.len()).collect();
        order.sort_by_key(|run| (side.runs.get(*run).map(|run| run.info.started), *run));
        let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(place, run)| (*run, place)).collect();
        let mut contexts: Vec<Context> = Vec::new();
        let mut runs = Vec::new();
        for (number, run) in order.iter().filter_map(|run| side.runs.get(*run)).enumerate() {
            let context = Context::of(&run.info);
            let known = contexts.iter().position(|known| *known == context).unwrap_or_else(|| {
                contexts.push(context);
                contexts.len() - 1
            });
            runs.push(OneRun {
                run_id: run.info.run_id.clone(),
                started: run.info.started,
                context: known,
                windows: 0,
                length_ns: 0,
                cpu_ns: 0,
                work: keep.work.get(number).copied(),
            });
        }
        for (window, cpu_ns) in side.windows.iter().zip(&side.cpu_of_windows) {
            if let Some(run) = place.get(&window.run).and_then(|place| runs.get_mut(*place)) {
                run.windows += 1;
                run.length_ns = run.length_ns.saturating_add(window.length_ns);
                run.cpu_ns = run.cpu_ns.saturating_add(*cpu_ns);
            }
        }
        let row = |key: &Key, spent: &Spent| {
            let mut amounts = vec![0_u64; side.runs.len()];
            for (window, amount) in &spent.by_window {
                let run = side.windows.get(*window).and_then(|window| place.get(&window.run));
                if let Some(sum) = run.and_then(|place| amounts.get_mut(*place)) {
                    *sum = sum.saturating_add(amount.0);
                }
            }
            Row {
                name: key.name.clone(),
                signature: key.signature.clone(),
                module: key.module.clone(),
                amounts,
                inferred: spent.inferred.0,
                samples: spent.samples,
                sampling_variance: spent.sampling,
            }
        };
        let overview = &side.overview;
        Self {
            name: keep.session.clone(),
            is_whole: side.is_whole,
            label: overview.label,
            sources: overview.sources.clone(),
            ambiguous_readings: overview.ambiguous,
            duration_ns: overview.duration_ns,
            load: overview.load.clone(),
            contexts,
            runs,
            total: row(&Key::named("total"), &side.total),
            phases: side.phases.iter().map(|(name, spent)| row(&Key::named(name.clone()), spent)).collect(),
            rows: side.rows.iter().map(|(key, spent)| row(key, spent)).collect(),
            rows_left_out,
        }
    }

    /// Its name, or else when it began.
    pub fn title(&self) -> String {
        let first = || self.runs.iter().map(|run| run.started).min().unwrap_or_default();
        self.name.clone().unwrap_or_else(|| time(first()))
    }

    /// When each run began, and its units of work.
    pub fn work(&self) -> impl Iterator<Item = (UnixMicros, Option<f64>)> {
        self.runs.iter().map(|run| (run.started, run.work))
    }

    /// # Errors
    /// What does not hold together.
    pub fn side(&self, path: &Path) -> Result<Side, String> {
        if self.runs.is_empty() {
            return Err("it has no run".to_owned());
        }
        if self.runs.iter().filter_map(|run| run.work).any(|work| !(work.is_finite() && work > 0.0)) {
            return Err("an amount of work is not above 0".to_owned());
        }
        let context = |run: &OneRun| self.contexts.get(run.context).map(|context| context.run(run, self.label));
        let runs: Option<Vec<Run>> = self.runs.iter().map(context).collect();
        let with_windows = || self.runs.iter().enumerate().filter(|(_, run)| run.windows > 0);
        let span =
            |(number, run): (usize, &OneRun)| WindowSpan { run: number, start: run.started, length_ns: run.length_ns };
        let spent = |row: &Row| self.spent(row);
        let mut rows = BTreeMap::new();
        for row in &self.rows {
            let key = Key { name: row.name.clone(), signature: row.signature.clone(), module: row.module.clone() };
            if rows.insert(key, spent(row)?).is_some() {
                return Err(format!("row {} is there twice", row.name));
            }
        }
        let phases: Result<_, String> = self.phases.iter().map(|row| Ok((row.name.clone(), spent(row)?))).collect();
        Ok(Side {
            store: None,
            is_whole: self.is_whole,
            data: path.to_owned(),
            runs: runs.ok_or("a run has a context that is not there")?,
            sessions: vec![0; self.runs.len()],
            overview: Overview {
                label: self.label,
                sources: self.sources.clone(),
                ambiguous: self.ambiguous_readings,
                duration_ns: self.duration_ns,
                load: self.load.clone(),
                ..Overview::default()
            },
            windows: with_windows().map(span).collect(),
            window_count: self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.windows)),
            cpu_ns: self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.cpu_ns)),
            total: spent(&self.total)?,
            phases: phases?,
            lags: BTreeMap::new(),
            rows,
            cpu_of_windows: with_windows().map(|(_, run)| run.cpu_ns).collect(),
            is_baseline: true,
            has_measure: true,
        })
    }

    /// Amounts by run, of runs with windows.
    fn spent(&self, row: &Row) -> Result<Spent, String> {
        if row.amounts.len() != self.runs.len() {
            let (values, runs) = (row.amounts.len(), self.runs.len());
            return Err(format!("{} has {values} amounts of {runs} runs", row.name));
        }
        if !(row.sampling_variance.is_finite() && row.sampling_variance >= 0.0) {
            return Err(format!("{} has a variance that is negative or not finite", row.name));
        }
        let with_windows = self.runs.iter().zip(&row.amounts).filter(|(run, _)| run.windows > 0);
        let amounts = || with_windows.clone().map(|(_, amount)| MicroJoules(*amount));
        Ok(Spent {
            energy: amounts().fold(MicroJoules(0), MicroJoules::saturating_add),
            samples: row.samples,
            inferred: MicroJoules(row.inferred),
            by_window: amounts().enumerate().collect(),
            sampling: row.sampling_variance,
        })
    }
}
