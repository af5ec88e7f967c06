//! Makes a calibration, and finds the one that holds for a run.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use joular_data::{
    events::RunInfo,
    model::policy::{Calibrated, PolicyChoices},
};

use super::{Failure, core_types, host::Host};
use crate::{
    calibration::{
        Calibration, CalibrationError,
        baseline::{idle_power, is_measurable},
        cores::SmtRatio,
        costs, file,
        fingerprint::{self, EnergyFingerprint, Fingerprint},
        instrument::Instrument,
        measure, show,
    },
    cli::Exit,
    clock,
    config::{Calibrate, CalibrationChoice},
    context::{Roots, settings::PowerSettings},
    energy::{self, EnergySource},
    kernel::{Sampler, cost::Statistics, cpus::CPU_ROOT, programs, roots::KernelRoots},
    messages, privileges,
    progress::Progress,
};

/// Least time for each load of cores.
const LEAST_CORE_TIME: Duration = Duration::from_secs(4);

/// Measures, keeps the result and shows it.
pub fn calibrate(options: &Calibrate, out: &mut impl Write) -> Result<Exit, Failure> {
    let mut selected = energy::select(&options.energy)?;
    let has_baselines = selected.source.domains().iter().any(is_measurable);
    let mut instrument = Instrument::start(Sampler::choose(&KernelRoots::default()).0, measure::IDLE_FREQUENCY_HZ)
        .map_err(CalibrationError::from)?;
    let statistics = Statistics::enable().ok_or(CalibrationError::Statistics)?;
    if let Err(error) = privileges::drop_unneeded(false) {
        messages::warn(&format!("all privileges are kept, because dropping those not needed failed: {error}"));
    }
    let host = Host::of_this_machine(&options.proc_root);
    let source = selected.source.as_mut();
    let cpu_root = Path::new(CPU_ROOT);
    let roots = Roots { cpu: cpu_root, sys: &options.energy.sys_root, proc: &options.proc_root };
    let fingerprint = Fingerprint {
        energy: has_baselines.then(|| EnergyFingerprint::of(source.name(), source.domains())),
        ..fingerprint_of(roots, &host, source, instrument.sampling_event())
    };
    let (idle, loaded) =
        if has_baselines { (options.duration / 2, options.duration / 2) } else { (Duration::ZERO, options.duration) };
    let (mut baselines, mut cores) = (Vec::new(), core_types::Measured::default());
    if has_baselines {
        messages::info(&format!("measuring idle power for {idle:?}, leave the machine alone; {}", selected.reason));
        let windows = measure::idle_windows(&mut instrument, source, idle).map_err(CalibrationError::from)?;
        baselines = idle_power(source.domains(), &windows).map_err(CalibrationError::from)?;
        let each = (options.duration / 5).max(LEAST_CORE_TIME);
        cores = core_types::measure(&mut instrument, source, cpu_root, each)?;
    } else {
        messages::info(&format!("no idle power is measured, because the source knows it: {}", selected.reason));
    }
    drop(instrument);
    messages::info(&format!("measuring joular-bpf's own cost for {loaded:?}, under load"));
    // Not while the machine is measured idle, which a bar would wake.
    let progress = Progress::waiting("under load");
    let mut instrument =
        Instrument::start(measure::COST_SAMPLER, measure::COST_FREQUENCY_HZ).map_err(CalibrationError::from)?;
    let batches = measure::cost_batches(&mut instrument, loaded)?;
    drop((statistics, progress));
    let made = clock::unix_micros_at(clock::monotonic_now());
    let costs = costs::costs(&batches);
    let core_types::Measured { powers: core_powers, smt } = cores;
    let calibration =
        Calibration { format_version: file::FORMAT_VERSION, made, fingerprint, baselines, costs, core_powers, smt };
    keep(options, &calibration, out)?;
    Ok(Exit::Success)
}

fn keep(options: &Calibrate, calibration: &Calibration, out: &mut impl Write) -> Result<(), CalibrationError> {
    // The usual place is the system's, any other one the user's.
    let owner = privileges::invoking_user().filter(|_| options.output != Path::new(file::DEFAULT_PATH));
    file::write(&options.output, calibration, owner)?;
    let shown = if options.json { show::write_json(out, calibration) } else { show::write_text(out, calibration) };
    match shown {
        // Whoever read it has seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(CalibrationError::Show(error)),
        _ => messages::info(&format!("calibration written to {}", options.output.display())),
    }
    Ok(())
}

/// The fingerprint of this machine and this instrument as they are now.
pub fn fingerprint_of(roots: Roots<'_>, host: &Host, source: &dyn EnergySource, sampling_event: &str) -> Fingerprint {
    let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    Fingerprint {
        cpu_model: host.cpu_model.clone(),
        cpu_identity: fingerprint::cpu_identity(&text(roots.proc.join("cpuinfo"))),
        arch: host.arch.clone(),
        online_cpus: host.online_cpus,
        sockets: host.sockets,
        smt: fingerprint::smt(&text(roots.cpu.join("smt/active"))),
        memory_gib: fingerprint::gibibytes(host.memory_bytes),
        kernel: host.kernel.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instrument: format!("{:016x}", programs::object_hash()),
        sampling_event: sampling_event.to_owned(),
        energy: Some(EnergyFingerprint::of(source.name(), source.domains())),
        settings: Some(PowerSettings::read(roots)),
    }
}

/// The calibration that a measuring run uses.
///
/// # Errors
/// A chosen file that cannot be read or does not hold. The usual one is left
/// out with a notice instead.
pub fn for_run(choice: &CalibrationChoice, now: &Fingerprint) -> Result<Option<Calibrated>, CalibrationError> {
    match choice {
        CalibrationChoice::None => Ok(None),
        CalibrationChoice::File(path) => holding(path, now).map(Some),
        CalibrationChoice::Usual => Ok(usual(Path::new(file::DEFAULT_PATH), now)),
    }
}

