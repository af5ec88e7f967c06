//! Finds where a JVM reports its collections: static probes, and counters that say why a collection takes place and
//! what its survivors' ages are.
//!
//! The ages are those that the collector's age table has at the end of a young collection: what `-Xlog:gc+age=trace`
//! prints. Serial and G1 keep such a table.

use std::fs::File;

use joular_data::model::target_text::TargetText;
use joular_ebpf::abi::{ArgumentPlace, JvmCollections, PoolArguments, Survival};

use super::{jvm::Jvm, libjvm::LibjvmError, memory::Pages};
use crate::{
    arch::{Arch, Native},
    elf::{Elf, static_probes::StaticProbe},
    runtimes::CollectionSites,
};

/// The first JDK that marks objects which a collection leaves in place by bit 2 of their first word (JDK-8305898).
const IN_PLACE_BIT: u32 = 24;
const PROVIDER: &str = "hotspot";
const BEGIN: &str = "mem__pool__gc__begin";
const END: &str = "mem__pool__gc__end";
const CAUSE: &str = "sun.gc.cause";
const AGE_0: &str = "sun.gc.generation.0.agetable.bytes.00";
const AGE_1: &str = "sun.gc.generation.0.agetable.bytes.01";
/// Farther from each other than two counters that were made one after the other are.
const MAX_STRIDE: u64 = 256;

/// Where the probes are in libjvm's file, and where they have what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionProbes {
    pub begin_offset: u64,
    pub end_offset: u64,
    begin: PoolArguments,
    end: PoolArguments,
}

impl CollectionProbes {
    /// `None`: it was built without static probes, or has them otherwise.
    pub fn read(file: &File) -> Result<Option<Self>, LibjvmError> {
        let elf = Elf::read(file)?;
        let [begin, end] = [elf.static_probes(PROVIDER, BEGIN)?, elf.static_probes(PROVIDER, END)?];
        // The compiler may have made several copies; not all would be seen then.
        let ([begin], [end]) = (&begin[..], &end[..]) else { return Ok(None) };
        let arguments = pool_arguments::<Native>(begin).zip(pool_arguments::<Native>(end));
        Ok(arguments.map(|(begin_arguments, end_arguments)| Self {
            begin_offset: begin.offset,
            end_offset: end.offset,
            begin: begin_arguments,
            end: end_arguments,
        }))
    }
}

/// Of the probe's arguments the manager's name, the pool's name, and the pool's used bytes. (The others are the names'
/// lengths, and what the pool had at first, has from the system and may have.)
fn pool_arguments<A: Arch>(probe: &StaticProbe) -> Option<PoolArguments> {
    let places: Vec<_> = operands(&probe.arguments).map(argument_place::<A>).collect();
    let [collector, _, pool, _, _, used_bytes, ..] = places[..] else { return None };
    Some(PoolArguments { collector: collector?, pool: pool?, used_bytes: used_bytes? })
}

/// Each argument of a probe. There may be spaces in brackets: `8@x0 8@[sp, 8]`.
fn operands(arguments: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    let ends = move |character: char| {
        is_inside = character == '[' || is_inside && character != ']';
        character.is_whitespace() && !is_inside
    };
    arguments.split(ends).filter(|operand| !operand.is_empty())
}

/// Where an argument of 8 bytes is: `8@` or `-8@` is before its place.
fn argument_place<A: Arch>(text: &str) -> Option<ArgumentPlace> {
    let (size, operand) = text.split_once('@')?;
    if matches!(size, "8" | "-8") { A::probe_operand(operand) } else { None }
}

/// Where a JVM reports its collections.
pub fn sites(jvm: &Jvm) -> Option<CollectionSites> {
    let (build, memory, bias) = jvm.parts();
    let probes = build.collections?;
    let counters = build.layout.perf_data;
    let found = counters.and_then(|layout| layout.addresses(&Pages::new(memory), bias, [CAUSE, AGE_0, AGE_1]).ok());
    let [cause, age_0, age_1] = found.unwrap_or_default();
    let stride = age_0.zip(age_1).and_then(|(first, second)| second.checked_sub(first));
    let (ages, age_stride) = age_0.zip(stride.filter(|stride| *stride <= MAX_STRIDE)).unwrap_or_default();
    let jvm = JvmCollections {
        begin: probes.begin,
        end: probes.end,
        cause: cause.unwrap_or_default(),
        ages,
        age_stride,
        survival: survival(jvm),
    };
    Some(CollectionSites { begin_offset: probes.begin_offset, end_offset: probes.end_offset, jvm })
}

/// How it is seen which objects survive; that it is not, where the collector is not known.
pub fn survival(jvm: &Jvm) -> Survival {
    let (build, memory, bias) = jvm.parts();
    let facts = jvm.facts();
    let found = match facts.collector.as_ref().map(TargetText::raw) {
        Some("G1") => build.layout.regions.and_then(|layout| layout.read(&Pages::new(memory), bias).ok().flatten()),
        Some(_) => Some(Survival::default()),
        None => None,
    };
    let has_in_place_bit = u32::from(facts.feature >= IN_PLACE_BIT);
    found.map_or_else(Survival::default, |found| Survival { has_in_place_bit, is_known: 1, ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Aarch64, X86_64};

    fn place(register: u32, in_memory: u32, displacement: i64) -> Option<ArgumentPlace> {
        Some(ArgumentPlace { register, in_memory, displacement })
    }

    #[test]
    fn an_argument_of_8_bytes_has_a_place() {
        for (text, expected) in [
            ("8@%r15", place(0, 0, 0)),
            ("-8@%rax", place(80, 0, 0)),
            ("8@-88(%rbp)", place(32, 1, -88)),
            ("4@%eax", None),
            ("4@%rax", None),
            ("8", None),
            ("", None),
        ] {
            assert_eq!(argument_place::<X86_64>(text), expected, "{text}");
        }
    }

    #[test]
    fn arguments_are_apart_even_if_one_has_a_space() {
        let found: Vec<_> = operands("8@x19 4@7  -8@[sp, 8] 8@[x29, -16] 8@[x0").collect();
        assert_eq!(found, ["8@x19", "4@7", "-8@[sp, 8]", "8@[x29, -16]", "8@[x0"]);
    }

    #[test]
    fn arguments_of_aarch64_have_places() {
        let probe = StaticProbe { offset: 0, arguments: "8@x19 8@x1 8@[sp, 72] 8@x3 8@x4 8@x0 8@x6 8@x7".to_owned() };
        let [collector, pool, used_bytes] = [place(152, 0, 0), place(248, 1, 72), place(0, 0, 0)].map(Option::unwrap);
        assert_eq!(pool_arguments::<Aarch64>(&probe), Some(PoolArguments { collector, pool, used_bytes }));
    }

    #[test]
    fn a_pools_name_collector_and_bytes_are_the_first_third_and_sixth_argument() {
        let probe = |arguments: &str| StaticProbe { offset: 0, arguments: arguments.to_owned() };
        let found =
            pool_arguments::<X86_64>(&probe("8@%r13 4@$1 8@%r15 8@%rax 8@%rsi 8@-8(%rbp) 8@%r9 8@%r10")).unwrap();
        let [collector, pool, used_bytes] = [place(16, 0, 0), place(0, 0, 0), place(32, 1, -8)].map(Option::unwrap);
        assert_eq!(found, PoolArguments { collector, pool, used_bytes });
        assert_eq!(pool_arguments::<X86_64>(&probe("8@%r13 8@%r13 8@%r15")), None);
    }
}
