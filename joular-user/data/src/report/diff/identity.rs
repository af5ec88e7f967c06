//! Decides what is the same in two runs.
//!
//! A method is its class, name and signature; native code is its module and name. Kinds of code and
//! lines do not count: a method that was compiled again is the same one.

use std::collections::HashMap;

use crate::{
    model::{
        frame::{Frame, package_title},
        target_text::TargetText,
    },
    report::{
        profile::{Catalog, PathIndex, ThreadIndex},
        ranking::groups::NO_HANDLER,
    },
};

/// What a row of a comparison is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompareBy {
    #[default]
    Method,
    Class,
    Package,
    Handler,
    Process,
    Thread,
    Category,
    Kind,
}

impl CompareBy {
    pub const ALL: [Self; 8] = [
        Self::Method,
        Self::Class,
        Self::Package,
        Self::Handler,
        Self::Process,
        Self::Thread,
        Self::Category,
        Self::Kind,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Class => "class",
            Self::Package => "package",
            Self::Handler => "handler",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Category => "category",
            Self::Kind => "kind",
        }
    }

    /// Whether a path can contain a row without ending in it: only then do self and total differ.
    pub const fn has_total(self) -> bool {
        matches!(self, Self::Method | Self::Class | Self::Package | Self::Kind)
    }

    /// Whether samples show what a row spent; for threads and processes it is exact.
    pub const fn is_sampled(self) -> bool {
        !matches!(self, Self::Process | Self::Thread | Self::Category)
    }
}

/// Which energy a frame's row has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// The energy of paths that end in it, so that rows sum to the total.
    #[default]
    Itself,
    /// The energy of paths that contain it, each counted once.
    Total,
}

/// Identity of a row, in the order in which equal rows are shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub name: TargetText,
    pub signature: Option<TargetText>,
    pub module: Option<TargetText>,
}

impl Key {
    pub(super) fn named(name: impl Into<TargetText>) -> Self {
        Self { name: name.into(), signature: None, module: None }
    }

    fn of_frame(frame: &Frame, by: CompareBy) -> Self {
        match (by, &frame.class) {
            (CompareBy::Class, Some(class)) => Self::named(class.clone()),
            (CompareBy::Package, Some(_)) => Self::named(package_title(frame.raw_package().unwrap_or_default())),
            (CompareBy::Class | CompareBy::Package, None) => Self::named(frame.stand_in()),
            (CompareBy::Kind, _) => Self::named(frame.kind.name()),
            (_, Some(_)) => Self { signature: frame.signature.clone(), ..Self::named(frame.method()) },
            (_, None) => Self { module: frame.module.clone(), ..Self::named(frame.name.clone()) },
        }
    }
}

/// The keys of a catalog's paths and threads, each made once.
#[derive(Debug)]
pub struct Keys {
    by: CompareBy,
    view: View,
    keys: Vec<Key>,
    indices: HashMap<Key, usize>,
    of_paths: HashMap<PathIndex, Vec<usize>>,
    of_threads: HashMap<ThreadIndex, Vec<usize>>,
}

impl Keys {
    pub fn new(by: CompareBy, view: View) -> Self {
        let (keys, indices) = (Vec::new(), HashMap::new());
        Self { by, view, keys, indices, of_paths: HashMap::new(), of_threads: HashMap::new() }
    }

    /// Whether rows are identified by paths, not by threads.
    pub const fn is_of_paths(&self) -> bool {
        self.by.is_sampled()
    }

    /// The rows that a thread's time on a path belongs to, each at most once.
    pub fn of(&mut self, catalog: &Catalog, thread: ThreadIndex, path: PathIndex) -> &[usize] {
        if self.by.is_sampled() {
            if !self.of_paths.contains_key(&path) {
                let found = self.of_frames(catalog, path);
                self.of_paths.insert(path, found);
            }
            return self.of_paths.get(&path).map_or(&[], Vec::as_slice);
        }
        if !self.of_threads.contains_key(&thread) {
            let name = match self.by {
                CompareBy::Process => catalog.process_of(thread).title().clone(),
                CompareBy::Thread => catalog.thread(thread).name.clone(),
                _ => catalog.thread(thread).category.name().into(),
            };
            let found = vec![self.index(Key::named(name))];
            self.of_threads.insert(thread, found);
        }
        self.of_threads.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// All keys so far, by number.
    pub fn into_keys(self) -> Vec<Key> {
        self.keys
    }

    fn of_frames(&mut self, catalog: &Catalog, path: PathIndex) -> Vec<usize> {
        if self.by == CompareBy::Handler {
            let name = catalog.handlers.get(path).map_or_else(|| NO_HANDLER.into(), |handler| handler.method.clone());
            return vec![self.index(Key::named(name))];
        }
        let frames = catalog.paths.frames_of(path);
        let frames: Vec<&Frame> = match self.view {
            View::Itself => frames.last().into_iter().collect(),
            View::Total => frames.collect(),
        };
        let mut found: Vec<usize> = frames.into_iter().map(|frame| self.index(Key::of_frame(frame, self.by))).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn index(&mut self, key: Key) -> usize {
        if let Some(index) = self.indices.get(&key) {
            return *index;
        }
        self.keys.push(key.clone());
        self.indices.insert(key, self.keys.len() - 1);
        self.keys.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::frame::FrameKind;

    #[test]
    fn code_without_a_class_is_named_as_in_reports() {
        let name = |frame: &Frame, by| Key::of_frame(frame, by).name.to_string();
        let native = Frame { module: Some("libc.so.6".into()), ..Frame::new(FrameKind::Native, "read") };
        let (kernel, marker) =
            (Frame::new(FrameKind::Kernel, "vfs_read"), Frame::new(FrameKind::Marker, "[no sample]"));
        for by in [CompareBy::Class, CompareBy::Package] {
            assert_eq!(
                [&native, &kernel, &marker].map(|frame| name(frame, by)),
                ["[native]", "[kernel]", "[no sample]"]
            );
        }
        let unnamed = Frame { class: Some("Main".into()), ..Frame::new(FrameKind::Compiled, "run") };
        assert_eq!(name(&unnamed, CompareBy::Package), "(unnamed package)");
    }

    #[test]
    fn code_that_was_compiled_again_is_the_same_method() {
        let frame = |kind, line| Frame {
            class: Some("A".into()),
            signature: Some("()V".into()),
            line,
            ..Frame::new(kind, "run")
        };
        let key = |frame: Frame| Key::of_frame(&frame, CompareBy::Method);
        let first = key(frame(FrameKind::Interpreted, Some(1)));
        assert_eq!(first, key(frame(FrameKind::CompiledC2, None)));
        let overloaded = Frame { signature: Some("(I)V".into()), ..frame(FrameKind::Compiled, None) };
        assert_ne!(first, key(overloaded));
        let native = |module: &str| Frame { module: Some(module.into()), ..Frame::new(FrameKind::Native, "read") };
        assert_ne!(key(native("libc.so.6")), key(native("libz.so.1")));
    }
}
