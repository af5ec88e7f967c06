//! Defines types of constants, which events refer to, by the names that readers know.

use super::metadata::{Field, Kind, Type, plain};
use crate::model::frame::FrameKind;

/// Numbers of types of constants.
pub(super) mod id {
    pub(in super::super) const CLASS: u64 = 30;
    pub(in super::super) const THREAD: u64 = 31;
    pub(in super::super) const STACK_TRACE: u64 = 32;
    pub(in super::super) const THREAD_STATE: u64 = 33;
    pub(in super::super) const CLASS_LOADER: u64 = 34;
    pub(in super::super) const THREAD_GROUP: u64 = 35;
    pub(in super::super) const STACK_FRAME: u64 = 36;
    pub(in super::super) const FRAME_TYPE: u64 = 37;
    pub(in super::super) const METHOD: u64 = 38;
    pub(in super::super) const PACKAGE: u64 = 39;
    pub(in super::super) const SYMBOL: u64 = 40;
}

const fn constant(id: u64, name: &'static str, kind: Kind, label: &'static str, fields: &'static [Field]) -> Type {
    Type { id, name, kind, label, description: "", fields }
}

pub(super) const TYPES: &[Type] = &[
    constant(
        id::CLASS,
        "java.lang.Class",
        Kind::Value,
        "Java Class",
        &[
            Field::constant("classLoader", id::CLASS_LOADER, "Class Loader"),
            Field::constant("name", id::SYMBOL, "Name"),
            Field::constant("package", id::PACKAGE, "Package"),
            Field::one("modifiers", plain::INT, "Access Modifiers"),
            Field::one("hidden", plain::BOOLEAN, "Hidden"),
        ],
    ),
    constant(
        id::CLASS_LOADER,
        "jdk.types.ClassLoader",
        Kind::Value,
        "Java Class Loader",
        &[Field::constant("type", id::CLASS, "Type"), Field::constant("name", id::SYMBOL, "Name")],
    ),
    constant(
        id::PACKAGE,
        "jdk.types.Package",
        Kind::Value,
        "Package",
        &[Field::constant("name", id::SYMBOL, "Name"), Field::one("exported", plain::BOOLEAN, "Exported")],
    ),
    constant(id::SYMBOL, "jdk.types.Symbol", Kind::Simple, "Symbol", &[Field::one("string", plain::TEXT, "String")]),
    constant(
        id::METHOD,
        "jdk.types.Method",
        Kind::Value,
        "Java Method",
        &[
            Field::constant("type", id::CLASS, "Type"),
            Field::constant("name", id::SYMBOL, "Name"),
            Field::constant("descriptor", id::SYMBOL, "Descriptor"),
            Field::one("modifiers", plain::INT, "Access Modifiers"),
            Field::one("hidden", plain::BOOLEAN, "Hidden"),
        ],
    ),
    constant(
        id::FRAME_TYPE,
        "jdk.types.FrameType",
        Kind::Simple,
        "Frame type",
        &[Field::one("description", plain::TEXT, "Description")],
    ),
    constant(
        id::STACK_FRAME,
        "jdk.types.StackFrame",
        Kind::Value,
        "Stack Frame",
        &[
            Field::constant("method", id::METHOD, "Java Method"),
            Field::one("lineNumber", plain::INT, "Line Number"),
            Field::one("bytecodeIndex", plain::INT, "Bytecode Index"),
            Field::constant("type", id::FRAME_TYPE, "Frame Type"),
        ],
    ),
    constant(
        id::STACK_TRACE,
        "jdk.types.StackTrace",
        Kind::Value,
        "Stacktrace",
        &[Field::one("truncated", plain::BOOLEAN, "Truncated"), Field::many("frames", id::STACK_FRAME, "Stack Frames")],
    ),
    constant(
        id::THREAD_GROUP,
        "jdk.types.ThreadGroup",
        Kind::Value,
        "Thread Group",
        &[Field::constant("parent", id::THREAD_GROUP, "Parent"), Field::one("name", plain::TEXT, "Name")],
    ),
    constant(
        id::THREAD,
        "java.lang.Thread",
        Kind::Value,
        "Thread",
        &[
            Field::one("osName", plain::TEXT, "OS Thread Name"),
            Field::one("osThreadId", plain::LONG, "OS Thread Id"),
            Field::one("javaName", plain::TEXT, "Java Thread Name"),
            Field::one("javaThreadId", plain::LONG, "Java Thread Id"),
            Field::constant("group", id::THREAD_GROUP, "Java Thread Group"),
        ],
    ),
    constant(
        id::THREAD_STATE,
        "jdk.types.ThreadState",
        Kind::Simple,
        "Java Thread State",
        &[Field::one("name", plain::TEXT, "Name")],
    ),
];

/// Kinds of code by the names that async-profiler gives them, with its numbers, which its tools expect.
pub(super) const FRAME_TYPES: [(u64, &str); 7] = [
    (0, "Interpreted"),
    (1, "JIT compiled"),
    (2, "Inlined"),
    (3, "Native"),
    (4, "C++"),
    (5, "Kernel"),
    (6, "C1 compiled"),
];

/// The frame's number in [`FRAME_TYPES`].
pub(super) const fn frame_type(kind: FrameKind) -> u64 {
    match kind {
        FrameKind::Interpreted => 0,
        FrameKind::Compiled | FrameKind::CompiledC2 => 1,
        FrameKind::Inlined => 2,
        FrameKind::NativeWrapper | FrameKind::Stub | FrameKind::Native | FrameKind::Marker => 3,
        FrameKind::Vm => 4,
        FrameKind::Kernel => 5,
        FrameKind::CompiledC1 => 6,
    }
}

/// Number of the only state that samples of CPU time see.
pub(super) const RUNNABLE: u64 = 1;
