//! Finds the core types of this machine for a run, and measures them and their hyper-threads for a calibration.

use std::{fs, path::Path, time::Duration};

use joular_data::{events::RunInfo, model::cores::CoreType};

use crate::{
    calibration::{
        CalibrationError,
        baseline::IdleWindow,
        cores::{self, CorePower, SmtRatio, Steps},
        file,
        fingerprint::Fingerprint,
        instrument::Instrument,
        measure,
        trainer::{Load, Trainer},
    },
    config::{CalibrationChoice, MemoryBy},
    energy::EnergySource,
    kernel::{
        core_types::{self, CoreKind},
        cpus,
    },
    messages,
};

/// What a run's division of CPU time takes from the calibration that holds for it.
#[derive(Debug, Default)]
pub struct Cores {
    /// The core types that a run divides by, with their coefficients.
    pub types: Vec<CoreType>,
    /// As [`joular_data::model::policy::Policy::smt_permille`]; `None`: not measured.
    pub smt_permille: Option<u32>,
}

/// Why a calibration does not hold has been said already.
pub fn for_run(cpu_root: &Path, per_core: bool, choice: &CalibrationChoice, now: &Fingerprint) -> Cores {
    let mut types = core_types::types(cpu_root, per_core);
    let path = match choice {
        CalibrationChoice::None => None,
        CalibrationChoice::Usual => Some(Path::new(file::DEFAULT_PATH)),
        CalibrationChoice::File(path) => Some(path.as_path()),
    };
    let stored =
        path.and_then(|path| file::read(path).ok()).filter(|stored| stored.fingerprint.mismatches(now).is_empty());
    let Some(stored) = stored else { return Cores { types, smt_permille: None } };
    cores::apply(&mut types, &stored.core_powers);
    Cores { types, smt_permille: stored.smt.as_ref().and_then(SmtRatio::policy_permille) }
}

/// Divides the domains of a run by these types, and those of memory as is asked.
pub fn divide(run: &mut RunInfo, types: &[CoreType], memory_by: MemoryBy) {
    run.domains.iter_mut().for_each(|domain| domain.of_core_types(types));
    match memory_by.apply(&mut run.domains) {
        Ok(None) => {}
        Ok(Some(said)) => {
            messages::info(&said);
            run.energy_reason = format!("{}; {said}", run.energy_reason);
        }
        Err(none) => messages::warn(&none.to_string()),
    }
}

/// What was measured of cores.
#[derive(Debug, Default)]
pub struct Measured {
    /// Empty unless the processor is hybrid and all types could be measured.
    pub powers: Vec<CorePower>,
    /// Of the first type that has hyper-threads.
    pub smt: Option<SmtRatio>,
}

/// Loads cores of each type of a hybrid processor, and both hyper-threads of cores that have two.
///
/// # Errors
/// If a load cannot be started or a window not be passed.
pub fn measure(
    instrument: &mut Instrument,
    source: &mut dyn EnergySource,
    cpu_root: &Path,
    time: Duration,
) -> Result<Measured, CalibrationError> {
    let (mut kinds, online) = (core_types::kinds(cpu_root), cpus::online(cpu_root));
    let is_hybrid = !kinds.is_empty();
    if !is_hybrid {
        kinds.push(CoreKind { name: "core".to_owned(), cpus: online.iter().map(|cpu| cpu.id).collect() });
    }
    let all = Steps::of(&kinds, &online);
    let is_whole = all.len() == kinds.len();
    let mut measured = Measured::default();
    for steps in all.into_iter().filter(|steps| is_hybrid && is_whole || !steps.threads.is_empty()) {
        let mut load = |cpus: &[u32]| -> Result<(Vec<IdleWindow>, u64), CalibrationError> {
            let shown = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let name = &steps.name;
            messages::info(&format!("measuring {name} CPUs under load for {time:?}: {shown}: leave the machine alone"));
            let trainer = Trainer::start(&Load::SpinOn { cpus: cpus.to_vec() })?;
            let windows = measure::idle_windows(instrument, source, time)?;
            let kilohertz = cpus.last().map_or(0, |cpu| frequency_khz(cpu_root, *cpu));
            drop(trainer);
            Ok((windows, kilohertz))
        };
        let (first, _) = load(&steps.first)?;
        let (cores, kilohertz) = load(&steps.cores)?;
        let threads = if steps.threads.is_empty() { Vec::new() } else { load(&steps.threads)?.0 };
        let domains = source.domains();
        let Some(of_core) = cores::added_cpu_microwatts(domains, &first, &cores) else {
            messages::warn(&format!("{} CPUs: too few certain windows: they are not calibrated", steps.name));
            measured.powers.clear();
            break;
        };
        if measured.smt.is_none() {
            let of_thread = cores::added_cpu_microwatts(domains, &cores, &threads);
            let permille = of_thread.and_then(|of_thread| cores::smt_permille(of_core, of_thread));
            measured.smt = permille.map(|permille| SmtRatio { cpus: steps.threads, permille });
        }
        if is_hybrid && is_whole {
            measured.powers.push(CorePower { name: steps.name, cpus: steps.cores, microwatts: of_core, kilohertz });
        }
    }
    Ok(measured)
}

