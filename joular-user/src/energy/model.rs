//! Models energy from CPU use where nothing measures it. It is an estimate, and labelled as one in
//! every output.
//!
//! Power of a vCPU (hardware thread) is linear between idle and full load. The coefficients per
//! micro-architecture are those of Cloud Carbon Footprint, who derive them from SPECpower_ssj2008
//! results (average watts at active idle and at 100 % load, divided by the hardware threads of the
//! server). So a figure covers the whole server's share of a vCPU, with memory, fans and power
//! supply. For Neoverse N1 they publish the results and their method; the coefficients are computed
//! from these. docs/energy-model.md has the table, its source and limits.

use std::{io, path::Path};

use joular_data::model::domain::{Domain, Meter, Reading};
use thiserror::Error;

use super::{
    Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind,
    cpuinfo::{self, CpuIdentity},
    watts::parse_microwatts,
};

/// Name of this source in `--energy` and in data sets.
pub const NAME: &str = "model";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: an estimate from CPU time and published watts per vCPU",
    permission: "none",
    adds: Adds::Never,
    open,
};

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let source = Model::open(&options.proc_root.join("cpuinfo"), options.model_watts)
        .map_err(|error| Unusable::new(UnusableKind::Absent, error.to_string()))?;
    let basis = source.reason().to_owned();
    Ok(Opened::new(source, basis, "computed per window"))
}

/// Most that one hardware thread is believed to draw: 1 kW, in µW.
const MOST_VCPU_UW: u64 = 1_000_000_000;

/// Power of one vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuPower {
    /// µW at no load; never more than `full_uw`.
    pub idle_uw: u64,
    /// µW at full load, at most 1 kW.
    pub full_uw: u64,
}

/// A text that is not `IDLE:FULL`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not IDLE:FULL in watts per vCPU with 0 ≤ IDLE ≤ FULL ≤ 1000, e.g. 0.7:3.5")]
pub struct VcpuPowerError;

impl std::str::FromStr for VcpuPower {
    type Err = VcpuPowerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let watts = |text| parse_microwatts(text).map_err(|_| VcpuPowerError);
        let (idle, full) = text.split_once(':').ok_or(VcpuPowerError)?;
        let power = Self { idle_uw: watts(idle)?, full_uw: watts(full)? };
        (power.idle_uw <= power.full_uw && power.full_uw <= MOST_VCPU_UW).then_some(power).ok_or(VcpuPowerError)
    }
}

/// A micro-architecture with published coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficients {
    pub architecture: &'static str,
    pub power: VcpuPower,
}

const fn published(architecture: &'static str, idle_mw: u64, full_mw: u64) -> Coefficients {
    Coefficients { architecture, power: VcpuPower { idle_uw: idle_mw * 1000, full_uw: full_mw * 1000 } }
}

// Milliwatts per vCPU, rounded from coefficients-aws-use.csv of Cloud Carbon
// Footprint (see docs/energy-model.md).
const SANDY_BRIDGE: Coefficients = published("Sandy Bridge", 2212, 8631);
const IVY_BRIDGE: Coefficients = published("Ivy Bridge", 1707, 5557);
const HASWELL: Coefficients = published("Haswell", 1857, 5595);
const BROADWELL: Coefficients = published("Broadwell", 713, 3685);
const SKYLAKE: Coefficients = published("Skylake", 613, 4104);
const CASCADE_LAKE: Coefficients = published("Cascade Lake", 690, 4063);
const COFFEE_LAKE: Coefficients = published("Coffee Lake", 1138, 5422);
const ICE_LAKE: Coefficients = published("Ice Lake", 767, 3758);
const SAPPHIRE_RAPIDS: Coefficients = published("Sapphire Rapids", 1036, 4160);
const EMERALD_RAPIDS: Coefficients = published("Emerald Rapids", 814, 4482);
const GRANITE_RAPIDS: Coefficients = published("Granite Rapids", 582, 2527);
const EPYC_1: Coefficients = published("AMD EPYC 1st generation", 847, 2604);
const EPYC_2: Coefficients = published("AMD EPYC 2nd generation", 474, 1693);
const EPYC_3: Coefficients = published("AMD EPYC 3rd generation", 456, 1957);
const EPYC_4: Coefficients = published("AMD EPYC 4th generation", 739, 2282);
// The mean of the servers in SPECpower-2026-03-09.csv there, as their tool computes it. They are all of Ampere Altra.
const NEOVERSE_N1: Coefficients = published("Neoverse N1, as in Ampere Altra", 735, 1706);

