//! Finds the row of a table that an entry of the profile belongs to.
//!
//! Frames, paths or threads, whichever rows are about, are mapped to small numbers once; no text is
//! compared afterwards.

mod described;

use std::{collections::HashMap, hash::Hash};

use serde_json::{Value, json};

pub(in crate::report) use self::described::NO_HANDLER;
use self::described::{
    branch_group, class_group, class_groups, container_group, container_of, handler_group, host_group, label_group,
    line_group, line_key, method_groups, method_key, namespace_group, package_group, pod_group, pod_names, pool_of,
    process_group, service_group, stand_in, thread_group,
};
use super::by::By;
use crate::{
    model::{frame::Frame, target_text::TargetText},
    report::profile::{Catalog, Fact, FrameIndex, PathIndex, Paths, Profile, Thread, catalog::Process},
};

/// What a row is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub name: TargetText,
    /// In the order of [`By::details`].
    pub details: Vec<Value>,
    /// Stands for what is not known.
    pub is_marker: bool,
}

impl Group {
    /// Stands for so many that were cut.
    pub fn others(hidden: usize) -> Self {
        let name = format!("{hidden} other{}", if hidden == 1 { "" } else { "s" });
        Self { name: name.into(), details: Vec::new(), is_marker: false }
    }
}

#[derive(Clone, Debug)]
pub struct Groups {
    pub by: By,
    named: Named,
    places: Places,
}

/// Names of all groups. A branch's name is as long as the branch is deep, so it is made when it is
/// shown.
#[derive(Clone, Debug)]
enum Named {
    All(Vec<Group>),
    ByPath(Vec<PathIndex>),
    /// So many without names: their caller has them.
    Unnamed(usize),
}

/// Numbers of groups.
#[derive(Clone, Debug)]
enum Places {
    Frames(Vec<usize>),
    Paths(Vec<usize>),
    Threads(Vec<usize>),
    /// By path; a path ends in none of them.
    Beside(Vec<Vec<usize>>),
    /// Facts have the number.
    Classes,
}

impl Groups {
    /// The groups of a profile.
    pub fn of(by: By, profile: &Profile) -> Self {
        match by {
            By::ClassAllocated => {
                Self { by, named: Named::All(class_groups(&profile.measured.classes)), places: Places::Classes }
            }
            by => Self::of_catalog(by, &profile.catalog),
        }
    }

    /// Groups without names: `places` has the number of each frame's group, of which there are `count`.
    pub const fn numbered(places: Vec<usize>, count: usize) -> Self {
        Self { by: By::Method, named: Named::Unnamed(count), places: Places::Frames(places) }
    }

    /// The same of paths.
    pub const fn of_paths(places: Vec<usize>, count: usize) -> Self {
        Self { by: By::Handler, named: Named::Unnamed(count), places: Places::Paths(places) }
    }

    /// The methods that stand directly beside a chosen one on paths: `beside` has of a pair of frames, caller and callee,
    /// the one that does.
    pub fn beside(paths: &Paths, beside: impl Fn([FrameIndex; 2]) -> Option<FrameIndex>) -> Self {
        let (numbers, methods) = numbered(paths.frames().iter().map(method_key));
        let of_path = |path| {
            let pairs = paths.path(path).windows(2).filter_map(|pair| <[FrameIndex; 2]>::try_from(pair).ok());
            pairs.filter_map(|pair| numbers.get(beside(pair)?.index()).copied()).collect()
        };
        let places = Places::Beside(paths.indices().map(of_path).collect());
        Self { by: By::Method, named: Named::All(method_groups(&methods)), places }
    }

    /// The groups of what paths and threads are about.
    pub fn of_catalog(by: By, catalog: &Catalog) -> Self {
        let frames = catalog.paths.frames();
        if by == By::Branch {
            let (places, firsts) = of_branches(&catalog.paths);
            return Self { by, named: Named::ByPath(firsts), places: Places::Paths(places) };
        }
        let (places, groups) = match by {
            By::Method => {
                let (places, methods) = numbered(frames.iter().map(method_key));
                (Places::Frames(places), method_groups(&methods))
            }
            By::Class => of_frames(frames, |frame| (frame.class.as_ref(), stand_in(frame)), class_group),
            By::Package => of_frames(frames, |frame| (frame.raw_package(), stand_in(frame)), package_group),
            By::Kind => of_frames(frames, |frame| frame.kind, |kind| group(kind.name(), vec![json!(kind.name())])),
            By::Line => of_frames(frames, line_key, line_group),
            By::ClassAllocated => (Places::Classes, Vec::new()),
            By::Handler => {
                let (handlers, paths) = (&catalog.handlers, catalog.paths.indices());
                let (places, keys) = numbered(paths.map(|path| handlers.number(path)));
                let handler = |number: Option<usize>| number.and_then(|number| handlers.all().get(number));
                (Places::Paths(places), keys.into_iter().map(|number| handler_group(handler(number))).collect())
            }
            By::Branch | By::Thread => of_threads(catalog, |index, _| index, |index| thread_group(catalog, index)),
            By::ThreadPool => {
                of_threads(catalog, |_, thread| pool_of(&thread.name), |pool| group(pool.clone(), vec![json!(pool)]))
            }
            By::Category => of_threads(
                catalog,
                |_, thread| thread.category,
                |category| group(category.name(), vec![json!(category.name())]),
            ),
            By::Process => of_threads(catalog, |_, thread| thread.process, |process| process_group(catalog, process)),
            By::Command => of_places(catalog, Process::title, |title| group(title.clone(), vec![json!(title)])),
            By::Service => of_places(catalog, |process| process.service.as_ref(), service_group),
            By::Container => of_places(catalog, |process| container_of(catalog, process), container_group),
            By::Pod => {
                let names = pod_names(catalog);
                let name = |process: &'_ Process| process.pod.as_ref().and_then(|uid| names.get(uid)).copied();
                of_places(catalog, |process| process.pod.as_ref().map(|uid| (uid, name(process))), pod_group)
            }
            By::Namespace => {
                let names = pod_names(catalog);
                let of_pod = |uid| names.get(uid).map(|(namespace, _)| *namespace);
                of_places(catalog, |process| process.pod.as_ref().and_then(of_pod), namespace_group)
            }
            By::Host => of_threads(
                catalog,
                |_, thread| catalog.run_of(catalog.process(thread.process)).info.machine(),
                |machine| host_group(catalog, machine),
            ),
            By::Label(key) => {
                of_places(catalog, |process| catalog.label_of(process, key.key()), |value| label_group(key, value))
            }
        };
        Self { by, named: Named::All(groups), places }
    }

