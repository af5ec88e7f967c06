//! Finds the core types of this machine for a run, and measures them for a calibration.

use std::{fs, path::Path, time::Duration};

use joular_data::{events::RunInfo, model::cores::CoreType};

use crate::{
    calibration::{
        CalibrationError,
        baseline::IdleWindow,
        cores::{self, CorePower},
        file,
        fingerprint::Fingerprint,
        instrument::Instrument,
        measure,
        trainer::{Load, Trainer},
    },
    config::{CalibrationChoice, MemoryBy},
    energy::EnergySource,
    kernel::core_types::{self, CoreKind},
    messages,
};

/// The core types that a run divides by, with the coefficients of the calibration that holds for it.
/// Why a calibration does not hold has been said already.
pub fn for_run(cpu_root: &Path, per_core: bool, choice: &CalibrationChoice, now: &Fingerprint) -> Vec<CoreType> {
    let mut types = core_types::types(cpu_root, per_core);
    let path = match choice {
        CalibrationChoice::None => None,
        CalibrationChoice::Usual => Some(Path::new(file::DEFAULT_PATH)),
        CalibrationChoice::File(path) => Some(path.as_path()),
    };
    if types.is_empty() {
        return types;
    }
    let stored =
        path.and_then(|path| file::read(path).ok()).filter(|stored| stored.fingerprint.mismatches(now).is_empty());
    cores::apply(&mut types, &stored.map(|stored| stored.core_powers).unwrap_or_default());
    types
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

/// What one busy CPU of each type draws above idle; empty unless the processor is hybrid and all types
/// could be measured.
///
/// # Errors
/// If a load cannot be started or a window not be passed.
pub fn measure(
    instrument: &mut Instrument,
    source: &mut dyn EnergySource,
    idle: &[IdleWindow],
    cpu_root: &Path,
    time: Duration,
) -> Result<Vec<CorePower>, CalibrationError> {
    let mut powers = Vec::new();
    for CoreKind { name, cpus } in core_types::kinds(cpu_root) {
        // The last one, because the first serves most interrupts.
        let Some(cpu) = cpus.last().copied() else { continue };
        messages::info(&format!("measuring CPU {cpu} ({name}) under load for {time:?}, leave the machine alone"));
        let trainer = Trainer::start(Load::SpinOn { cpu })?;
        let loaded = measure::idle_windows(instrument, source, time)?;
        let kilohertz = frequency_khz(cpu_root, cpu);
        drop(trainer);
        match cores::busy_cpu_microwatts(source.domains(), idle, &loaded) {
            Some(microwatts) => powers.push(CorePower { name, cpu, microwatts, kilohertz }),
            None => {
                messages::warn(&format!("CPU {cpu} ({name}): too few certain windows: its type is not calibrated"));
                return Ok(Vec::new());
            }
        }
    }
    Ok(powers)
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
            cpu: 0,
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
            let types = for_run(&root, false, choice, now);
            types.iter().map(|of| (of.time_permille, of.basis)).collect::<Vec<_>>()
        };
        let assumed = [(1_000, CoreBasis::Assumed); 2];
        assert_eq!(found(&choice, now), [(1_000, CoreBasis::Calibrated), (250, CoreBasis::Calibrated)]);
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
