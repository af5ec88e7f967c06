//! Looks again at targets of which more can be known later: a libjvm that is loaded late, what Kubernetes runs in a
//! container, and rules that name services otherwise.

use joular_data::{
    events::{ProcessInfo, Runtime},
    model::units::Pid,
};

use super::{Change, Registry, Role, jvms::Others, reading};
use crate::procs::{proc_files::ProcFiles, service};

/// Ages in windows at which a process is looked at for a libjvm loaded late.
const RUNTIME_CHECKS: [u32; 6] = [1, 2, 4, 8, 16, 30];

/// Editions of what can change, when targets were last looked at again.
#[derive(Debug)]
pub(super) struct Seen {
    pods: u64,
    rules: u64,
}

impl Seen {
    /// Before any pod is known.
    pub(super) fn of(files: &ProcFiles) -> Self {
        Self { pods: 0, rules: files.rules().edition() }
    }
}

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
            if let Some(read) = self.read_again(pid) {
                changes.extend(self.news(pid, read));
            }
        }
        changes
    }

    /// If the rules have been replaced: what they say of targets.
    pub(super) fn follow_rules(&mut self) -> Vec<Change> {
        let edition = self.proc_files.rules().edition();
        if std::mem::replace(&mut self.seen.rules, edition) == edition {
            return Vec::new();
        }
        let rules = self.proc_files.rules().now();
        let targets: Vec<ProcessInfo> = self.targets().cloned().collect();
        let mut changes = Vec::new();
        for info in targets {
            let ruled = match service::ruled(&info, &rules) {
                Some(service) => Some(ProcessInfo { service: Some(service), ..info.clone() }),
                None => self.read_again(info.pid),
            };
            if let Some(ruled) = ruled.filter(|ruled| ruled.service != info.service) {
                changes.extend(self.news(info.pid, ruled));
            }
        }
        changes
    }

    fn news(&mut self, pid: Pid, info: ProcessInfo) -> Option<Change> {
        let entry = self.entries.get_mut(&pid)?;
        entry.info = info.clone();
        Some(Change::Found(Box::new(info)))
    }

    /// If more is known of the pods of this host: tells what it says of targets, and finds those that are targets
    /// by it.
    pub(super) fn learn_pods(&mut self) -> Vec<Change> {
        let generation = self.proc_files.pods().generation();
        if std::mem::replace(&mut self.seen.pods, generation) == generation {
            return Vec::new();
        }
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