fn usual(path: &Path, now: &Fingerprint) -> Option<Calibrated> {
    match holding(path, now) {
        Ok(calibrated) => Some(calibrated),
        Err(CalibrationError::File(error)) if error.is_absent() => None,
        Err(error) => {
            messages::warn(&format!("going on without calibration: {error}"));
            None
        }
    }
}

/// What the choice of a calibration replaces in the policy of a recorded run.
///
/// # Errors
/// A chosen file that cannot be read or is not of the machine that was recorded.
pub fn for_replay(choice: &CalibrationChoice, run: &RunInfo) -> Result<PolicyChoices, CalibrationError> {
    let (calibration, smt_permille) = match choice {
        CalibrationChoice::Usual => (None, None),
        CalibrationChoice::None => (Some(None), None),
        CalibrationChoice::File(path) => {
            let stored = matching(path, |stored| stored.mismatches_with_run(run))?;
            tell(path, &stored.doubts(None, run.started));
            (Some(Some(stored.calibrated())), stored.smt.as_ref().and_then(SmtRatio::policy_permille))
        }
    };
    Ok(PolicyChoices { calibration, smt_permille, ..PolicyChoices::default() })
}

/// The calibration of this machine as it is now.
fn holding(path: &Path, now: &Fingerprint) -> Result<Calibrated, CalibrationError> {
    let calibration = matching(path, |stored| stored.mismatches(now))?;
    tell(path, &calibration.doubts(Some(now), clock::unix_micros_at(clock::monotonic_now())));
    Ok(calibration.calibrated())
}

fn tell(path: &Path, doubts: &[String]) {
    for doubt in doubts {
        let path = path.display();
        messages::warn(&format!(
            "calibration {path}: {doubt}: run `joular-bpf calibrate` again, or use --calibration none"
        ));
    }
}

fn matching(
    path: &Path,
    differences: impl FnOnce(&Fingerprint) -> Vec<fingerprint::Difference>,
) -> Result<Calibration, CalibrationError> {
    let calibration = file::read(path)?;
    let differences = differences(&calibration.fingerprint);
    if differences.is_empty() {
        Ok(calibration)
    } else {
        Err(CalibrationError::Mismatch { path: path.into(), differences })
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::policy::Policy;

    use super::*;
    use crate::calibration::fixture;

    /// A file with the made-up calibration.
    struct Stored(tempfile::TempDir);

    impl Stored {
        fn new() -> Self {
            let stored = Self(tempfile::tempdir().unwrap());
            file::write(&stored.path(), &fixture::calibration(), None).unwrap();
            stored
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("calibration.json")
        }

        fn chosen(&self) -> CalibrationChoice {
            CalibrationChoice::File(self.path())
        }
    }

    fn another_kernel() -> Fingerprint {
        Fingerprint { kernel: "7.0.0".into(), ..fixture::calibration().fingerprint }
    }

    #[test]
    fn a_chosen_calibration_holds_or_is_an_error() {
        let stored = Stored::new();
        let found = for_run(&stored.chosen(), &fixture::calibration().fingerprint).unwrap();
        assert_eq!(found, Some(fixture::calibration().calibrated()));
        let message = for_run(&stored.chosen(), &another_kernel()).unwrap_err().to_string();
        assert!(message.contains(r#"kernel was "6.12.0" and is "7.0.0""#), "{message}");
        let absent = CalibrationChoice::File(stored.0.path().join("absent"));
        assert!(for_run(&absent, &another_kernel()).unwrap_err().to_string().contains("absent"));
        assert_eq!(for_run(&CalibrationChoice::None, &another_kernel()).unwrap(), None);
    }

    #[test]
    fn the_usual_calibration_is_left_out_if_it_does_not_hold() {
        let stored = Stored::new();
        assert!(usual(&stored.path(), &fixture::calibration().fingerprint).is_some());
        assert_eq!(usual(&stored.path(), &another_kernel()), None);
        assert_eq!(usual(&stored.0.path().join("absent"), &another_kernel()), None);
        fs::write(stored.path(), "garbage").unwrap();
        assert_eq!(usual(&stored.path(), &fixture::calibration().fingerprint), None);
    }

    #[test]
    fn a_replay_takes_the_recordings_own_unless_told_otherwise() {
        let stored = Stored::new();
        let own = Some(Calibrated::default());
        let policy = Policy { calibration: own.clone(), smt_permille: 1_300, ..Policy::default() };
        let run = RunInfo { policy, ..fixture::run() };
        let found = |choice: &CalibrationChoice| {
            let Policy { calibration, smt_permille, .. } = for_replay(choice, &run).unwrap().over(run.policy.clone());
            (calibration, smt_permille)
        };
        assert_eq!(found(&CalibrationChoice::Usual), (own, 1_300));
        assert_eq!(found(&CalibrationChoice::None), (None, 1_300));
        assert_eq!(found(&stored.chosen()), (Some(fixture::calibration().calibrated()), 1_180));
    }

    #[test]
    fn a_replay_refuses_the_calibration_of_another_machine() {
        let run = RunInfo { cpu_model: "Other".into(), sockets: 2, ..fixture::run() };
        let error = for_replay(&Stored::new().chosen(), &run).unwrap_err();
        let CalibrationError::Mismatch { differences, .. } = &error else { panic!("{error}") };
        let names: Vec<_> = differences.iter().map(|difference| difference.what).collect();
        assert_eq!(names, ["CPU model", "number of sockets"]);
    }
}
