//! Takes questions and gives answers: it reads the data set for a few at a time, once for equal ones, and not at all for
//! those whose answer is known.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use http_body_util::Full;
use hyper::{Response, StatusCode, body::Bytes, header::HeaderMap};
use jiff::Timestamp;
use joular_data::model::units::UnixMicros;
use tokio::{sync::watch, task::spawn_blocking};

use super::{
    answer::{Answer, guarded_text},
    cache::Cache,
    counters::Counters,
    hosts::Hosts,
    identity::Identity,
    openapi, pyroscope,
    routes::{self, Question},
};
use crate::{
    output::{
        exposed,
        http::{self, Answering, Answers, Asked, PLAIN},
    },
    query::{Readings, Refusal},
};

type Outcome = Result<Answer, Refusal>;

/// What a server has.
pub struct Desk {
    readings: Readings,
    hosts: Hosts,
    shared: Mutex<Shared>,
    counters: Counters,
}

/// The state of the data set that a question is about, and where its outcome will be.
type Open = (Identity, Arc<watch::Sender<Option<Outcome>>>);

struct Shared {
    cache: Cache,
    /// Questions that are being answered.
    open: HashMap<String, Open>,
}

impl Desk {
    pub fn new(readings: Readings, hosts: Hosts, cache_bytes: u64) -> Self {
        Self {
            readings,
            hosts,
            shared: Mutex::new(Shared { cache: Cache::new(cache_bytes), open: HashMap::new() }),
            counters: Counters::default(),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn respond(self: Arc<Self>, asked: Asked) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let (path, response) = self.routed(&asked).await;
        self.counters.answered(path, response.status(), began.elapsed());
        response
    }

    /// The answer, and what its path is called.
    async fn routed(self: &Arc<Self>, asked: &Asked) -> (&'static str, Response<Full<Bytes>>) {
        let path = asked.uri.path();
        if !self.hosts.allow(&asked.uri, &asked.headers) {
            let text = "this server has another name: ask it as localhost, or by the address that --listen has\n";
            return (routes::name_of(path), guarded_text(http::response(StatusCode::FORBIDDEN, PLAIN, text)));
        }
        match path {
            "/livez" => return ("/livez", guarded_text(http::response(StatusCode::OK, PLAIN, "ok\n"))),
            "/readyz" => return ("/readyz", self.ready().await),
            _ if !asked.is_allowed => return (routes::name_of(path), guarded_text(http::unauthorised())),
            "/metrics" => return ("/metrics", self.metrics(&asked.headers)),
            "/openapi.json" => return ("/openapi.json", given(openapi::document())),
            _ => {}
        }
        let now = UnixMicros(Timestamp::now().as_second().saturating_mul(1_000_000));
        let question = pyroscope::question(asked, now)
            .unwrap_or_else(|| routes::question(path, asked.uri.query().unwrap_or_default(), now));
        let outcome = match question {
            Ok(question) => self.outcome(question).await,
            Err(refusal) => Err(refusal),
        };
        (routes::name_of(path), given(outcome.map_err(|refusal| pyroscope::refused(path, refusal))))
    }

    async fn identity(&self) -> Result<Identity, Refusal> {
        let place = self.readings.place().to_owned();
        let found = spawn_blocking(move || Identity::of(&place)).await;
        let found = found.map_err(|error| Refusal::broken(error.to_string()))?;
        found.map_err(|error| Refusal::later("data_set", format!("listing the data set: {error}")))
    }

    async fn ready(&self) -> Response<Full<Bytes>> {
        let (status, text) = match self.identity().await {
            Ok(Identity { has_runs: true, .. }) => (StatusCode::OK, "there are runs\n".to_owned()),
            Ok(_) => (StatusCode::SERVICE_UNAVAILABLE, "there is no run in the data set yet\n".to_owned()),
            Err(refusal) => (refusal.status, refusal.message + "\n"),
        };
        guarded_text(http::response(status, PLAIN, text))
    }

    fn metrics(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let cache_bytes = self.shared().cache.bytes();
        guarded_text(exposed(headers, self.counters.text(cache_bytes)))
    }

    async fn outcome(self: &Arc<Self>, question: Question) -> Outcome {
        let identity = self.identity().await?;
        let mut outcome = match self.known_or_open(identity, question) {
            Ok(answer) => return Ok(answer),
            Err(receiver) => receiver,
        };
        let done = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        done.unwrap_or_else(|| Err(Refusal::later("ended", "the server gave this question up: ask again".to_owned())))
    }

    /// An answer that is known, or where it will come.
    fn known_or_open(
        self: &Arc<Self>,
        identity: Identity,
        question: Question,
    ) -> Result<Answer, watch::Receiver<Option<Outcome>>> {
        let mut shared = self.shared();
        if let Some(answer) = shared.cache.get(identity, &question.key) {
            self.counters.hit();
            return Ok(answer);
        }
        if let Some((state, open)) = shared.open.get(&question.key)
            && *state == identity
            && !open.is_closed()
        {
            self.counters.joined();
            return Err(open.subscribe());
        }
        let (sender, receiver) = watch::channel(None);
        let sender = Arc::new(sender);
        shared.open.insert(question.key.clone(), (identity, Arc::clone(&sender)));
        drop(shared);
        tokio::spawn(Arc::clone(self).work(identity, question, sender));
        Err(receiver)
    }

    /// Finds an answer, unless nobody waits for it any more.
    async fn work(
        self: Arc<Self>,
        identity: Identity,
        question: Question,
        sender: Arc<watch::Sender<Option<Outcome>>>,
    ) {
        let (key, stop) = (question.key.clone(), question.stop.clone());
        let outcome = tokio::select! {
            outcome = self.scan(question) => outcome,
            () = sender.closed() => {
                Err(Refusal::later("ended", "nobody waits any more".to_owned()))
            }
        };
        stop.now();
        let mut shared = self.shared();
        if let Ok(answer) = &outcome {
            shared.cache.put(identity, &key, answer);
        }
        if shared.open.get(&key).is_some_and(|(_, open)| Arc::ptr_eq(open, &sender)) {
            shared.open.remove(&key);
        }
        drop(shared);
        sender.send_replace(Some(outcome));
    }

    async fn scan(self: &Arc<Self>, question: Question) -> Outcome {
        let (desk, work) = (Arc::clone(self), question.work);
        let counted = move |place: &Path| {
            desk.counters.scanned();
            work(place)
        };
        self.readings.read(&question.stop, counted).await
    }
}

fn given(outcome: Outcome) -> Response<Full<Bytes>> {
    outcome.map_or_else(Refusal::into_response, Answer::into_response)
}

impl Answers for Desk {
    fn answer(self: Arc<Self>, asked: Asked) -> Answering {
        Box::pin(self.respond(asked))
    }

    fn body_bytes(&self, path: &str) -> Option<usize> {
        pyroscope::body_bytes(path)
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
