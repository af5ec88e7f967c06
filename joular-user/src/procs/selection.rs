//! Decides who is a target.

use std::fmt;

use joular_data::{
    events::{ProcessInfo, Runtime},
    model::{target_text::TargetText, units::Pid},
};
use joular_ebpf::abi::{CommPattern, MAX_COMM_PATTERNS};

pub use super::patterns::{JAVA, LabelPattern, NamePattern};
use super::{
    containers::{self, Container},
    places,
    proc_files::ProcFiles,
};

/// The selection of a run.
#[derive(Clone, Debug)]
pub enum Selection {
    All,
    Names(Vec<NamePattern>),
    Pids(Vec<Pid>),
    /// Processes with one of these names, or any, that are part of something.
    PartOf(Vec<NamePattern>, Box<Belonging>),
    /// JVMs, whatever launched them, that are part of something.
    Jvms(Box<Belonging>),
    /// A process and all that descend from it: see [`super::tree`].
    Tree(Pid),
}

impl Selection {
    /// Every process of the machine.
    pub const fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether processes are selected by their ids.
    pub const fn is_of_pids(&self) -> bool {
        matches!(self, Self::Pids(_))
    }

    /// Whether JVMs are selected, whatever they are called.
    pub const fn is_of_jvms(&self) -> bool {
        matches!(self, Self::Jvms(_))
    }

    /// Whether JVMs that other programs launch are left out, though those of Java's own launcher are selected.
    pub fn leaves_jvms_out(&self) -> bool {
        matches!(self, Self::Names(patterns) if patterns.iter().any(|pattern| pattern.matches(JAVA)))
    }

    /// Whether a process with this id and kernel name is selected. Of a tree only the root matches;
    /// descent decides the rest. A JVM is known by its name only if Java's launcher has just started it.
    pub fn matches(&self, pid: Pid, comm: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(patterns) => patterns.iter().any(|pattern| pattern.matches(comm)),
            Self::PartOf(names, _) => names.is_empty() || names.iter().any(|pattern| pattern.matches(comm)),
            Self::Pids(pids) => pids.contains(&pid),
            Self::Jvms(_) => comm == JAVA,
            Self::Tree(root) => *root == pid,
        }
    }

    /// Names by which a process can become a target that is none yet; `None`: by any, or by too many patterns for the
    /// kernel's programs. In a tree children become targets, whatever their names. JVMs of another launcher are found by
    /// looking.
    pub fn names_in_kernel(&self) -> Option<Vec<CommPattern>> {
        let patterns = match self {
            Self::All => return None,
            Self::Jvms(_) => return Some(vec![NamePattern::of_java().in_kernel()]),
            Self::Names(names) => names.as_slice(),
            Self::PartOf(names, _) if names.is_empty() => return None,
            Self::PartOf(names, _) => names.as_slice(),
            Self::Pids(_) | Self::Tree(_) => &[],
        };
        (patterns.len() <= MAX_COMM_PATTERNS).then(|| patterns.iter().map(NamePattern::in_kernel).collect())
    }

    /// The root, if a tree is selected.
    pub const fn root(&self) -> Option<Pid> {
        match self {
            Self::Tree(root) => Some(*root),
            _ => None,
        }
    }

    /// Whether a process whose id and name match can be a target by its control group, which is read
    /// only if that matters.
    pub fn matches_cgroup(&self, cgroup: impl FnOnce() -> Option<TargetText>) -> bool {
        match self.belonging() {
            Some(belonging) if belonging.is_about_cgroups() => {
                cgroup().is_some_and(|path| belonging.allows_cgroup(path.raw()))
            }
            _ => true,
        }
    }

    fn belonging(&self) -> Option<&Belonging> {
        match self {
            Self::PartOf(_, belonging) | Self::Jvms(belonging) => Some(belonging),
            _ => None,
        }
    }

    /// Whether what Kubernetes says of a process can make it a target: also by its service.
    pub fn may_depend_on_pods(&self) -> bool {
        self.belonging().is_some_and(|belonging| belonging.is_about_pods() || !belonging.services.is_empty())
    }

    /// Whether a process whose id and name match is part of what was chosen.
    pub fn matches_info(&self, info: &ProcessInfo) -> bool {
        let is_of_kind = !self.is_of_jvms() || info.runtime != Runtime::Native;
        is_of_kind
            && self.belonging().is_none_or(|belonging| {
                self.matches_cgroup(|| info.cgroup.clone())
                    && belonging.allows_workload(info)
                    && any_or_none(&belonging.services, |pattern| {
                        info.service.as_ref().is_some_and(|service| pattern.matches(service.name.raw()))
                    })
            })
    }
}

