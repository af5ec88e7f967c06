//! Tests JVMs whose files cannot be found by the paths that they know them by.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{Jvm, Workload},
    jdk::Jdk,
    profiler::{END, Output, Run},
};
use tempfile::tempdir;

const LIMIT: Duration = Duration::from_secs(10);

fn pinned() -> Result<&'static Jdk> {
    Jdk::all()?.iter().find(|jdk| !jdk.is_system).context("no pinned JDK")
}

fn busy(jdk: &Jdk) -> Workload {
    Workload::new("Busy").dont_inline("Busy::spin").jdk(jdk)
}

/// It is walked by what the JVM itself says, and its methods have names.
fn expect_understood(jvm: &Jvm) -> Result<()> {
    let output = Output::new()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", "3s").with("--frequency", "199");
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let unwinding = output.data.rows(&format!(
        "SELECT DISTINCT unwinding FROM processes WHERE pid = {} AND unwinding IS NOT NULL",
        jvm.pid()
    ))?;
    ensure!(format!("{unwinding:?}").contains("hotspot"), "{unwinding:?}, {finished:?}");
    let named = output
        .data
        .number("SELECT sum(self_samples) FILTER (method = 'Busy.spin')::DOUBLE / sum(self_samples) FROM methods")?;
    ensure!(named > 0.9, "{named} of the samples are in Busy.spin");
    let whole = output.data.number(
        "SELECT sum(samples) FILTER (is_complete)::DOUBLE / sum(samples) FROM quality WHERE category = 'java'",
    )?;
    ensure!(whole > 0.99, "{whole} of the stacks are whole");
    Ok(())
}

/// As a package manager does it: the new file is put in the old one's place.
fn replace(path: &Path) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, "of the next version")?;
    fs::rename(&new, path).with_context(|| format!("replacing {}", path.display()))
}

#[test]
fn a_jvm_whose_jdk_was_upgraded_is_understood() -> Result<()> {
    let directory = tempdir()?;
    let jdk = pinned()?;
    let home = jdk.java.parent().and_then(Path::parent).context("a JDK has a directory")?;
    let copied = Command::new("cp").arg("-r").arg(home).arg(directory.path().join("jdk")).status()?;
    ensure!(copied.success(), "copying {}", home.display());
    let jvm = busy(&Jdk { java: directory.path().join("jdk/bin/java"), ..jdk.clone() }).start()?;
    for library in ["server/libjvm.so", "libjava.so"] {
        replace(&directory.path().join("jdk/lib").join(library))?;
    }
    expect_understood(&jvm)
}

#[test]
fn a_jvm_below_another_root_in_another_mount_namespace_is_understood() -> Result<()> {
    let root = tempdir()?;
    let path = root.path().to_str().context("a plain path")?;
    // Not even its own paths lead from its root to where its files are mounted here.
    let enter = "mount --rbind / \"$0\" && exec chroot \"$0\" \"$@\"";
    let jvm = busy(pinned()?).launched_by(&["unshare", "--mount", "sh", "-c", enter, path]).start()?;
    expect_understood(&jvm)
}