/// For any other processor: the average over AWS's processors, which Cloud Carbon Footprint also
/// uses where it does not know the processor.
pub const AVERAGE: VcpuPower = VcpuPower { idle_uw: 740_000, full_uw: 3_500_000 };

/// The published coefficients of a processor, if there are any.
///
/// x86 family, model and stepping numbers are those of Linux's
/// `arch/x86/include/asm/intel-family.h` and AMD's processor programming
/// references. [`CpuIdentity::server_core`] has the source of Arm's.
pub fn coefficients(cpu: &CpuIdentity) -> Option<Coefficients> {
    match cpu {
        CpuIdentity::X86 { vendor, family: 6, model, stepping } if vendor == "GenuineIntel" => intel(*model, *stepping),
        CpuIdentity::X86 { vendor, family, model, .. } if vendor == "AuthenticAMD" => epyc(*family, *model),
        CpuIdentity::Arm { implementer: 0x41, part: 0xd0c } => Some(NEOVERSE_N1),
        CpuIdentity::X86 { .. } | CpuIdentity::Arm { .. } => None,
    }
}

const fn intel(model: u32, stepping: u32) -> Option<Coefficients> {
    Some(match (model, stepping) {
        (42 | 45, _) => SANDY_BRIDGE,
        (58 | 62, _) => IVY_BRIDGE,
        (60 | 63 | 69 | 70, _) => HASWELL,
        (61 | 71 | 79 | 86, _) => BROADWELL,
        (78 | 94, _) | (85, 0..=4) => SKYLAKE,
        (85, 5..=7) => CASCADE_LAKE,
        // Stepping 9 of 158 is Kaby Lake, which has no coefficients.
        (158, 10..) => COFFEE_LAKE,
        (106 | 108, _) => ICE_LAKE,
        (143, _) => SAPPHIRE_RAPIDS,
        (207, _) => EMERALD_RAPIDS,
        (173 | 174, _) => GRANITE_RAPIDS,
        _ => return None,
    })
}

const fn epyc(family: u32, model: u32) -> Option<Coefficients> {
    Some(match (family, model) {
        // Naples.
        (23, 1) => EPYC_1,
        // Rome.
        (23, 49) => EPYC_2,
        // Milan and Milan-X.
        (25, 1) => EPYC_3,
        // Genoa and Genoa-X; Bergamo and Siena.
        (25, 17 | 160) => EPYC_4,
        _ => return None,
    })
}

/// Why the model cannot be used.
#[derive(Debug, Error)]
#[error("reading {path}: {cause}: give the power of a vCPU with --model-watts IDLE:FULL")]
pub struct ModelError {
    path: String,
    cause: io::Error,
}

/// The model of this machine: one domain for all its CPUs.
#[derive(Debug)]
pub struct Model {
    domains: [Domain; 1],
    reason: String,
}

impl Model {
    /// The coefficients of the processor in `cpuinfo`, or `given` instead.
    ///
    /// # Errors
    /// If nothing is given and `cpuinfo` cannot be read.
    pub fn open(cpuinfo: &Path, given: Option<VcpuPower>) -> Result<Self, ModelError> {
        if let Some(power) = given {
            return Ok(Self::new(power, "as given by --model-watts"));
        }
        let text = cpuinfo::read(cpuinfo).map_err(|cause| ModelError { path: cpuinfo.display().to_string(), cause })?;
        let cpu = CpuIdentity::parse(&text);
        if let Some(known) = cpu.as_ref().and_then(coefficients) {
            return Ok(Self::new(known.power, known.architecture));
        }
        // Without hyper-threads: the average is per hardware thread, mostly of processors with two a core.
        let basis = match cpu.as_ref().and_then(CpuIdentity::server_core) {
            Some(core) => format!("average, nothing is published for {core}, of which a vCPU is a core"),
            None => "average, this processor has no published coefficients".to_owned(),
        };
        Ok(Self::new(AVERAGE, &basis))
    }

