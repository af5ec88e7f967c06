//! Follows the recorded processes: what to do when they come, change and go, and what is learned of
//! them while they run.

use std::collections::BTreeSet;

use joular_data::{
    events::{
        Event, ProcessInfo, Runtime, SampleCount, ThreadTime,
        decode::{self, Lifecycle, LifecycleKind},
    },
    model::units::{MonotonicNs, Pid},
};

use super::{Live, LiveError, Run};
use crate::{clock, procs::registry::Change, symbols::ProcessKey};

/// JVMs that a notice names.
const MOST_NAMED: usize = 5;

impl Run<'_> {
    pub(super) fn changed(&mut self, change: Change) -> Result<(), LiveError> {
        match change {
            Change::Found(process) => self.found(&process),
            Change::Executed(process) => {
                // Nothing that was known of the program before holds.
                self.forget(&process);
                self.found(&process)
            }
            Change::Ended(process) => {
                self.live.banks.remove_target(process.pid);
                self.forget(&process);
                let (pid, start_boottime_ns) = (process.pid, process.start_boottime_ns);
                self.feed.forget((pid, start_boottime_ns));
                Ok(self.consumer.take(&Event::ProcessEnded { pid, start_boottime_ns })?)
            }
        }
    }

    fn found(&mut self, process: &ProcessInfo) -> Result<(), LiveError> {
        if process.is_target {
            if self.thread_names.target_found(process.pid, clock::monotonic_now()) {
                self.wake.target_found();
            }
            if let Err(error) = self.live.banks.add_target(process.pid) {
                (self.live.notify)(&format!("process {}: {error}: its stacks are not recorded", process.pid));
            }
            self.live.programs.target_found();
            self.feed.tell_again((process.pid, process.start_boottime_ns));
            self.live.symbolizer.process_started(process);
            // Others when they are first sampled.
            if !self.live.registry.selects_many() || matches!(process.runtime, Runtime::Jvm { .. }) {
                self.live.unwind.sampled((process.pid, process.start_boottime_ns), &mut self.live.symbolizer);
            }
        } else {
            self.live.banks.remove_target(process.pid);
            self.forget(process);
            self.feed.forget((process.pid, process.start_boottime_ns));
        }
        Ok(self.consumer.take(&Event::Process(Box::new(process.clone())))?)
    }

    /// Begins to sample threads that have run without a stop since before their process was a target.
    pub(super) fn sample_running(&mut self) {
        if let Err(error) = self.live.programs.interrupt_isolated() {
            (self.live.notify)(&format!(
                "threads that have isolated CPUs (nohz_full) to themselves may not be sampled: opening an event there: \
                 {error}: grant CAP_SYS_ADMIN, or set the sysctl kernel.perf_event_paranoid to 2"
            ));
        }
    }

    /// Whoever selects JVMs by the name of Java's launcher may not know that others have another name.
    pub(super) fn say_who_is_left_out(&mut self) {
        let left_out = self.live.registry.jvms_left_out();
        let named = left_out.iter().take(MOST_NAMED).map(|(name, pid)| format!("{name} (pid {pid})"));
        let names = named.collect::<Vec<_>>().join(", ");
        let more = if left_out.len() > MOST_NAMED { ", …" } else { "" };
        let which = match left_out.len() {
            0 => return,
            1 => "1 JVM has another name and is left out".to_owned(),
            count => format!("{count} JVMs have other names and are left out"),
        };
        (self.live.notify)(&format!("{which}: {names}{more}: --jvms records every JVM"));
    }

    fn forget(&mut self, process: &ProcessInfo) {
        self.feed.tell_again((process.pid, process.start_boottime_ns));
        self.live.unwind.ended(process.pid);
        self.forget_allocator(process.pid);
        self.live.symbolizer.process_ended(process.pid, process.start_boottime_ns);
    }

    /// Keeps the unwind tables true to the processes that are sampled. Naming their addresses has
    /// just brought their mappings up to date.
    pub(super) fn publish_sampled(&mut self, samples: &[SampleCount]) {
        let Live { registry, symbolizer, unwind, .. } = &mut *self.live;
        let sampled: BTreeSet<Pid> = samples.iter().map(|sample| sample.pid).collect();
        for process in sampled.into_iter().filter_map(|pid| registry.target(pid)) {
            unwind.sampled((process.pid, process.start_boottime_ns), symbolizer);
        }
        unwind.pass_window();
    }

    /// Takes what became of a process. True: it might have been a new target, and is none.
    pub(super) fn lifecycle(&mut self, event: &Lifecycle) -> Result<bool, LiveError> {
        if event.kind == LifecycleKind::Rename {
            self.renamed(event);
        }
        let changes = self.live.registry.lifecycle(event);
        let is_stranger = changes.is_empty()
            && matches!(event.kind, LifecycleKind::Exec | LifecycleKind::Rename)
            && self.live.registry.target(event.pid).is_none();
        for change in changes {
            self.changed(change)?;
        }
        Ok(is_stranger)
    }

    /// Notes the name that a thread has taken.
    fn renamed(&mut self, event: &Lifecycle) {
        self.thread_names.taken(event);
        self.long_names.taken(event);
        if let Some(process) = self.live.registry.target(event.pid) {
            let key = (process.pid, process.start_boottime_ns);
            self.live.symbolizer.thread_named(key, event.tid, event.comm.raw());
        }
    }

    /// Names the threads of the window that has ended.
    pub(super) fn name_threads(&mut self, threads: &mut [ThreadTime], end: MonotonicNs) {
        let registry = &self.live.registry;
        let read = |pid, tid| registry.thread_comm(pid, tid).map(|name| decode::comm_bytes(name.raw()));
        self.thread_names.name(threads, end, read);
    }

    /// Learns what JVMs say of themselves, when it is new.
    pub(super) fn learn_jvms(&mut self, refreshed: &[ProcessKey]) -> Result<(), LiveError> {
        for &(pid, start_boottime_ns) in refreshed {
            let Live { registry, symbolizer, .. } = &mut *self.live;
            let news = symbolizer.jvm_news((pid, start_boottime_ns));
            if let Some(process) = news.and_then(|news| registry.learn_jvm(pid, start_boottime_ns, &news)) {
                self.consumer.take(&Event::Process(Box::new(process.clone())))?;
            }
            self.see_allocations((pid, start_boottime_ns))?;
        }
        Ok(())
    }
}
