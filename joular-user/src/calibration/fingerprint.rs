//! Identifies the machine and the instrument that a calibration is of.
//!
//! Everything that changes what idling or measuring costs is a fact with a name and a value. Two
//! fingerprints are compared fact by fact, so that a refusal can name every difference. A recording
//! knows only some of the facts; these are compared.

use std::fmt;

use joular_data::{events::RunInfo, model::domain::Domain};
use serde::{Deserialize, Serialize};

use crate::{
    context::settings::{CERTAIN, PowerSettings},
    energy::cpuinfo::CpuIdentity,
};

/// What a calibration holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    pub cpu_model: String,
    /// Vendor, family, model and stepping: virtual machines hide the model's name.
    pub cpu_identity: String,
    pub arch: String,
    pub online_cpus: u32,
    pub sockets: u32,
    /// Hyper-threads: `on`, `off` or `unknown`.
    pub smt: String,
    /// Rounded, since kernels differ in how much they keep for themselves.
    pub memory_gib: u64,
    pub kernel: String,
    /// Of joular-bpf.
    pub version: String,
    /// Hash of the eBPF object: a changed instrument is another one.
    pub instrument: String,
    pub sampling_event: String,
    /// The source that idle power was measured with; `None` if it was not measured.
    pub energy: Option<EnergyFingerprint>,
    /// Governor, turbo, idle states and the like; `None` in files from before they were noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PowerSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyFingerprint {
    pub source: String,
    /// As [`domain_name`] names them.
    pub domains: Vec<String>,
}

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: &'static str,
    pub stored: String,
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Facts come from files: nothing in them may move the cursor.
        let (stored, now) = (self.stored.escape_debug(), self.now.escape_debug());
        write!(f, "{} was \"{stored}\" and is \"{now}\"", self.what)
    }
}

impl EnergyFingerprint {
    pub fn of(source: &str, domains: &[Domain]) -> Self {
        let domains = domains.iter().map(|domain| domain_name(&domain.name, domain.socket, domain.core)).collect();
        Self { source: source.to_owned(), domains }
    }
}

/// `package`, `package of socket 0`, `core of socket 0, core 3`.
pub fn domain_name(name: &str, socket: Option<u32>, core: Option<u32>) -> String {
    let socket = socket.map(|socket| format!(" of socket {socket}")).unwrap_or_default();
    let core = core.map(|core| format!(", core {core}")).unwrap_or_default();
    format!("{name}{socket}{core}")
}

/// A processor's numbers as one text.
pub fn cpu_identity(cpuinfo: &str) -> String {
    match CpuIdentity::parse(cpuinfo) {
        Some(CpuIdentity::X86 { vendor, family, model, stepping }) => {
            format!("{vendor} family {family} model {model} stepping {stepping}")
        }
        Some(CpuIdentity::Arm { implementer, part }) => format!("implementer {implementer:#x} part {part:#x}"),
        None => "unknown".to_owned(),
    }
}

/// The text of `/sys/devices/system/cpu/smt/active`.
pub fn smt(active: &str) -> String {
    match active.trim() {
        "1" => "on",
        "0" => "off",
        _ => "unknown",
    }
    .to_owned()
}

/// Bytes to whole GiB, rounded to the nearest.
pub const fn gibibytes(bytes: u64) -> u64 {
    (bytes >> 29).div_ceil(2)
}

impl Fingerprint {
    /// Every fact that differs from `now`.
    pub fn mismatches(&self, now: &Self) -> Vec<Difference> {
        let pairs = self.facts().into_iter().zip(now.facts());
        let differences = pairs.filter(|((_, stored), (_, now))| stored != now);
        let mut found: Vec<Difference> =
            differences.map(|((what, stored), (_, now))| Difference { what, stored, now }).collect();
        // Costs alone hold whatever energy is measured with.
        if let Some(stored) = &self.energy {
            found.extend(stored.mismatches(now.energy.as_ref()));
            found.extend(
                self.settings_that_differ(now).take_while(|(place, _)| *place < CERTAIN).map(|(_, found)| found),
            );
        }
        found
    }

