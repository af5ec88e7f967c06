//! Tests calls as clients make them, on a made-up data set: what they are answered, and how that is written.

mod calls;
mod flames;
mod wire;

use std::net::{IpAddr, Ipv4Addr};

use hyper::{
    body::Bytes,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use joular_data::{
    dataset::{DEFAULT_FLUSH_NS, OutputDirectory, ParquetOutput},
    fixture::{self, SMALL},
    model::units::UnixMicros,
    report::profile::{Filter, Profile},
};
use prost::Message;
use tempfile::TempDir;

use super::*;
use crate::config::Sight;

/// Those of somebody who may see everything, after the data set's time.
fn terms() -> Terms {
    Terms { now: UnixMicros(1_772_500_000_000_000), span: None, most_nodes: 100_000, sight: Sight::default() }
}

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ENERGY: &str = "joular:energy:microjoules:cpu:nanoseconds";

/// A data set with a minute of two processes of one service, which have threads of garbage collectors.
struct Data(TempDir);

impl Data {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = OutputDirectory::create(place.path(), None).unwrap();
        fixture::play(&mut ParquetOutput::new(directory, DEFAULT_FLUSH_NS), SMALL, 60).unwrap();
        Self(place)
    }

    fn profile(&self) -> Profile {
        Profile::read(self.0.path(), &Filter::default(), None).unwrap()
    }

    fn answer(&self, asked: &Asked) -> Result<Answer, Refusal> {
        let path = asked.uri.path();
        let outcome = question(asked, &terms()).unwrap().and_then(|question| (question.work)(self.0.path()));
        outcome.map_err(|refusal| refused(path, refusal))
    }

    fn call<A: Message + Default>(&self, method: &str, request: &impl Message) -> Result<A, Refusal> {
        let answer = self.answer(&asked(method, codec::PROTO, request.encode_to_vec()))?;
        assert_eq!(answer.kind, codec::PROTO);
        Ok(A::decode(answer.body).unwrap())
    }

    fn get(&self, path: &str) -> Result<serde_json::Value, Refusal> {
        let (uri, headers) = (path.parse().unwrap(), HeaderMap::new());
        let asked = Asked { uri, headers, client: CLIENT, is_allowed: true, body: Bytes::new() };
        self.answer(&asked).map(|answer| serde_json::from_slice(&answer.body).unwrap())
    }
}

fn asked(method: &str, kind: &'static str, body: impl Into<Bytes>) -> Asked {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
    let uri = format!("{SERVICE}{method}").parse().unwrap();
    Asked { uri, headers, client: CLIENT, is_allowed: true, body: body.into() }
}
