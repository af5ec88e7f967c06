//! Defines one level of a call path, once it is resolved.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{generated, target_text::TargetText};

/// Where a frame's code came from. The names are those of the `kind` columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FrameKind {
    /// Java, run by the interpreter.
    Interpreted,
    /// Java, compiled; the compiler is not known (perf map).
    Compiled,
    /// Java, compiled by C1.
    CompiledC1,
    /// Java, compiled by C2.
    CompiledC2,
    /// Java, inlined into the compiled method above it.
    Inlined,
    /// A JNI wrapper.
    NativeWrapper,
    /// Code the JVM generated for itself: stubs, adapters, the interpreter as a whole.
    Stub,
    /// libjvm.
    Vm,
    /// Any other native code.
    Native,
    Kernel,
    /// Not code: says what is not known, e.g. `[unresolved]`.
    Marker,
}

impl FrameKind {
    pub const ALL: [Self; 11] = [
        Self::Interpreted,
        Self::Compiled,
        Self::CompiledC1,
        Self::CompiledC2,
        Self::Inlined,
        Self::NativeWrapper,
        Self::Stub,
        Self::Vm,
        Self::Native,
        Self::Kernel,
        Self::Marker,
    ];

    /// Name in data sets and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Compiled => "compiled",
            Self::CompiledC1 => "compiled-c1",
            Self::CompiledC2 => "compiled-c2",
            Self::Inlined => "inlined",
            Self::NativeWrapper => "native-wrapper",
            Self::Stub => "stub",
            Self::Vm => "vm",
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Marker => "marker",
        }
    }

    /// Java methods, whichever way they run.
    pub const fn is_java(self) -> bool {
        matches!(
            self,
            Self::Interpreted
                | Self::Compiled
                | Self::CompiledC1
                | Self::CompiledC2
                | Self::Inlined
                | Self::NativeWrapper
        )
    }
}

/// Prefix of the names of frames without a name: the marker's, and in data sets of earlier versions
/// those of code of which only the file is known.
const UNRESOLVED_PREFIX: &str = "[unresolved";

/// One level of a call path. Two frames are the same method if everything but
/// `line` is equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub kind: FrameKind,
    /// Method or function name without class, or the marker with its brackets.
    pub name: TargetText,
    /// Java class with its package, dots between (`java.util.HashMap$Node`).
    pub class: Option<TargetText>,
    /// JVM signature, `(ILjava/lang/String;)V`.
    pub signature: Option<TargetText>,
    /// Library, executable or kernel module the code is in.
    pub module: Option<TargetText>,
    /// Source file name.
    pub file: Option<TargetText>,
    pub line: Option<u32>,
}

impl Frame {
    pub fn new(kind: FrameKind, name: impl Into<TargetText>) -> Self {
        Self { kind, name: name.into(), class: None, signature: None, module: None, file: None, line: None }
    }

    /// A frame that says what is not known.
    pub fn marker(marker: Marker) -> Self {
        Self::new(FrameKind::Marker, marker.name())
    }

    /// Whether it says just this.
    pub fn is_marker(&self, marker: Marker) -> bool {
        self.kind == FrameKind::Marker && self.name == marker.name()
    }

    /// Native code whose file is known and whose function is not, because the file has no symbol
    /// there. It is named after its file, `[libc.so.6]`.
    pub fn of_file(kind: FrameKind, module: &str) -> Self {
        Self { module: Some(module.into()), ..Self::new(kind, format!("[{module}]")) }
    }

    /// Whether only the file of the code is known.
    pub fn is_of_file(&self) -> bool {
        let inside = self.name.raw().strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        // Before they were called by their file, they were `[unresolved libc.so.6]`.
        let file = inside.map(|name| name.strip_prefix("unresolved ").unwrap_or(name));
        file.is_some() && file == self.module.as_ref().map(TargetText::raw)
    }

    /// Whether nobody knows the name of the frame's function.
    pub fn is_unresolved(&self) -> bool {
        self.name.raw().starts_with(UNRESOLVED_PREFIX) || self.is_of_file()
    }

    /// `package.Class.name` for Java, the plain name for everything else.
    pub fn method(&self) -> TargetText {
        match &self.class {
            Some(class) => format!("{}.{}", class.raw(), self.name.raw()).into(),
            None => self.name.clone(),
        }
    }

    /// The frame with [families](generated) in place of generated classes.
    #[must_use]
    pub fn of_family(mut self) -> Self {
        let Some(Cow::Owned(class)) = self.class.as_ref().map(|class| generated::family(class.raw())) else {
            return self;
        };
        self.class = Some(class.into());
        self.signature = self.signature.map(|signature| generated::families(signature.raw()).into_owned().into());
        // A script's file is called as its class.
        self.file = self.file.map(|file| match file.raw().split_once('.') {
            Some((name, end)) => format!("{}.{end}", generated::family(name)).into(),
            None => file,
        });
        self
    }

