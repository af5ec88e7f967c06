//! Keeps who and what the rows of a data set are about, each once and known by a small number:
//! runs, processes, threads, frames and call paths.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{handlers::Handlers, sources::RunPiece};
use crate::{
    attribution::window_report::Category,
    dataset::read::{marks::PhaseWindows, unreadable::Begun},
    events::{Machine, RunEnd, RunInfo, label},
    model::{
        frame::{Frame, FrameKind, UNNAMED_PACKAGE},
        target_text::TargetText,
        units::{Pid, Tid, UnixMicros},
    },
};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// 2^32 of them would need terabytes before this saturates.
            pub(super) fn of(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    };
}

index!(
    /// Place of a process in [`Catalog::processes`].
    ProcessIndex
);
index!(
    /// Place of a thread in [`Catalog::threads`].
    ThreadIndex
);
index!(
    /// Place of a frame in [`Paths`].
    FrameIndex
);
index!(
    /// Place of a call path in [`Paths`].
    PathIndex
);

/// A run, as table `runs` has it.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub info: RunInfo,
    /// `None`: still running, or it did not end properly.
    pub end: Option<RunEnd>,
    /// What it was doing, as its programs said.
    pub phases: Vec<PhaseWindows>,
    /// Where it was read.
    pub piece: RunPiece,
}

impl Begun for Run {
    fn began(&self) -> UnixMicros {
        self.info.started
    }
}

/// What is known about a process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Place in [`Catalog::runs`] of the first run on its host. A recording may have several runs.
    pub run: usize,
    pub pid: Pid,
    pub start: UnixMicros,
    pub comm: TargetText,
    pub main_class: Option<TargetText>,
    pub jvm_version: Option<TargetText>,
    pub collector: Option<TargetText>,
    pub container: Option<TargetText>,
    pub pod: Option<TargetText>,
    /// Kubernetes' namespace and name of the pod.
    pub namespace: Option<TargetText>,
    pub pod_name: Option<TargetText>,
    /// Of the pod, each as `KEY=VALUE`.
    pub labels: Vec<TargetText>,
    pub service: Option<TargetText>,
    /// That of the service.
    pub version: Option<TargetText>,
    /// `None`: no JVM, or not known.
    pub debug_non_safepoints: Option<bool>,
}

impl Process {
    /// The name that people know it by: its main class, or its process name.
    pub fn title(&self) -> &TargetText {
        self.main_class.as_ref().unwrap_or(&self.comm)
    }
}

/// A thread of a target.
#[derive(Clone, Debug)]
pub struct Thread {
    pub process: ProcessIndex,
    pub tid: Tid,
    pub start: UnixMicros,
    /// The latest name that it had.
    pub name: TargetText,
    pub category: Category,
}

/// Call paths root → leaf, and the frames on them.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    frames: Vec<Frame>,
    /// Finds a frame in `frames`, by its hash.
    places: HashTable<FrameIndex>,
    hasher: RandomState,
    /// All paths' frames, one path after the other.
    arena: Vec<FrameIndex>,
    /// Where each path ends in it.
    ends: Vec<usize>,
}

impl Paths {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn indices(&self) -> impl Iterator<Item = PathIndex> + use<> {
        (0..self.ends.len()).map(PathIndex::of)
    }

    /// All distinct frames, by [`FrameIndex`].
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub fn frame(&self, index: FrameIndex) -> &Frame {
        &self.frames[index.index()]
    }

    /// A path's frames, root → leaf; never empty in a sound data set.
    pub fn path(&self, index: PathIndex) -> &[FrameIndex] {
        let start = index.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.arena[start..self.ends[index.index()]]
    }

    /// The frames themselves.
    pub fn frames_of(&self, index: PathIndex) -> impl DoubleEndedIterator<Item = &Frame> + ExactSizeIterator {
        self.path(index).iter().map(|frame| self.frame(*frame))
    }

    pub fn frame_index(&mut self, frame: Frame) -> FrameIndex {
        let hash = self.hasher.hash_one(&frame);
        if let Some(index) = self.places.find(hash, |index| self.frame(*index) == &frame) {
            return *index;
        }
        let index = FrameIndex::of(self.frames.len());
        self.frames.push(frame);
        let (frames, hasher) = (&self.frames, &self.hasher);
        self.places.insert_unique(hash, index, |index| hasher.hash_one(&frames[index.index()]));
        index
    }

