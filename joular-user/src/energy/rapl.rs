//! Makes disjoint domains of the energy registers of x86 processors, whichever way they are read.
//! Intel calls the registers RAPL, Running Average Power Limit; AMD has similar ones.
//!
//! Sources: Intel SDM volume 3B, 16.10; Linux, `arch/x86/events/rapl.c` and
//! `drivers/powercap/intel_rapl_common.c`.
//!
//! - Memory is not in the package.
//! - All cores together, and the graphics beside them, are in Intel's package:
//!   shown as parts of it.
//! - AMD counts each core by itself. Then the cores are domains, and what is
//!   left of the package (caches, fabric, memory controller) is `uncore`.
//! - The platform holds packages and memory: its domain is the rest (voltage
//!   regulators, screen, disks), which no thread drew. Alone, it is all there is.

use joular_data::model::domain::{self, Domain, Label, Meter, Role};

use super::{EnergyOptions, cpuinfo, filtering};

/// What a register measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaplKind {
    Package,
    /// All cores of a package together.
    Cores,
    /// The rest of a package, by Intel's name: graphics, on client processors.
    Uncore,
    Graphics,
    Dram,
    /// One core.
    Core,
    Platform,
}

impl RaplKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Cores | Self::Core => "core",
            Self::Uncore => "uncore",
            Self::Graphics => "gpu",
            Self::Dram => "dram",
            Self::Platform => "platform",
        }
    }

    /// More than any part sold draws (in 2026: 500 W per socket, twice that for moments), so that a
    /// larger figure is an error and not a load.
    pub const fn max_watts(self) -> u32 {
        match self {
            Self::Package | Self::Cores | Self::Uncore | Self::Graphics => 1_000,
            Self::Dram => 500,
            Self::Core => 200,
            Self::Platform => 4_000,
        }
    }
}

/// A register that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    pub kind: RaplKind,
    /// Physical package; `None` for the platform.
    pub socket: Option<u32>,
    /// The die, where each die of a package has registers of its own.
    pub die: Option<u32>,
    /// Of [`RaplKind::Core`].
    pub core: Option<u32>,
    pub meter: Meter,
}

/// Labels domains by how this processor's registers come about, and says that for people.
pub fn label(domains: &mut [Domain], options: &EnergyOptions) -> String {
    let label = cpuinfo::register_label(&options.proc_root);
    domains.iter_mut().for_each(|domain| domain.label = label);
    let filtering = filtering::of(options).filter(|_| label == Label::Measured);
    if filtering.is_some() {
        domains.iter_mut().for_each(Domain::coarse);
    }
    let how = match label {
        Label::ModelledByProcessor => ", which this processor fills from a model of its own,".to_owned(),
        _ => filtering.map(|filtering| format!(", {},", filtering.words())).unwrap_or_default(),
    };
    format!("hardware counters{how} of {}", domain::names(domains))
}

/// One domain per register, in their order.
pub fn domains(source: &str, registers: &[Register]) -> Vec<Domain> {
    registers.iter().map(|register| domain(source, register, registers)).collect()
}

fn domain(source: &str, register: &Register, all: &[Register]) -> Domain {
    let indices = |wanted: &dyn Fn(&Register) -> bool| -> Vec<usize> {
        all.iter().enumerate().filter(|(_, other)| wanted(other)).map(|(index, _)| index).collect()
    };
    let is_beside = |other: &Register| (other.socket, other.die) == (register.socket, register.die);
    let mut domain = Domain::new(register.kind.name(), register.socket, source, Label::Measured, register.meter);
    domain.core = register.core;
    match register.kind {
        RaplKind::Package => {
            domain.less = indices(&|other| other.kind == RaplKind::Core && is_beside(other));
            if !domain.less.is_empty() {
                RaplKind::Uncore.name().clone_into(&mut domain.name);
            }
        }
        RaplKind::Cores | RaplKind::Uncore | RaplKind::Graphics => {
            let package = indices(&|other| other.kind == RaplKind::Package && is_beside(other));
            domain.role = package.first().map_or(Role::Unshared, |of| Role::Part { of: *of });
        }
        RaplKind::Platform => {
            domain.less = indices(&|other| matches!(other.kind, RaplKind::Package | RaplKind::Dram));
            if !domain.less.is_empty() {
                domain.role = Role::Unshared;
            }
        }
        RaplKind::Dram | RaplKind::Core => {}
    }
    domain
}

#[cfg(test)]
mod tests {
    use super::{RaplKind::*, *};

    /// Kind, socket, die and core.
    type Coordinates = (RaplKind, Option<u32>, Option<u32>, Option<u32>);
    /// Name, role and what is taken off.
    type Seen<'a> = (&'a str, Role, &'a [usize]);

    #[track_caller]
    fn check(registers: &[Coordinates], expected: &[Seen<'_>]) {
        let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1 };
        let registers: Vec<Register> = registers
            .iter()
            .map(|(kind, socket, die, core)| Register { kind: *kind, socket: *socket, die: *die, core: *core, meter })
            .collect();
        let domains = domains("test", &registers);
        let found: Vec<Seen<'_>> =
            domains.iter().map(|domain| (domain.name.as_str(), domain.role, &domain.less[..])).collect();
        assert_eq!(found, expected);
        assert!(domains.iter().zip(&registers).all(|(domain, register)| domain.core == register.core));
    }

    #[test]
    fn memory_is_beside_the_package_and_the_rest_within() {
        check(
            &[
                (Package, Some(0), None, None),
                (Cores, Some(0), None, None),
                (Uncore, Some(0), None, None),
                (Dram, Some(0), None, None),
            ],
            &[
                ("package", Role::Shared, &[]),
                ("core", Role::Part { of: 0 }, &[]),
                ("uncore", Role::Part { of: 0 }, &[]),
                ("dram", Role::Shared, &[]),
            ],
        );
    }

    #[test]
    fn parts_belong_to_their_own_die() {
        check(
            &[(Package, Some(0), Some(0), None), (Package, Some(0), Some(1), None), (Graphics, Some(0), Some(1), None)],
            &[("package", Role::Shared, &[]), ("package", Role::Shared, &[]), ("gpu", Role::Part { of: 1 }, &[])],
        );
    }

    #[test]
    fn the_platform_is_what_packages_and_memory_leave_of_it() {
        check(
            &[
                (Platform, None, None, None),
                (Package, Some(0), None, None),
                (Dram, Some(0), None, None),
                (Package, Some(1), None, None),
            ],
            &[
                ("platform", Role::Unshared, &[1, 2, 3]),
                ("package", Role::Shared, &[]),
                ("dram", Role::Shared, &[]),
                ("package", Role::Shared, &[]),
            ],
        );
        check(&[(Platform, None, None, None)], &[("platform", Role::Shared, &[])]);
    }

    #[test]
    fn a_package_whose_cores_are_counted_is_what_they_leave_of_it() {
        check(
            &[
                (Core, Some(0), None, Some(0)),
                (Core, Some(0), None, Some(1)),
                (Package, Some(0), None, None),
                (Core, Some(1), None, Some(0)),
                (Package, Some(1), None, None),
                (Package, Some(2), None, None),
            ],
            &[
                ("core", Role::Shared, &[]),
                ("core", Role::Shared, &[]),
                ("uncore", Role::Shared, &[0, 1]),
                ("core", Role::Shared, &[]),
                ("uncore", Role::Shared, &[3]),
                ("package", Role::Shared, &[]),
            ],
        );
    }
}
