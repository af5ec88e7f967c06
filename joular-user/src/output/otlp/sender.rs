//! Sends what waits, on a thread of its own.

use std::{
    io::{self, Write as _},
    sync::{Arc, atomic::Ordering},
    thread,
};

use flate2::{Compression, write::GzEncoder};
use joular_data::{
    model::target_text::TargetText,
    report::{export::otlp::write_profile, profile::Profile},
};
use prost::Message as _;

use super::{Collector, Hooks, http, metrics, proto::Response, queue::Queue};
use crate::{failing::Failing, output::metrics::Moment};

const METRICS_PATH: &str = "/v1/metrics";
/// Longest text of a collector's that is shown.
const MAX_SHOWN_BYTES: usize = 200;

/// Why something did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PushError {
    /// It may arrive later.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "nothing is sent without the feature"))]
    Later(String),
    /// The collector does not want it.
    Refused(String),
}

/// Sends a request without metrics.
pub(super) fn push_nothing(collector: &Collector) -> Result<(), PushError> {
    let client = http::Client::new(collector.authority.as_deref(), &collector.headers).map_err(PushError::Refused)?;
    client.post(&format!("{}{METRICS_PATH}", collector.url), zipped(&[])?).map(drop)
}

/// What is sent to a path of its own.
struct Signal {
    name: &'static str,
    path: &'static str,
    failing: Failing<String>,
}

pub(super) struct Sender {
    collector: Collector,
    queue: Arc<Queue>,
    hooks: Hooks,
    client: http::Client,
    metrics: Signal,
    profiles: Signal,
}

impl Sender {
    /// Starts the thread, which ends when the queue does.
    pub(super) fn start(collector: Collector, queue: Arc<Queue>, hooks: Hooks) -> io::Result<()> {
        thread::Builder::new().name("joular-otlp".to_owned()).spawn(move || {
            (hooks.lower_priority)();
            match http::Client::new(collector.authority.as_deref(), &collector.headers) {
                Ok(client) => Self {
                    collector,
                    queue: Arc::clone(&queue),
                    hooks,
                    client,
                    metrics: Signal { name: "metrics", path: METRICS_PATH, failing: Failing::default() },
                    profiles: Signal { name: "profiles", path: "/v1development/profiles", failing: Failing::default() },
                }
                .run(),
                Err(error) => (hooks.warn)(&format!("nothing is pushed to {}: {error}", collector.url)),
            }
            queue.sender_gone();
        })?;
        Ok(())
    }

