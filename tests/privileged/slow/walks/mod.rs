//! Walks what users do by the README and the documents. Each walk types command lines one after the other, as somebody
//! of one trade would, prints a row of what is seen at each step, and fails where somebody would stumble.

mod ci;
mod files;
mod java;
mod operations;
mod paper;
mod terminal;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{Jvm, Workload},
    notes,
    process::Finished,
    profiler::{Output, Run},
};
use serde_json::Value;

/// An experiment of ten runs takes longest: each loads the eBPF programs anew.
const LIMIT: Duration = Duration::from_secs(120);
/// The modelled energy of every machine, for commands that have it behind their names.
const MODELLED: [&str; 4] = ["--energy", "model", "--model-watts", "10:30"];
/// Letters of a line that a row shows.
const SHOWN: usize = 200;

/// Somebody's walk, with a folder for its files.
struct Walk {
    who: &'static str,
    output: Output,
    steps: u32,
}

impl Walk {
    fn of(who: &'static str) -> Result<Self> {
        Ok(Self { who, output: Output::new()?, steps: 0 })
    }

    /// Where a file or directory of this walk is.
    fn at(&self, name: &str) -> String {
        self.output.beside(name).display().to_string()
    }

    /// A command line as its user would type it in the walk's folder.
    fn typed(&self, run: &Run) -> String {
        let command = run.command();
        let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
        let line = std::iter::once("joular-bpf".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
        line.replace(&self.at(""), "")
    }

    /// Runs a command line to its own end, which must have this code. `seen` finds in its output what the row shows.
    fn step(&mut self, run: Run, code: i32, seen: impl FnOnce(&Finished) -> Result<String>) -> Result<Finished> {
        let typed = self.typed(&run);
        let finished = run.finish(LIMIT)?;
        ensure!(finished.code() == Some(code), "{}: {typed}: {finished:?}", self.who);
        let seen = seen(&finished).with_context(|| format!("{}: {typed}: {finished:?}", self.who))?;
        self.saw(&typed, &seen);
        Ok(finished)
    }

    /// Prints a row.
    fn saw(&mut self, typed: &str, seen: &str) {
        self.steps += 1;
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let seen: String = seen.replace(&self.at(""), "").chars().take(SHOWN).collect();
        println!("| {} | `{}` | {} |", self.who, cell(typed), cell(&seen));
    }

    fn end(self) {
        notes::figure(&format!("the walk of the {}: {} steps", self.who, self.steps));
    }
}

fn joular(words: &[&str]) -> Run {
    words.iter().fold(Run::new(), |run, word| run.argument(word))
}

fn record(words: &[&str]) -> Run {
    joular(&[&["record"], &MODELLED[..], words].concat())
}

/// A JVM of two methods that are busy all the time.
fn split() -> Result<Jvm> {
    let workload = Workload::new("Split").dont_inline("Split::heavy").dont_inline("Split::light");
    workload.argument("seconds=300").start()
}

/// A script of a shell that counts so far.
fn counting(to: &str) -> String {
    format!("i=0; while [ $i -lt {to} ]; do i=$((i+1)); done")
}

/// An experiment of two variants, one of which has four times the work.
fn experiment(directory: &str, options: &[&str]) -> Run {
    let [base, more] =
        [("base", "150000"), ("more", "600000")].map(|(name, to)| format!("{name}=sh -c '{}'", counting(to)));
    let measured = ["--repeat", "3", "--seed", "7", "-o", directory, "--variant", &base, "--variant", &more];
    joular(&[&["run"], &MODELLED[..], &measured, options].concat())
}

/// The first line that has this.
fn line_with(text: &str, part: &str) -> Result<String> {
    let line = text.lines().find(|line| line.contains(part));
    line.map(|line| line.trim().to_owned()).with_context(|| format!("no line has '{part}'"))
}

fn json(finished: &Finished) -> Result<Value> {
    serde_json::from_str(&finished.stdout).with_context(|| format!("no JSON: {finished:?}"))
}

#[test]
fn users_who_follow_the_documents_do_not_stumble() -> Result<()> {
    println!("| walk | command | what is seen |\n|---|---|---|");
    java::walk()?;
    operations::walk()?;
    ci::walk()?;
    paper::walk()?;
    terminal::walk()?;
    files::walk()
}
