//! Tests that a virtual machine learns from its host what it uses: the energy that joular-bpf measures in it is what
//! joular-bpf on its host gave to its process in the same time.

use std::{fs, path::Path, process::Command, time::Duration};

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
/// How far the guest's clock may be off: an emulated machine has whole seconds at its start, and then nothing sets it. What
/// remains of that is at most a window of the host and the time for which files may be cached.
const OFF_US: i64 = 4_000_000;
/// Part of a window's energy by which the guest's may differ from the host's in the same time.
const TOLERANCE: f64 = 0.05;

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

/// Time and energy of a window: its start in µs since 1970, its length in µs, and what it measured.
#[derive(Clone, Copy, Debug)]
struct Window {
    start_us: i64,
    length_us: i64,
    measured_uj: i64,
}

/// The guest's windows, in order.
fn windows_in_guest(said: &str) -> Result<Vec<Window>> {
    let records = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let windows = records.filter(|record| record["type"] == "window");
    let measured = windows.map(|window| {
        let domains = window["domains"].as_array();
        let domains = domains.with_context(|| format!("no domains: {window}"))?;
        let measured_uj = domains.iter().map(|domain| integer(domain, "measured_uj")).sum::<Result<i64>>()?;
        let length_us = integer(&window, "length_ns")? / 1000;
        Ok(Window { start_us: integer(&window, "start_us")?, length_us, measured_uj })
    });
    measured.collect()
}

#[test]
fn a_guest_measures_what_its_host_gave_it_in_the_same_time() -> Result<()> {
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

    let sums = "SELECT sum(energy_uj)::BIGINT AS energy_uj, (epoch_us(window_start) + any_value(window_ns) // 1000)::BIGINT AS end_us
                FROM threads";
    let rows =
        output.data.rows(&format!("{sums} WHERE pid = {pid} GROUP BY run_id, window_start ORDER BY window_start"))?;
    let given: Vec<(i64, i64)> =
        rows.iter().map(|row| Ok((integer(row, "end_us")?, integer(row, "energy_uj")?))).collect::<Result<_>>()?;
    let sum = total + given.iter().map(|(_, energy_uj)| energy_uj).sum::<i64>();
    let left = fs::read_to_string(power.join("web-1/energy_uj"))?;
    ensure!(
        left.lines().next_back() == Some(&*sum.to_string()),
        "the last total is all that the host gave: {left}, {sum}"
    );
    ensure!(!power.join("web-1/watts").exists(), "a power that is no longer true is gone");

    let windows = windows_in_guest(&said)?;
    ensure!(windows.len() >= 8, "{windows:?}");
    let (off_us, distance) = nearest(&windows[1..], &given);
    notes::figure(&format!(
        "windows of a guest differ from its host's by {:.1} % at most, with clocks {off_us} µs apart",
        100.0 * distance
    ));
    ensure!(distance <= TOLERANCE, "{distance} at {off_us} µs: {windows:?}, {given:?}");
    // It ran all the time, and so all its windows have energy.
    ensure!(windows.iter().skip(1).all(|window| window.measured_uj > 0), "{windows:?}");
    Ok(())
}

/// The difference of clocks at which the guest's windows are most like what the host gave in the same time, and by which part
/// of its energy the worst window differs then.
fn nearest(windows: &[Window], given: &[(i64, i64)]) -> (i64, f64) {
    let distance = |off_us: i64| {
        let of_window = |window: &Window| {
            let start_us = window.start_us + off_us;
            let given_uj = given_until(given, start_us + window.length_us) - given_until(given, start_us);
            (given_uj - window.measured_uj as f64).abs() / window.measured_uj.max(1) as f64
        };
        windows.iter().map(of_window).fold(0.0, f64::max)
    };
    let distances = (-OFF_US..=OFF_US).step_by(5_000).map(|off_us| (off_us, distance(off_us)));
    distances.min_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((0, f64::INFINITY))
}

/// What the host gave until a moment, which rises evenly within its windows: each has its end and its energy.
fn given_until(given: &[(i64, i64)], us: i64) -> f64 {
    let (mut sum, mut start_us) = (0.0, i64::MIN);
    for (end_us, energy_uj) in given {
        if *end_us > us {
            let length_us = end_us.saturating_sub(start_us) as f64;
            return sum + *energy_uj as f64 * us.saturating_sub(start_us).max(0) as f64 / length_us;
        }
        (sum, start_us) = (sum + *energy_uj as f64, *end_us);
    }
    sum
}
