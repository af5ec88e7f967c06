//! Verdicts, counted by JVM and scenario.

use std::{fmt, fs, io::Write as _};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{CallLines, Root, Stack, Verdict, judge, scenario};
use crate::paths;

/// Examples kept of each kind of error: enough to see what is wrong.
const EXAMPLES: usize = 3;

/// Samples of one scenario, by verdict.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub exact: f64,
    pub on_its_way: f64,
    pub marked: f64,
    pub wrong_path: f64,
    pub wrong_method: f64,
    /// Summed over samples.
    pub frames: f64,
    /// Of them: markers, which say that something is not known.
    pub unresolved: f64,
    pub examples: Vec<String>,
}

impl Tally {
    pub fn samples(&self) -> f64 {
        self.exact + self.on_its_way + self.marked + self.wrong_path + self.wrong_method
    }

    /// Whole and right, whether or not the leaf was reached.
    pub fn right(&self) -> f64 {
        self.exact + self.on_its_way
    }

    fn add(&mut self, stack: &Stack, verdict: Verdict) {
        let (count, example) = match verdict {
            Verdict::Exact => (&mut self.exact, None),
            Verdict::OnItsWay => (&mut self.on_its_way, None),
            Verdict::Marked(_) => (&mut self.marked, None),
            Verdict::WrongPath(why) => (&mut self.wrong_path, Some(why)),
            Verdict::WrongMethod(why) => (&mut self.wrong_method, Some(why)),
        };
        *count += stack.samples;
        self.frames += stack.samples * stack.frames.len() as f64;
        self.unresolved += stack.samples * stack.frames.iter().filter(|frame| frame.is_marker()).count() as f64;
        self.examples.extend(example.filter(|_| self.examples.len() < EXAMPLES));
    }

    fn merge(&mut self, other: &Self) {
        self.exact += other.exact;
        self.on_its_way += other.on_its_way;
        self.marked += other.marked;
        self.wrong_path += other.wrong_path;
        self.wrong_method += other.wrong_method;
        self.frames += other.frames;
        self.unresolved += other.unresolved;
    }
}

/// What became of the scenarios of one JVM.
pub struct Report {
    /// `21.0.8 G1 default`
    pub jvm: String,
    pub scenarios: Vec<(String, Tally)>,
}

impl Report {
    /// Judges the stacks of all threads that are scenarios.
    pub fn of(jvm: impl Into<String>, stacks: &[Stack], lines: &CallLines, root: Root) -> Self {
        let mut scenarios: Vec<(String, Tally)> = Vec::new();
        for stack in stacks {
            let Some(scenario) = scenario(&stack.thread) else { continue };
            if scenarios.last().is_none_or(|(last, _)| *last != stack.thread) {
                scenarios.push((stack.thread.clone(), Tally::default()));
            }
            if let Some((_, tally)) = scenarios.last_mut() {
                tally.add(stack, judge(&scenario, &stack.frames, lines, root));
            }
        }
        Self { jvm: jvm.into(), scenarios }
    }

    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for (_, tally) in &self.scenarios {
            total.merge(tally);
        }
        total
    }

    pub fn of_scenario(&self, name: &str) -> Option<&Tally> {
        self.scenarios.iter().find(|(scenario, _)| scenario == name).map(|(_, tally)| tally)
    }

    /// What does not hold, if every stack is to be right but `tolerated` of them,
    /// none is to have a method that cannot be there, and leaves are to be reached.
    pub fn complaints(&self, tolerated: f64) -> Vec<String> {
        let mut complaints = Vec::new();
        let total = self.total();
        if total.right() < (1.0 - tolerated) * total.samples() {
            let share = 100.0 * total.right() / total.samples();
            complaints.push(format!("{}: {share:.2} % of {} samples are right", self.jvm, total.samples()));
        }
        for (name, tally) in &self.scenarios {
            if tally.wrong_method > 0.0 {
                let (jvm, count) = (&self.jvm, tally.wrong_method);
                complaints.push(format!("{jvm} {name}: {count} samples in wrong methods: {:#?}", tally.examples));
            } else if tally.wrong_path > tolerated * tally.samples() {
                complaints
                    .push(format!("{} {name}: {} wrong paths: {:#?}", self.jvm, tally.wrong_path, tally.examples));
            }
            let most = scenario(name).map_or(1.0, |scenario| scenario.on_its_way);
            if tally.on_its_way > most * tally.samples() {
                let count = tally.on_its_way;
                complaints.push(format!("{} {name}: {count} of {} samples short of a leaf", self.jvm, tally.samples()));
            }
        }
        complaints
    }

    /// Appends a JSON object per scenario to `target/known-stacks.jsonl`.
    pub fn save(&self) -> Result<()> {
        let path = paths::target().join("known-stacks.jsonl");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).context("opening the report")?;
        for (name, tally) in &self.scenarios {
            let record = json!({
                "jvm": self.jvm, "scenario": name, "samples": tally.samples(), "exact": tally.exact,
                "on_its_way": tally.on_its_way, "marked": tally.marked, "wrong_path": tally.wrong_path,
                "wrong_method": tally.wrong_method, "frames_per_sample": tally.frames / tally.samples(),
                "unresolved_share": tally.unresolved / tally.frames,
            });
            writeln!(file, "{record}").with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = self.scenarios.clone();
        rows.push(("all".to_owned(), self.total()));
        for (name, tally) in &rows {
            let percent = |part: f64| 100.0 * part / tally.samples();
            writeln!(
                f,
                "{:<22} {name:<16} {:>7} samples {:>7.2} % exact {:>6.2} % on its way {:>6.2} % marked \
                 {:>6.2} % wrong path {:>6.2} % wrong method {:>7.1} frames {:>6.3} % unresolved",
                self.jvm,
                tally.samples(),
                percent(tally.exact),
                percent(tally.on_its_way),
                percent(tally.marked),
                percent(tally.wrong_path),
                percent(tally.wrong_method),
                tally.frames / tally.samples(),
                100.0 * tally.unresolved / tally.frames,
            )?;
        }
        Ok(())
    }
}
