//! Answers Pyroscope's query API, so that Grafana's data source for it and its app Profiles Drilldown show a data set as
//! they are.
//!
//! [`messages`] has what comes and goes on the wire, which [`codec`] reads and writes; the rest makes of it what a data set
//! knows. [`selector`] reads selectors, [`selection`] makes them a filter by [`labels`], [`types`] says what can be drawn;
//! [`lists`], [`series`] and [`flame`] answer. The messages are written from the facts of the wire format, which
//! docs/grafana.md sums up.

mod codec;
mod flame;
mod json;
mod labels;
mod lists;
mod messages;
mod render;
mod selection;
mod selector;
mod series;
#[cfg(test)]
mod tests;
mod types;

use std::{fmt::Debug, path::Path};

use hyper::{body::Bytes, header::HeaderMap};
use joular_data::text::escape;
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};

use self::codec::{Codec, MOST_BYTES, unimplemented, unpacked};
use super::{
    answer::Answer,
    question::{Bounds, Question},
    terms::{Reads, Terms},
};
use crate::{output::http::Asked, query::Refusal};

/// Reads a data set for the message of an answer.
type Reading<A> = Box<dyn FnOnce(&Path) -> Result<A, Refusal> + Send>;

/// A call as it came.
struct Call<'a> {
    path: &'static str,
    headers: &'a HeaderMap,
    body: &'a Bytes,
    terms: &'a Terms,
}

type Understand = fn(&Call<'_>) -> Result<Question, Refusal>;

const SERVICE: &str = "/querier.v1.QuerierService/";

/// Calls of Pyroscope's service for queries, by path.
const CALLS: [(&str, Understand); 11] = [
    ("/querier.v1.QuerierService/ProfileTypes", |call| call.understood(lists::profile_types)),
    ("/querier.v1.QuerierService/LabelNames", |call| call.understood(lists::label_names)),
    ("/querier.v1.QuerierService/LabelValues", |call| call.understood(lists::label_values)),
    ("/querier.v1.QuerierService/Series", |call| call.understood(lists::series)),
    ("/querier.v1.QuerierService/GetProfileStats", |call| call.understood(lists::stats)),
    ("/querier.v1.QuerierService/SelectSeries", |call| call.understood(series::select)),
    ("/querier.v1.QuerierService/SelectMergeStacktraces", |call| call.understood(flame::stacktraces)),
    ("/querier.v1.QuerierService/Diff", |call| call.understood(flame::diff)),
    ("/querier.v1.QuerierService/SelectMergeProfile", |call| {
        let codec = Codec::of(call.headers)?;
        call.question(codec, |request, bounds| flame::pprof(request, codec, bounds), Ok)
    }),
    ("/querier.v1.QuerierService/SelectMergeSpanProfile", |call| call.unanswered()),
    ("/querier.v1.QuerierService/SelectHeatmap", |call| call.unanswered()),
];

impl Call<'_> {
    /// A question whose answer is a message, too.
    fn understood<Q, A>(
        &self,
        understand: impl FnOnce(&Q, &Bounds<'_>) -> Result<Reading<A>, Refusal>,
    ) -> Result<Question, Refusal>
    where
        Q: Message + Default + DeserializeOwned + Debug,
        A: Message + Serialize + 'static,
    {
        let codec = Codec::of(self.headers)?;
        self.question(codec, understand, move |answer| codec.write(&answer))
    }

    fn question<Q, A: 'static>(
        &self,
        codec: Codec,
        understand: impl FnOnce(&Q, &Bounds<'_>) -> Result<Reading<A>, Refusal>,
        write: impl FnOnce(A) -> Result<Answer, Refusal> + Send + 'static,
    ) -> Result<Question, Refusal>
    where
        Q: Message + Default + DeserializeOwned + Debug,
    {
        let request: Q = codec.read(&unpacked(self.headers, self.body)?)?;
        let bounds = Bounds::new(self.terms);
        let reading = understand(&request, &bounds)?;
        // However it was written. Its times are moments.
        let asked = format!("{}#{codec:?}#{request:?}", self.path);
        bounds.question(&asked, false, Reads::Parts, Box::new(move |place| write(reading(place)?)))
    }

    fn unanswered(&self) -> Result<Question, Refusal> {
        Err(unimplemented(format!("{} is not answered: docs/grafana.md lists what is", self.path)))
    }
}

/// Refuses what would select stacks or profiles by something that a data set does not have.
fn understood(stack_trace_selector: &[u8], profile_id_selector: &[String]) -> Result<(), Refusal> {
    let given = [
        ("stack_trace_selector", !stack_trace_selector.is_empty()),
        ("profile_id_selector", !profile_id_selector.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(unimplemented(format!("{name}: it cannot be selected by"))),
        None => Ok(()),
    }
}

/// The largest body of a call; `None` if nothing is posted to this path.
pub fn body_bytes(path: &str) -> Option<usize> {
    path.starts_with(SERVICE).then_some(MOST_BYTES)
}

/// What metrics call a path; `None` if it is none of these.
pub fn name_of(path: &str) -> Option<&'static str> {
    paths().find(|known| *known == path)
}

/// All paths that are known, those that are posted to first.
pub fn paths() -> impl Iterator<Item = &'static str> {
    CALLS.iter().map(|(known, _)| *known).chain([render::RENDER, render::RENDER_DIFF])
}

/// Understands a question; `None` if its path is none of these.
pub fn question(asked: &Asked, terms: &Terms) -> Option<Result<Question, Refusal>> {
    let (path, query) = (asked.uri.path(), asked.uri.query().unwrap_or_default());
    match path {
        render::RENDER => return Some(render::render(query, terms)),
        render::RENDER_DIFF => return Some(render::render_diff(query, terms)),
        _ => {}
    }
    let method = path.strip_prefix(SERVICE)?;
    let question = match CALLS.iter().find(|(known, _)| *known == path) {
        Some((path, understand)) => understand(&Call { path, headers: &asked.headers, body: &asked.body, terms }),
        None => Err(unimplemented(format!("there is no {} here: docs/grafana.md lists what there is", escape(method)))),
    };
    Some(question)
}

/// A refusal as clients of a path read it.
pub fn refused(path: &str, refusal: Refusal) -> Refusal {
    if path.starts_with(SERVICE) { codec::as_connect(refusal) } else { refusal }
}
