//! Counts what the server does, for `/metrics`.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::StatusCode;

use crate::output::{Exposition, Families, Figure, Kind, Labels};

/// What answers have in common: path and status.
type Answers = (&'static str, StatusCode);

#[derive(Debug, Default)]
pub struct Counters {
    /// Their number and their time, ns.
    answers: Mutex<BTreeMap<Answers, (u64, u64)>>,
    scans: AtomicU64,
    hits: AtomicU64,
    joined: AtomicU64,
}

impl Counters {
    pub fn answered(&self, path: &'static str, status: StatusCode, time: Duration) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, sum_ns) = answers.entry((path, status)).or_default();
        *number += 1;
        *sum_ns = sum_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The data set is read for a question.
    pub fn scanned(&self) {
        self.scans.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer was known.
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// An equal question was being answered.
    pub fn joined(&self) {
        self.joined.fetch_add(1, Ordering::Relaxed);
    }

    /// OpenMetrics.
    pub fn text(&self, cache_bytes: u64) -> String {
        let mut text = Exposition::default();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let labels =
            |path: &str, status: &StatusCode| Labels::default().with("path", path).with("status", status.as_str());
        text.family("joular_serve_requests", Kind::Counter, "Requests that were answered");
        for ((path, status), (number, _)) in &answers {
            text.sample(&labels(path, status), Figure::whole(*number));
        }
        text.family(
            "joular_serve_answering_seconds",
            Kind::Counter,
            "Time from requests until their answers were known",
        );
        for ((path, status), (_, sum_ns)) in &answers {
            text.sample(&labels(path, status), Figure::nano(*sum_ns));
        }
        for (name, counter, help) in [
            ("joular_serve_scans", &self.scans, "Questions for which the data set was read"),
            ("joular_serve_cache_hits", &self.hits, "Questions whose answers were known"),
            ("joular_serve_joined", &self.joined, "Questions that waited for the answer to an equal one"),
        ] {
            text.family(name, Kind::Counter, help);
            text.sample(&Labels::default(), Figure::whole(counter.load(Ordering::Relaxed)));
        }
        text.family("joular_serve_cache_bytes", Kind::Gauge, "Memory of answers that are kept");
        text.sample(&Labels::default(), Figure::whole(cache_bytes));
        text.finish()
    }
}
