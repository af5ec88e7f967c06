//! Reads the kernel's own account of on-CPU time: first field of `/proc/PID/task/TID/schedstat`,
//! nanoseconds.
//!
//! For a running thread it is as old as the last tick; for one that is blocked or stopped it is
//! exact. Tests that compare to the nanosecond read it of such threads.

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
    when_all_are(pid, 'S', limit).with_context(|| format!("waiting for all threads of {pid} to block"))
}

/// The same once a signal has stopped every thread.
pub fn when_stopped(pid: u32, limit: Duration) -> Result<BTreeMap<u32, u64>> {
    when_all_are(pid, 'T', limit).with_context(|| format!("waiting for all threads of {pid} to stop"))
}

fn when_all_are(pid: u32, wanted: char, limit: Duration) -> Result<BTreeMap<u32, u64>> {
    wait_for(&format!("threads in state {wanted}"), limit, || {
        let before = threads(pid)?;
        let are = before.keys().all(|tid| state(pid, *tid) == Some(wanted));
        // Unchanged in between: nobody woke up and slept again.
        Ok((are && threads(pid)? == before).then_some(before))
    })
}

/// The state letter of `/proc/PID/task/TID/stat`, behind the name in parentheses.
fn state(pid: u32, tid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
