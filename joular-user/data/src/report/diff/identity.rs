//! Decides what is the same in two runs.
//!
//! A method is its class, name and signature; native code is its module and name. Kinds of code and
//! lines do not count: a method that was compiled again is the same one. Classes that a JVM makes
//! while it runs have a number or an address in their names. It differs in every run, so it is left
//! out.

use std::collections::HashMap;

use crate::{
    model::{
        frame::{Frame, package_title},
        target_text::TargetText,
    },
    report::profile::{Catalog, PathIndex, ThreadIndex},
};

/// What a row of a comparison is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompareBy {
    #[default]
    Method,
    Class,
    Package,
    Process,
    Thread,
    Category,
    Kind,
}

impl CompareBy {
    pub const ALL: [Self; 7] =
        [Self::Method, Self::Class, Self::Package, Self::Process, Self::Thread, Self::Category, Self::Kind];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Class => "class",
            Self::Package => "package",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Category => "category",
            Self::Kind => "kind",
        }
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
            (CompareBy::Class, Some(class)) => Self::named(stable_class(class.raw())),
            (CompareBy::Package, Some(_)) => Self::named(package_title(frame.raw_package().unwrap_or_default())),
            (CompareBy::Class | CompareBy::Package, None) => Self::named(frame.stand_in()),
            (CompareBy::Kind, _) => Self::named(frame.kind.name()),
            (_, Some(class)) => Self {
                signature: frame.signature.clone(),
                ..Self::named(format!("{}.{}", stable_class(class.raw()), frame.name.raw()))
            },
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

/// Names that are followed by a number.
const NUMBERED: [&str; 5] = [
    "$$Lambda$",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
    "$Proxy",
];

/// Names of generators that are followed by a hash or a number, behind `$$`.
const HASHED: [&str; 4] = ["CGLIB", "ByteBuddy", "HibernateProxy", "FastClassBySpringCGLIB"];

/// A class's name without the parts that differ in every run.
pub fn stable_class(class: &str) -> String {
    let mut name = without_address(class);
    for prefix in NUMBERED {
        if let Some(at) = name.rfind(prefix) {
            let end = at + prefix.len();
            if name[end..].bytes().all(|byte| byte.is_ascii_digit()) {
                name = name[..end].trim_end_matches('$');
                // A proxy's class is named so, and its dollar goes before it.
                return name.to_owned();
            }
        }
    }
    if let Some((before, last)) = name.rsplit_once('$')
        && !last.is_empty()
        && last.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && HASHED.iter().any(|generator| before.trim_end_matches('$').ends_with(generator))
    {
        name = before.trim_end_matches('$');
    }
    name.to_owned()
}

/// Hidden classes: `/0x…`, or `+0x…` and `.0x…` as some tools and releases write it.
fn without_address(class: &str) -> &str {
    let is_address = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    for separator in ["/0x", "+0x", ".0x"] {
        if let Some((name, rest)) = class.rsplit_once(separator)
            && is_address(rest)
        {
            return name;
        }
    }
    // Before hidden classes the number of the class loaded follows: `$$Lambda$14/1826771953`.
    match class.rsplit_once('/') {
        Some((name, rest)) if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::frame::FrameKind;

    #[test]
    fn names_that_a_jvm_makes_up_are_the_same_in_every_run() {
        for (class, expected) in [
            ("com.acme.Shop$$Lambda/0x00007f3a1c001a00", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda+0x00007f3a1c001a00", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda.0x00007f3a1c001a00", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda$14/0x0000000800c03000", "com.acme.Shop$$Lambda"),
            ("com.acme.Shop$$Lambda$14/1826771953", "com.acme.Shop$$Lambda"),
            ("java.lang.invoke.LambdaForm$MH/0x000000080000", "java.lang.invoke.LambdaForm$MH"),
            ("jdk.internal.reflect.GeneratedMethodAccessor12", "jdk.internal.reflect.GeneratedMethodAccessor"),
            ("com.sun.proxy.$Proxy12", "com.sun.proxy.$Proxy"),
            ("jdk.proxy2.$Proxy7", "jdk.proxy2.$Proxy"),
            ("com.acme.Shop$$EnhancerBySpringCGLIB$$1a2b3c4d", "com.acme.Shop$$EnhancerBySpringCGLIB"),
            ("com.acme.Shop$$SpringCGLIB$$0", "com.acme.Shop$$SpringCGLIB"),
            ("com.acme.Shop$ByteBuddy$kX3a", "com.acme.Shop$ByteBuddy"),
            // What a person named keeps its name.
            ("com.acme.Shop$1", "com.acme.Shop$1"),
            ("com.acme.Shop$Item", "com.acme.Shop$Item"),
            ("com.acme.Proxy12", "com.acme.Proxy12"),
            ("com.acme.$ProxyFactory", "com.acme.$ProxyFactory"),
            ("", ""),
            ("/0x", "/0x"),
        ] {
            assert_eq!(stable_class(class), expected, "{class}");
        }
    }

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
    proptest::proptest! {
        #[test]
        fn any_name_has_a_stable_one(name: String) {
            let once = stable_class(&name);
            proptest::prop_assert!(name.starts_with(&once));
        }
    }
}