/// What targets are part of. Conditions of one kind are alternatives; conditions of different kinds must
/// all hold. Labels with different keys are of different kinds.
#[derive(Clone, Debug, Default)]
pub struct Belonging {
    pub containers: Vec<NamePattern>,
    /// By uid or by name.
    pub pods: Vec<NamePattern>,
    pub namespaces: Vec<NamePattern>,
    pub labels: Vec<LabelPattern>,
    pub cgroups: Vec<NamePattern>,
    pub services: Vec<NamePattern>,
}

impl Belonging {
    pub const fn is_empty(&self) -> bool {
        !self.is_about_cgroups() && self.services.is_empty()
    }

    const fn is_about_cgroups(&self) -> bool {
        self.is_about_pods() || !(self.containers.is_empty() && self.cgroups.is_empty())
    }

    const fn is_about_pods(&self) -> bool {
        !(self.pods.is_empty() && self.namespaces.is_empty() && self.labels.is_empty())
    }

    /// Conditions by the names of their flags.
    fn shown(&self) -> [(&'static str, Vec<String>); 6] {
        [
            ("--container", shown(&self.containers)),
            ("--pod", shown(&self.pods)),
            ("--namespace", shown(&self.namespaces)),
            ("--label", shown(&self.labels)),
            ("--cgroup", shown(&self.cgroups)),
            ("--service", shown(&self.services)),
        ]
    }

    /// The path of a control group tells the container, and whether there is a pod.
    fn allows_cgroup(&self, path: &str) -> bool {
        let Container { id, pod } = containers::container_of(path);
        let is_in_any = id.is_some() || pod.is_some();
        let id = id.as_ref().map(TargetText::raw);
        any_or_none(&self.containers, |pattern| id.is_some_and(|id| places::is_container(pattern, id)))
            && (is_in_any || !self.is_about_pods())
            && any_or_none(&self.cgroups, |pattern| places::is_in_cgroup(pattern, path))
    }

    fn allows_workload(&self, info: &ProcessInfo) -> bool {
        let workload = info.workload.as_deref();
        let names = [info.pod.as_ref(), workload.map(|known| &known.pod)];
        any_or_none(&self.pods, |pattern| names.into_iter().flatten().any(|name| pattern.matches(name.raw())))
            && any_or_none(&self.namespaces, |pattern| {
                workload.is_some_and(|known| pattern.matches(known.namespace.raw()))
            })
            && self.labels.iter().all(|LabelPattern { key, .. }| {
                let mut same_key = self.labels.iter().filter(|label| label.key == *key);
                workload.is_some_and(|known| same_key.any(|label| label.matches(known)))
            })
    }
}

fn any_or_none(patterns: &[NamePattern], holds: impl Fn(&NamePattern) -> bool) -> bool {
    patterns.is_empty() || patterns.iter().any(holds)
}

/// Chosen pids of which there is no process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    pub pids: Vec<Pid>,
    /// Whether none of the chosen pids has a process, so that nothing can ever be recorded.
    pub is_all: bool,
}

impl Selection {
    /// Chosen pids that have no process. A name may still appear, a pid does not.
    pub fn absent(&self, files: &ProcFiles) -> Option<Absent> {
        let Self::Pids(chosen) = self else { return None };
        let running = files.pids();
        let pids: Vec<Pid> = chosen.iter().copied().filter(|pid| running.binary_search(pid).is_err()).collect();
        let is_all = pids.len() == chosen.len();
        (!pids.is_empty()).then_some(Absent { pids, is_all })
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids = self.pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "--pid: there is no process {pids}")
    }
}

