//! Identifies the processor from the text of `/proc/cpuinfo`.
//!
//! In virtual machines the model name is often blank or just "AMD EPYC". But vendor, family, model
//! and stepping come from the CPUID instruction, and they identify the micro-architecture.

use std::{io, path::Path};

use joular_data::model::domain::Label;

use super::sysfs::read_start;

/// Enough for the first processor's paragraph.
const CPUINFO_BYTES: u64 = 64 * 1024;

/// The start of `/proc/cpuinfo`.
///
/// # Errors
/// As the system says.
pub fn read(path: &Path) -> io::Result<String> {
    read_start(path, CPUINFO_BYTES)
}

/// Whether the processor is known to be Intel's; `proc_root` is usually `/proc`.
pub fn is_intel(proc_root: &Path) -> bool {
    let identity = read(&proc_root.join("cpuinfo")).ok().and_then(|text| CpuIdentity::parse(&text));
    matches!(identity, Some(CpuIdentity::X86 { vendor, .. }) if vendor == "GenuineIntel")
}

/// Whether the first processor has this flag; `proc_root` is usually `/proc`.
pub fn has_flag(proc_root: &Path, flag: &str) -> bool {
    let text = read(&proc_root.join("cpuinfo")).unwrap_or_default();
    field(&text, "flags").is_some_and(|flags| flags.split_ascii_whitespace().any(|word| word == flag))
}

/// How the processor's energy registers come about, as far as is known; `proc_root` is usually `/proc`.
pub fn register_label(proc_root: &Path) -> Label {
    let identity = read(&proc_root.join("cpuinfo")).ok().and_then(|text| CpuIdentity::parse(&text));
    if identity.is_some_and(|identity| identity.models_its_energy()) {
        Label::ModelledByProcessor
    } else {
        Label::Measured
    }
}

/// The numbers that identify a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuIdentity {
    X86 { vendor: String, family: u32, model: u32, stepping: u32 },
    Arm { implementer: u32, part: u32 },
}

impl CpuIdentity {
    /// Whether its RAPL registers are known to hold the result of a model of its activity. docs/trust.md
    /// has the sources: Intel's Sandy Bridge and Ivy Bridge, AMD's Zen 2. For AMD's Zen and Zen+, which
    /// have the same registers and family number, and Hygon's Dhyana, which is made from Zen, nothing
    /// better is known.
    fn models_its_energy(&self) -> bool {
        match self {
            Self::X86 { vendor, family: 6, model, .. } if vendor == "GenuineIntel" => {
                matches!(model, 42 | 45 | 58 | 62)
            }
            Self::X86 { vendor, family: 0x17, .. } => vendor == "AuthenticAMD",
            Self::X86 { vendor, family: 0x18, .. } => vendor == "HygonGenuine",
            Self::X86 { .. } | Self::Arm { .. } => false,
        }
    }

    /// The design of a core for servers, by the numbers of its MIDR register (Linux,
    /// arch/arm64/include/asm/cputype.h).
    pub const fn server_core(&self) -> Option<&'static str> {
        match self {
            Self::Arm { implementer: 0x41, part: 0xd0c } => Some("Neoverse N1"),
            Self::Arm { implementer: 0x41, part: 0xd40 } => Some("Neoverse V1"),
            // The second is Microsoft's.
            Self::Arm { implementer: 0x41 | 0x6d, part: 0xd49 } => Some("Neoverse N2"),
            Self::Arm { implementer: 0x41, part: 0xd4f } => Some("Neoverse V2"),
            Self::Arm { implementer: 0xc0, part: 0xac3 } => Some("AmpereOne"),
            Self::Arm { .. } | Self::X86 { .. } => None,
        }
    }

    /// From the first processor's paragraph; `None` if it has neither.
    pub fn parse(cpuinfo: &str) -> Option<Self> {
        let field = |name| field(cpuinfo, name);
        let number = |name| field(name).and_then(parse_number);
        if let Some(implementer) = number("CPU implementer") {
            return Some(Self::Arm { implementer, part: number("CPU part")? });
        }
        Some(Self::X86 {
            vendor: field("vendor_id")?.to_owned(),
            family: number("cpu family")?,
            model: number("model")?,
            stepping: number("stepping").unwrap_or(0),
        })
    }
}

