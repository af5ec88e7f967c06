//! Says what is one process in a tier: all processes of a version of a service that run the same class. Processes without
//! either are told apart by their own names.

use std::collections::BTreeMap;

use twox_hash::XxHash64;

use crate::{
    attribution::window_report::ProcessRef,
    dataset::erasing::ERASED,
    events::{ProcessInfo, Runtime, Service, ServiceFrom, Workload},
    model::{target_text::TargetText, units::Pid},
};

/// What the processes have in common. Nothing is known of what is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) service: Option<TargetText>,
    pub(super) version: Option<TargetText>,
    /// Kubernetes' namespace.
    pub(super) namespace: Option<TargetText>,
    pub(super) main_class: Option<TargetText>,
    /// The process's own name, if nothing else tells it from others: it has no service and no main class.
    pub(super) comm: Option<TargetText>,
}

impl Name {
    /// With the process's own name, if that is needed.
    pub(super) fn or_comm(self, comm: impl FnOnce() -> TargetText) -> Self {
        let is_nameless = self.service.is_none() && self.main_class.is_none() && self.comm.is_none();
        if is_nameless { Self { comm: Some(comm()), ..self } } else { self }
    }
}

impl Name {
    /// That of all processes that were erased.
    pub(super) fn erased() -> Self {
        Self { service: Some(ERASED.into()), ..Self::default() }
    }
}

/// All processes of a run that were erased, as rows know them.
pub(super) fn erased_process() -> ProcessRef {
    ProcessRef { pid: Pid(pid_of(&Name::erased())), start_boottime_ns: 0, comm: ERASED.into() }
}

/// A pod in place of all pods of the namespace.
const ALL_PODS: &str = "[all pods]";

/// The processes of a service in a unit.
#[derive(Debug, Default)]
pub(super) struct Named(BTreeMap<Name, TargetText>);

impl Named {
    /// Of process names, the first in the order of the alphabet stays, whoever comes first.
    pub(super) fn add(&mut self, name: &Name, comm: &TargetText) {
        match self.0.get_mut(name) {
            Some(known) if *known <= *comm => {}
            Some(known) => known.clone_from(comm),
            None => drop(self.0.insert(name.clone(), comm.clone())),
        }
    }

    /// Each as rows know it. The pid follows from the name, so a process of one hour is that of the next; where two names have
    /// the same pid, the later one has the next.
    pub(super) fn refs(&self) -> BTreeMap<Name, ProcessRef> {
        let mut pids: BTreeMap<u32, Name> = BTreeMap::new();
        for name in self.0.keys() {
            let mut pid = pid_of(name);
            while pids.contains_key(&pid) {
                pid = pid.wrapping_add(1).max(1);
            }
            pids.insert(pid, name.clone());
        }
        let of = |(pid, name): (u32, Name)| {
            let comm = self.0.get(&name).cloned().unwrap_or_default();
            (name, ProcessRef { pid: Pid(pid), start_boottime_ns: 0, comm })
        };
        pids.into_iter().map(of).collect()
    }
}

/// More than any real pid, and not negative for programs that take pids for 32-bit integers with a sign.
fn pid_of(name: &Name) -> u32 {
    let Name { service, version, namespace, main_class, comm } = name;
    let mut text = String::new();
    let parts = [service, version, namespace, main_class].map(Option::as_ref).into_iter();
    for part in parts.chain(comm.iter().map(Some)) {
        // Lengths keep "a" + "bc" apart from "ab" + "c".
        let part = part.map_or("", TargetText::raw);
        text.push_str(&format!("{}:{part}", part.len()));
    }
    let hash = XxHash64::oneshot(0, text.as_bytes());
    let low = u32::try_from(hash & 0x3fff_ffff).unwrap_or(0);
    low | 0x4000_0000
}

/// What table `processes` says of it.
pub(super) fn info(name: &Name, process: &ProcessRef) -> ProcessInfo {
    let Name { service, version, namespace, main_class, comm: _ } = name.clone();
    let service = service.map(|name| Service { name, version, from: ServiceFrom::default() });
    let workload = namespace.map(|namespace| {
        let pod = ALL_PODS.into();
        Box::new(Workload { namespace, pod, container: None, image: None, labels: Vec::new() })
    });
    let jvm = |main_class| Runtime::Jvm {
        version: None,
        main_class: Some(main_class),
        collector: None,
        debug_non_safepoints: None,
        unwinding: None,
    };
    ProcessInfo {
        pid: process.pid,
        start_boottime_ns: process.start_boottime_ns,
        comm: process.comm.clone(),
        service,
        workload,
        runtime: main_class.map(jvm).unwrap_or_default(),
        is_target: true,
        ..ProcessInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(service: &str, version: &str) -> Name {
        Name { service: Some(service.into()), version: Some(version.into()), ..Name::default() }
    }

    #[test]
    fn a_process_has_the_same_pid_whatever_else_there_is_and_no_two_have_one() {
        let mut few = Named::default();
        few.add(&name("shop", "2"), &"java".into());
        let mut many = Named::default();
        for version in 0..1000 {
            many.add(&name("shop", &version.to_string()), &"java".into());
        }
        let (few, many) = (few.refs(), many.refs());
        assert_eq!(few[&name("shop", "2")], many[&name("shop", "2")]);
        let pids: std::collections::BTreeSet<_> = many.values().map(|process| process.pid).collect();
        assert_eq!(pids.len(), 1000);
        assert!(pids.iter().all(|pid| i32::try_from(pid.0).is_ok_and(|pid| pid > 1 << 22)), "no real pid");
    }

    #[test]
    fn what_has_neither_service_nor_class_is_told_apart_by_its_own_name() {
        let comm = |name: Name, comm: &str| name.or_comm(|| comm.into()).comm;
        assert_eq!(comm(Name::default(), "bash"), Some("bash".into()));
        assert_eq!(comm(Name { comm: Some("bash".into()), ..Name::default() }, "java"), Some("bash".into()));
        assert_eq!(comm(name("shop", "1"), "bash"), None);
        assert_eq!(comm(Name { main_class: Some("Main".into()), ..Name::default() }, "java"), None);
        let mut named = Named::default();
        for one in ["bash", "sshd"] {
            named.add(&Name::default().or_comm(|| one.into()), &one.into());
        }
        let names: Vec<TargetText> = named.refs().into_values().map(|process| process.comm).collect();
        assert_eq!(names, ["bash", "sshd"].map(TargetText::from));
    }

    #[test]
    fn the_name_of_the_process_does_not_depend_on_who_comes_first() {
        for comms in [["java", "b"], ["b", "java"]] {
            let mut named = Named::default();
            comms.iter().for_each(|comm| named.add(&name("shop", "1"), &(*comm).into()));
            assert_eq!(named.refs()[&name("shop", "1")].comm.raw(), "b");
        }
    }
}