/// Writes the selection as on the command line, if it can be typed there.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("--all"),
            Self::Names(patterns) => write_patterns(f, [("--comm", shown(patterns))]),
            Self::PartOf(names, of) => write_patterns(f, [("--comm", shown(names))].into_iter().chain(of.shown())),
            Self::Jvms(of) => {
                f.write_str("--jvms")?;
                if !of.is_empty() {
                    f.write_str(" ")?;
                }
                write_patterns(f, of.shown())
            }
            Self::Pids(pids) => {
                f.write_str("--pid")?;
                pids.iter().try_for_each(|pid| write!(f, " {pid}"))
            }
            Self::Tree(root) => write!(f, "process {root} and what it starts"),
        }
    }
}

fn shown<P: fmt::Display>(patterns: &[P]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn write_patterns<'a>(
    f: &mut fmt::Formatter<'_>,
    flags: impl IntoIterator<Item = (&'a str, Vec<String>)>,
) -> fmt::Result {
    let given = flags.into_iter().filter(|(_, patterns)| !patterns.is_empty());
    let given: Vec<String> = given.map(|(flag, patterns)| format!("{flag} {}", patterns.join(" "))).collect();
    f.write_str(&given.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_shows_as_it_was_typed() {
        let names = Selection::Names(vec![NamePattern::new("java").unwrap(), NamePattern::new("j*").unwrap()]);
        assert_eq!(names.to_string(), "--comm java j*");
        assert_eq!(Selection::Pids(vec![Pid(1), Pid(2)]).to_string(), "--pid 1 2");
        assert_eq!(Selection::Tree(Pid(7)).to_string(), "process 7 and what it starts");
    }

    #[test]
    fn pids_that_are_not_there_are_named() {
        let proc = tempfile::tempdir().unwrap();
        for pid in ["7", "12"] {
            std::fs::create_dir(proc.path().join(pid)).unwrap();
        }
        let files = ProcFiles::new(proc.path());
        let absent = |pids: &[u32]| Selection::Pids(pids.iter().copied().map(Pid).collect()).absent(&files);
        assert_eq!(absent(&[12, 7]), None);
        assert_eq!(absent(&[12, 8]), Some(Absent { pids: vec![Pid(8)], is_all: false }));
        let none = absent(&[8, 120]).unwrap();
        assert!(none.is_all);
        assert_eq!(none.to_string(), "--pid: there is no process 8, 120");
        let names = Selection::Names(vec![NamePattern::new("java").unwrap()]);
        assert_eq!([names, Selection::All].map(|selection| selection.absent(&files)), [None, None]);
    }

    #[test]
    fn the_kernel_knows_the_names_of_who_may_become_a_target() {
        let names = |count: usize| vec![NamePattern::new("java").unwrap(); count];
        let belonging = || Box::new(Belonging::default());
        for (selection, expected) in [
            (Selection::All, None),
            (Selection::Names(names(2)), Some(2)),
            (Selection::Names(names(MAX_COMM_PATTERNS + 1)), None),
            (Selection::PartOf(names(1), belonging()), Some(1)),
            (Selection::PartOf(Vec::new(), belonging()), None),
            (Selection::Jvms(belonging()), Some(1)),
            (Selection::Pids(vec![Pid(7)]), Some(0)),
            (Selection::Tree(Pid(7)), Some(0)),
        ] {
            assert_eq!(selection.names_in_kernel().map(|names| names.len()), expected, "{selection}");
        }
    }

    #[test]
    fn a_selection_is_all_or_names_or_pids() {
        let names = Selection::Names(vec![NamePattern::new("java").unwrap()]);
        assert!(names.matches(Pid(1), "java") && !names.matches(Pid(1), "node"));
        let pids = Selection::Pids(vec![Pid(1)]);
        assert!(pids.matches(Pid(1), "x") && !pids.matches(Pid(2), "x"));
        assert!(Selection::All.matches(Pid(2), ""));
        let jvms = Selection::Jvms(Box::default());
        assert!(jvms.matches(Pid(1), "java") && !jvms.matches(Pid(1), "python3"));
        let process = |runtime| ProcessInfo { runtime, ..ProcessInfo::default() };
        assert!(jvms.matches_info(&process(Runtime::UNKNOWN_JVM)) && !jvms.matches_info(&process(Runtime::Native)));
        assert!(Selection::Tree(Pid(1)).matches(Pid(1), "x") && !Selection::Tree(Pid(1)).matches(Pid(2), "x"));
    }
}
