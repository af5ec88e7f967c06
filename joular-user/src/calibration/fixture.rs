//! Makes up a calibration, and a run that it holds for.

use joular_data::{
    events::{HostIdentity, RunInfo},
    model::{
        domain::{Domain, Label, Meter},
        policy::Policy,
        units::{Pid, UnixMicros},
    },
};

use super::{
    Calibration,
    at_rest::AtRest,
    baseline::IdlePower,
    cores::SmtRatio,
    costs::{Category, Cost},
    file::FORMAT_VERSION,
    fingerprint::{EnergyFingerprint, Fingerprint},
    statistics::Summary,
};
use crate::context::settings::PowerSettings;

fn domains() -> Vec<Domain> {
    let domain = |name| Domain::new(name, Some(0), "powercap", Label::Measured, Meter::Power);
    vec![domain("package"), domain("dram")]
}

pub fn calibration() -> Calibration {
    let idle = |domain: &str, least| IdlePower {
        domain: domain.to_owned(),
        socket: Some(0),
        core: None,
        label: Label::Measured,
        microwatts: Summary { count: 18, least, typical: least, spread: 1_000 },
        at_rest: AtRest { microwatts: least, error_microwatts: 150_000 },
    };
    let cost = |category, least| Cost {
        category,
        nanoseconds: Summary { count: 20, least, typical: least + 90, spread: 12 },
        runs: 2_000,
    };
    Calibration {
        format_version: FORMAT_VERSION,
        made: UnixMicros(1_772_409_570_000_000),
        fingerprint: Fingerprint {
            cpu_model: "Example CPU".into(),
            cpu_identity: "GenuineIntel family 6 model 85 stepping 7".into(),
            arch: "x86_64".into(),
            online_cpus: 8,
            sockets: 1,
            smt: "on".into(),
            memory_gib: 16,
            kernel: "6.12.0".into(),
            version: "0.1.0".into(),
            instrument: "1234567890abcdef".into(),
            sampling_event: "cpu-clock".into(),
            energy: Some(EnergyFingerprint::of("powercap", &domains())),
            settings: Some(PowerSettings {
                governor: Some("powersave".into()),
                energy_preference: Some("balance_power".into()),
                turbo: Some("on".into()),
                idle_states: Some("POLL, C1, C6".into()),
                idle_limits: Some("none".into()),
            }),
        },
        baselines: vec![idle("package", 20_000_000), idle("dram", 2_000_000)],
        costs: vec![
            cost(Category::SampleOther, 800),
            cost(Category::SampleDeep, 4_000),
            cost(Category::SwitchBusy, 200),
            cost(Category::Clock, 30),
        ],
        core_powers: Vec::new(),
        smt: Some(SmtRatio {
            cpus: vec![2, 0, 3, 1],
            permille: Summary { count: 8, least: 1_150, typical: 1_180, spread: 40 },
        }),
    }
}

/// What a recording of that machine says.
pub fn run() -> RunInfo {
    let fingerprint = calibration().fingerprint;
    RunInfo {
        run_id: "r".into(),
        host: "h".into(),
        started: UnixMicros(0),
        boottime_offset_ns: 0,
        version: fingerprint.version,
        kernel: fingerprint.kernel,
        cpu_model: fingerprint.cpu_model,
        arch: fingerprint.arch,
        online_cpus: fingerprint.online_cpus,
        sockets: fingerprint.sockets,
        memory_bytes: fingerprint.memory_gib << 30,
        command_line: Vec::new(),
        sampling_event: fingerprint.sampling_event,
        frequency_hz: 99,
        interval_ns: 1_000_000_000,
        energy_source: "powercap".into(),
        energy_reason: String::new(),
        domains: domains(),
        policy: Policy::default(),
        profiler_pid: Pid(1),
        identity: HostIdentity::default(),
    }
}
