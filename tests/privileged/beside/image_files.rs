//! Tests JVMs in containers of one image: each has the image's files under a device number of its own.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::DataSet,
    java::{Jvm, Workload},
    jdk::Jdk,
    mount::Overlay,
    profiler::{Output, Run},
};

const CONTAINERS: usize = 3;
const RECORDED: usize = 3;
/// A run lets the files of processes go that ended so long ago.
const RELEASED: Duration = Duration::from_secs(10);

fn start(jdk: &Jdk, image: &Overlay) -> Result<Jvm> {
    let jdk = Jdk { java: image.path().join("bin/java"), ..jdk.clone() };
    Workload::new("Busy").dont_inline("Busy::spin").jdk(&jdk).start()
}

/// The stacks of a `Busy` that was killed during the run were whole, and its method had a name.
pub fn expect_understood(data: &DataSet, pid: u32) -> Result<()> {
    // In its last window it is killed, and a thread that is ending has no stack any more.
    let before = format!(
        "category = 'java' AND pid = {pid} AND window_start < (SELECT max(window_start) FROM quality WHERE pid = {pid})"
    );
    let whole = data.number(&format!(
        "SELECT coalesce(sum(samples) FILTER (is_complete), 0)::DOUBLE / sum(samples) FROM quality WHERE {before}"
    ))?;
    let named = data.number(&format!(
        "SELECT coalesce(sum(self_samples) FILTER (method = 'Busy.spin'), 0)::DOUBLE / sum(self_samples)
         FROM methods WHERE pid = {pid}"
    ))?;
    let not_whole =
        data.rows(&format!("SELECT walk_end, samples, window_start FROM quality WHERE NOT is_complete AND {before}"))?;
    ensure!(whole > 0.99 && named > 0.9, "process {pid}: {whole} whole, {named} in Busy.spin: {not_whole:?}");
    Ok(())
}

#[test]
fn jvms_of_one_image_are_understood_and_their_files_are_let_go() -> Result<()> {
    let output = Output::new()?;
    let jdk = Jdk::all()?.iter().find(|jdk| !jdk.is_system).context("no pinned JDK")?;
    let home = jdk.java.parent().and_then(Path::parent).context("a JDK has a directory")?;
    let mut images = (0..CONTAINERS).map(|_| Overlay::mount(home)).collect::<Result<Vec<_>>>()?;
    let jvms = images.iter().map(|image| start(jdk, image)).collect::<Result<Vec<_>>>()?;
    let pids: Vec<u32> = jvms.iter().map(Jvm::pid).collect();
    let listed: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let run = Run::modelled().with("--pid", listed.join(",")).with("--frequency", "199").argument("--json");
    // Another target keeps the run going.
    let own = std::process::id().to_string();
    let mut profiler = run.with("--pid", own).output(output.dir()).start()?;
    (0..RECORDED).try_for_each(|_| profiler.wait_window().map(drop))?;
    drop(jvms);
    for image in &mut images {
        wait_for("unmounting a container's files", RELEASED, || Ok(image.try_unmount()?.then_some(())))?;
    }
    profiler.stop()?;
    pids.into_iter().try_for_each(|pid| expect_understood(&output.data, pid))
}