    fn new(power: VcpuPower, basis: &str) -> Self {
        let VcpuPower { idle_uw, full_uw } = power;
        let domain = Domain::modelled("cpu", None, NAME, Meter::Model { idle_uw, full_uw });
        let (idle, full) = (idle_uw / 1000, full_uw / 1000);
        Self { domains: [domain], reason: format!("estimated at {idle} to {full} mW per vCPU ({basis})") }
    }

    /// What the estimate is based on, for people.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl EnergySource for Model {
    fn name(&self) -> &'static str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        vec![Reading::Modelled]
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::{DividedBy, Label};

    use super::*;

    fn x86(vendor: &str, family: u32, model: u32, stepping: u32) -> CpuIdentity {
        CpuIdentity::X86 { vendor: vendor.to_owned(), family, model, stepping }
    }

    #[test]
    fn family_model_and_stepping_give_the_architecture() {
        for (vendor, family, model, stepping, expected) in [
            ("AuthenticAMD", 23, 1, 2, Some("AMD EPYC 1st generation")),
            ("AuthenticAMD", 23, 49, 0, Some("AMD EPYC 2nd generation")),
            ("AuthenticAMD", 25, 1, 1, Some("AMD EPYC 3rd generation")),
            ("AuthenticAMD", 25, 17, 1, Some("AMD EPYC 4th generation")),
            ("AuthenticAMD", 26, 2, 1, None),
            ("AuthenticAMD", 6, 85, 7, None),
            ("GenuineIntel", 6, 85, 4, Some("Skylake")),
            ("GenuineIntel", 6, 85, 7, Some("Cascade Lake")),
            // Cooper Lake.
            ("GenuineIntel", 6, 85, 11, None),
            ("GenuineIntel", 6, 106, 6, Some("Ice Lake")),
            ("GenuineIntel", 6, 143, 8, Some("Sapphire Rapids")),
            ("GenuineIntel", 6, 158, 9, None),
            ("GenuineIntel", 15, 85, 7, None),
            ("", 25, 17, 1, None),
        ] {
            let found = coefficients(&x86(vendor, family, model, stepping)).map(|known| known.architecture);
            assert_eq!(found, expected, "{vendor} {family} {model} {stepping}");
        }
        assert_eq!(coefficients(&CpuIdentity::Arm { implementer: 0x41, part: 0xd0c }), Some(NEOVERSE_N1));
        assert_eq!(coefficients(&CpuIdentity::Arm { implementer: 0x42, part: 0xd0c }), None);
    }

    #[test]
    fn the_coefficients_of_neoverse_n1_are_the_means_of_the_published_servers() {
        // Tenths of watts at active idle, watts at 100 %, hardware threads: SPECpower-2026-03-09.csv, in its order.
        let servers: [(u64, u64, u64); 7] = [
            (1250, 250, 128),
            (731, 123, 64),
            (539, 140, 80),
            (1430, 282, 256),
            (1450, 499, 256),
            (790, 268, 128),
            (782, 150, 128),
        ];
        // Their least common number of threads is 1280, which leaves no remainders.
        let mean_mw = |deciwatts: fn(&(u64, u64, u64)) -> u64| {
            let sum: u64 = servers.iter().map(|server| deciwatts(server) * 100 * (1280 / server.2)).sum();
            // To the nearest.
            (sum + 1280 * 7 / 2) / (1280 * 7)
        };
        let VcpuPower { idle_uw, full_uw } = NEOVERSE_N1.power;
        assert_eq!((mean_mw(|server| server.0), mean_mw(|server| server.1 * 10)), (idle_uw / 1000, full_uw / 1000));
    }

