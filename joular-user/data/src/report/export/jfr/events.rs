//! Defines events of what happened: their types, and how each is encoded. Fields are encoded in the order in which the type
//! has them; the time comes first.

use super::{
    constants::{RUNNABLE, id},
    metadata::{Field, Kind, Meaning, Type, plain},
    values::Values,
};
use crate::report::export::signed;

/// How the JDK writes an amount that is not known; `jfr print` shows `N/A`.
const NOT_KNOWN: i64 = i64::MIN;

/// An event of a type.
pub(super) trait Event {
    const TYPE: &'static Type;

    /// When it began, ticks after the clock did.
    fn start(&self) -> u64;

    /// When it ended.
    fn end(&self) -> u64 {
        self.start()
    }

    /// Writes all fields but the first.
    fn fields(&self, values: &mut Values);
}

/// Types of what happened.
pub(super) const TYPES: &[Type] = &[EXECUTION_SAMPLE, ENERGY, POWER, ALLOCATION, COLLECTION];

pub(super) const START: Field = Field::one("startTime", plain::LONG, "Start Time").meaning(Meaning::Ticks);
const DURATION: Field = Field::one("duration", plain::LONG, "Duration").meaning(Meaning::TicksLong);
const THREAD: Field = Field::constant("eventThread", id::THREAD, "Event Thread");
const STACK: Field = Field::constant("stackTrace", id::STACK_TRACE, "Stack Trace");
const MODELLED: Field =
    Field::one("modelled", plain::BOOLEAN, "Modelled").about("Whether a model computes the energy or a part of it");
const ENERGY_UJ: Field = Field::one("energy_uj", plain::LONG, "Energy in µJ").meaning(Meaning::In("µJ"));

pub(super) const fn event(
    (id, name): (u64, &'static str),
    category: &'static [&'static str],
    (label, description): (&'static str, &'static str),
    fields: &'static [Field],
) -> Type {
    Type { id, name, kind: Kind::Event(category), label, description, fields }
}

pub(super) const EXECUTION_SAMPLE: Type = event(
    (101, "jdk.ExecutionSample"),
    &["Java Virtual Machine", "Profiling"],
    (
        "Method Profiling Sample",
        "A sample of CPU time. It is known in which window it was taken; within the window, samples are spread evenly",
    ),
    &[
        START,
        Field::constant("sampledThread", id::THREAD, "Thread"),
        STACK,
        Field::constant("state", id::THREAD_STATE, "Thread State"),
    ],
);

pub(super) const ENERGY: Type = event(
    (102, "joular.Energy"),
    &["Joular"],
    ("Energy", "Energy of a branch in a window: what a thread spent on a call path"),
    &[
        START,
        DURATION,
        THREAD,
        STACK,
        Field::one("energy", plain::DOUBLE, "Energy in J").meaning(Meaning::In("J")),
        ENERGY_UJ,
        Field::one("cpu_ns", plain::LONG, "CPU Time").meaning(Meaning::NanosecondsLong),
        Field::one("samples", plain::LONG, "Samples").about("How many samples show the call path"),
        Field::one("category", plain::TEXT, "Thread Category").about("java, gc, jit, vm, native or kernel"),
        MODELLED,
        Field::one("inferred", plain::BOOLEAN, "Inferred")
            .about("Whether samples of other windows show the call path, because this window has too few"),
    ],
);

const POWER: Type = event(
    (103, "joular.Power"),
    &["Joular"],
    ("Power", "Mean power of a domain of the machine in a window, whoever used it"),
    &[
        START,
        DURATION,
        Field::one("domain", plain::TEXT, "Domain").about("The part of the machine: package, core, dram, …"),
        Field::one("socket", plain::INT, "Socket").about("Physical package, or -1 for the whole machine"),
        Field::one("core", plain::INT, "Core").about("Physical core, or -1 if it is not of one core"),
        Field::one("power", plain::DOUBLE, "Power in W").meaning(Meaning::In("W")),
        ENERGY_UJ,
        MODELLED,
        Field::one("host", plain::TEXT, "Host"),
    ],
);

pub(super) const ALLOCATION: Type = event(
    (104, "jdk.ObjectAllocationSample"),
    &["Java Application"],
    (
        "Object Allocation Sample",
        "Bytes that a thread allocated of a class on a call path in a window; it stands in the window's middle",
    ),
    &[
        START,
        THREAD,
        STACK,
        Field::constant("objectClass", id::CLASS, "Object Class"),
        Field::one("weight", plain::LONG, "Sample Weight").meaning(Meaning::Bytes),
    ],
);

