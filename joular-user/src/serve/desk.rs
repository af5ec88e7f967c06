//! Takes questions and gives answers: it reads the data set for a few at a time, once for equal ones, and not at all for
//! those whose answer is known.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use jiff::Timestamp;
use joular_data::{
    caught::caught,
    dataset::store::Keeper,
    model::units::UnixMicros,
    report::profile::{Filter, has_run},
    text::time,
};
use tokio::{
    sync::{Mutex as Turns, OwnedSemaphorePermit, Semaphore, watch},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    answer::{Answer, Refusal, guarded_text},
    cache::Cache,
    counters::Counters,
    hosts::Hosts,
    identity::Identity,
    openapi,
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
};

/// How long a question waits until others have been answered.
pub(super) const WAIT: Duration = Duration::from_secs(30);

/// Where an answer begins whose question did not say it.
const BEGIN: HeaderName = HeaderName::from_static("joular-from");

type Outcome = Result<Answer, Refusal>;

/// How a data set is served.
#[derive(Debug)]
pub struct Setting {
    pub place: PathBuf,
    /// What keeps the place, if it is a bucket.
    pub bucket: Option<Arc<Keeper>>,
    pub hosts: Hosts,
    pub readers: Readers,
    /// At a time.
    pub scans: usize,
    pub scan_time: Duration,
    /// Of the files that a question may read; `None`: any.
    pub scan_bytes: Option<u64>,
    pub most_nodes: usize,
    pub cache_bytes: u64,
}

/// What a server has.
pub struct Desk {
    setting: Setting,
    scans: Arc<Semaphore>,
    /// As many listings of a bucket at a time as scans.
    listings: Arc<Semaphore>,
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
            scans: Arc::new(Semaphore::new(setting.scans)),
            listings: Arc::new(Semaphore::new(setting.scans)),
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
        let question = routes::question(path, asked.uri.query().unwrap_or_default(), &terms);
        let response = match question {
            Ok(question) => {
                let begin = question.begin;
                given(self.outcome(question, &terms).await, begin)
            }
            Err(refusal) => given(Err(refusal), None),
        };
        (routes::name_of(path), response)
    }

    fn terms(&self, sight: Sight) -> Terms {
        let now_us = Timestamp::now().as_second().saturating_mul(1_000_000);
        // What is later than the listing is not known, and so equal questions about relative times are equal for longer.
        let listed_us = i64::try_from(LISTED.as_micros()).unwrap_or(1);
        let is_bucket = self.setting.bucket.is_some();
        let now = UnixMicros(if is_bucket { now_us - now_us.rem_euclid(listed_us) } else { now_us });
        let most_nodes = self.setting.most_nodes;
        Terms { now, span: is_bucket.then_some(SPAN), most_nodes, sight }
    }

    /// The state of what a question reads. It is no more than may be read.
    async fn identity(&self, reads: Reads, parts: Vec<Filter>) -> Result<Identity, Refusal> {
        let Setting { place, scan_bytes, bucket, scan_time, .. } = &self.setting;
        let (place, most, is_bucket) = (place.clone(), *scan_bytes, bucket.is_some());
        let turn = if is_bucket { Some(turn(&self.listings).await?) } else { None };
        let found = spawn_blocking(move || {
            let _turn = turn;
            let listed = if is_bucket || most.is_some() { Some(reads.listed(&place, &parts, most)?) } else { None };
            match listed.filter(|_| is_bucket) {
                Some(listed) => Ok(Identity::of_listed(&listed)),
                None => Identity::of(&place)
                    .map_err(|error| Refusal::later("data_set", format!("listing the data set: {error}"))),
            }
        });
        let Ok(found) = timeout(*scan_time, found).await else {
            let message = "listing took longer than --timeout: ask for less time or fewer hosts";
            return Err(Refusal::later("too_long", message.to_owned()));
        };
        found.map_err(|error| Refusal::broken(error.to_string()))?
    }

    /// Whether there is a run. A bucket is not asked for every probe.
    async fn has_run(&self) -> Result<bool, Refusal> {
        let mut ready = self.ready.lock().await;
        if let Some((at, known)) = &*ready
            && at.elapsed() < LISTED
            && self.setting.bucket.is_some()
        {
            return known.clone();
        }
        let place = self.setting.place.clone();
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

    async fn scan(&self, question: Question) -> Outcome {
        let permit = turn(&self.scans).await?;
        self.counters.scanned();
        let (place, work) = (self.setting.place.clone(), question.work);
        let bucket = self.setting.bucket.clone();
        // It has its place until it really ends, which after it is stopped is when the next rows come.
        let work = spawn_blocking(move || {
            let _permit = permit;
            let outcome = caught(|| work(&place));
            if let (Some(bucket), Some(Err(refusal))) = (bucket, &outcome)
                && refusal.status.is_server_error()
            {
                // A file may have gone that was there.
                bucket.forget();
            }
            outcome
        });
        tokio::select! {
            done = work => done.ok().flatten().unwrap_or_else(|| {
                Err(Refusal::broken("this question met a defect: please report it with the address".to_owned()))
            }),
            () = sleep(self.setting.scan_time) => {
                question.stop.now();
                let message = "reading took longer than --timeout: ask for less time or less of the data set";
                Err(Refusal::later("too_long", message.to_owned()))
            }
        }
    }
}

/// The right to work, when it is one's turn.
async fn turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    let Ok(Ok(permit)) = timeout(WAIT, Arc::clone(turns).acquire_owned()).await else {
        let message = "others are being answered: ask again, or start the server with more --requests";
        return Err(Refusal::later("busy", message.to_owned()));
    };
    Ok(permit)
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
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
