//! Defines events that say what a recording is of: hosts, JVMs, and settings.

use super::{
    events::{Event, START, event},
    metadata::{Field, Meaning, Type, plain},
    values::Values,
};

/// Types of what a recording is of.
pub(super) const TYPES: &[Type] = &[JVM, SYSTEM, PROCESSOR, SETTING];

const JVM: Type = event(
    (106, "jdk.JVMInformation"),
    &["Java Virtual Machine"],
    ("JVM Information", "What is known of a JVM"),
    &[
        START,
        Field::one("jvmName", plain::TEXT, "JVM Name"),
        Field::one("jvmVersion", plain::TEXT, "JVM Version"),
        Field::one("jvmArguments", plain::TEXT, "JVM Command Line Arguments"),
        Field::one("jvmFlags", plain::TEXT, "JVM Settings File Arguments"),
        Field::one("javaArguments", plain::TEXT, "Java Application Arguments"),
        Field::one("jvmStartTime", plain::LONG, "JVM Start Time").meaning(Meaning::MillisecondsSinceEpoch),
        Field::one("pid", plain::LONG, "Process Identifier"),
    ],
);

const SYSTEM: Type = event(
    (107, "jdk.OSInformation"),
    &["Operating System"],
    ("OS Information", "What a host runs"),
    &[START, Field::one("osVersion", plain::TEXT, "OS Version")],
);

const PROCESSOR: Type = event(
    (108, "jdk.CPUInformation"),
    &["Operating System", "Processor"],
    ("CPU Information", "What a host runs on"),
    &[
        START,
        Field::one("cpu", plain::TEXT, "Type"),
        Field::one("description", plain::TEXT, "Description"),
        Field::one("sockets", plain::INT, "Sockets").meaning(Meaning::Unsigned),
        Field::one("hwThreads", plain::INT, "Hardware Threads").meaning(Meaning::Unsigned),
    ],
);

const SETTING: Type = event(
    (109, "jdk.ActiveSetting"),
    &["Flight Recorder"],
    ("Recording Setting", ""),
    &[
        START,
        Field::one("id", plain::LONG, "Event Id"),
        Field::one("name", plain::TEXT, "Setting Name"),
        Field::one("value", plain::TEXT, "Setting Value"),
    ],
);

pub(super) struct Jvm<'a> {
    pub(super) at: u64,
    pub(super) name: &'a str,
    pub(super) version: Option<&'a str>,
    pub(super) main_class: Option<&'a str>,
    pub(super) start_ms: i64,
    pub(super) pid: u32,
}

impl Event for Jvm<'_> {
    const TYPE: &'static Type = &JVM;

    fn start(&self) -> u64 {
        self.at
    }

    fn fields(&self, values: &mut Values) {
        values.text(Some(self.name));
        values.text(self.version);
        values.text(None);
        values.text(None);
        values.text(self.main_class);
        values.integer(self.start_ms);
        values.natural(self.pid.into());
    }
}

pub(super) struct System<'a> {
    pub(super) at: u64,
    pub(super) version: &'a str,
}

impl Event for System<'_> {
    const TYPE: &'static Type = &SYSTEM;

    fn start(&self) -> u64 {
        self.at
    }

    fn fields(&self, values: &mut Values) {
        values.text(Some(self.version));
    }
}

pub(super) struct Processor<'a> {
    pub(super) at: u64,
    pub(super) arch: &'a str,
    pub(super) model: &'a str,
    pub(super) sockets: u32,
    pub(super) cpus: u32,
}

impl Event for Processor<'_> {
    const TYPE: &'static Type = &PROCESSOR;

    fn start(&self) -> u64 {
        self.at
    }

    fn fields(&self, values: &mut Values) {
        values.text(Some(self.arch));
        values.text(Some(self.model));
        values.natural(self.sockets.into());
        values.natural(self.cpus.into());
    }
}

/// Something that holds for all events of a type.
pub(super) struct Setting<'a> {
    pub(super) at: u64,
    pub(super) of: &'static Type,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl Event for Setting<'_> {
    const TYPE: &'static Type = &SETTING;

    fn start(&self) -> u64 {
        self.at
    }

    fn fields(&self, values: &mut Values) {
        values.natural(self.of.id);
        values.text(Some(self.name));
        values.text(Some(self.value));
    }
}
