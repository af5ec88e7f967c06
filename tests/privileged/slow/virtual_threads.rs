//! Tests stacks of virtual threads in all combinations of what decides where their frames are: the compiler, how deep
//! they block, how many there are for how many carriers, and the collector, which moves what is in the heap.

use anyhow::{Result, anyhow};

use crate::resumed::{Case, Compiler, expect_whole};

/// Of the share of what a thread does after it blocked. Of a hundred cases one is off by more, and is repeated.
const DEVIATIONS: f64 = 3.0;

const COMPILERS: [Compiler; 3] = [Compiler::C1, Compiler::C2, Compiler::None];

/// Records all, and fails with the list of those that failed.
fn expect_all(cases: impl IntoIterator<Item = Case>) -> Result<()> {
    let failed: Vec<String> =
        cases.into_iter().filter_map(|case| expect_whole(case, DEVIATIONS).err()).map(|e| format!("{e:#}")).collect();
    if failed.is_empty() { Ok(()) } else { Err(anyhow!("{} cases:\n{}", failed.len(), failed.join("\n"))) }
}

#[test]
fn stacks_of_virtual_threads_are_whole_at_all_depths() -> Result<()> {
    let cases = [21, 25].into_iter().flat_map(|release| {
        COMPILERS.into_iter().flat_map(move |compiler| {
            [1, 2, 4].into_iter().flat_map(move |carriers| {
                [(200, 5), (200, 50), (200, 500), (10_000, 5), (10_000, 50)]
                    .map(|(threads, depth)| Case::new(release, compiler, carriers, threads, depth))
            })
        })
    });
    expect_all(cases)
}

/// Objects move, references to them are written in several ways, and their fields stand elsewhere.
#[test]
fn stacks_of_virtual_threads_are_whole_with_all_collectors() -> Result<()> {
    const FLAGS: [(u32, &[&str]); 12] = [
        (21, &["-XX:+UseZGC"]),
        (21, &["-XX:+UseZGC", "-XX:+ZGenerational"]),
        (21, &["-XX:+UseShenandoahGC"]),
        (21, &["-XX:+UseSerialGC"]),
        (21, &["-XX:+UseParallelGC"]),
        (21, &["-XX:-UseCompressedOops"]),
        (25, &["-XX:+UseZGC"]),
        (25, &["-XX:+UseShenandoahGC"]),
        (25, &["-XX:+UseSerialGC"]),
        (25, &["-XX:-UseCompressedOops"]),
        (25, &["-XX:+UseCompactObjectHeaders"]),
        (25, &["-XX:+UseCompactObjectHeaders", "-XX:+UseZGC"]),
    ];
    expect_all(FLAGS.into_iter().flat_map(|(release, flags)| {
        COMPILERS.map(|compiler| Case { flags, ..Case::new(release, compiler, 2, 200, 50) })
    }))
}
