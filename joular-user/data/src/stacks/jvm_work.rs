//! Tells what a JVM's thread is doing, by its call path: the program's own code, by how it runs, or
//! the JVM's work for it.
//!
//! It looks from the leaf: the nearest frame that shows it decides. Class loading is the exception.
//! Any frame of it decides, since whatever it calls is part of loading, except where a static
//! initializer stands between: that is the program's code again.

use crate::model::{
    frame::{Frame, FrameKind},
    target_text::TargetText,
};

/// The parts of a JVM's time and energy; each moment of a JVM's thread is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JvmWork {
    /// Threads of the garbage collector, and collections by the VM thread.
    Gc,
    /// Compiler threads.
    Jit,
    /// The VM thread (safepoints, other VM operations) and the VM's other threads.
    Vm,
    /// Java threads: loading, defining, verifying and linking classes and call sites.
    ClassLoading,
    /// Java threads: libjvm's code, and what it calls, for anything else: allocation,
    /// locks, deoptimisation, exceptions.
    VmRuntime,
    /// Java threads: bytecode in the interpreter.
    Interpreter,
    /// Java threads: code compiled by C1.
    C1,
    /// Java threads: code compiled by C2.
    C2,
    /// Java threads: compiled code whose compiler is not known.
    Compiled,
    /// Java threads: native methods and libraries.
    Native,
    /// Java threads: the kernel.
    Kernel,
    /// Java threads: no stack, or a leaf without a name.
    Unknown,
}

impl JvmWork {
    pub const ALL: [Self; 12] = [
        Self::Gc,
        Self::Jit,
        Self::Vm,
        Self::ClassLoading,
        Self::VmRuntime,
        Self::Interpreter,
        Self::C1,
        Self::C2,
        Self::Compiled,
        Self::Native,
        Self::Kernel,
        Self::Unknown,
    ];

    /// The first part of the names of its columns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Vm => "vm",
            Self::ClassLoading => "class_loading",
            Self::VmRuntime => "vm_runtime",
            Self::Interpreter => "interpreter",
            Self::C1 => "c1",
            Self::C2 => "c2",
            Self::Compiled => "compiled",
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the JVM does it for itself: work that no line of the program asks for. The
    /// interpreter does not count: it runs the program.
    pub const fn is_tax(self) -> bool {
        matches!(self, Self::Gc | Self::Jit | Self::Vm | Self::ClassLoading | Self::VmRuntime)
    }

    /// What a thread of the VM with this path does. Serial's collections, and parts of other
    /// collectors', are operations of the VM thread.
    pub(crate) fn of_vm_path<'a>(mut frames: impl Iterator<Item = &'a Frame>) -> Self {
        let collects = |frame: &Frame| {
            frame.kind == FrameKind::Vm && COLLECTIONS.iter().any(|prefix| frame.name.raw().starts_with(prefix))
        };
        if frames.any(collects) { Self::Gc } else { Self::Vm }
    }

    /// What a Java thread with this path does.
    pub(super) fn of_java_path<'a, I: Iterator<Item = &'a Frame>>(leaf_to_root: impl Fn() -> I) -> Self {
        let is_initializer = |frame: &&Frame| frame.kind.is_java() && frame.name == "<clinit>";
        if leaf_to_root().take_while(|frame| !is_initializer(frame)).any(loads_classes) {
            return Self::ClassLoading;
        }
        Self::of_code(leaf_to_root())
    }

    fn of_code<'a>(mut leaf_to_root: impl Iterator<Item = &'a Frame>) -> Self {
        let Some(leaf) = leaf_to_root.next() else { return Self::Unknown };
        match leaf.kind {
            FrameKind::Kernel => Self::Kernel,
            FrameKind::Vm => Self::VmRuntime,
            // libc below libjvm works for the VM, below anything else for the program.
            FrameKind::Native => match leaf_to_root.find(|frame| frame.kind != FrameKind::Native) {
                Some(frame) if frame.kind == FrameKind::Vm => Self::VmRuntime,
                _ => Self::Native,
            },
            _ => Self::of_generated_code(std::iter::once(leaf).chain(leaf_to_root)),
        }
    }

    /// Decides by the nearest Java frame: stubs work for their callers, and an inlined method is
    /// part of the compiled one that it is in.
    fn of_generated_code<'a>(leaf_to_root: impl Iterator<Item = &'a Frame>) -> Self {
        let mut is_inlined = false;
        for frame in leaf_to_root {
            match frame.kind {
                FrameKind::Inlined => is_inlined = true,
                FrameKind::CompiledC1 => return Self::C1,
                FrameKind::CompiledC2 => return Self::C2,
                FrameKind::Compiled => return Self::Compiled,
                _ if is_inlined => return Self::Compiled,
                FrameKind::Interpreted => return Self::Interpreter,
                FrameKind::Stub if frame.name == INTERPRETER => return Self::Interpreter,
                FrameKind::Stub => {}
                FrameKind::NativeWrapper => return Self::Native,
                // A stub that the VM itself calls.
                FrameKind::Vm | FrameKind::Native => return Self::VmRuntime,
                FrameKind::Kernel | FrameKind::Marker => return Self::Unknown,
            }
        }
        if is_inlined { Self::Compiled } else { Self::Unknown }
    }
}

