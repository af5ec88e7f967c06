//! Tests calibration on counters that we control. Idle watts are right within 5 %, or a refusal is
//! justified. Costs are plausible. A file holds for this machine and no other.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    powercap::{FakePowercap, Watts},
    process::Finished,
    profiler::{Output, Run},
    shared::Shared,
};
use serde_json::Value;

use crate::burner::Burner;

/// A window that counts as idle is at most 5 % busy: that adds 0.25 W per CPU,
/// and the fake counter's steps (5 ms of 500 ms) 0.4 W. Within the 2 W that 5 %
/// are on machines of up to six CPUs, and on larger ones if they are less busy.
const WATTS: Watts = Watts { idle: 40, per_cpu: 5 };
const DURATION: &str = "6s";
const LIMIT: Duration = Duration::from_secs(60);

/// How often to try again on a machine on which something else runs.
const TRIES: u32 = 3;

/// Fewest idle windows that a calibration needs, of its six.
const LEAST_WINDOWS: u64 = 4;

fn calibrate(file: &Path, counters: Option<&FakePowercap>) -> Result<Finished> {
    let run = Run::new().argument("calibrate").with("--output", file).with("--duration", DURATION);
    let run = match counters {
        Some(counters) => run.with("--energy", "powercap").with("--powercap-root", counters.root()),
        None => run.with("--energy", "model"),
    };
    run.finish(LIMIT)
}

/// A calibration for a model, which has nothing to measure but what programs cost.
struct Modelled {
    output: Output,
    calibration: Value,
}

impl Modelled {
    const FILE: &str = "calibration.json";

    fn get() -> Result<Arc<Self>> {
        static MODELLED: Shared<Modelled> = Shared::new();
        MODELLED.get(|| {
            let output = Output::new()?;
            let file = output.beside(Self::FILE);
            let finished = calibrate(&file, None)?;
            assert_eq!(finished.code(), Some(0), "{finished:?}");
            Ok(Self { output, calibration: read(&file)? })
        })
    }
}

fn read(file: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(file)?)?)
}

/// The numbers of "of 6 windows only 2 were at most …".
fn refused_with(finished: &Finished) -> Result<(u64, u64)> {
    let (_, rest) = finished.stderr.split_once("the machine is not idle: of ").context("another refusal")?;
    let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).take(2).collect();
    let numbers: [u64; 2] = numbers.try_into().ok().context("two numbers")?;
    Ok((numbers[0], numbers[1]))
}

#[test]
fn idle_watts_are_found_within_five_percent_or_the_machine_was_busy() -> Result<()> {
    let output = Output::new()?;
    let file = output.beside("calibration.json");
    let counters = FakePowercap::start(1, WATTS)?;
    let mut finished = calibrate(&file, Some(&counters))?;
    for _ in 1..TRIES {
        if finished.code() != Some(0) {
            finished = calibrate(&file, Some(&counters))?;
        }
    }
    if finished.code() != Some(0) {
        // Something else runs here all the time: that must be the reason.
        let (windows, quiet) = refused_with(&finished).with_context(|| format!("{finished:?}"))?;
        assert!(windows == 6 && quiet < LEAST_WINDOWS, "{finished:?}");
        assert!(!file.exists());
        return Ok(());
    }
    let calibration = read(&file)?;
    let baselines = calibration["baselines"].as_array().context("baselines")?;
    assert_eq!(baselines.len(), 1, "{calibration}");
    for figure in ["/microwatts/least", "/microwatts/typical", "/at_rest/microwatts"] {
        let microwatts = baselines[0].pointer(figure).and_then(Value::as_f64).context("a figure")?;
        let ratio = microwatts / (WATTS.idle as f64 * 1e6);
        assert!((ratio - 1.0).abs() <= 0.05, "{figure}: {ratio:.4} of {} W", WATTS.idle);
    }
    assert!(finished.stdout.contains("package of socket 0") && finished.stdout.contains("measured"), "{finished:?}");
    Ok(())
}