/// A field of the first processor's paragraph.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let first = cpuinfo.lines().take_while(|line| !line.trim().is_empty());
    let mut pairs = first.filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Decimal, or hexadecimal after `0x`.
fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_model_their_energy_are_told_from_those_that_measure_it() {
        for (vendor, family, model, expected) in [
            ("GenuineIntel", 6, 42, Label::ModelledByProcessor),
            ("GenuineIntel", 6, 62, Label::ModelledByProcessor),
            ("GenuineIntel", 6, 63, Label::Measured),
            ("GenuineIntel", 6, 143, Label::Measured),
            ("AuthenticAMD", 23, 1, Label::ModelledByProcessor),
            ("AuthenticAMD", 23, 49, Label::ModelledByProcessor),
            ("AuthenticAMD", 25, 1, Label::Measured),
            ("HygonGenuine", 24, 0, Label::ModelledByProcessor),
        ] {
            let proc = tempfile::tempdir().unwrap();
            let text = format!("vendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\n");
            std::fs::write(proc.path().join("cpuinfo"), text).unwrap();
            assert_eq!(register_label(proc.path()), expected, "{vendor} {family} {model}");
        }
        assert_eq!(register_label(Path::new("/nonexistent")), Label::Measured);
    }

    /// As Linux writes it on arm64: no vendor, no model, no package.
    #[test]
    fn cores_for_servers_are_known_by_their_numbers() {
        for (implementer, part, expected) in [
            ("0x41", "0xd0c", Some("Neoverse N1")),
            ("0x41", "0xd40", Some("Neoverse V1")),
            ("0x41", "0xd49", Some("Neoverse N2")),
            ("0x6d", "0xd49", Some("Neoverse N2")),
            ("0x41", "0xd4f", Some("Neoverse V2")),
            ("0xc0", "0xac3", Some("AmpereOne")),
            // Cortex-A76, as in a Raspberry Pi 5.
            ("0x41", "0xd0b", None),
            ("0x6d", "0xd0c", None),
        ] {
            let paragraph = |cpu: u32| {
                format!(
                    "processor\t: {cpu}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes\nCPU implementer\t: \
                     {implementer}\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: {part}\nCPU revision\t: 1\n\n"
                )
            };
            let proc = tempfile::tempdir().unwrap();
            std::fs::write(proc.path().join("cpuinfo"), [paragraph(0), paragraph(1)].concat()).unwrap();
            let identity = CpuIdentity::parse(&read(&proc.path().join("cpuinfo")).unwrap()).unwrap();
            assert_eq!(identity.server_core(), expected, "{implementer} {part}");
            assert!(!is_intel(proc.path()) && !has_flag(proc.path(), "fp"));
            assert_eq!(register_label(proc.path()), Label::Measured);
        }
    }

    #[test]
    fn the_first_paragraph_identifies_the_processor() {
        let x86 = |vendor: &str, family, model, stepping| {
            Some(CpuIdentity::X86 { vendor: vendor.to_owned(), family, model, stepping })
        };
        for (text, expected) in [
            (
                "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n",
                x86("AuthenticAMD", 25, 17, 1),
            ),
            (
                "vendor_id: GenuineIntel\ncpu family: 6\nmodel: 85\nstepping: 7\n\nvendor_id: x\n",
                x86("GenuineIntel", 6, 85, 7),
            ),
            (
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
                Some(CpuIdentity::Arm { implementer: 0x41, part: 0xd0c }),
            ),
            ("vendor_id: GenuineIntel\ncpu family: six\nmodel: 85\n", None),
            ("processor: 0\n\nvendor_id: GenuineIntel\ncpu family: 6\nmodel: 85\n", None),
            ("", None),
            (":::\n:\n", None),
        ] {
            assert_eq!(CpuIdentity::parse(text), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "((vendor_id|model|cpu family|CPU part|CPU implementer)\\t*: (0x)?[0-9a-z]{0,9}\\n){0,6}|.{0,60}") {
            let _ = CpuIdentity::parse(&text);
        }
    }
}
