//! Looks again at targets of which more can be known later: a libjvm that is loaded late, and what Kubernetes runs in
//! a container.

use joular_data::events::Runtime;

use super::{Change, Registry, Role, jvms::Others, reading};

/// Ages in windows at which a process is looked at for a libjvm loaded late.
const RUNTIME_CHECKS: [u32; 6] = [1, 2, 4, 8, 16, 30];

impl Registry {
    /// Native processes that have loaded libjvm.
    pub(super) fn become_jvms(&mut self) -> Vec<Change> {
        let mut due = Vec::new();
        for (pid, entry) in &mut self.entries {
            entry.windows = entry.windows.saturating_add(1);
            let may_become = entry.role == Role::Target && entry.ended.is_none();
            if may_become && entry.info.runtime == Runtime::Native && RUNTIME_CHECKS.contains(&entry.windows) {
                due.push(*pid);
            }
        }
        due.retain(|pid| reading::maps_libjvm(&self.proc_files, *pid));
        let mut changes = Vec::new();
        for pid in due {
            if let Some(read) = self.read_again(pid)
                && let Some(entry) = self.entries.get_mut(&pid)
            {
                entry.info = read.clone();
                changes.push(Change::Found(Box::new(read)));
            }
        }
        changes
    }

    /// If more is known of the pods of this host: tells what it says of targets, and finds those that are targets
    /// by it.
    pub(super) fn learn_pods(&mut self) -> Vec<Change> {
        let generation = self.proc_files.pods().generation();
        if generation == self.pods_generation {
            return Vec::new();
        }
        self.pods_generation = generation;
        let mut changes = Vec::new();
        for entry in self.entries.values_mut().filter(|entry| entry.role == Role::Target) {
            if let Some(placed) = self.proc_files.placed(&entry.info) {
                entry.info = placed.clone();
                changes.push(Change::Found(Box::new(placed)));
            }
        }
        // Others were looked at before their pod was known.
        if self.selection.may_depend_on_pods() {
            self.others = Others::default();
            changes.extend(self.scan());
        }
        changes
    }
}
