//! Defines the flags that select a part of a data set. All commands share them. Conditions of one
//! kind are alternatives; conditions of different kinds must all hold.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
// A baseline keeps those that were given.
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Which part of the data set")]
pub struct PartFlags {
    /// Windows that start at or after this time: 2026-03-01T12:00:00Z, 12:00:00 (UTC), or time into the run (30s, 5m)
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,

    /// Windows that start before this time
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,

    /// Processes with these ids
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pid: Vec<u32>,

    /// Processes with this name, main class or container, or a pattern with * and ?
    #[arg(long, alias = "comm", value_name = "NAME,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub process: Vec<String>,

    /// Processes of this service, or a pattern
    #[arg(long, value_name = "SERVICE,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service: Vec<String>,

    /// Processes in this container: its id, the first 12 or more digits of it, or a pattern
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container: Vec<String>,

    /// Processes in the pod with this uid or name, or a pattern
    #[arg(long, value_name = "POD,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod: Vec<String>,

    /// Processes in pods of this Kubernetes namespace, or a pattern
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespace: Vec<String>,

    /// Processes in pods with these labels, KEY=VALUE, where VALUE may be a pattern; different keys must all match
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub label: Vec<String>,

    /// Threads with this name, or a pattern
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thread: Vec<String>,

    /// Threads of this category: java, gc, jit, vm, native or kernel
    #[arg(long, value_name = "CATEGORY,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub category: Vec<String>,

    /// Call paths that contain this method (package.Class.name), or a pattern
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub method: Vec<String>,

    /// Call paths of this handler of requests, messages or jobs (package.Class.name), or a pattern
    #[arg(long, value_name = "HANDLER,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handler: Vec<String>,

    /// File of rules by which handlers of your own framework are found, in TOML
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler_rules: Option<PathBuf>,

    /// Runs on this host, or a pattern
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<String>,

    /// Runs with this id, or a pattern; last is the recording that began last
    #[arg(long, value_name = "RUN,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,

    /// Windows in this phase of the program, with the phases within it, or a pattern; load/parse is the phase parse
    /// within load
    #[arg(long, value_name = "PHASE,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phase: Vec<String>,

    /// Application view: energy goes to the frame nearest the leaf that is in these packages or classes; auto stands for
    /// the packages that report names
    #[arg(long, value_name = "PREFIX,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub app: Vec<String>,

    /// Packages that --app auto leaves out, beside those of the JDK and of libraries that it knows
    #[arg(long, value_name = "PREFIX,…", value_delimiter = ',', requires = "app")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub library: Vec<String>,

    /// Java view: energy of native and kernel code goes to the Java code that called it
    #[arg(long, conflicts_with = "app")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub java: bool,

    /// Name each generated class exactly; without this classes of a family have one name, such as Script for the scripts
    /// Script12 and Script13 of Groovy
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exact_names: bool,

    /// Leave energy of windows in which no sample hit a thread at [no sample]; without this it is shared out by
    /// the thread's samples nearest in time
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_infer: bool,

    /// Move the energy of garbage collectors to the call paths that allocated, as recorded with --alloc: by what they
    /// allocated, or with survived by what outlived a collection; without this it stays at the collectors' threads
    #[arg(long, value_name = "BY", num_args = 0..=1, require_equals = true, default_missing_value = "allocated")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge_gc: Option<String>,

    /// Fail if a run cannot be read; without this it is left out and named
    #[arg(long)]
    #[serde(skip)]
    pub strict: bool,
}
