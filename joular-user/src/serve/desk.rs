//! Takes questions and gives answers: it reads the data set for a few at a time, once for equal ones, and not at all for
//! those whose answer is known.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use jiff::Timestamp;
use joular_data::{
    model::units::UnixMicros,
    report::profile::{Filter, has_run},
    text::time,
};
use tokio::{
    sync::{Mutex as Turns, watch},
    task::spawn_blocking,
};

use super::{
    answer::{Answer, guarded_text},
    cache::Cache,
    counters::Counters,
    hosts::Hosts,
    identity::Identity,
    openapi, pyroscope,
    readers::Readers,
    routes::{self, Question},
    terms::{LISTED, Reads, SPAN, Terms},
};
use crate::{
    config::Sight,
    output::{
        exposed,
        http::{self, Answering, Answers, Asked, PLAIN},
    },
    query::{Readings, Refusal},
};

/// Where an answer begins whose question did not say it.
const BEGIN: HeaderName = HeaderName::from_static("joular-from");

type Outcome = Result<Answer, Refusal>;

/// How a data set is served.
#[derive(Debug)]
pub struct Setting {
    pub readings: Readings,
    pub hosts: Hosts,
    pub readers: Readers,
    /// Of the files that a question may read; `None`: any.
    pub scan_bytes: Option<u64>,
    pub most_nodes: usize,
    pub cache_bytes: u64,
}