    pub const fn len(&self) -> usize {
        match &self.named {
            Named::All(groups) => groups.len(),
            Named::ByPath(paths) => paths.len(),
            Named::Unnamed(count) => *count,
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that orders equal rows, if it is at hand.
    pub fn name(&self, group: usize) -> Option<&TargetText> {
        match &self.named {
            Named::All(groups) => groups.get(group).map(|group| &group.name),
            Named::ByPath(_) | Named::Unnamed(_) => None,
        }
    }

    /// Describes a group by the catalog that it was made of.
    pub fn describe(&self, catalog: &Catalog, group: usize) -> Option<Group> {
        match &self.named {
            Named::All(groups) => groups.get(group).cloned(),
            Named::ByPath(paths) => paths.get(group).map(|path| branch_group(&catalog.paths, *path)),
            Named::Unnamed(_) => None,
        }
    }

    /// The group that a fact is part of as its own. `None`: a path without frames, which no sound data set has, or a
    /// measure without classes.
    pub fn own(&self, paths: &Paths, fact: &Fact) -> Option<usize> {
        match &self.places {
            Places::Frames(places) => places.get(paths.path(fact.path).last()?.index()).copied(),
            Places::Paths(places) => places.get(fact.path.index()).copied(),
            Places::Threads(places) => places.get(fact.thread.index()).copied(),
            Places::Beside(_) => None,
            Places::Classes => fact.class,
        }
    }

    /// The row that a thread belongs to, if rows are about threads.
    pub fn of_thread(&self, thread: usize) -> Option<usize> {
        match &self.places {
            Places::Threads(places) => places.get(thread).copied(),
            _ => None,
        }
    }

    /// The rows that stand beside a method on each path, if rows are about that.
    pub fn of_neighbours(&self) -> Option<&[Vec<usize>]> {
        match &self.places {
            Places::Beside(places) => Some(places),
            _ => None,
        }
    }

    /// The row of each frame, if rows are about frames.
    pub fn of_frames(&self) -> Option<&[usize]> {
        match &self.places {
            Places::Frames(places) => Some(places),
            _ => None,
        }
    }
}

/// Each key's number, and the keys in the order of their numbers.
fn numbered<K: Clone + Eq + Hash>(keys: impl Iterator<Item = K>) -> (Vec<usize>, Vec<K>) {
    let mut known: HashMap<K, usize> = HashMap::new();
    let mut distinct = Vec::new();
    let places = keys
        .map(|key| {
            *known.entry(key).or_insert_with_key(|key| {
                distinct.push(key.clone());
                distinct.len() - 1
            })
        })
        .collect();
    (places, distinct)
}

fn of_frames<'a, K: Clone + Eq + Hash>(
    frames: &'a [Frame],
    key: impl Fn(&'a Frame) -> K,
    group: impl Fn(K) -> Group,
) -> (Places, Vec<Group>) {
    let (places, keys) = numbered(frames.iter().map(key));
    (Places::Frames(places), keys.into_iter().map(group).collect())
}

fn of_threads<'a, K: Clone + Eq + Hash>(
    catalog: &'a Catalog,
    key: impl Fn(usize, &'a Thread) -> K,
    group: impl Fn(K) -> Group,
) -> (Places, Vec<Group>) {
    let (places, keys) = numbered(catalog.threads.iter().enumerate().map(|(index, thread)| key(index, thread)));
    (Places::Threads(places), keys.into_iter().map(group).collect())
}

/// A group of what is known.
fn group(name: impl Into<TargetText>, details: Vec<Value>) -> Group {
    Group { name: name.into(), details, is_marker: false }
}

/// Groups paths of the same methods, whatever their lines and kinds of code, and returns the first
/// path of each.
fn of_branches(paths: &Paths) -> (Vec<usize>, Vec<PathIndex>) {
    let (methods, _) = numbered(paths.frames().iter().map(method_key));
    let mut known: HashMap<Box<[u32]>, usize> = HashMap::new();
    let mut firsts = Vec::new();
    let place = |path| {
        let frames = paths.path(path).iter().filter_map(|frame| methods.get(frame.index()));
        let branch = frames.map(|method| u32::try_from(*method).unwrap_or(u32::MAX)).collect();
        *known.entry(branch).or_insert_with(|| {
            firsts.push(path);
            firsts.len() - 1
        })
    };
    (paths.indices().map(place).collect(), firsts)
}

fn of_places<'a, K: Clone + Eq + Hash>(
    catalog: &'a Catalog,
    key: impl Fn(&'a Process) -> K,
    group: impl Fn(K) -> Group,
) -> (Places, Vec<Group>) {
    of_threads(catalog, |_, thread| key(catalog.process(thread.process)), group)
}