const COLLECTION: Type = event(
    (105, "jdk.GarbageCollection"),
    &["Java Virtual Machine", "GC", "Collector"],
    ("Garbage Collection", "A garbage collection, with what of it runs beside the program"),
    &[
        START,
        DURATION,
        Field::one("gcId", plain::INT, "GC Identifier")
            .meaning(Meaning::Unsigned)
            .about("Its number in this file, not the JVM's"),
        Field::one("name", plain::TEXT, "Name"),
        Field::one("cause", plain::TEXT, "Cause"),
        ENERGY_UJ,
        Field::one("before_bytes", plain::LONG, "Heap Before").meaning(Meaning::Bytes),
        Field::one("after_bytes", plain::LONG, "Heap After").meaning(Meaning::Bytes),
        Field::one("process", plain::TEXT, "Process"),
    ],
);

pub(super) struct ExecutionSample {
    pub(super) at: u64,
    pub(super) thread: u64,
    pub(super) stack: u64,
}

impl Event for ExecutionSample {
    const TYPE: &'static Type = &EXECUTION_SAMPLE;

    fn start(&self) -> u64 {
        self.at
    }

    fn fields(&self, values: &mut Values) {
        [self.thread, self.stack, RUNNABLE].into_iter().for_each(|number| values.natural(number));
    }
}

/// When a window began and ended.
#[derive(Clone, Copy)]
pub(super) struct During {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl During {
    const fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

pub(super) struct Energy {
    pub(super) window: During,
    pub(super) thread: u64,
    pub(super) stack: u64,
    pub(super) energy_uj: u64,
    pub(super) cpu_ns: u64,
    pub(super) samples: u64,
    pub(super) category: &'static str,
    pub(super) is_modelled: bool,
    pub(super) is_inferred: bool,
}

impl Event for Energy {
    const TYPE: &'static Type = &ENERGY;

    fn start(&self) -> u64 {
        self.window.start
    }

    fn end(&self) -> u64 {
        self.window.end
    }

    #[allow(clippy::cast_precision_loss, reason = "the exact energy stands beside it")]
    fn fields(&self, values: &mut Values) {
        [self.window.length(), self.thread, self.stack].into_iter().for_each(|number| values.natural(number));
        values.double(self.energy_uj as f64 / 1e6);
        [self.energy_uj, self.cpu_ns, self.samples].into_iter().for_each(|number| values.natural(number));
        values.text(Some(self.category));
        values.flag(self.is_modelled);
        values.flag(self.is_inferred);
    }
}

pub(super) struct Power<'a> {
    pub(super) window: During,
    pub(super) domain: &'a str,
    pub(super) socket: Option<u32>,
    pub(super) core: Option<u32>,
    pub(super) energy_uj: u64,
    pub(super) is_modelled: bool,
    pub(super) host: &'a str,
}

impl Event for Power<'_> {
    const TYPE: &'static Type = &POWER;

    fn start(&self) -> u64 {
        self.window.start
    }

    fn end(&self) -> u64 {
        self.window.end
    }

    #[allow(clippy::cast_precision_loss, reason = "the exact energy stands beside it")]
    fn fields(&self, values: &mut Values) {
        let length_ns = self.window.length();
        values.natural(length_ns);
        values.text(Some(self.domain));
        values.known(self.socket);
        values.known(self.core);
        values.double(if length_ns == 0 { 0.0 } else { self.energy_uj as f64 * 1e3 / length_ns as f64 });
        values.natural(self.energy_uj);
        values.flag(self.is_modelled);
        values.text(Some(self.host));
    }
}

pub(super) struct Allocation {
    pub(super) at: u64,
    pub(super) thread: u64,
    pub(super) stack: u64,
    /// 0 where it is not known.
    pub(super) class: u64,
    pub(super) bytes: u64,
}

impl Event for Allocation {
    const TYPE: &'static Type = &ALLOCATION;

    fn start(&self) -> u64 {
        self.at
    }

    fn fields(&self, values: &mut Values) {
        [self.thread, self.stack, self.class, self.bytes].into_iter().for_each(|number| values.natural(number));
    }
}

pub(super) struct Collection<'a> {
    pub(super) during: During,
    pub(super) number: u32,
    pub(super) collector: &'a str,
    pub(super) cause: Option<&'a str>,
    pub(super) energy_uj: u64,
    pub(super) before_bytes: u64,
    /// `None`: it was under way when the recording or the selection ended.
    pub(super) after_bytes: Option<u64>,
    pub(super) process: &'a str,
}

impl Event for Collection<'_> {
    const TYPE: &'static Type = &COLLECTION;

    fn start(&self) -> u64 {
        self.during.start
    }

    fn end(&self) -> u64 {
        self.during.end
    }

    fn fields(&self, values: &mut Values) {
        values.natural(self.during.length());
        values.natural(self.number.into());
        values.text(Some(self.collector));
        values.text(self.cause);
        values.natural(self.energy_uj);
        values.natural(self.before_bytes);
        values.integer(self.after_bytes.map_or(NOT_KNOWN, signed));
        values.text(Some(self.process));
    }
}
