//! Energy events of perf, with the kernel's clock in place of energy: event
//! type 1 (software), config 0 (cpu-clock) counts nanoseconds on its CPU, so with
//! 10⁻⁹ J per count the package that sysfs is made to describe draws 1 W.

use std::{fs, path::Path, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::profiler::{Output, Run};

use crate::burner::Burner;

const LIMIT: Duration = Duration::from_secs(60);

fn describe(root: &Path) -> Result<()> {
    let power = root.join("bus/event_source/devices/power");
    fs::create_dir_all(power.join("events"))?;
    for (file, text) in [
        ("type", "1"),
        ("cpumask", "0"),
        ("events/energy-pkg", "event=0x00"),
        ("events/energy-pkg.scale", "1e-9"),
        ("events/energy-pkg.unit", "Joules"),
    ] {
        fs::write(power.join(file), format!("{text}\n"))?;
    }
    Ok(())
}

#[test]
fn events_of_perf_are_measured_to_the_boundary_and_survive_dropped_privileges() -> Result<()> {
    let sys = tempfile::tempdir()?;
    describe(sys.path())?;
    let output = Output::new()?;
    let mut burner = Burner::start(&[100])?;
    burner.begin(Duration::from_secs(20))?;
    let run = Run::new().with("--energy", "perf").with("--sys-root", sys.path()).pid(burner.pid());
    let finished = run.with("--duration", "4s").output(output.dir()).finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let kinds = output.data.rows("SELECT DISTINCT domain, socket, source, label FROM windows")?;
    let expected = serde_json::json!({"domain": "package", "socket": 0, "source": "perf", "label": "measured"});
    assert_eq!(kinds, [expected]);
    // 1 W is 1 µJ per µs, from one reading to the next: a window's length and
    // by how much later its end was read than its start.
    let off = "SELECT sum(measured_uj) / (sum(window_ns) / 1000.0) AS watts FROM windows";
    let watts = output.data.number(off)?;
    ensure!((0.97..=1.03).contains(&watts), "{watts} W instead of 1 W");
    ensure!(output.data.number("SELECT sum(attributed_uj) FROM windows")? > 0.0, "nothing was attributed");
    Ok(())
}

#[test]
fn a_machine_without_energy_events_is_named_with_its_path() -> Result<()> {
    let (sys, output) = (tempfile::tempdir()?, Output::new()?);
    let run = Run::new().argument("--all").with("--energy", "perf").with("--sys-root", sys.path());
    let finished = run.with("--duration", "2s").output(output.dir()).finish(LIMIT)?;
    ensure!(finished.code() != Some(0), "{finished:?}");
    ensure!(finished.stderr.contains(&sys.path().display().to_string()), "{}", finished.stderr);
    Ok(())
}
