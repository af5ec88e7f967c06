//! What has run, with its time and what it said.

use std::{
    collections::BTreeSet,
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use joular_tests::notes;

use crate::shell;

#[derive(Default)]
pub struct Checks {
    passed: usize,
    failed: Vec<String>,
    /// What did not run, and why; figures that tests publish.
    notes: BTreeSet<String>,
}

/// What a check gave, and how long it took.
pub type Timed<T> = (Result<T>, Duration);

pub fn timed<T>(check: impl FnOnce() -> Result<T>) -> Timed<T> {
    let start = Instant::now();
    let result = check();
    (result, start.elapsed())
}

impl Checks {
    /// Runs one check and reports it.
    pub fn check<T>(&mut self, name: &str, check: impl FnOnce() -> Result<T>) -> Option<T> {
        shell::step(name);
        self.report(name, timed(check))
    }

    /// Reports a check that ran beside others.
    pub fn join<T>(&mut self, name: &str, check: ScopedJoinHandle<'_, Timed<T>>) -> Option<T> {
        let panicked = |_| (Err(anyhow!("it panicked")), Duration::ZERO);
        self.report(name, check.join().unwrap_or_else(panicked))
    }

    fn report<T>(&mut self, name: &str, (result, took): Timed<T>) -> Option<T> {
        let took = seconds(took);
        match result {
            Ok(value) => {
                self.passed += 1;
                println!("== {name}: passed in {took}");
                Some(value)
            }
            Err(error) => {
                self.failed.push(name.to_owned());
                println!("== {name}: FAILED in {took}: {error:#}");
                None
            }
        }
    }

    pub fn skip(&mut self, name: &str, reason: &str) {
        println!("== {name}: skipped: {reason}");
        self.notes.insert(format!("{}{name}: {reason}", notes::SKIPPED));
    }

    /// Says how a task ended, after what tests noted, a line each.
    pub fn conclude(mut self, task: &str, noted: &str, took: Duration) -> Result<()> {
        self.notes.extend(noted.lines().map(str::to_owned));
        for note in &self.notes {
            println!("{note}");
        }
        let skipped = match self.notes.iter().filter(|note| note.starts_with(notes::SKIPPED)).count() {
            0 => String::new(),
            count => format!(", {count} skipped (see above)"),
        };
        if !self.failed.is_empty() {
            bail!("{} checks passed, FAILED: {}{skipped}, in {}", self.passed, self.failed.join(", "), seconds(took));
        }
        println!("{task}: all {} checks passed{skipped}, in {}", self.passed, seconds(took));
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