/// What a server has.
pub struct Desk {
    setting: Setting,
    shared: Mutex<Shared>,
    /// When somebody looked whether there is a run in the bucket, and what that showed.
    ready: Turns<Option<(Instant, Result<bool, Refusal>)>>,
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
    pub fn new(setting: Setting) -> Self {
        Self {
            shared: Mutex::new(Shared { cache: Cache::new(setting.cache_bytes), open: HashMap::new() }),
            ready: Turns::default(),
            counters: Counters::default(),
            setting,
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
        let readers = &self.setting.readers;
        let hosts = Hosts { has_token: readers.takes_any_name(asked), ..self.setting.hosts };
        if !hosts.allow(&asked.uri, &asked.headers) {
            let text = "this server has another name: ask it as localhost, or by the address that --listen has\n";
            return (routes::name_of(path), guarded_text(http::response(StatusCode::FORBIDDEN, PLAIN, text)));
        }
        match path {
            "/livez" => return ("/livez", guarded_text(http::response(StatusCode::OK, PLAIN, "ok\n"))),
            "/readyz" => return ("/readyz", self.ready().await),
            _ => {}
        }
        let sight = match readers.sight(asked) {
            Ok(sight) => sight,
            Err(unknown) => return (routes::name_of(path), guarded_text(unknown.into_response())),
        };
        match path {
            "/metrics" => return ("/metrics", self.metrics(&asked.headers)),
            "/openapi.json" => return ("/openapi.json", given(openapi::document(), None)),
            _ => {}
        }
        let terms = self.terms(sight);
        let question = pyroscope::question(asked, &terms)
            .unwrap_or_else(|| routes::question(path, asked.uri.query().unwrap_or_default(), &terms));
        let (outcome, begin) = match question {
            Ok(question) => {
                let begin = question.begin;
                (self.outcome(question, &terms).await, begin)
            }
            Err(refusal) => (Err(refusal), None),
        };
        (routes::name_of(path), given(outcome.map_err(|refusal| pyroscope::refused(path, refusal)), begin))
    }

    fn terms(&self, sight: Sight) -> Terms {
        let now_us = Timestamp::now().as_second().saturating_mul(1_000_000);
        // What is later than the listing is not known, and so equal questions about relative times are equal for longer.
        let listed_us = i64::try_from(LISTED.as_micros()).unwrap_or(1);
        let is_bucket = self.setting.readings.is_kept();
        let now = UnixMicros(if is_bucket { now_us - now_us.rem_euclid(listed_us) } else { now_us });
        let most_nodes = self.setting.most_nodes;
        Terms { now, span: is_bucket.then_some(SPAN), most_nodes, sight }
    }

    /// The state of what a question reads. It is no more than may be read.
    async fn identity(&self, reads: Reads, parts: Vec<Filter>) -> Result<Identity, Refusal> {
        let Setting { readings, scan_bytes, .. } = &self.setting;
        let (most, is_bucket) = (*scan_bytes, readings.is_kept());
        let list = move |place: &Path| {
            let listed = if is_bucket || most.is_some() { Some(reads.listed(place, &parts, most)?) } else { None };
            match listed.filter(|_| is_bucket) {
                Some(listed) => Ok(Identity::of_listed(&listed)),
                None => Identity::of(place)
                    .map_err(|error| Refusal::later("data_set", format!("listing the data set: {error}"))),
            }
        };
        readings.list(list).await
    }

    /// Whether there is a run. A bucket is not asked for every probe.
    async fn has_run(&self) -> Result<bool, Refusal> {
        let readings = &self.setting.readings;
        let mut ready = self.ready.lock().await;
        if let Some((at, known)) = &*ready
            && at.elapsed() < LISTED
            && readings.is_kept()
        {
            return known.clone();
        }
        let place = readings.place().to_owned();
        // A probe waits for nobody who reads or lists.
        let found = spawn_blocking(move || has_run(&place)).await;
        let found = found.map_err(|error| Refusal::broken(error.to_string())).and_then(|found| {
            // Probes need no token, so they are not told where the data set is.
            let message = "the data set cannot be listed: questions about it say why";
            found.map_err(|_| Refusal::later("data_set", message.to_owned()))
        });
        *ready = Some((Instant::now(), found.clone()));
        found
    }

    async fn ready(&self) -> Response<Full<Bytes>> {
        let (status, text) = match self.has_run().await {
            Ok(true) => (StatusCode::OK, "there are runs\n".to_owned()),
            Ok(false) => (StatusCode::SERVICE_UNAVAILABLE, "there is no run in the data set yet\n".to_owned()),
            Err(refusal) => (refusal.status, refusal.message + "\n"),
        };
        guarded_text(http::response(status, PLAIN, text))
    }

    fn metrics(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let cache_bytes = self.shared().cache.bytes();
        guarded_text(exposed(headers, self.counters.text(cache_bytes)))
    }

    async fn outcome(self: &Arc<Self>, question: Question, terms: &Terms) -> Outcome {
        let identity = self.identity(question.reads, question.parts.clone()).await;
        let identity = identity.map_err(|refusal| terms.told(refusal))?;
        let mut outcome = match self.known_or_open(identity, question) {
            Ok(answer) => return Ok(answer),
            Err(receiver) => receiver,
        };
        let done = outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        let done =
            done.ok_or_else(|| Refusal::later("ended", "the server gave this question up: ask again".to_owned()))?;
        done.map_err(|refusal| terms.told(refusal))
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
        self.setting.readings.read(&question.stop, counted).await
    }
}

/// An answer as it is sent, with its beginning if the question did not say that.
fn given(outcome: Outcome, begin: Option<UnixMicros>) -> Response<Full<Bytes>> {
    let mut response = outcome.map_or_else(Refusal::into_response, Answer::into_response);
    if let Some(begin) = begin.and_then(|begin| HeaderValue::try_from(time(begin)).ok()) {
        response.headers_mut().insert(BEGIN, begin);
    }
    response
}

impl Answers for Desk {
    fn answer(self: Arc<Self>, asked: Asked) -> Answering {
        Box::pin(self.respond(asked))
    }

    fn body_bytes(&self, path: &str) -> Option<usize> {
        pyroscope::body_bytes(path)
    }

    fn takes_body(&self, asked: &Asked) -> bool {
        self.setting.readers.sight(asked).is_ok()
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
