//! The kernel's own account of on-CPU time: first field of
//! `/proc/PID/task/TID/schedstat`, nanoseconds.
//!
//! For a running thread it is as old as the last tick; for a blocked one it is
//! exact. Tests that compare to the nanosecond read it of blocked threads.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Context as _, Result};

use crate::clock::wait_for;

/// On-CPU nanoseconds of each thread of a process.
pub fn threads(pid: u32) -> Result<BTreeMap<u32, u64>> {
    let mut times = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("listing threads of {pid}"))? {
        let name = entry?.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // A thread may end between listing and reading.
        if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")) {
            let first = text.split_whitespace().next().context("schedstat is empty")?;
            times.insert(tid, first.parse().with_context(|| format!("schedstat says '{text}'"))?);
        }
    }
    Ok(times)
}

/// On-CPU nanoseconds of all its threads.
pub fn process(pid: u32) -> Result<u64> {
    Ok(threads(pid)?.values().sum())
}

/// Waits until every thread sleeps, and reads then: these figures are exact.
pub fn when_blocked(pid: u32, limit: Duration) -> Result<BTreeMap<u32, u64>> {
    wait_for(&format!("all threads of {pid} to block"), limit, || {
        let before = threads(pid)?;
        let asleep = before.keys().all(|tid| state(pid, *tid) == Some('S'));
        // Unchanged in between: nobody woke up and slept again.
        Ok((asleep && threads(pid)? == before).then_some(before))
    })
}

/// The state letter of `/proc/PID/task/TID/stat`, behind the name in parentheses.
fn state(pid: u32, tid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
