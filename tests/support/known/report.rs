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

    /// What does not hold, if all but `tolerated` of the stacks are to be right, none
    /// is to have a method that cannot be there, and leaves are to be reached.
    pub fn complaints(&self, tolerated: f64) -> Vec<String> {
        let mut complaints = Vec::new();
        let (mut right, mut samples) = (0.0, 0.0);
        for (name, tally) in &self.scenarios {
            let Some(scenario) = scenario(name) else { continue };
            let mut expect = |what: &str, count: f64, most: f64| {
                if count > most * tally.samples() {
                    let (jvm, all, examples) = (&self.jvm, tally.samples(), tally.examples.join("\n    "));
                    complaints.push(format!("{jvm} {name}: {count} of {all} samples {what}\n    {examples}"));
                }
            };
            expect("have wrong methods", tally.wrong_method, 0.0);
            expect("are on wrong paths", tally.wrong_path, tolerated.max(1.5 / tally.samples()));
            expect("are short of a leaf", tally.on_its_way, scenario.on_its_way);
            expect("are marked as incomplete", tally.marked, scenario.marked.max(1.5 / tally.samples()));
            // What is honestly gone does not count here: it has a limit of its own.
            right += tally.right() + if scenario.marked > tolerated { tally.marked } else { 0.0 };
            samples += tally.samples();
        }
        if right < (1.0 - tolerated) * samples {
            complaints.push(format!("{}: {:.2} % of {samples} samples are right", self.jvm, 100.0 * right / samples));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tally: Tally) -> Vec<String> {
        Report { jvm: "test".to_owned(), scenarios: vec![("recurse-10".to_owned(), tally)] }.complaints(0.005)
    }

    #[test]
    fn each_kind_of_error_is_complained_about() {
        let good = Tally { exact: 10_000.0, ..Tally::default() };
        assert_eq!(report(good.clone()), Vec::<String>::new());
        assert_eq!(report(Tally { wrong_path: 40.0, marked: 40.0, ..good.clone() }).len(), 1, "together too many");
        assert_eq!(report(Tally { wrong_path: 40.0, ..good.clone() }).len(), 0);
        assert_eq!(report(Tally { wrong_method: 1.0, ..good.clone() }).len(), 1, "not a single one");
        assert_eq!(report(Tally { wrong_path: 100.0, ..good.clone() }).len(), 2);
        assert_eq!(report(Tally { marked: 100.0, ..good.clone() }).len(), 2);
        assert_eq!(report(Tally { on_its_way: 600.0, ..good }).len(), 1);
    }
}
