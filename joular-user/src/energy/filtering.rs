//! Says whether an Intel processor filters its energy registers.
//!
//! The mitigation of the PLATYPUS attack (CVE-2020-8694 and -8695) lets a processor report energy that it has
//! blurred, so that nobody can tell from it what instructions work on. Bit 0 of register
//! `IA32_MISC_PACKAGE_CTLS` (0xbc) switches that on; bit 10 of `IA32_ARCH_CAPABILITIES` (0x10a) says whether
//! there is such a register. Where the firmware has enabled SGX, such a processor filters whatever the bit
//! says (Intel, *Running Average Power Limit Energy Reporting*). Registers can be read by root if the kernel's
//! module `msr` is loaded.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

use super::{EnergyOptions, cpuinfo};

const ARCH_CAPABILITIES: u64 = 0x10a;
const HAS_MISC_PACKAGE_CTLS: u64 = 1 << 10;
const MISC_PACKAGE_CTLS: u64 = 0xbc;
const ENERGY_FILTERING_ENABLE: u64 = 1 << 0;

/// What it means for those who record.
pub const NOTICE: &str = "this processor filters its energy counters against side channels, so single windows and short \
                          phases are only measured coarsely (docs/energy.md)";

/// Why energy registers are filtered, as far as that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filtering {
    /// The register says so.
    Enabled,
    /// SGX is enabled, and the processor can filter or does not say whether it can.
    Sgx,
}

impl Filtering {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Enabled => "which this processor filters (IA32_MISC_PACKAGE_CTLS)",
            Self::Sgx => "which this processor filters because SGX is enabled",
        }
    }
}

/// `None` if registers are not filtered or nothing says so.
pub fn of(options: &EnergyOptions) -> Option<Filtering> {
    if !cpuinfo::is_intel(&options.proc_root) {
        return None;
    }
    let register = |address| register(&options.dev_root, address).ok();
    let can_filter = register(ARCH_CAPABILITIES).map(|bits| bits & HAS_MISC_PACKAGE_CTLS != 0);
    if can_filter == Some(false) {
        return None;
    }
    match register(MISC_PACKAGE_CTLS) {
        Some(bits) if bits & ENERGY_FILTERING_ENABLE != 0 => Some(Filtering::Enabled),
        _ => cpuinfo::has_flag(&options.proc_root, "sgx").then_some(Filtering::Sgx),
    }
}

/// A register of the first CPU. All packages are set alike.
fn register(dev_root: &Path, address: u64) -> io::Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    File::open(dev_root.join("cpu/0/msr"))?.read_exact_at(&mut bytes, address)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const INTEL: &str = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n";

    /// What is found on a processor with these registers; `None`: they cannot be read.
    fn found(cpuinfo: &str, registers: Option<(u64, u64)>) -> Option<Filtering> {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cpuinfo"), cpuinfo).unwrap();
        if let Some((capabilities, controls)) = registers {
            fs::create_dir_all(root.path().join("cpu/0")).unwrap();
            let file = File::create(root.path().join("cpu/0/msr")).unwrap();
            file.write_all_at(&controls.to_le_bytes(), MISC_PACKAGE_CTLS).unwrap();
            file.write_all_at(&capabilities.to_le_bytes(), ARCH_CAPABILITIES).unwrap();
        }
        let root = root.path().to_owned();
        of(&EnergyOptions { proc_root: root.clone(), dev_root: root, ..EnergyOptions::default() })
    }

    #[test]
    fn filtering_is_what_the_register_or_sgx_says() {
        let sgx = format!("{INTEL}flags : fpu sgx sgx_lc\n");
        let without = format!("{INTEL}flags : fpu sgx_lc\n");
        let amd = "vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nflags : sgx\n";
        for (cpuinfo, registers, expected) in [
            (&without[..], Some((1 << 10, 1)), Some(Filtering::Enabled)),
            (&without, Some((1 << 10, 0)), None),
            (&without, Some((1 << 11, 1)), None),
            (&without, None, None),
            (&sgx, Some((1 << 10, 0)), Some(Filtering::Sgx)),
            (&sgx, Some((0, 0)), None),
            (&sgx, None, Some(Filtering::Sgx)),
            (amd, None, None),
        ] {
            assert_eq!(found(cpuinfo, registers), expected, "{cpuinfo} {registers:?}");
        }
    }
}
