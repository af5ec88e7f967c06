//! Defines what can be measured: domains, and their readings.

use serde::{Deserialize, Serialize};

use super::{byte_costs::ByteCosts, cores::CoreType};
pub use super::{
    label::Label,
    meter::{Meter, Update},
};

/// What a domain's energy is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Divided among those with a claim on it: see [`DividedBy`].
    #[default]
    Shared,
    /// Drawn by hardware whose use CPU time does not show (disks, fans, a GPU). It is measured, and
    /// goes to nobody.
    Unshared,
    /// Contained in the domain at this index, shown beside it and not counted again.
    Part { of: usize },
    /// The same energy as the domain at this index, by another counter: compared
    /// with it and not counted again.
    Check { of: usize },
}

/// What a domain's energy is divided by: the allocation base, as cost accounting
/// calls it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DividedBy {
    /// The weights of CPU time in its place: see `attribution::weights`.
    CpuWeights,
    /// Bytes that were moved, by what each costs.
    Bytes(ByteCosts),
    /// CPU time in its place and nothing else. A model that is linear in CPU time says this of a
    /// thread alone; weights of hyper-threads, cycles or core types would contradict it.
    CpuTime,
    /// As [`Self::CpuWeights`] on a hybrid processor, whose cores are of these types.
    CpuWeightsByCoreType(Vec<CoreType>),
    /// What targets' threads have by [`Self::CpuWeights`] together, by the bytes that each allocated.
    Allocation,
    /// Cache misses.
    CacheMisses,
}

impl DividedBy {
    /// Whether weights of CPU time divide it, and nothing else: fitted watts count beside them.
    pub const fn is_by_cpu_weights(&self) -> bool {
        matches!(self, Self::CpuWeights | Self::CpuWeightsByCoreType(_))
    }

    /// As in data sets.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CpuWeights | Self::CpuWeightsByCoreType(_) => "cpu_weights",
            Self::CpuTime => "cpu_time",
            Self::Bytes(_) => "bytes",
            Self::Allocation => "allocation",
            Self::CacheMisses => "cache_misses",
        }
    }
}

/// A part of the machine whose energy is known. What is neither [`Role::Part`]
/// nor [`Role::Check`] is disjoint within a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// `package`, `core`, `dram`, `platform`, `gpu`, `cpu`, …
    pub name: String,
    /// Physical package it belongs to; `None` for the whole machine.
    pub socket: Option<u32>,
    /// Physical core within the socket (the kernel's `core_id`), where each has
    /// a counter of its own.
    pub core: Option<u32>,
    /// Source it is read from.
    pub source: String,
    pub label: Label,
    pub meter: Meter,
    pub role: Role,
    /// Domains, by index, that this one's meter counts too and that have rows of their own. Their
    /// energy is taken off, and this domain is what is left. A domain named here takes nothing off
    /// itself.
    pub less: Vec<usize>,
    pub divided_by: DividedBy,
}

impl Domain {
    /// A shared domain of a socket or, without one, of the machine.
    pub fn new(name: &str, socket: Option<u32>, source: &str, label: Label, meter: Meter) -> Self {
        Self {
            name: name.to_owned(),
            socket,
            core: None,
            source: source.to_owned(),
            label,
            meter,
            role: Role::Shared,
            less: Vec::new(),
            divided_by: DividedBy::CpuWeights,
        }
    }

    /// A shared domain whose energy is computed from CPU time, and divided by it.
    pub fn modelled(name: &str, socket: Option<u32>, source: &str, meter: Meter) -> Self {
        Self { divided_by: DividedBy::CpuTime, ..Self::new(name, socket, source, Label::Modelled, meter) }
    }

    /// A shared domain of the machine whose energy is computed from bytes that were moved, and divided by them.
    pub fn per_byte(name: &str, source: &str, idle_uw: u64, costs: ByteCosts) -> Self {
        Self {
            divided_by: DividedBy::Bytes(costs),
            ..Self::new(name, None, source, Label::Modelled, Meter::PerByte { idle_uw })
        }
    }

    /// Whether it is memory that threads have a share of.
    pub fn is_shared_memory(&self) -> bool {
        self.name == "dram" && self.role == Role::Shared
    }

    /// What a byte costs, if it is divided by bytes.
    pub const fn byte_costs(&self) -> Option<&ByteCosts> {
        match &self.divided_by {
            DividedBy::Bytes(costs) => Some(costs),
            _ => None,
        }
    }