    /// How much text it has.
    pub fn text_bytes(&self) -> usize {
        let parts = [&self.class, &self.signature, &self.module, &self.file];
        self.name.raw().len() + parts.into_iter().flatten().map(|part| part.raw().len()).sum::<usize>()
    }

    /// What tables of classes and packages call code without a class: its kind, or the marker itself.
    pub fn stand_in(&self) -> TargetText {
        if self.kind == FrameKind::Marker { self.name.clone() } else { format!("[{}]", self.kind.name()).into() }
    }

    /// Package of a Java class (`java.util`), empty for the unnamed package, as
    /// [`TargetText::raw`] gives it.
    pub fn raw_package(&self) -> Option<&str> {
        self.class.as_ref().map(|class| class.raw().rsplit_once('.').map_or("", |(package, _)| package))
    }
}

/// What a call path can lack. Each is a visible frame with its own samples and joules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Marker {
    /// An address that nothing could name.
    Unresolved,
    /// The root side of a stack deeper than what was kept.
    Truncated,
    /// The root side of a stack that could not be read to its end.
    Broken,
    /// The part of a virtual thread's stack that was in the heap.
    Frozen,
    /// Generated code that was gone, or something else, when its name was looked up.
    Evicted,
    /// CPU time of a thread that no sample hit in this window.
    NoSample,
    /// A sample whose stack was lost between kernel and user space.
    LostStack,
    /// A sample whose stack could not be read.
    NoStack,
    /// A thread that ends, whose memory the kernel has taken: only the kernel's part of its stack is left.
    EndingThread,
    /// Code whose name changed within the window: it could be either.
    Stale,
    /// Code in a mapping beyond those that are kept of a process.
    NotKept,
}

impl Marker {
    pub const ALL: [Self; 11] = [
        Self::Unresolved,
        Self::Truncated,
        Self::Broken,
        Self::Frozen,
        Self::Evicted,
        Self::NoSample,
        Self::LostStack,
        Self::NoStack,
        Self::EndingThread,
        Self::Stale,
        Self::NotKept,
    ];

    /// Markers of code whose name is not known; those that say most come first.
    pub const UNNAMED: [Self; 4] = [Self::Evicted, Self::Stale, Self::NotKept, Self::Unresolved];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unresolved => "[unresolved]",
            Self::Truncated => "[truncated]",
            Self::Broken => "[broken stack]",
            Self::Frozen => "[frozen frames]",
            Self::Evicted => "[evicted]",
            Self::NoSample => "[no sample]",
            Self::LostStack => "[lost stack]",
            Self::NoStack => "[no stack]",
            Self::EndingThread => "[ending thread]",
            Self::Stale => "[stale]",
            Self::NotKept => "[mapping not kept]",
        }
    }
}

/// What the package of classes that are in none is called.
pub const UNNAMED_PACKAGE: &str = "(unnamed package)";

/// What tables call a package.
pub fn package_title(package: &str) -> TargetText {
    if package.is_empty() { UNNAMED_PACKAGE.into() } else { package.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_java_method_is_package_class_and_name() {
        let frame = Frame { class: Some("java.util.HashMap$Node".into()), ..Frame::new(FrameKind::Compiled, "hash") };
        assert_eq!(frame.method(), "java.util.HashMap$Node.hash");
        assert_eq!(frame.raw_package(), Some("java.util"));
    }

    #[test]
    fn code_without_symbols_is_called_by_its_file() {
        let frame = Frame::of_file(FrameKind::Native, "libz.so.1");
        assert_eq!(frame.method(), "[libz.so.1]");
        assert!(frame.is_of_file() && frame.is_unresolved());
        let before = Frame { name: "[unresolved libz.so.1]".into(), ..frame };
        assert!(before.is_of_file() && before.is_unresolved(), "data sets of earlier versions");
        let unresolved = Frame::marker(Marker::Unresolved);
        assert!(unresolved.is_unresolved() && !unresolved.is_of_file());
        let named = Frame { module: Some("libz.so.1".into()), ..Frame::new(FrameKind::Native, "libz.so.1") };
        assert!(!named.is_of_file() && !named.is_unresolved(), "a symbol may be called as its file");
        assert!(!Frame::marker(Marker::NoSample).is_unresolved());
    }

    #[test]
    fn a_class_without_package_has_an_empty_one() {
        let frame = Frame { class: Some("Main".into()), ..Frame::new(FrameKind::Compiled, "main") };
        assert_eq!(frame.raw_package(), Some(""));
        assert_eq!(Frame::new(FrameKind::Kernel, "do_syscall_64").raw_package(), None);
    }
}