#[test]
fn a_busy_machine_is_refused_with_how_busy_it_was() -> Result<()> {
    let output = Output::new()?;
    let file = output.beside("calibration.json");
    let counters = FakePowercap::start(1, WATTS)?;
    let mut burner = Burner::start(&vec![60; std::thread::available_parallelism()?.get()])?;
    burner.begin(LIMIT)?;
    let finished = calibrate(&file, Some(&counters))?;
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert_eq!(refused_with(&finished)?, (6, 0), "{finished:?}");
    assert!(finished.stderr.contains("stop the load") && finished.stderr.contains("--idle-watts"), "{finished:?}");
    assert!(!file.exists(), "a refused calibration leaves no file");
    Ok(())
}

/// Least and typical nanoseconds of a category.
fn cost(calibration: &Value, category: &str) -> Result<(u64, u64)> {
    let costs = calibration["costs"].as_array().context("costs")?;
    let cost = costs.iter().find(|cost| cost["category"] == category).with_context(|| category.to_owned())?;
    let figure = |name: &str| cost["nanoseconds"][name].as_u64().with_context(|| format!("{category}: {name}"));
    Ok((figure("least")?, figure("typical")?))
}

#[test]
fn costs_are_those_of_programs_that_ran() -> Result<()> {
    let modelled = Modelled::get()?;
    let calibration = &modelled.calibration;
    assert_eq!(calibration["baselines"], serde_json::json!([]), "a model has none to measure");
    for category in
        ["sample_other", "sample_shallow", "sample_deep", "switch_quiet", "switch_busy", "boundary", "clock"]
    {
        let (least, typical) = cost(calibration, category)?;
        assert!(0 < least && least <= typical && least < 100_000, "{category}: {least} … {typical} ns");
    }
    // What more there is to do takes longer: no stack, a few frames, a hundred.
    let [(other, _), (shallow, _), (deep, _)] =
        [cost(calibration, "sample_other")?, cost(calibration, "sample_shallow")?, cost(calibration, "sample_deep")?];
    assert!(other < shallow && shallow < deep, "{other} < {shallow} < {deep} ns");
    Ok(())
}

/// Records a second with a calibration.
fn record(calibration: &Path, output: &Output, pid: u32) -> Result<Finished> {
    let run = Run::new().with("--energy", "model").with("--calibration", calibration).with("--duration", "1s");
    run.pid(pid).output(output.dir()).finish(LIMIT)
}

#[test]
fn a_recording_uses_what_was_found_and_refuses_what_is_not_of_its_kernel() -> Result<()> {
    let (modelled, output) = (Modelled::get()?, Output::new()?);
    let file = modelled.output.beside(Modelled::FILE);
    let burner = Burner::start(&[1])?;
    let finished = record(&file, &output, burner.pid())?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let calibration = &modelled.calibration;
    let (clock_ns, _) = cost(calibration, "clock")?;
    let (busy_ns, _) = cost(calibration, "switch_busy")?;
    let (quiet_ns, _) = cost(calibration, "switch_quiet")?;
    let rows = output.data.rows("SELECT calibration FROM runs")?;
    let used: Value = serde_json::from_str(rows[0]["calibration"].as_str().context("a calibration was used")?)?;
    assert_eq!(used["costs"]["switch_ns"], busy_ns.min(quiet_ns) - clock_ns, "{used}");

    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let edited = fs::read_to_string(&file)?.replace(kernel.trim(), "5.15.0-edited");
    let (other, elsewhere) = (Output::new()?, output.beside("elsewhere.json"));
    fs::write(&elsewhere, edited)?;
    let finished = record(&elsewhere, &other, burner.pid())?;
    assert_eq!(finished.code(), Some(2), "{finished:?}");
    let expected = format!("kernel was \"5.15.0-edited\" and is \"{}\"", kernel.trim());
    assert!(finished.stderr.contains(&expected), "{}", finished.stderr);
    Ok(())
}
