//! Finds JVMs by what is in their memory, whatever they are called, and takes over what they say of themselves.

use std::{collections::BTreeMap, mem};

use joular_data::{
    events::{JvmNews, ProcessInfo},
    model::{target_text::TargetText, units::Pid},
};

use super::{Change, KnownProcess, Registry, Role, reading};

/// Processes that are not targets, and in how many windows each was seen.
#[derive(Debug, Default)]
pub(super) struct Others(BTreeMap<Pid, u32>);

impl Registry {
    /// Looks whether other processes have become JVMs: when they are seen for the first time, the second, the fourth, … A
    /// JVM that a program loads late is found before it is twice as old, and a program without one costs less and less.
    pub(super) fn find_jvms(&mut self) -> Vec<Change> {
        let known = mem::take(&mut self.others.0);
        let mut due = Vec::new();
        for pid in self.proc_files.pids() {
            if pid == self.profiler || self.is_running(pid) {
                continue;
            }
            let times = known.get(&pid).map_or(1, |times| times.saturating_add(1));
            self.others.0.insert(pid, times);
            if times.is_power_of_two() {
                due.push(pid);
            }
        }
        due.into_iter().flat_map(|pid| self.consider(pid, None)).collect()
    }

    /// Names and ids of running JVMs that are not targets because another program launched them, if those of Java's own
    /// launcher are selected by name.
    pub fn jvms_left_out(&self) -> Vec<(TargetText, Pid)> {
        if !self.selection.leaves_jvms_out() {
            return Vec::new();
        }
        let others = self.proc_files.pids().into_iter().filter(|pid| *pid != self.profiler && !self.is_running(*pid));
        let named = others.filter_map(|pid| Some((self.proc_files.comm(pid)?, pid)));
        named.filter(|(_, pid)| reading::maps_libjvm(&self.proc_files, *pid)).collect()
    }

    /// Takes over what its memory says of a target's JVM. Returns what is known of the process now,
    /// if that is new.
    pub fn learn_jvm(&mut self, pid: Pid, start_boottime_ns: u64, news: &JvmNews) -> Option<&ProcessInfo> {
        let is_it =
            |entry: &KnownProcess| entry.role == Role::Target && entry.info.start_boottime_ns == start_boottime_ns;
        let entry = self.entries.get_mut(&pid).filter(|entry| is_it(entry))?;
        let mut is_new = entry.info.runtime.learn(news);
        if let Some(command) = &news.command {
            is_new |= self.proc_files.learn_command(&mut entry.info, command);
        }
        is_new.then_some(&entry.info)
    }
}
