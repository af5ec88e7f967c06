//! Counts verdicts by JVM and scenario.

use std::{collections::BTreeMap, fmt, fs, io::Write as _};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{CallLines, Root, Stack, Verdict, judge, scenario, verdict::abbreviated};
use crate::paths;

/// Examples kept of each kind of error: enough to see what is wrong.
const EXAMPLES: usize = 4;
/// How examples of them begin.
const ERROR: &str = "wrong";

/// The largest part of a short-lived scenario's samples whose code may be freed before anyone can
/// ask for its name. The code's life depends on when the JVM collects garbage; the delay of the
/// question depends on who else wants the CPU.
const FREED: f64 = 0.5;

/// The largest part of a scenario's samples that may be marked, while of all samples of
/// a JVM no more than tolerated are: one stack that could not be named when it came may
/// be what a scenario does for most of a second.
const MARKED: f64 = 0.05;

/// The most samples of a kind that has this share: three standard deviations above
/// what is expected, and the one that a rare event needs to happen at all.
fn likely_most(share: f64, samples: f64) -> f64 {
    if share == 0.0 {
        return 0.0;
    }
    let expected = share * samples;
    expected + 3.0 * (expected * (1.0 - share)).sqrt() + 1.0
}

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
    /// Marked samples, by what the marker says.
    pub causes: BTreeMap<String, f64>,
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

    /// Marked, because the JVM freed or reused what names their methods.
    pub fn freed(&self) -> f64 {
        ["[evicted]", "[stale]"].iter().filter_map(|cause| self.causes.get(*cause)).sum()
    }

    fn add(&mut self, stack: &Stack, verdict: Verdict) {
        let (count, example) = match verdict {
            Verdict::Exact => (&mut self.exact, None),
            Verdict::OnItsWay => (&mut self.on_its_way, None),
            Verdict::Marked(cause) => {
                *self.causes.entry(cause.clone()).or_default() += stack.samples;
                (&mut self.marked, Some(format!("{cause} in {}", abbreviated(&stack.frames))))
            }
            Verdict::WrongPath(why) => (&mut self.wrong_path, Some(format!("{ERROR} path, {why}"))),
            Verdict::WrongMethod(why) => (&mut self.wrong_method, Some(format!("{ERROR} method, {why}"))),
        };
        *count += stack.samples;
        self.frames += stack.samples * stack.frames.len() as f64;
        self.unresolved += stack.samples * stack.frames.iter().filter(|frame| frame.is_marker()).count() as f64;
        if let Some(example) = example {
            // Marks are many: an error takes the place of one.
            let errors = self.examples.partition_point(|kept| kept.starts_with(ERROR));
            let place = if example.starts_with(ERROR) { errors } else { self.examples.len() };
            self.examples.insert(place, example);
            self.examples.truncate(EXAMPLES);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.exact += other.exact;
        self.on_its_way += other.on_its_way;
        self.marked += other.marked;
        self.wrong_path += other.wrong_path;
        self.wrong_method += other.wrong_method;
        self.frames += other.frames;
        self.unresolved += other.unresolved;
        for (cause, samples) in &other.causes {
            *self.causes.entry(cause.clone()).or_default() += samples;
        }
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

    /// Complaints, if all but `tolerated` of the stacks are to be right and none is to have a
    /// method that cannot be there. What a JVM has freed does not count, where it frees all the
    /// time.
    pub fn complaints(&self, tolerated: f64) -> Vec<String> {
        let mut complaints = Vec::new();
        let (mut not_right, mut samples) = (0.0, 0.0);
        for (name, tally) in &self.scenarios {
            let Some(scenario) = scenario(name) else { continue };
            let mut expect = |what: &str, count: f64, most: f64| {
                if count > likely_most(most, tally.samples()) {
                    complaints.push(self.complaint(name, tally, what, count));
                }
            };
            let freed = if scenario.is_short_lived { tally.freed() } else { 0.0 };
            expect("have wrong methods", tally.wrong_method, 0.0);
            expect("are on wrong paths", tally.wrong_path, tolerated);
            expect("are marked as incomplete", tally.marked - freed, MARKED);
            expect("are of code that was freed", freed, FREED);
            not_right += tally.samples() - tally.right() - freed;
            samples += tally.samples();
        }
        if not_right > likely_most(tolerated, samples) {
            complaints.push(format!("{}: {not_right} of {samples} samples are not right", self.jvm));
        }
        complaints
    }

    /// What does not reach its leaf, though the JVM says of all code what it is.
    pub fn complaints_of_leaves(&self) -> Vec<String> {
        let short = self.scenarios.iter().filter(|(name, tally)| {
            scenario(name).is_some_and(|is| tally.on_its_way > likely_most(is.on_its_way, tally.samples()))
        });
        short.map(|(name, tally)| self.complaint(name, tally, "are short of a leaf", tally.on_its_way)).collect()
    }

    fn complaint(&self, scenario: &str, tally: &Tally, what: &str, count: f64) -> String {
        let (jvm, all, examples) = (&self.jvm, tally.samples(), tally.examples.join("\n    "));
        format!("{jvm} {scenario}: {count} of {all} samples {what}\n    {examples}")
    }

    /// Appends a JSON object per scenario to `target/known-stacks.jsonl`.
    pub fn save(&self) -> Result<()> {
        let path = paths::target().join("known-stacks.jsonl");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path).context("opening the report")?;
        for (name, tally) in &self.scenarios {
            let record = json!({
                "jvm": self.jvm, "scenario": name, "samples": tally.samples(), "exact": tally.exact,
                "on_its_way": tally.on_its_way, "marked": tally.marked, "wrong_path": tally.wrong_path,
                "wrong_method": tally.wrong_method, "causes": tally.causes, "examples": tally.examples, "frames_per_sample": tally.frames / tally.samples(),
                "unresolved_share": tally.unresolved / tally.frames,
            });
            // One write, so that the lines of tests that run side by side do not mix.
            let line = format!("{record}\n");
            file.write_all(line.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
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
            for (cause, samples) in &tally.causes {
                writeln!(f, "{:<22} {name:<16} {samples:>7} marked {cause}", self.jvm)?;
            }
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
        assert_eq!(report(Tally { marked: 100.0, ..good.clone() }).len(), 1, "more than tolerated of all");
        assert_eq!(report(Tally { marked: 1_000.0, ..good }).len(), 2);
    }

    #[test]
    fn freed_code_is_no_error_where_code_is_short_lived() {
        let causes = BTreeMap::from([("[evicted]".to_owned(), 80.0), ("[stale]".to_owned(), 20.0)]);
        let tally = Tally { exact: 1_000.0, marked: 100.0, causes, ..Tally::default() };
        let of = |name: &str, tally| Report { jvm: "test".to_owned(), scenarios: vec![(name.to_owned(), tally)] };
        assert_eq!(of("hidden", tally.clone()).complaints(0.005).len(), 0);
        assert_eq!(of("lambdas", tally.clone()).complaints(0.005).len(), 2);
        assert_eq!(of("hidden", Tally { marked: 200.0, ..tally }).complaints(0.005).len(), 2, "others' marks");
    }

    #[test]
    fn leaves_are_to_be_reached_where_the_jvm_tells_them() {
        let of = |on_its_way| {
            let tally = Tally { exact: 1_000.0, on_its_way, ..Tally::default() };
            Report { jvm: "test".to_owned(), scenarios: vec![("lambdas".to_owned(), tally)] }
        };
        assert_eq!((of(200.0).complaints(0.005).len(), of(200.0).complaints_of_leaves().len()), (0, 1));
        assert_eq!(of(40.0).complaints_of_leaves().len(), 0);
    }

    #[test]
    fn few_samples_leave_room_for_chance() {
        assert_eq!((likely_most(0.0, 1e6), likely_most(0.005, 0.0)), (0.0, 1.0));
        assert!(likely_most(0.005, 100.0) < 5.0 && likely_most(0.005, 1e6) < 5_300.0);
    }
}
