//! Tests that native code without frame pointers has whole stacks: from its leaf, through libraries
//! and signal handlers, to where its thread began.

use std::{path::Path, process::Command, time::Duration};

use anyhow::Result;
use joular_tests::{
    dataset::{integer, text},
    native, notes,
    process::Running,
    profiler::{Output, Run},
};

const LIMIT: Duration = Duration::from_secs(60);

/// What a sample's stack may be, by thread, from where the C library starts a
/// thread (two frames whose names it does not tell). A sample may hit any moment,
/// so what the leaf returns to is a leaf at times; the kernel's frames may follow.
/// Last, how some of them must end: nobody sees code that did not run.
const EXPECTED: [(&str, &str, &str); 3] = [
    ("worker", "worker((;deep){31};leaf|(;deep){1,31})?", ";deep;deep;leaf"),
    (
        "sorter",
        "sorter(;qsort(_r)?(;[^;]*libc[^;]*|;msort[^;]*|;qsort[^;]*)*(;compare(;leaf)?)?|;rand.*)?",
        ";compare;leaf",
    ),
    ("signals", "signals(;spin(;[^;]+;handler(;leaf)?)?)?", ";handler;leaf"),
];

#[test]
fn native_stacks_are_whole_without_frame_pointers() -> Result<()> {
    expect_whole(native::compile)
}

/// Its functions are not described: as in Alpine's JDK.
#[test]
fn stacks_through_musl_are_whole() -> Result<()> {
    if !native::has_musl() {
        notes::skipped("there is no compiler for musl (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    expect_whole(native::compile_for_musl)
}

fn expect_whole(compile: fn(&str, &Path) -> Result<()>) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        notes::skipped("the walk by tables needs x86-64");
        return Ok(());
    }
    let output = Output::new()?;
    let program = output.beside("deep");
    compile("deep.c", &program)?;
    let mut process = Running::spawn("deep", &mut Command::new(&program))?;
    process.wait_stdout("ready", LIMIT)?;
    let run = Run::modelled().pid(process.pid()).with("--frequency", "999").with("--duration", "5s");
    let finished = run.output(output.dir()).finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    for (thread, path, end) in EXPECTED {
        let stacks = output.data.rows(&format!(
            "SELECT folded, regexp_full_match(folded, '[^;]+;[^;]+;start;{path}(;(asm_|entry_|irq).*)?')
                      AND is_complete IS true AS expected,
                    sum(samples)::BIGINT AS samples
             FROM branches JOIN (SELECT DISTINCT stack_id, folded, is_complete FROM stacks) USING (stack_id)
             WHERE thread_name = '{thread}' AND samples > 0 GROUP BY ALL ORDER BY samples DESC"
        ))?;
        let ends_so = |stack| text(stack, "folded").is_ok_and(|folded| folded.ends_with(end));
        assert!(stacks.iter().any(ends_so), "{thread}: no stack ends with {end}: {stacks:#?}");
        let (mut whole, mut all, mut others) = (0, 0, Vec::new());
        for stack in &stacks {
            all += integer(stack, "samples")?;
            if stack["expected"] == true {
                whole += integer(stack, "samples")?;
            } else {
                others.push(format!("{} × {}", integer(stack, "samples")?, text(stack, "folded")?));
            }
        }
        println!("{thread}: {whole} of {all} samples");
        assert!(all > 100, "{thread}: only {all} samples");
        // One of few may be where code has just been entered or left.
        assert!(all - whole <= (all / 200).max(1), "{thread}: {whole} of {all} are whole, others: {others:#?}");
    }
    Ok(())
}