/// What the JVM calls the interpreter's own code.
const INTERPRETER: &str = "Interpreter";

/// Classes whose methods of such names load, define or find a class.
const LOADERS: [&str; 4] =
    ["java.lang.ClassLoader", "java.security.SecureClassLoader", "java.net.URLClassLoader", "jdk.internal.misc.Unsafe"];
const LOADERS_PACKAGE: &str = "jdk.internal.loader.";
const LOADING: [&str; 6] =
    ["loadClass", "findClass", "defineClass", "findBootstrapClass", "findLoadedClass", "defineAnonymousClass"];
/// Where the VM asks Java to link a call site, a method handle or a constant.
const LINKER: &str = "java.lang.invoke.MethodHandleNatives";
/// Where a program hands classes to the VM.
const LOOKUP: &str = "java.lang.invoke.MethodHandles$Lookup";
/// Functions of libjvm that load, parse, verify, rewrite or link. Those that initialize a class are
/// not among them.
const VM_LOADING: [&str; 13] = [
    "SystemDictionary",
    "ClassLoader::",
    "ClassFileParser::",
    "ClassFileStream::",
    "KlassFactory::",
    "Verifier::",
    "ClassVerifier::",
    "Rewriter::",
    "LinkResolver::",
    "InstanceKlass::link_",
    "JVM_DefineClass",
    "JVM_FindClass",
    "JVM_LookupDefineClass",
];

/// VM operations that collect garbage, or a part of it.
const COLLECTIONS: [&str; 10] =
    ["VM_Gen", "VM_Collect", "VM_Serial", "VM_Parallel", "VM_G1", "VM_GC_", "VM_CGC_", "VM_Z", "VM_X", "VM_Shenandoah"];

/// Whether a frame is of class loading or linking.
fn loads_classes(frame: &Frame) -> bool {
    if frame.kind == FrameKind::Vm {
        return VM_LOADING.iter().any(|prefix| frame.name.raw().starts_with(prefix));
    }
    let Some(class) = frame.class.as_ref().map(TargetText::raw).filter(|_| frame.kind.is_java()) else { return false };
    let name = frame.name.raw();
    let is_named_so = || LOADING.iter().any(|prefix| name.starts_with(prefix));
    match class {
        LINKER => name.starts_with("link"),
        LOOKUP => name.starts_with("defineClass") || name.starts_with("defineHiddenClass"),
        _ if LOADERS.contains(&class) || class.starts_with(LOADERS_PACKAGE) => is_named_so(),
        // A loader of the program's own, which overrides these.
        _ => matches!(name, "loadClass" | "findClass") && frame.signature.as_ref().is_some_and(gives_class_of_name),
    }
}

fn gives_class_of_name(signature: &TargetText) -> bool {
    let signature = signature.raw();
    signature.starts_with("(Ljava/lang/String;") && signature.ends_with(")Ljava/lang/Class;")
}

#[cfg(test)]
mod tests {
    use FrameKind::{CompiledC1, CompiledC2, Inlined, Interpreted, Kernel, Marker, Native, NativeWrapper, Stub, Vm};

    use super::*;

    fn work(root_to_leaf: &[Frame]) -> JvmWork {
        JvmWork::of_java_path(|| root_to_leaf.iter().rev())
    }

    fn java(kind: FrameKind, class: &str, name: &str) -> Frame {
        Frame { class: Some(class.into()), signature: Some("()V".into()), ..Frame::new(kind, name) }
    }

