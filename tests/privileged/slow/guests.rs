//! Tests that a virtual machine learns from its host what it uses: the energy that joular-bpf measures in it is what
//! joular-bpf on its host gave to its process, to the microjoule.

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::integer,
    kernels::{self, Kernel},
    notes, paths,
    process::Running,
    profiler::{Output, Run},
};
use serde_json::Value;

/// An emulated machine takes half a minute to start; on a loaded host several.
const LIMIT: Duration = Duration::from_secs(900);
const START: Duration = Duration::from_secs(30);
/// Debian has it beside QEMU.
const VIRTIOFSD: &str = "/usr/lib/qemu/virtiofsd";
/// Windows that the guest may notice a total late, or its recording may begin and end beside its windows.
const EDGES: usize = 8;

const SCRIPT: &str = "\
    mkdir /power\n\
    mount -t virtiofs power /power || echo no file system\n\
    (sleep 1; echo burn 60000; sleep 60) | burner 100 &\n\
    joular-bpf --all --frequency 19 --duration 10s --energy microjoules --energy-file /power/energy_uj \
    --no-output --json\n\
    echo exit code $?";

/// A kernel with virtiofs that needs no module.
fn kernel() -> Option<Kernel> {
    let has_virtiofs = |kernel: &Kernel| kernel.has("CONFIG_VIRTIO_FS=y") && kernel.has("CONFIG_VIRTIO_PCI=y");
    kernels::all().into_iter().find(has_virtiofs)
}

/// Shares a directory; ends with the virtual machine.
fn share(directory: &Path, socket: &Path) -> Result<Running> {
    let mut virtiofsd = Command::new(VIRTIOFSD);
    virtiofsd.arg(format!("--socket-path={}", socket.display()));
    virtiofsd.arg("-o").arg(format!("source={},cache=none", directory.display()));
    let server = Running::spawn("virtiofsd", &mut virtiofsd)?;
    wait_for("virtiofsd's socket", START, || Ok(socket.exists().then_some(())))?;
    Ok(server)
}

/// What the guest's windows measured, in order.
fn measured_in_guest(said: &str) -> Result<Vec<i64>> {
    let records = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let windows = records.filter(|record| record["type"] == "window");
    let measured = windows.map(|window| {
        let domains = window["domains"].as_array();
        let domains = domains.with_context(|| format!("no domains: {window}"))?;
        domains.iter().map(|domain| integer(domain, "measured_uj")).sum()
    });
    measured.collect()
}

#[test]
fn a_guest_measures_what_its_host_gave_it_to_the_microjoule() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let Some(kernel) = kernel().filter(|_| Path::new(VIRTIOFSD).exists()) else {
        notes::skipped("there is no virtiofsd, or no kernel with virtiofs");
        return Ok(());
    };
    let (output, directory) = (Output::new()?, tempfile::tempdir()?);
    let (power, socket) = (directory.path().join("power"), directory.path().join("socket"));
    // The total of an earlier recording.
    let total = 5_000_000;
    fs::create_dir_all(power.join("web-1"))?;
    fs::write(power.join("web-1/energy_uj"), format!("{total}\n"))?;
    let _server = share(&power.join("web-1"), &socket)?;
    let mut root = kernels::root(SCRIPT)?;
    root.program("/bin/joular-bpf", &paths::joular_bpf())?;
    root.program("/bin/burner", Path::new(env!("CARGO_BIN_EXE_burner")))?;
    let channel = format!("socket,id=power,path={}", socket.display());
    let guest = kernel.start(
        root,
        &[
            "-name",
            "guest=web-1,debug-threads=on",
            "-object",
            "memory-backend-memfd,id=memory,size=MEMORY,share=on",
            "-numa",
            "node,memdev=memory",
            "-chardev",
            &channel,
            "-device",
            "vhost-user-fs-pci,chardev=power,tag=power",
        ],
    )?;
    let run = Run::modelled().pid(guest.machine.pid()).with("--guest-power", &power).argument("--quiet");
    let profiler = run.output(output.dir()).start()?;
    let pid = guest.machine.pid();
    let finished = guest.finish(LIMIT)?;
    let recorded = profiler.stop()?;
    ensure!(recorded.code() == Some(0), "{recorded:?}");
    let said = finished.stdout.replace('\r', "");
    ensure!(said.contains("\nexit code 0\n"), "{said}");

    let windows = "SELECT sum(energy_uj)::BIGINT AS energy_uj FROM threads";
    let rows = output
        .data
        .rows(&format!("{windows} WHERE pid = {pid} GROUP BY run_id, window_start ORDER BY window_start"))?;
    let mut totals = BTreeMap::from([(total, 0)]);
    let mut sum = total;
    for (index, row) in rows.iter().enumerate() {
        sum += integer(row, "energy_uj")?;
        totals.insert(sum, index + 1);
    }
    let left = fs::read_to_string(power.join("web-1/energy_uj"))?;
    ensure!(left.trim() == sum.to_string(), "the last total is all that the host gave: {left}, {sum}");
    ensure!(!power.join("web-1/watts").exists(), "a power that is no longer true is gone");

    let measured = measured_in_guest(&said)?;
    ensure!(measured.len() >= 8 && measured.iter().sum::<i64>() > 0, "{measured:?}");
    // From one of the host's totals, each window of the guest leads to another one.
    let leads = |&start: &&i64| {
        let mut at = *start;
        measured.iter().all(|energy| {
            at += energy;
            totals.contains_key(&at)
        })
    };
    let start = totals.keys().find(leads).with_context(|| format!("{measured:?} are not sums of {totals:?}"))?;
    let end = start + measured.iter().sum::<i64>();
    let passed = totals[&end] - totals[start];
    ensure!(
        passed.abs_diff(measured.len()) <= EDGES,
        "{} windows of the guest are {passed} of the host",
        measured.len()
    );
    Ok(())
}