    /// Adds a path. Equal paths are not merged: each stack of the data set is one.
    pub fn push(&mut self, frames: impl IntoIterator<Item = FrameIndex>) -> PathIndex {
        self.arena.extend(frames);
        self.ends.push(self.arena.len());
        PathIndex::of(self.ends.len() - 1)
    }

    /// The same paths, by the same indices, as the application sees them. Of each path only its own
    /// frames remain, so energy of other code goes to the application's code that called it. Paths
    /// without such frames have a marker, or stay as they are in the view of [`App::Java`].
    #[must_use]
    pub fn of_app(&self, app: &App) -> Self {
        let (frames, places, hasher) = (self.frames.clone(), self.places.clone(), self.hasher.clone());
        let mut paths = Self { frames, places, hasher, arena: Vec::new(), ends: Vec::new() };
        let outside = paths.frame_index(Frame::new(FrameKind::Marker, OUTSIDE_APP));
        let is_of_app: Vec<bool> = self.frames.iter().map(|frame| app.has(frame)).collect();
        for path in self.indices() {
            let whole = self.path(path);
            let mut seen: Vec<FrameIndex> = whole.iter().copied().filter(|frame| is_of_app[frame.index()]).collect();
            match (app, whole.last()) {
                (App::Of(_), _) if seen.is_empty() => seen.push(outside),
                (App::Java, _) if seen.is_empty() => seen.extend(whole),
                (App::Java, Some(leaf)) if self.frame(*leaf).kind == FrameKind::Marker => seen.push(*leaf),
                _ => {}
            }
            paths.push(seen);
        }
        paths
    }
}

/// Stands for paths without a frame of the application.
pub const OUTSIDE_APP: &str = "[outside of the app]";

/// Whose code is shown. Energy of other code goes to what called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum App {
    /// An application's: prefixes of its packages or classes, or [`UNNAMED_PACKAGE`].
    Of(Vec<String>),
    /// All code in Java. Paths without any stay as they are, and so do leaves that say what is not known.
    Java,
}

impl App {
    /// `None` if there is no prefix at all.
    pub fn of(prefixes: &[String]) -> Option<Self> {
        let prefixes = Self::prefixes(prefixes);
        (!prefixes.is_empty()).then_some(Self::Of(prefixes))
    }

    /// Prefixes as they are compared: `com.acme`, `com.acme.`, and `com.acme.*` are the same.
    pub fn prefixes(texts: &[String]) -> Vec<String> {
        let trimmed = texts.iter().map(|prefix| prefix.trim_end_matches('*').trim_end_matches('.').to_owned());
        trimmed.filter(|prefix| !prefix.is_empty()).collect()
    }

    /// Whether a frame is shown: of Java, or its class is one of these, nested in one, or in such a package.
    pub fn has(&self, frame: &Frame) -> bool {
        let Self::Of(prefixes) = self else { return frame.kind.is_java() };
        let Some(class) = frame.class.as_ref().map(TargetText::raw) else { return false };
        prefixes.iter().any(|prefix| {
            let behind = class.strip_prefix(prefix.as_str());
            behind.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '$', '/']))
                || prefix == UNNAMED_PACKAGE && !class.contains('.')
        })
    }

    /// The leaf of a path as [`Paths::of_app`] shows it; `None`: the marker.
    pub fn leaf<'a>(&self, leaf_to_root: impl Iterator<Item = &'a Frame>) -> Option<&'a Frame> {
        let mut frames = leaf_to_root.peekable();
        let leaf = frames.peek().copied();
        let own = frames.find(|frame| self.has(frame));
        match self {
            Self::Of(_) => own,
            Self::Java => leaf.filter(|leaf| leaf.kind == FrameKind::Marker).or(own).or(leaf),
        }
    }
}

/// Everything that rows refer to.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub runs: Vec<Run>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub paths: Paths,
    /// Of paths; empty unless [`Filter::handler_rules`](super::Filter::handler_rules) says how they are found.
    pub handlers: Handlers,
}

impl Catalog {
    pub fn thread(&self, index: ThreadIndex) -> &Thread {
        &self.threads[index.index()]
    }

    pub fn process(&self, index: ProcessIndex) -> &Process {
        &self.processes[index.index()]
    }

    pub fn process_of(&self, thread: ThreadIndex) -> &Process {
        self.process(self.thread(thread).process)
    }