    /// What may have changed idle power or costs, and does not forbid the calibration's use.
    pub fn doubts(&self, now: &Self) -> Vec<Difference> {
        self.settings_that_differ(now).filter(|(place, _)| *place >= CERTAIN).map(|(_, found)| found).collect()
    }

    /// Settings that both know, with their places.
    fn settings_that_differ<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = (usize, Difference)> + use<'a> {
        let both = self.settings.as_ref().zip(now.settings.as_ref()).into_iter();
        let pairs = both.flat_map(|(stored, now)| stored.facts().into_iter().zip(now.facts())).enumerate();
        pairs.filter(|(_, ((_, stored), (_, now)))| stored != now).map(|(place, ((what, stored), (_, now)))| {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
            (place, Difference { what, stored: text(stored), now: text(now) })
        })
    }

    /// Every fact that differs from what a recorded run says, as far as it says.
    pub fn mismatches_with_run(&self, run: &RunInfo) -> Vec<Difference> {
        let recorded = Self {
            cpu_model: run.cpu_model.clone(),
            arch: run.arch.clone(),
            online_cpus: run.online_cpus,
            sockets: run.sockets,
            memory_gib: gibibytes(run.memory_bytes),
            kernel: run.kernel.clone(),
            version: run.version.clone(),
            sampling_event: run.sampling_event.clone(),
            energy: Some(EnergyFingerprint::of(&run.energy_source, &run.domains)),
            ..self.clone()
        };
        self.mismatches(&recorded)
    }

    /// All but energy, each with its name.
    fn facts(&self) -> [(&'static str, String); 11] {
        [
            ("CPU model", self.cpu_model.clone()),
            ("CPU identity", self.cpu_identity.clone()),
            ("architecture", self.arch.clone()),
            ("number of online CPUs", self.online_cpus.to_string()),
            ("number of sockets", self.sockets.to_string()),
            ("SMT", self.smt.clone()),
            ("memory in GiB", self.memory_gib.to_string()),
            ("kernel", self.kernel.clone()),
            ("version of joular-bpf", self.version.clone()),
            ("hash of the eBPF programs", self.instrument.clone()),
            ("sampling event", self.sampling_event.clone()),
        ]
    }
}

