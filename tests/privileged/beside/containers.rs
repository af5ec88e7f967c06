//! Tests JVMs in containers of podman and in pods of containerd, each with namespaces and a root of its own,
//! one with users of its own as well: they are understood as JVMs of the host are, the data set says which
//! container and pod they were in, and what is removed is let go.

use std::{fmt::Display, fs, os::unix::fs::MetadataExt as _, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    containers::{
        self,
        containerd::{Containerd, PodConfig},
        image::{Image, java_command},
        podman::Podman,
    },
    jdk::Jdk,
    notes,
    profiler::{Output, Run},
};

use super::image_files;

const JVM: &str = "localhost/jvm:1";
const RECORDED_WINDOWS: usize = 3;
/// A run lets the files of processes go that ended so long ago.
const RELEASED: Duration = Duration::from_secs(10);
pub fn jvm_image() -> Result<Image> {
    Image::of(Jdk::pinned()?.last().context("no pinned JDK")?)
}

/// Records processes for some windows, and `meanwhile` ends them before the run ends.
fn record(output: &Output, pids: &[u32], meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    // This process keeps the run going when they have ended.
    let run = Run::modelled().with("--pid", pids.join(",")).with("--pid", std::process::id().to_string());
    let mut profiler = run.with("--frequency", "199").argument("--json").output(output.dir()).start()?;
    (0..RECORDED_WINDOWS).try_for_each(|_| profiler.wait_window().map(drop))?;
    meanwhile()?;
    let finished = profiler.stop()?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(())
}

/// Its stacks were whole, its method had a name, and it was where it was.
fn expect_understood(output: &Output, pid: u32, container: &str, pod: Option<&str>) -> Result<()> {
    image_files::expect_understood(&output.data, pid)?;
    let text = |value: Option<&dyn Display>| value.map_or("IS NULL".to_owned(), |value| format!("= '{value}'"));
    let found = output.data.number(&format!(
        "SELECT count(*)::DOUBLE FROM processes WHERE pid = {pid} AND container {} AND pod {}",
        text(Some(&container)),
        text(pod.as_ref().map(|pod| pod as &dyn Display)),
    ))?;
    ensure!(
        found > 0.0,
        "process {pid} was in container {container} of pod {pod:?}: {:?}",
        output.data.rows("FROM processes")?
    );
    Ok(())
}

#[test]
fn jvms_in_containers_of_podman_are_understood_and_their_files_are_let_go() -> Result<()> {
    if !containers::are_installed() {
        notes::skipped("there is no podman to run containers with (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let (podman, output) = (Podman::new()?, Output::new()?);
    podman.import(&jvm_image()?, JVM)?;
    let command = java_command("Busy");
    let containers =
        [podman.start(JVM, &command)?, podman.start(JVM, &command)?, podman.start_as_other_user(JVM, &command)?];
    containers.iter().try_for_each(|container| podman.wait_ready(container))?;
    let pids: Vec<u32> = containers.iter().map(|container| container.pid).collect();
    let users = pids.iter().map(|pid| Ok(fs::metadata(format!("/proc/{pid}"))?.uid())).collect::<Result<Vec<_>>>()?;
    ensure!(users[..2] == [0, 0] && users[2] != 0, "one has a user namespace of its own: {users:?}");
    record(&output, &pids, || {
        // Podman unmounts their files, and says so if somebody uses them.
        wait_for("podman to remove containers", RELEASED, || Ok(podman.remove(&containers).ok()))
    })?;
    containers.iter().try_for_each(|container| expect_understood(&output, container.pid, &container.id, None))
}

#[test]
fn jvms_in_pods_of_containerd_are_understood() -> Result<()> {
    if !containers::are_installed() {
        notes::skipped("there is no containerd to run pods with (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let (podman, output) = (Podman::new()?, Output::new()?);
    let mut containerd = Containerd::with_image(&podman, &jvm_image()?, JVM)?;
    let pods = (0..2).map(|number| containerd.run(&PodConfig::new(number, "default", &[]), JVM, &java_command("Busy")));
    let pods = pods.collect::<Result<Vec<_>>>()?;
    pods.iter().try_for_each(|pod| containerd.wait_ready(pod))?;
    let pids: Vec<u32> = pods.iter().map(|pod| pod.pid).collect();
    record(&output, &pids, || Ok(()))?;
    pods.iter().try_for_each(|pod| expect_understood(&output, pod.pid, &pod.container, Some(&pod.uid)))
}