    pub fn run_of(&self, process: &Process) -> &Run {
        &self.runs[process.run]
    }

    /// The value of a label of a process's pod, else of its host.
    pub fn label_of<'a>(&'a self, process: &'a Process, key: &str) -> Option<&'a str> {
        label(&process.labels, key).or_else(|| label(&self.run_of(process).info.identity.labels, key))
    }

    /// What a host is called: its name, and an id of the machine where several have that name.
    pub fn host_title(&self, machine: Machine<'_>) -> TargetText {
        let is_namesake = |run: &Run| run.info.host == *machine.host && run.info.machine() != machine;
        if !self.runs.iter().any(is_namesake) {
            return machine.host.clone();
        }
        let id = machine.instance_id.or(machine.machine_id).map_or("machine unknown", TargetText::raw);
        format!("{} ({id})", machine.host.raw()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(class: &str, name: &str) -> Frame {
        Frame { class: Some(class.into()), ..Frame::new(FrameKind::Compiled, name) }
    }

    #[test]
    fn a_prefix_is_a_package_or_a_class_and_no_part_of_a_name() {
        for (prefix, class, expected) in [
            ("com.acme", "com.acme.Shop", true),
            ("com.acme.*", "com.acme.shop.Cart", true),
            ("com.acme.", "com.acme.Shop$Item", true),
            ("com.acme.Shop", "com.acme.Shop", true),
            ("com.acme.Shop", "com.acme.Shop$$Lambda/0x1", true),
            ("com.acme.Shop", "com.acme.ShopTest", false),
            ("com.acme", "com.acmeplus.Shop", false),
            (UNNAMED_PACKAGE, "Shop$Item", true),
            (UNNAMED_PACKAGE, "com.Shop", false),
        ] {
            let app = App::of(&[prefix.to_owned()]).unwrap();
            assert_eq!(app.has(&frame(class, "run")), expected, "{prefix} {class}");
        }
        assert_eq!(App::of(&["*".to_owned(), String::new()]), None);
        assert!(!App::of(&["a".to_owned()]).unwrap().has(&Frame::new(FrameKind::Native, "a")));
    }

    #[test]
    fn the_app_sees_its_own_frames_and_a_marker_where_it_has_none() {
        let mut paths = Paths::default();
        let names = [("java.lang.Thread", "run"), ("com.acme.Shop", "sell"), ("java.util.HashMap", "get")];
        let frames = names.map(|(class, name)| paths.frame_index(frame(class, name)));
        let (of_app, foreign) = (paths.push(frames), paths.push([frames[0]]));
        let seen = paths.of_app(&App::of(&["com.acme".to_owned()]).unwrap());
        let methods = |path| seen.frames_of(path).map(Frame::method).collect::<Vec<_>>();
        assert_eq!(methods(of_app), ["com.acme.Shop.sell"]);
        assert_eq!(methods(foreign), [OUTSIDE_APP]);
        assert_eq!(paths.frames_of(of_app).len(), 3, "the other view stays");
    }

    #[test]
    fn the_java_view_charges_native_code_to_the_java_code_that_called_it_and_hides_nothing_else() {
        let mut paths = Paths::default();
        let [start, run, get, copy, kernel, unknown] = [
            Frame::new(FrameKind::Native, "start_thread"),
            frame("com.acme.Shop", "run"),
            frame("java.util.HashMap", "get"),
            Frame::new(FrameKind::Stub, "copy"),
            Frame::new(FrameKind::Kernel, "page_fault"),
            Frame::new(FrameKind::Marker, "[unresolved]"),
        ]
        .map(|frame| paths.frame_index(frame));
        for (path, expected) in [
            (&[start, run, get, copy, kernel][..], &["com.acme.Shop.run", "java.util.HashMap.get"][..]),
            (&[start, run, unknown], &["com.acme.Shop.run", "[unresolved]"]),
            (&[start, copy, kernel], &["start_thread", "copy", "page_fault"]),
            (&[unknown], &["[unresolved]"]),
        ] {
            let index = paths.push(path.iter().copied());
            let seen = paths.of_app(&App::Java);
            assert_eq!(seen.frames_of(index).map(Frame::method).collect::<Vec<_>>(), expected);
            let leaf = App::Java.leaf(paths.frames_of(index).rev()).map(Frame::method);
            assert_eq!(leaf, expected.last().map(|name| (*name).into()));
        }
    }
}