    #[test]
    fn given_watts_are_idle_and_full() {
        let power = |idle_uw, full_uw| Ok(VcpuPower { idle_uw, full_uw });
        for (text, expected) in [
            ("0.7:3.5", power(700_000, 3_500_000)),
            ("0:0", power(0, 0)),
            ("1000:1000", power(MOST_VCPU_UW, MOST_VCPU_UW)),
            ("3.5:0.7", Err(VcpuPowerError)),
            ("1:1001", Err(VcpuPowerError)),
            ("1", Err(VcpuPowerError)),
            (":", Err(VcpuPowerError)),
            ("-1:2", Err(VcpuPowerError)),
            ("NaN:NaN", Err(VcpuPowerError)),
        ] {
            assert_eq!(text.parse::<VcpuPower>(), expected, "{text}");
        }
    }

    #[track_caller]
    fn check_open(cpuinfo: &str, expected: VcpuPower, reason: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cpuinfo");
        std::fs::write(&path, cpuinfo).unwrap();
        let model = Model::open(&path, None).unwrap();
        let VcpuPower { idle_uw, full_uw } = expected;
        assert_eq!(model.domains()[0].meter, Meter::Model { idle_uw, full_uw });
        assert_eq!(model.domains()[0].label, Label::Modelled);
        assert_eq!(model.domains()[0].divided_by, DividedBy::CpuTime);
        assert!(model.reason().contains(reason), "{}", model.reason());
    }

    #[test]
    fn the_model_says_what_it_is_based_on() {
        let genoa = "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nmodel name : AMD EPYC\nstepping : 1\n";
        check_open(genoa, EPYC_4.power, "739 to 2282 mW per vCPU (AMD EPYC 4th generation)");
        check_open("what is this", AVERAGE, "740 to 3500 mW per vCPU (average, this processor");
        let altra = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n";
        check_open(altra, NEOVERSE_N1.power, "735 to 1706 mW per vCPU (Neoverse N1, as in Ampere Altra)");
        let graviton_3 = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n";
        check_open(graviton_3, AVERAGE, "740 to 3500 mW per vCPU (average, nothing is published for Neoverse V1");
        let cortex_a76 = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0b\n";
        check_open(cortex_a76, AVERAGE, "(average, this processor has no published");
    }

    #[test]
    fn without_cpuinfo_the_power_must_be_given() {
        let absent = Path::new("/nonexistent/cpuinfo");
        assert!(Model::open(absent, None).unwrap_err().to_string().contains("--model-watts IDLE:FULL"));
        assert!(Model::open(absent, Some(AVERAGE)).is_ok());
    }

    #[test]
    fn the_document_names_the_cores_without_coefficients() {
        let document = include_str!("../../../docs/energy-model.md");
        for part in [0xd40, 0xd49, 0xd4f] {
            let core = CpuIdentity::Arm { implementer: 0x41, part }.server_core().unwrap();
            assert!(document.contains(&format!("| {core} | {part:#x} |")), "{core}");
        }
    }

    #[test]
    fn the_document_shows_these_coefficients() {
        let document = include_str!("../../../docs/energy-model.md");
        let processors = (0..=255).flat_map(|model| (0..16).map(move |stepping| (model, stepping)));
        let intel = processors.filter_map(|(model, stepping)| intel(model, stepping));
        let epyc = (0..=255).flat_map(|model| [epyc(23, model), epyc(25, model), epyc(26, model)]).flatten();
        for Coefficients { architecture, power } in intel.chain(epyc).chain([NEOVERSE_N1]) {
            let row = document.lines().find(|line| line.starts_with(&format!("| {architecture} |"))).unwrap();
            let watts = |microwatts: u64| format!("{}.{:03}", microwatts / 1_000_000, microwatts / 1000 % 1000);
            let end = format!("| {} | {} |", watts(power.idle_uw), watts(power.full_uw));
            assert!(row.ends_with(&end), "{row} should end with {end}");
        }
    }
}