impl EnergyFingerprint {
    fn mismatches(&self, now: Option<&Self>) -> Vec<Difference> {
        let text = |value: fn(&Self) -> String| now.map_or_else(|| "none".to_owned(), value);
        let domains: fn(&Self) -> String = |energy| energy.domains.join("; ");
        [
            Difference {
                what: "energy source",
                stored: self.source.clone(),
                now: text(|energy| energy.source.clone()),
            },
            Difference { what: "energy domains", stored: domains(self), now: text(domains) },
        ]
        .into_iter()
        .filter(|difference| difference.stored != difference.now)
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::{Label, Meter};

    use super::*;
    use crate::calibration::fixture;

    type Change = (&'static str, fn(&mut Fingerprint));

    const CHANGES: [Change; 15] = [
        ("CPU model", |now| now.cpu_model = "another".into()),
        ("CPU identity", |now| now.cpu_identity = "another".into()),
        ("architecture", |now| now.arch = "aarch64".into()),
        ("number of online CPUs", |now| now.online_cpus += 1),
        ("number of sockets", |now| now.sockets += 1),
        ("SMT", |now| now.smt = "off".into()),
        ("memory in GiB", |now| now.memory_gib *= 2),
        ("kernel", |now| now.kernel = "7.0.0".into()),
        ("version of joular-bpf", |now| now.version = "9.9.9".into()),
        ("hash of the eBPF programs", |now| now.instrument = "0".into()),
        ("sampling event", |now| now.sampling_event = "cycles".into()),
        ("energy source", |now| now.energy.as_mut().unwrap().source = "watts".into()),
        ("energy domains", |now| now.energy.as_mut().unwrap().domains.truncate(1)),
        ("idle states", |now| settings(now).idle_states = Some("POLL, C1".into())),
        ("limits of idle states", |now| settings(now).idle_limits = None),
    ];

    fn settings(of: &mut Fingerprint) -> &mut PowerSettings {
        of.settings.as_mut().unwrap()
    }

    fn names(differences: &[Difference]) -> Vec<&str> {
        differences.iter().map(|difference| difference.what).collect()
    }

    #[test]
    fn every_change_is_named() {
        let stored = fixture::calibration().fingerprint;
        assert_eq!(stored.mismatches(&stored), []);
        let mut all = stored.clone();
        for (what, change) in CHANGES {
            let mut now = stored.clone();
            change(&mut now);
            change(&mut all);
            assert_eq!(names(&stored.mismatches(&now)), [what]);
        }
        assert_eq!(names(&stored.mismatches(&all)), CHANGES.map(|(what, _)| what));
    }

    #[test]
    fn settings_that_may_change_idle_power_are_doubts() {
        let stored = fixture::calibration().fingerprint;
        let changes: [Change; 3] = [
            ("frequency governor", |now| settings(now).governor = Some("performance".into())),
            ("energy preference", |now| settings(now).energy_preference = None),
            ("turbo", |now| settings(now).turbo = Some("off".into())),
        ];
        for (what, change) in changes {
            let mut now = stored.clone();
            change(&mut now);
            assert_eq!((names(&stored.doubts(&now)), names(&stored.mismatches(&now))), (vec![what], vec![]));
        }
        assert_eq!(stored.doubts(&stored), []);
        let unknown = Fingerprint { settings: None, ..stored.clone() };
        assert_eq!((unknown.mismatches(&stored), unknown.doubts(&stored)), (vec![], vec![]));
    }

    /// What idle states cost is not a cost of the programs.
    #[test]
    fn costs_without_baselines_hold_under_any_limit_of_idle_states() {
        let stored = Fingerprint { energy: None, ..fixture::calibration().fingerprint };
        let mut now = stored.clone();
        settings(&mut now).idle_states = Some("POLL".into());
        assert_eq!(stored.mismatches(&now), []);
    }

    #[test]
    fn a_difference_says_what_was_and_what_is() {
        let difference = Difference { what: "kernel", stored: "6.1\u{1b}[2J".into(), now: "6.2".into() };
        assert_eq!(difference.to_string(), r#"kernel was "6.1\u{1b}[2J" and is "6.2""#);
    }

    #[test]
    fn costs_without_baselines_hold_for_any_source() {
        let stored = Fingerprint { energy: None, ..fixture::calibration().fingerprint };
        assert_eq!(stored.mismatches(&fixture::calibration().fingerprint), []);
        let now = Fingerprint { energy: None, ..stored.clone() };
        let differences = fixture::calibration().fingerprint.mismatches(&now);
        assert_eq!(names(&differences), ["energy source", "energy domains"]);
        assert_eq!(differences[0].now, "none");
    }

    #[test]
    fn a_recorded_run_is_compared_as_far_as_it_says() {
        let stored = fixture::calibration().fingerprint;
        assert_eq!(stored.mismatches_with_run(&fixture::run()), []);
        let run = RunInfo { kernel: "7.0.0".into(), energy_source: "watts".into(), ..fixture::run() };
        assert_eq!(names(&stored.mismatches_with_run(&run)), ["kernel", "energy source"]);
    }

    #[test]
    fn domains_are_named_by_where_they_are() {
        let core = Domain { core: Some(3), ..Domain::new("core", Some(1), "x", Label::Measured, Meter::Power) };
        let machine = Domain::new("cpu", None, "x", Label::Measured, Meter::Power);
        assert_eq!(EnergyFingerprint::of("x", &[core, machine]).domains, ["core of socket 1, core 3", "cpu"]);
    }

    #[test]
    fn facts_are_read_from_the_kernels_texts() {
        let cpuinfo = "vendor_id: GenuineIntel\ncpu family: 6\nmodel: 85\nstepping: 7\n";
        assert_eq!(cpu_identity(cpuinfo), "GenuineIntel family 6 model 85 stepping 7");
        assert_eq!(cpu_identity("CPU implementer: 0x41\nCPU part: 0xd0c\n"), "implementer 0x41 part 0xd0c");
        assert_eq!(cpu_identity(""), "unknown");
        assert_eq!(["1\n", "0\n", ""].map(smt), ["on", "off", "unknown"]);
        assert_eq!([0, 16 << 30, (16 << 30) - 900_000_000, 15 << 29].map(gibibytes), [0, 16, 15, 8]);
    }
}
