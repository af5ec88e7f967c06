use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
};

use super::*;

/// GPUs that say what they are told to.
#[derive(Clone)]
struct FakeGpus(Arc<Mutex<Vec<Result<u64, i32>>>>);

impl FakeGpus {
    fn new(gpus: &[Result<u64, i32>]) -> Self {
        Self(Arc::new(Mutex::new(gpus.to_vec())))
    }

    fn set(&self, gpu: usize, energy: Result<u64, i32>) {
        self.0.lock().unwrap()[gpu] = energy;
    }
}

impl Gpus for FakeGpus {
    fn count(&self) -> u32 {
        u32::try_from(self.0.lock().unwrap().len()).unwrap()
    }

    fn energy_mj(&self, gpu: u32) -> Result<u64, NvmlError> {
        self.0.lock().unwrap()[gpu as usize].map_err(|code| NvmlError::Call { function: "fake", code })
    }
}

#[test]
fn each_gpu_with_a_counter_is_a_domain_that_is_nobodys() {
    let gpus = FakeGpus::new(&[Ok(5), Err(code::NOT_SUPPORTED), Ok(7)]);
    let mut opened = open(gpus).unwrap();
    assert_eq!(opened.source.read(), [Reading::CounterUj(5_000), Reading::CounterUj(7_000)]);
    let domains = opened.source.domains();
    let names: Vec<&str> = domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["gpu-nvidia0", "gpu-nvidia2"]);
    for domain in domains {
        assert_eq!((domain.role, domain.label, domain.socket), (Role::Unshared, Label::Measured, None));
        assert_eq!(domain.meter, Meter::Counter { range_uj: 0, unit_uj: 1000, max_watts: GPU_MAX_WATTS });
    }
    assert_eq!(opened.basis, "hardware counters of 2 of 3 NVIDIA GPUs");
}

#[test]
fn a_machine_without_a_counter_is_no_source() {
    for (gpus, expected) in [
        (&[][..], UnusableKind::Absent),
        (&[Err(code::NOT_SUPPORTED)], UnusableKind::Absent),
        (&[Err(code::NO_PERMISSION)], UnusableKind::Denied),
        (&[Err(999)], UnusableKind::Broken),
    ] {
        let refused = open(FakeGpus::new(gpus)).err().unwrap();
        assert_eq!(refused.kind, expected, "{refused}");
    }
}

#[test]
fn a_gpu_that_fails_fails_alone_and_may_come_back() {
    let gpus = FakeGpus::new(&[Ok(5), Ok(7)]);
    let mut source = open(gpus.clone()).unwrap().source;
    for (answer, expected) in [
        (Err(code::GPU_IS_LOST), FaultCause::Gone),
        (Err(code::NO_PERMISSION), FaultCause::Denied),
        (Err(999), FaultCause::Unreadable),
        (Ok(u64::MAX), FaultCause::Malformed),
    ] {
        gpus.set(1, answer);
        let readings = source.read();
        let Reading::Failed(fault) = &readings[1] else { panic!("{readings:?}") };
        assert_eq!((&readings[0], fault.cause), (&Reading::CounterUj(5_000), expected));
        gpus.set(1, Ok(8));
        assert_eq!(source.read(), [Reading::CounterUj(5_000), Reading::CounterUj(8_000)]);
    }
}

#[test]
fn a_library_that_is_not_there_is_no_complaint() {
    let refused = Library::load("/nowhere/libnvidia-ml.so.1").err().map(unusable).unwrap();
    assert_eq!(refused.kind, UnusableKind::Absent);
    assert_eq!(refused.text, "loading /nowhere/libnvidia-ml.so.1: not there: this machine has no NVIDIA driver");
}

#[test]
fn what_is_no_library_is_broken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libnvidia-ml.so.1");
    std::fs::write(&path, "not ELF").unwrap();
    let refused = Library::load(path.to_str().unwrap()).err().map(unusable).unwrap();
    assert_eq!(refused.kind, UnusableKind::Broken, "{refused}");
}

/// A shared library of this C text; `None`, with the reason, without a compiler.
fn compiled(directory: &Path, name: &str, text: &str) -> Option<PathBuf> {
    let (source, library) = (directory.join("fake.c"), directory.join(name));
    std::fs::write(&source, text).unwrap();
    let status = Command::new("gcc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    match status {
        Ok(status) if status.success() => Some(library),
        outcome => {
            joular_tests::notes::skipped(&format!("no library to load, gcc: {outcome:?}"));
            None
        }
    }
}

/// As nvml.h has them. It counts its calls into the energy, so that a call out
/// of order shows.
const FAKE_LIBRARY: &str = r#"
static int initialised;
static int device[3];
static unsigned long long reads;
int nvmlInit_v2(void) { initialised++; return 0; }
int nvmlShutdown(void) { initialised--; return 0; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 3; return initialised ? 0 : 1; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    if (!initialised) return 1;
    if (index == 1) return 15;
    *handle = &device[index];
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *mj) {
    if (!initialised) return 1;
    if (handle != &device[0] && handle != &device[2]) return 2;
    *mj = (handle == &device[2] ? 4000000000000ull : 0) + reads++;
    return 0;
}
"#;

#[test]
fn a_real_library_is_loaded_asked_and_shut_down() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compiled(directory.path(), "libfake.so", FAKE_LIBRARY) else { return };
    // Twice: what the first shut down, the second initialises again.
    for reads in [0_u64, 4] {
        let mut source = open(Library::load(path.to_str().unwrap()).unwrap()).unwrap().source;
        let names: Vec<String> = source.domains().iter().map(|domain| domain.name.clone()).collect();
        assert_eq!(names, ["gpu-nvidia0", "gpu-nvidia2"]);
        let expected = [(reads + 2) * 1000, 4_000_000_000_000_000 + (reads + 3) * 1000].map(Reading::CounterUj);
        assert_eq!(source.read(), expected);
    }
}

#[test]
fn a_library_without_the_driver_or_without_the_function_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let without_driver = FAKE_LIBRARY.replace("{ initialised++; return 0; }", "{ return 9; }");
    let too_old = FAKE_LIBRARY.replace("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage");
    for (name, text, kind, part) in [
        ("libdriver.so", without_driver, UnusableKind::Absent, "calling nvmlInit_v2: the NVIDIA driver is not loaded"),
        ("libold.so", too_old, UnusableKind::Broken, "nvmlDeviceGetTotalEnergyConsumption"),
    ] {
        let Some(path) = compiled(directory.path(), name, &text) else { return };
        let refused = Library::load(path.to_str().unwrap()).err().map(unusable).unwrap();
        assert_eq!(refused.kind, kind, "{refused}");
        assert!(refused.text.contains(part), "{refused}");
    }
}