/// 0 if the kernel does not say.
fn frequency_khz(cpu_root: &Path, cpu: u32) -> u64 {
    let path = cpu_root.join(format!("cpu{cpu}/cpufreq/scaling_cur_freq"));
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use joular_data::model::{
        cores::CoreBasis,
        domain::{self, Domain, Label, Meter},
    };

    use super::*;
    use crate::calibration::{fixture, statistics::Summary};

    /// A hybrid machine of two CPUs.
    fn machine() -> (tempfile::TempDir, std::path::PathBuf) {
        let devices = tempfile::tempdir().unwrap();
        let root = devices.path().join("system/cpu");
        for (path, content) in [("system/cpu/online", "0-1"), ("cpu_core/cpus", "0"), ("cpu_atom/cpus", "1")] {
            let path = devices.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        (devices, root)
    }

    #[test]
    fn a_run_takes_coefficients_of_a_calibration_that_holds_and_of_no_other() {
        let (directory, root) = machine();
        let power = |name: &str, typical| CorePower {
            name: name.into(),
            cpus: vec![0],
            microwatts: Summary { count: 9, least: typical, typical, spread: 0 },
            kilohertz: 0,
        };
        let core_powers = vec![power("performance", 8_000_000), power("efficiency", 2_000_000)];
        let stored = crate::calibration::Calibration { core_powers, ..fixture::calibration() };
        let path = directory.path().join("calibration.json");
        file::write(&path, &stored, None).unwrap();
        let now = &stored.fingerprint;
        let other = Fingerprint { kernel: "other".into(), ..now.clone() };
        let choice = CalibrationChoice::File(path);
        let found = |choice, now| {
            let Cores { types, smt_permille } = for_run(&root, false, choice, now);
            (types.iter().map(|of| (of.time_permille, of.basis)).collect::<Vec<_>>(), smt_permille)
        };
        let assumed = (vec![(1_000, CoreBasis::Assumed); 2], None);
        let calibrated = vec![(1_000, CoreBasis::Calibrated), (250, CoreBasis::Calibrated)];
        assert_eq!(found(&choice, now), (calibrated, Some(1_180)));
        assert_eq!(found(&choice, &other), assumed);
        assert_eq!(found(&CalibrationChoice::None, now), assumed);
    }

    #[test]
    fn counters_are_divided_by_core_types_and_models_are_not() {
        let (_directory, root) = machine();
        let types = core_types::types(&root, false);
        let package = Domain::new("package", Some(0), "perf", Label::Measured, Meter::Power);
        let core = Domain { core: Some(0), ..package.clone() };
        let model = Domain::modelled("cpu", None, "model", Meter::BusyPower);
        let divided = |domains: &[Domain], types: &[CoreType]| {
            let mut run = RunInfo { domains: domains.to_vec(), ..RunInfo::default() };
            divide(&mut run, types, MemoryBy::Time);
            run.domains
        };
        let found = divided(&[package.clone(), core.clone(), model.clone()], &types);
        assert_eq!(domain::core_types(&found[..1]), types);
        assert_eq!(found[1..], [core, model]);
        assert_eq!(divided(std::slice::from_ref(&package), &[]), [package]);
    }
}
