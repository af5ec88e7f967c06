//! Finds the row of a table that an entry of the profile belongs to.
//!
//! Frames, paths or threads, whichever rows are about, are mapped to small numbers once; no text is
//! compared afterwards.

use std::{collections::HashMap, hash::Hash};

use serde_json::{Value, json};

use super::by::By;
use crate::{
    model::{
        container::short_id,
        frame::{Frame, FrameKind},
        target_text::TargetText,
    },
    report::profile::{Catalog, PathIndex, Paths, ProcessIndex, Thread, ThreadIndex, catalog::Process},
    stacks::branch_id,
    text::signature::{Method, told_apart},
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
}

/// Numbers of groups.
#[derive(Clone, Debug)]
enum Places {
    Frames(Vec<usize>),
    Paths(Vec<usize>),
    Threads(Vec<usize>),
}

impl Groups {
    pub fn of(by: By, catalog: &Catalog) -> Self {
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
            By::Branch | By::Thread => of_threads(catalog, |index, _| index, |index| thread_group(catalog, index)),
            By::Category => of_threads(
                catalog,
                |_, thread| thread.category,
                |category| group(category.name(), vec![json!(category.name())]),
            ),
            By::Process => of_threads(catalog, |_, thread| thread.process, |process| process_group(catalog, process)),
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
                |_, thread| &catalog.run_of(catalog.process(thread.process)).info.host,
                |host| group(host.clone(), vec![json!(host)]),
            ),
        };
        Self { by, named: Named::All(groups), places }
    }

    pub const fn len(&self) -> usize {
        match &self.named {
            Named::All(groups) => groups.len(),
            Named::ByPath(paths) => paths.len(),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that orders equal rows, if it is at hand.
    pub fn name(&self, group: usize) -> Option<&TargetText> {
        match &self.named {
            Named::All(groups) => groups.get(group).map(|group| &group.name),
            Named::ByPath(_) => None,
        }
    }

    /// Describes a group by the catalog that it was made of.
    pub fn describe(&self, catalog: &Catalog, group: usize) -> Option<Group> {
        match &self.named {
            Named::All(groups) => groups.get(group).cloned(),
            Named::ByPath(paths) => paths.get(group).map(|path| branch_group(&catalog.paths, *path)),
        }
    }

    /// The group of a path's own energy. `None`: a path without frames, which no sound data set
    /// has.
    pub fn own(&self, paths: &Paths, thread: ThreadIndex, path: PathIndex) -> Option<usize> {
        match &self.places {
            Places::Frames(places) => places.get(paths.path(path).last()?.index()).copied(),
            Places::Paths(places) => places.get(path.index()).copied(),
            Places::Threads(places) => places.get(thread.index()).copied(),
        }
    }

    /// The row that a thread belongs to, if rows are about threads.
    pub fn of_thread(&self, thread: usize) -> Option<usize> {
        match &self.places {
            Places::Threads(places) => places.get(thread).copied(),
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

fn group(name: impl Into<TargetText>, details: Vec<Value>) -> Group {
    Group { name: name.into(), details, is_marker: false }
}

/// What identifies methods: class, name, signature, module. Neither kinds of code nor lines count.
type MethodKey<'a> = (Option<&'a TargetText>, &'a TargetText, Option<&'a TargetText>, Option<&'a TargetText>, bool);

fn method_key(frame: &Frame) -> MethodKey<'_> {
    let is_marker = frame.kind == FrameKind::Marker;
    (frame.class.as_ref(), &frame.name, frame.signature.as_ref(), frame.module.as_ref(), is_marker)
}

fn method_name(class: Option<&TargetText>, name: &TargetText) -> TargetText {
    class.map_or_else(|| name.clone(), |class| format!("{}.{}", class.raw(), name.raw()).into())
}

/// Names the groups of methods; signature and module are shown where one name has several.
fn method_groups(methods: &[MethodKey<'_>]) -> Vec<Group> {
    let names: Vec<TargetText> = methods.iter().map(|(class, name, ..)| method_name(*class, name)).collect();
    let told: Vec<Method<'_>> = methods
        .iter()
        .zip(&names)
        .map(|(&(_, _, signature, module, _), name)| Method { name, signature, module })
        .collect();
    let group =
        |((method, shown), &(class, _, signature, module, is_marker)): ((&TargetText, TargetText), &MethodKey<'_>)| {
            let details =
                vec![json!(method), json!(class), json!(class.map(package_of)), json!(signature), json!(module)];
            Group { name: shown, details, is_marker }
        };
    names.iter().zip(told_apart(&told)).zip(methods).map(group).collect()
}

fn package_of(class: &TargetText) -> &str {
    class.raw().rsplit_once('.').map_or("", |(package, _)| package)
}

/// What stands for code without a class: its kind, or the marker itself.
type StandIn<'a> = (FrameKind, Option<&'a TargetText>);

fn stand_in(frame: &Frame) -> Option<StandIn<'_>> {
    let is_marker = frame.kind == FrameKind::Marker;
    frame.class.is_none().then(|| (frame.kind, is_marker.then_some(&frame.name)))
}

fn stand_in_name(stand_in: Option<StandIn<'_>>) -> TargetText {
    match stand_in {
        Some((_, Some(marker))) => marker.clone(),
        Some((kind, None)) => format!("[{}]", kind.name()).into(),
        None => TargetText::default(),
    }
}

fn class_group((class, other): (Option<&TargetText>, Option<StandIn<'_>>)) -> Group {
    let name = class.map_or_else(|| stand_in_name(other), ToOwned::to_owned);
    let is_marker = matches!(other, Some((FrameKind::Marker, _)));
    Group { name, details: vec![json!(class), json!(class.map(package_of))], is_marker }
}

fn package_group((package, other): (Option<&str>, Option<StandIn<'_>>)) -> Group {
    let name = match package {
        Some("") => "(unnamed package)".into(),
        Some(package) => package.into(),
        None => stand_in_name(other),
    };
    let is_marker = matches!(other, Some((FrameKind::Marker, _)));
    Group { name, details: vec![json!(package)], is_marker }
}

type LineKey<'a> =
    (Option<&'a TargetText>, &'a TargetText, Option<&'a TargetText>, Option<&'a TargetText>, Option<u32>, bool);

fn line_key(frame: &Frame) -> LineKey<'_> {
    let (class, module, file) = (frame.class.as_ref(), frame.module.as_ref(), frame.file.as_ref());
    (class, &frame.name, module, file, frame.line, frame.kind == FrameKind::Marker)
}

fn line_group((class, name, module, file, line, is_marker): LineKey<'_>) -> Group {
    let method = method_name(class, name);
    let place = match (file, line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", file.raw())),
        (Some(file), None) => Some(file.raw().to_owned()),
        (None, Some(line)) => Some(format!("line {line}")),
        (None, None) => module.map(|module| module.raw().to_owned()),
    };
    let details = vec![json!(method), json!(class), json!(module), json!(file), json!(line)];
    let name = match place {
        Some(place) => format!("{} ({place})", method.raw()).into(),
        None => method,
    };
    Group { name, details, is_marker }
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

fn branch_group(paths: &Paths, path: PathIndex) -> Group {
    let names: Vec<String> = paths.frames_of(path).map(|frame| frame.method().raw().replace(';', ":")).collect();
    group(names.join(";"), vec![json!(branch_id(paths.frames_of(path))), json!(names.len())])
}

fn thread_group(catalog: &Catalog, index: usize) -> Group {
    let Some(thread) = catalog.threads.get(index) else { return group("", Vec::new()) };
    let process = catalog.process(thread.process);
    let host = &catalog.run_of(process).info.host;
    let details = vec![
        json!(thread.name),
        json!(thread.tid.0),
        json!(process.pid.0),
        json!(process.title()),
        json!(thread.category.name()),
        json!(host),
    ];
    group(format!("{} (thread {} of {})", thread.name.raw(), thread.tid, process.pid), details)
}

fn process_group(catalog: &Catalog, index: ProcessIndex) -> Group {
    let process = catalog.process(index);
    let run = catalog.run_of(process);
    let details = vec![
        json!(process.pid.0),
        json!(process.comm),
        json!(process.main_class),
        json!(process.container),
        json!(process.pod),
        json!(run.info.host),
        json!(run.info.run_id),
        json!(process.service),
        json!(process.version),
    ];
    group(format!("{} {}", process.pid, process.title().raw()), details)
}

/// Namespace and name.
type PodName<'a> = (&'a TargetText, &'a TargetText);

fn of_places<'a, K: Clone + Eq + Hash>(
    catalog: &'a Catalog,
    key: impl Fn(&'a Process) -> K,
    group: impl Fn(K) -> Group,
) -> (Places, Vec<Group>) {
    of_threads(catalog, |_, thread| key(catalog.process(thread.process)), group)
}

fn container_of<'a>(
    catalog: &'a Catalog,
    process: &'a Process,
) -> Option<(&'a TargetText, Option<&'a TargetText>, &'a TargetText)> {
    Some((process.container.as_ref()?, process.pod.as_ref(), &catalog.run_of(process).info.host))
}

fn service_group(service: Option<&TargetText>) -> Group {
    let name = service.cloned().unwrap_or_else(|| "[no service known]".into());
    Group { name, details: vec![json!(service)], is_marker: service.is_none() }
}

/// A container with its pod and host. Its name is the short form of its id.
fn container_group(container: Option<(&TargetText, Option<&TargetText>, &TargetText)>) -> Group {
    match container {
        Some((id, pod, host)) => group(short_id(id.raw()), vec![json!(id), json!(pod), json!(host)]),
        None => group("[no container]", vec![json!(null), json!(null), json!(null)]),
    }
}

/// Namespaces and names of pods by uid. A process that ended at once may not know them; others in its pod do.
fn pod_names(catalog: &Catalog) -> HashMap<&TargetText, PodName<'_>> {
    let known = catalog.processes.iter();
    known.filter_map(|one| Some((one.pod.as_ref()?, (one.namespace.as_ref()?, one.pod_name.as_ref()?)))).collect()
}

/// A pod is called as `kubectl` does it, or by its uid.
fn pod_group(pod: Option<(&TargetText, Option<PodName<'_>>)>) -> Group {
    match pod {
        Some((uid, Some((namespace, name)))) => {
            group(format!("{}/{}", namespace.raw(), name.raw()), vec![json!(uid), json!(name), json!(namespace)])
        }
        Some((uid, None)) => group(uid.clone(), vec![json!(uid), json!(null), json!(null)]),
        None => group("[no pod]", vec![json!(null), json!(null), json!(null)]),
    }
}

fn namespace_group(namespace: Option<&TargetText>) -> Group {
    let name = namespace.cloned().unwrap_or_else(|| "[no namespace known]".into());
    Group { name, details: vec![json!(namespace)], is_marker: namespace.is_none() }
}
