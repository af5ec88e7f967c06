//! Measures questions about one service of a fleet of 2 000 hosts, whose bucket a server on this machine makes up, 20 ms for
//! each answer. The figures are time, memory and requests; `tests/it/large_fleet.rs` checks the rest.

use std::{path::Path, time::Duration};

use anyhow::Result;
use joular_tests::fleet::{ALL_DAYS, Answer, Fleet, HOUR};

use super::figure::Figure;
use crate::shell;

const HOSTS: u32 = 2000;
const RUNS: usize = 5;
const LIMIT: Duration = Duration::from_secs(600);

/// A question: what it is called, of which tier, for which time, and what to reach.
struct Question {
    name: &'static str,
    tier: &'static str,
    times: [&'static str; 2],
    seconds: &'static str,
    requests: &'static str,
}

const QUESTIONS: [Question; 3] = [
    Question { name: "an hour, as shipped", tier: "", times: HOUR, seconds: "≤ 15 s", requests: "≤ 8220 requests" },
    Question {
        name: "an hour, minutes", tier: "minutes", times: HOUR, seconds: "≤ 2 s", requests: "≤ 200 requests"
    },
    Question {
        name: "30 days, hourly", tier: "hourly", times: ALL_DAYS, seconds: "≤ 2 s", requests: "≤ 200 requests"
    },
];

pub fn measure(program: &Path) -> Result<Vec<Figure>> {
    shell::step("a service of 2 000 hosts, in a bucket");
    let mut fleet = Fleet::of(HOSTS)?;
    let mut figures = Vec::new();
    for question in QUESTIONS {
        let asked = (0..RUNS).map(|_| fleet.ask(program, question.tier, question.times, LIMIT));
        figures.extend(of_answers(&question, &asked.collect::<Result<Vec<_>>>()?));
    }
    Ok(figures)
}

fn of_answers(question: &Question, answers: &[Answer]) -> [Figure; 3] {
    let figure = |what: &str, unit, target, method: &str, values: Vec<f64>| Figure {
        name: format!("{what}, {}", question.name),
        unit,
        target,
        method: format!("`report --service`, 2 000 hosts, 20 ms a request; {method}"),
        values,
        digits: 1,
    };
    let of = |value: fn(&Answer) -> f64| answers.iter().map(value).collect();
    [
        figure("time", "s", question.seconds, "from start to end", of(|answer| answer.seconds)),
        figure("memory", "MiB", "≤ 300 MiB", "`VmHWM`", of(|answer| answer.peak_kib as f64 / 1024.0)),
        figure("requests", "requests", question.requests, "of all kinds", of(|answer| answer.count(None) as f64)),
    ]
}