    /// Divides it by core types if it is divided by CPU weights and cores are of several types. A core
    /// that is a domain is of one type.
    pub fn of_core_types(&mut self, types: &[CoreType]) {
        if types.len() > 1 && self.divided_by == DividedBy::CpuWeights && self.core.is_none() {
            self.divided_by = DividedBy::CpuWeightsByCoreType(types.to_vec());
        }
    }

    /// Whether the counter moves however idle the machine is. That of a package or a platform does;
    /// those of memory, cores and GPUs may rest. A meter that counts others too is a package's or a
    /// platform's, however the rest is named.
    pub fn always_moves(&self) -> bool {
        let is_counter = matches!(self.meter.unwatched(), Meter::Counter { .. });
        is_counter && (!self.less.is_empty() || matches!(self.name.as_str(), "package" | "platform"))
    }

    /// Smallest step of a counter.
    pub const fn unit_uj(&self) -> Option<u64> {
        match self.meter.unwatched() {
            Meter::Counter { unit_uj, .. } => Some(unit_uj),
            _ => None,
        }
    }

    /// How often its counter advances, if it was watched.
    pub const fn update(&self) -> Option<Update> {
        match self.meter {
            Meter::WatchedCounter { update, .. } => Some(update),
            _ => None,
        }
    }

    /// Notes how often its counter advances. In windows of this length it may be too seldom.
    pub fn watched(&mut self, update: Update, window_ns: u64) {
        if let Meter::Counter { range_uj, unit_uj, max_watts } = self.meter {
            self.meter = Meter::WatchedCounter { range_uj, unit_uj, max_watts, update };
            if update.is_coarse_in(window_ns) {
                self.coarse();
            }
        }
    }

    /// Notes that what it measures is coarse.
    pub fn coarse(&mut self) {
        if self.label == Label::Measured {
            self.label = Label::MeasuredCoarsely;
        }
    }
}

/// The core types that a run's domains are divided by; empty unless the processor is hybrid.
pub fn core_types(domains: &[Domain]) -> &[CoreType] {
    let types = domains.iter().find_map(|domain| match &domain.divided_by {
        DividedBy::CpuWeightsByCoreType(types) => Some(&types[..]),
        _ => None,
    });
    types.unwrap_or_default()
}

/// The names of domains, each once, in their order, for people.
pub fn names(domains: &[Domain]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for domain in domains {
        if !names.contains(&domain.name.as_str()) {
            names.push(&domain.name);
        }
    }
    names.join(", ")
}

/// Longest name of a domain that others named, in bytes.
const MAX_NAME_BYTES: usize = 32;

/// A domain's name from a text that firmware or a file has, in `[a-z0-9_-]`, at
/// most 32 bytes; `None` if nothing is left of it.
pub fn plain_name(text: &str) -> Option<String> {
    let clean = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '_' | '-') => letter,
        _ => '_',
    };
    let name: String = text.trim().chars().take(MAX_NAME_BYTES).map(clean).collect();
    (!name.bytes().all(|byte| byte == b'_')).then_some(name)
}

/// One domain's meter at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reading {
    CounterUj(u64),
    PowerUw(u64),
    /// Power of one busy CPU since the last reading, for [`Meter::BusyPower`].
    BusyPowerUw(u64),
    /// [`Meter::Model`], [`Meter::Use`] and [`Meter::PerByte`] need no reading.
    Modelled,
    /// The read failed.
    Failed(ReadFault),
}

/// Why a meter could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFault {
    pub cause: FaultCause,
    /// Operation, object and cause, and what to do, for people.
    pub text: String,
}

/// What is wrong with a domain's energy in a window, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FaultCause {
    /// The meter is gone.
    Gone,
    /// It may not be read (any more).
    Denied,
    /// It could not be read for any other reason.
    Unreadable,
    /// What it says is not a figure.
    Malformed,
    /// It is no longer written.
    Stale,
    /// There was no earlier reading to start from.
    NoStart,
    /// So much time passed between two readings that the counter may have
    /// wrapped more than once.
    MayHaveWrapped,
    /// It moved by more than the domain can draw, or backwards.
    Jumped,
    /// It did not move: its energy comes when it moves again.
    Stuck,
    /// The machine was suspended since the last reading: what the counter gained, if it was not
    /// reset, is also the suspend's.
    Suspended,
}

impl FaultCause {
    pub const ALL: [Self; 10] = [
        Self::Gone,
        Self::Denied,
        Self::Unreadable,
        Self::Malformed,
        Self::Stale,
        Self::NoStart,
        Self::MayHaveWrapped,
        Self::Jumped,
        Self::Stuck,
        Self::Suspended,
    ];