    #[test]
    fn the_nearest_frame_that_tells_decides() {
        let cases: [(&[FrameKind], JvmWork); 21] = [
            (&[], JvmWork::Unknown),
            (&[Native, Vm, Stub, Interpreted], JvmWork::Interpreter),
            (&[Interpreted, CompiledC1], JvmWork::C1),
            (&[CompiledC1, CompiledC2], JvmWork::C2),
            (&[CompiledC2, Interpreted], JvmWork::Interpreter),
            (&[CompiledC1, CompiledC2, Inlined, Inlined], JvmWork::C2),
            (&[CompiledC2, CompiledC1, Inlined], JvmWork::C1),
            (&[CompiledC2, FrameKind::Compiled], JvmWork::Compiled),
            (&[CompiledC2, Stub], JvmWork::C2),
            (&[Interpreted, Inlined], JvmWork::Compiled),
            (&[Vm, Stub], JvmWork::VmRuntime),
            (&[Stub], JvmWork::Unknown),
            (&[CompiledC2, NativeWrapper], JvmWork::Native),
            (&[CompiledC2, NativeWrapper, Native, Native], JvmWork::Native),
            (&[CompiledC2, NativeWrapper, Native, Vm], JvmWork::VmRuntime),
            (&[CompiledC2, Stub, Vm, Native, Native], JvmWork::VmRuntime),
            (&[Native], JvmWork::Native),
            (&[CompiledC2, Vm, Native, Kernel, Kernel], JvmWork::Kernel),
            (&[CompiledC2, Marker], JvmWork::Unknown),
            (&[Marker, CompiledC2], JvmWork::C2),
            (&[CompiledC2, Marker, Stub], JvmWork::Unknown),
        ];
        for (kinds, expected) in cases {
            let frames: Vec<Frame> = kinds.iter().map(|kind| Frame::new(*kind, "f")).collect();
            assert_eq!(work(&frames), expected, "{kinds:?}");
        }
    }

    #[test]
    fn the_interpreters_own_code_is_the_interpreter() {
        let frames = [java(CompiledC2, "a.B", "run"), Frame::new(Stub, "Interpreter")];
        assert_eq!(work(&frames), JvmWork::Interpreter);
    }

    #[test]
    fn whatever_loading_and_linking_call_is_class_loading() {
        let by_name = "(Ljava/lang/String;Z)Ljava/lang/Class;";
        for frame in [
            java(Interpreted, "java.lang.ClassLoader", "loadClass"),
            java(CompiledC1, "java.lang.ClassLoader", "defineClass1"),
            java(Interpreted, "jdk.internal.loader.BuiltinClassLoader", "loadClassOrNull"),
            java(Interpreted, "java.lang.invoke.MethodHandleNatives", "linkCallSite"),
            java(Interpreted, "java.lang.invoke.MethodHandles$Lookup", "defineHiddenClass"),
            Frame { signature: Some(by_name.into()), ..java(Interpreted, "org.example.Loader", "loadClass") },
            Frame::new(Vm, "SystemDictionary::resolve_or_null(Symbol*, Handle, Handle, JavaThread*)"),
            Frame::new(Vm, "InstanceKlass::link_class_impl(JavaThread*)"),
        ] {
            for leaf in [java(CompiledC2, "java.util.zip.Inflater", "inflate"), Frame::new(Kernel, "read")] {
                let name = frame.method();
                assert_eq!(work(&[frame.clone(), leaf]), JvmWork::ClassLoading, "{name}");
            }
        }
    }

    #[test]
    fn what_only_sounds_like_class_loading_is_not() {
        for frame in [
            java(Interpreted, "school.Timetable", "loadClass"),
            java(Interpreted, "java.lang.ClassLoader", "getResource"),
            java(Interpreted, "java.lang.invoke.MethodHandleNatives", "setCallSiteTargetNormal"),
            Frame::new(Native, "SystemDictionary::resolve_or_null"),
            Frame::new(Vm, "InstanceKlass::initialize_impl(JavaThread*)"),
        ] {
            let name = frame.method();
            assert_eq!(work(&[frame, java(CompiledC2, "a.B", "run")]), JvmWork::C2, "{name}");
        }
    }

    #[test]
    fn a_static_initializer_is_the_programs_code() {
        let loading = java(Interpreted, "java.lang.ClassLoader", "loadClass");
        let initializer = java(Interpreted, "a.B", "<clinit>");
        let run = java(CompiledC2, "a.B", "fill");
        assert_eq!(work(&[loading.clone(), initializer.clone(), run.clone()]), JvmWork::C2);
        assert_eq!(work(&[initializer, loading, run]), JvmWork::ClassLoading);
    }

    #[test]
    fn a_collection_by_the_vm_thread_is_the_collectors() {
        for (operation, expected) in [
            ("VM_GenCollectForAllocation::doit()", JvmWork::Gc),
            ("VM_SerialCollectForAllocation::doit()", JvmWork::Gc),
            ("VM_G1PauseRemark::work()", JvmWork::Gc),
            ("VM_ThreadDump::doit()", JvmWork::Vm),
            ("VM_Deoptimize::doit()", JvmWork::Vm),
        ] {
            let frames = [Frame::new(Vm, "VMThread::run()"), Frame::new(Vm, operation), Frame::new(Native, "memcpy")];
            assert_eq!(JvmWork::of_vm_path(frames.iter()), expected, "{operation}");
        }
    }

    #[test]
    fn the_tax_is_what_the_vm_does_for_itself() {
        let taxed: Vec<&str> = JvmWork::ALL.into_iter().filter(|work| work.is_tax()).map(JvmWork::name).collect();
        assert_eq!(taxed, ["gc", "jit", "vm", "class_loading", "vm_runtime"]);
    }
}
