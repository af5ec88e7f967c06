//! Defines the messages of Pyroscope's service `querier.v1.QuerierService` that are understood, by the numbers and names
//! that their fields have on the wire.
//!
//! prost reads and writes them as protocol buffers, serde as the JSON that belongs to protocol buffers (proto3): names in
//! camel case, integers of 64 bits as texts ([`super::json`]).

use prost::Message;
use serde::{Deserialize, Serialize};

use super::json;

/// Times are Unix milliseconds in all messages; 0 is none.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProfileTypesRequest {
    #[prost(int64, tag = "1")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "2")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelNamesRequest {
    #[prost(string, repeated, tag = "1")]
    pub matchers: Vec<String>,
    #[prost(int64, tag = "2")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelValuesRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    pub matchers: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SeriesRequest {
    #[prost(string, repeated, tag = "1")]
    pub matchers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    #[serde(alias = "label_names")]
    pub label_names: Vec<String>,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectMergeStacktracesRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID")]
    pub profile_type: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
    /// 0: as many as usual.
    #[prost(int64, tag = "5")]
    #[serde(alias = "max_nodes", deserialize_with = "json::number")]
    pub max_nodes: i64,
    /// [`TREE`], or what is usual.
    #[prost(int32, tag = "6")]
    #[serde(deserialize_with = "json::format")]
    pub format: i32,
    /// A message that is not understood, as the next one. Whether it says anything is noticed: without it, the answer would
    /// be about something else.
    #[prost(bytes = "vec", tag = "7")]
    #[serde(alias = "stack_trace_selector", deserialize_with = "json::presence")]
    pub stack_trace_selector: Vec<u8>,
    #[prost(string, repeated, tag = "8")]
    #[serde(alias = "profile_id_selector")]
    pub profile_id_selector: Vec<String>,
}

/// `PROFILE_FORMAT_TREE`: bytes that only parts of Pyroscope read.
pub const TREE: i32 = 2;

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectMergeProfileRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID")]
    pub profile_type: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
    /// As in [`SelectMergeStacktracesRequest`], as the next one.
    #[prost(bytes = "vec", tag = "6")]
    #[serde(alias = "stack_trace_selector", deserialize_with = "json::presence")]
    pub stack_trace_selector: Vec<u8>,
    #[prost(string, repeated, tag = "7")]
    #[serde(alias = "profile_id_selector")]
    pub profile_id_selector: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub struct DiffRequest {
    #[prost(message, optional, tag = "1")]
    pub left: Option<SelectMergeStacktracesRequest>,
    #[prost(message, optional, tag = "2")]
    pub right: Option<SelectMergeStacktracesRequest>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectSeriesRequest {
    #[prost(string, tag = "1")]
    #[serde(rename = "profileTypeID", alias = "profile_typeID")]
    pub profile_type: String,
    #[prost(string, tag = "2")]
    #[serde(alias = "label_selector")]
    pub label_selector: String,
    #[prost(int64, tag = "3")]
    #[serde(deserialize_with = "json::number")]
    pub start: i64,
    #[prost(int64, tag = "4")]
    #[serde(deserialize_with = "json::number")]
    pub end: i64,
    #[prost(string, repeated, tag = "5")]
    #[serde(alias = "group_by")]
    pub group_by: Vec<String>,
    /// Seconds.
    #[prost(double, tag = "6")]
    #[serde(deserialize_with = "json::decimal")]
    pub step: f64,
    /// [`SUM`] or [`AVERAGE`].
    #[prost(int32, tag = "7")]
    #[serde(deserialize_with = "json::aggregation")]
    pub aggregation: i32,
    /// As in [`SelectMergeStacktracesRequest`].
    #[prost(bytes = "vec", tag = "8")]
    #[serde(alias = "stack_trace_selector", deserialize_with = "json::presence")]
    pub stack_trace_selector: Vec<u8>,
    /// Series with most of all points together; 0: all.
    #[prost(int64, tag = "9")]
    #[serde(deserialize_with = "json::number")]
    pub limit: i64,
}

/// `TIME_SERIES_AGGREGATION_TYPE_SUM`.
pub const SUM: i32 = 0;
/// `TIME_SERIES_AGGREGATION_TYPE_AVERAGE`.
pub const AVERAGE: i32 = 1;

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub struct GetProfileStatsRequest {}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileTypesResponse {
    #[prost(message, repeated, tag = "1")]
    pub profile_types: Vec<ProfileType>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileType {
    #[prost(string, tag = "1")]
    #[serde(rename = "ID")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub sample_type: String,
    #[prost(string, tag = "5")]
    pub sample_unit: String,
    #[prost(string, tag = "6")]
    pub period_type: String,
    #[prost(string, tag = "7")]
    pub period_unit: String,
}

/// Of `LabelNames` and of `LabelValues`.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct NamesResponse {
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Message, Serialize)]
pub struct LabelPair {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Labels {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<LabelPair>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeriesResponse {
    #[prost(message, repeated, tag = "2")]
    pub labels_set: Vec<Labels>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct SelectSeriesResponse {
    #[prost(message, repeated, tag = "1")]
    pub series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Series {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Point {
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Unix milliseconds.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "json::text")]
    pub timestamp: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct SelectMergeStacktracesResponse {
    #[prost(message, optional, tag = "1")]
    pub flamegraph: Option<FlameGraph>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlameGraph {
    /// The first one is the root's.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    /// From the root on.
    #[prost(message, repeated, tag = "2")]
    pub levels: Vec<Level>,
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "json::text")]
    pub total: i64,
    #[prost(int64, tag = "4")]
    #[serde(serialize_with = "json::text")]
    pub max_self: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Level {
    /// Four a bar: how far it begins behind the end of the bar before, total, self, place in the names.
    #[prost(int64, repeated, tag = "1")]
    #[serde(serialize_with = "json::texts")]
    pub values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct DiffResponse {
    #[prost(message, optional, tag = "1")]
    pub flamegraph: Option<FlameGraphDiff>,
}

/// As [`FlameGraph`], with seven numbers a bar: the first three on the left, the same on the right, and the name.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlameGraphDiff {
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub levels: Vec<Level>,
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "json::text")]
    pub total: i64,
    #[prost(int64, tag = "4")]
    #[serde(serialize_with = "json::text")]
    pub max_self: i64,
    #[prost(int64, tag = "5")]
    #[serde(serialize_with = "json::text")]
    pub left_ticks: i64,
    #[prost(int64, tag = "6")]
    #[serde(serialize_with = "json::text")]
    pub right_ticks: i64,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GetProfileStatsResponse {
    #[prost(bool, tag = "1")]
    pub data_ingested: bool,
    /// Unix milliseconds, as the next one.
    #[prost(int64, tag = "2")]
    #[serde(serialize_with = "json::text")]
    pub oldest_profile_time: i64,
    #[prost(int64, tag = "3")]
    #[serde(serialize_with = "json::text")]
    pub newest_profile_time: i64,
}