    /// As in data sets.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Denied => "denied",
            Self::Unreadable => "unreadable",
            Self::Malformed => "malformed",
            Self::Stale => "stale",
            Self::NoStart => "no_start",
            Self::MayHaveWrapped => "may_have_wrapped",
            Self::Jumped => "jumped",
            Self::Stuck => "stuck",
            Self::Suspended => "suspended",
        }
    }

    /// The read failed, or repeated an earlier value: the energy comes with a later window.
    pub const fn is_failed_read(self) -> bool {
        matches!(self, Self::Gone | Self::Denied | Self::Unreadable | Self::Malformed | Self::Stale | Self::Stuck)
    }

    /// There was a reading, and the energy that follows from it is not certain.
    pub const fn is_ambiguous(self) -> bool {
        !self.is_failed_read()
    }

    /// The fault of a failed system call.
    pub fn of(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Gone,
            std::io::ErrorKind::PermissionDenied => Self::Denied,
            std::io::ErrorKind::InvalidData => Self::Malformed,
            _ if error.raw_os_error() == Some(libc::ENODEV) => Self::Gone,
            _ => Self::Unreadable,
        }
    }
}

impl Reading {
    pub fn failed(cause: FaultCause, text: impl Into<String>) -> Self {
        Self::Failed(ReadFault { cause, text: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_domain_is_divided_by_is_kept_as_json() {
        let package = Domain::new("package", Some(0), "powercap", Label::Measured, Meter::Power);
        let by_type =
            DividedBy::CpuWeightsByCoreType(vec![CoreType { name: "efficiency".into(), ..CoreType::default() }]);
        let bytes = DividedBy::Bytes(ByteCosts { sent_pj: 7, ..ByteCosts::default() });
        let traffic = [DividedBy::Allocation, DividedBy::CacheMisses];
        for divided_by in [DividedBy::CpuWeights, bytes, DividedBy::CpuTime, by_type].into_iter().chain(traffic) {
            let domain = Domain { divided_by, ..package.clone() };
            let text = serde_json::to_string(&domain).unwrap();
            assert_eq!(serde_json::from_str::<Domain>(&text).unwrap(), domain, "{text}");
        }
        let known = serde_json::to_string(&package).unwrap();
        for other in [known.replace("cpu_weights", "moonlight"), known.replace(r#","divided_by":"cpu_weights""#, "")] {
            assert!(other != known && serde_json::from_str::<Domain>(&other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_counter_that_advances_seldom_in_a_window_is_measured_coarsely() {
        let meter = Meter::Counter { range_uj: 9, unit_uj: 1, max_watts: 7 };
        for (interval_us, window_ms, label, expected) in [
            (1_000, 1_000, Label::Measured, Label::Measured),
            (5_000, 250, Label::Measured, Label::Measured),
            (5_000, 249, Label::Measured, Label::MeasuredCoarsely),
            (100_000, 1_000, Label::Measured, Label::MeasuredCoarsely),
            (100_000, 1_000, Label::ModelledByProcessor, Label::ModelledByProcessor),
        ] {
            let update = Update { interval_us, is_least: false };
            let mut domain = Domain::new("package", Some(0), "powercap", label, meter);
            domain.watched(update, window_ms * 1_000_000);
            assert_eq!((domain.label, domain.update()), (expected, Some(update)), "{interval_us} µs in {window_ms} ms");
            assert_eq!((domain.meter.unwatched(), domain.unit_uj(), domain.always_moves()), (meter, Some(1), true));
        }
        let mut power = Domain::new("package", Some(0), "hwmon", Label::Reported, Meter::Power);
        power.watched(Update { interval_us: 1, is_least: false }, 1);
        assert_eq!((power.meter, power.update()), (Meter::Power, None));
    }

    #[test]
    fn names_are_cleaned() {
        for (text, expected) in [
            ("SoC", Some("soc")),
            ("gpu-nvidia0", Some("gpu-nvidia0")),
            ("big cluster/0", Some("big_cluster_0")),
            ("", None),
            ("\u{1b}\u{202e}", None),
            ("\u{1b}[2J", Some("__2j")),
            ("ÄÖ-1", Some("__-1")),
            (&"a".repeat(99), Some("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")),
        ] {
            assert_eq!(plain_name(text).as_deref(), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_becomes_a_short_plain_one(text in ".{0,80}") {
            let name = plain_name(&text).unwrap_or_else(|| "x".to_owned());
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
            proptest::prop_assert!((1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain));
        }
    }
}
