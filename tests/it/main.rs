//! Tests what can be tested of joular-bpf without privileges, a kernel or a JVM: its command line,
//! its exit codes, and that the documents tell the truth about it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic with a trace is how tests fail")]

mod allocations;
mod analysis;
mod audit;
mod bad_data_sets;
mod bad_sets;
mod bundles;
mod clickhouse;
mod collections;
mod command_line;
mod compact;
mod completions;
mod configuration;
mod cost;
mod diff;
mod documents;
mod engines;
mod erase;
mod expire;
mod exports;
mod fleet;
mod fleet_chain;
mod fleet_cuts;
mod flight;
mod footprint;
mod helm;
mod hidden_entries;
mod html;
mod intervals;
mod io;
mod jmh;
mod large_fleet;
mod mcp;
mod mcp_bucket;
mod one_liners;
mod packages;
mod packaging;
mod pages;
mod protocol;
mod pyroscope;
mod python_package;
mod replay;
mod replayed;
mod report;
mod requests;
mod rollup;
mod schema;
mod secrets;
mod serve;
mod serve_accessibility;
mod serve_bucket;
mod serve_readers;
mod shipping;
mod tier_choice;
mod tiers;
mod top;
mod validate;

use std::time::Duration;

/// Nothing here samples, so everything ends at once; this only bounds a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs joular-bpf with these arguments.
fn joular_bpf(arguments: &[&str]) -> joular_tests::process::Finished {
    let run = arguments.iter().fold(joular_tests::profiler::Run::new(), |run, argument| run.argument(argument));
    run.finish(LIMIT).unwrap()
}

/// Runs it and expects a usage error whose message has all these words.
fn expect_usage_error(arguments: &[&str], words: &[&str]) {
    let finished = joular_bpf(arguments);
    assert_eq!(finished.code(), Some(2), "{arguments:?}: {finished:?}");
    for word in words {
        assert!(finished.stderr.contains(word), "{arguments:?}: the message lacks '{word}': {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}