    fn run(mut self) {
        loop {
            let (moment, goes_on) = self.queue.wait();
            if let Some(moment) = moment {
                let outcome = self.push_metrics(&moment);
                self.tell(|sender| &mut sender.metrics, outcome);
            }
            while let Some(profile) = self.queue.next_profile() {
                let outcome = self.push_profile(&profile);
                let is_over = outcome.is_err();
                match &outcome {
                    Err(PushError::Later(_)) => self.queue.give_back(profile),
                    Err(PushError::Refused(_)) => {
                        self.queue.pushes.lost_profiles.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(()) => {}
                }
                self.tell(|sender| &mut sender.profiles, outcome);
                if is_over {
                    break;
                }
            }
            if !goes_on {
                return;
            }
        }
    }

    fn push_metrics(&self, moment: &Moment) -> Result<(), PushError> {
        all(metrics::requests(moment), |request| self.push(&self.metrics, &request.encode_to_vec()))
    }

    fn push_profile(&self, profile: &Profile) -> Result<(), PushError> {
        let mut body = Vec::new();
        write_profile(profile, &mut body).map_err(|error| PushError::Refused(error.to_string()))?;
        self.push(&self.profiles, &body)
    }

    fn push(&self, signal: &Signal, body: &[u8]) -> Result<(), PushError> {
        let answer = self.client.post(&format!("{}{}", self.collector.url, signal.path), zipped(body)?);
        let counter = if answer.is_ok() { &self.queue.pushes.requests } else { &self.queue.pushes.failures };
        counter.fetch_add(1, Ordering::Relaxed);
        rejected(&answer?)
    }

    /// Says when pushing begins to fail, when it fails for another cause, and when it works again.
    fn tell(&mut self, signal: impl Fn(&mut Self) -> &mut Signal, outcome: Result<(), PushError>) {
        let (hooks, url) = (self.hooks, self.collector.url.clone());
        let signal = signal(self);
        let outcome = outcome.map_err(|(PushError::Later(cause) | PushError::Refused(cause))| cause);
        if !signal.failing.is_news(outcome.clone()) {
            return;
        }
        match outcome {
            Err(cause) => {
                (hooks.warn)(&format!("pushing {} to {url}{}: {cause}", signal.name, signal.path));
            }
            Ok(()) => (hooks.info)(&format!("pushing {} to {url} works again", signal.name)),
        }
    }
}

fn zipped(body: &[u8]) -> Result<Vec<u8>, PushError> {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
    let zipped = zipped.write_all(body).and_then(|()| zipped.finish());
    zipped.map_err(|error| PushError::Refused(error.to_string()))
}

/// Pushes one request after the other. One that is refused holds back no other; one that may arrive later ends it,
/// because the next push has all of them again.
fn all<T>(requests: Vec<T>, push: impl Fn(&T) -> Result<(), PushError>) -> Result<(), PushError> {
    let mut outcome = Ok(());
    for request in &requests {
        match push(request) {
            Err(PushError::Refused(cause)) => outcome = outcome.and(Err(PushError::Refused(cause))),
            other => other?,
        }
    }
    outcome
}

/// A collector that takes a request may still refuse a part of it.
fn rejected(answer: &[u8]) -> Result<(), PushError> {
    let partial = Response::decode(answer).ok().and_then(|response| response.partial_success);
    match partial {
        Some(partial) if partial.rejected > 0 => {
            Err(PushError::Refused(format!("{} of it were rejected{}", partial.rejected, said(&partial.error_message))))
        }
        _ => Ok(()),
    }
}

/// What a collector says of it, behind a colon.
pub(super) fn said(text: &str) -> String {
    let shown = text.trim();
    let shown = TargetText::from(&shown[..shown.floor_char_boundary(MAX_SHOWN_BYTES)]);
    if shown.raw().is_empty() { String::new() } else { format!(": {shown}") }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{super::proto::PartialSuccess, *};

    #[test]
    fn a_refused_request_holds_back_no_other() {
        let outcomes =
            [Ok(()), Err(PushError::Refused("a".to_owned())), Err(PushError::Refused("b".to_owned())), Ok(())];
        let later = Err(PushError::Later("busy".to_owned()));
        for (last, pushed, expected) in [(Ok(()), 5, "a"), (later, 5, "busy")] {
            let mut requests = outcomes.to_vec();
            requests.push(last);
            let count = Cell::new(0);
            let outcome = all(requests, |request| {
                count.set(count.get() + 1);
                request.clone()
            });
            assert!(matches!(outcome, Err(PushError::Later(text) | PushError::Refused(text)) if text == expected));
            assert_eq!(count.get(), pushed);
        }
        let busy_first = vec![Err(PushError::Later(String::new())), Ok(())];
        let count = Cell::new(0);
        let _busy = all(busy_first, |request| {
            count.set(count.get() + 1);
            request.clone()
        });
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn a_part_that_is_rejected_is_told_with_the_collectors_words() {
        let partial = |rejected, error_message: &str| {
            let partial_success = Some(PartialSuccess { rejected, error_message: error_message.to_owned() });
            Response { partial_success }.encode_to_vec()
        };
        assert_eq!(rejected(&[]), Ok(()));
        assert_eq!(rejected(b"{}"), Ok(()), "not everybody answers in protobuf");
        assert_eq!(rejected(&partial(0, "a hint")), Ok(()));
        let expected = "3 of it were rejected: too\\x0aold".to_owned();
        assert_eq!(rejected(&partial(3, "too\nold")), Err(PushError::Refused(expected)));
        assert_eq!(said(&"x".repeat(1000)).len(), 2 + MAX_SHOWN_BYTES);
    }
}
