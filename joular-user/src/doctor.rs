//! Checks everything a recording needs beforehand, for `joular-bpf doctor`.

use std::{
    io::{Result, Write},
    path::Path,
};

use joular_data::{
    events::Runtime,
    model::{
        counter::Counter,
        domain::{Domain, Label, Update},
        units::Pid,
    },
    text::{escape_lines, harmless_json},
};
use serde::Serialize;

use crate::{
    calibration::file,
    cli::Exit,
    config::{DEFAULT_INTERVAL, SHORTEST_INTERVAL, duration::nanoseconds},
    energy::{self, EnergyOptions, watch},
    kernel::{
        LoadOptions, Programs, Remedy, Sampler, Told, core_types, counters,
        cpus::CPU_ROOT,
        features::{self, Check, Verdict},
        io,
        roots::KernelRoots,
        sampler::TIMERS_REFUSED,
    },
    privileges,
    procs::{
        maps::{MappingKind, Maps},
        namespaces::open_mapped,
        proc_files::ProcFiles,
    },
};

#[derive(Serialize)]
struct Row<'a> {
    check: &'a str,
    verdict: &'static str,
    found: &'a str,
    advice: Option<&'a str>,
}

/// Runs every check of this host.
pub fn checks(proc_root: &Path, options: &EnergyOptions) -> Vec<Check> {
    let mut checks = features::checks();
    if checks.iter().all(|check| matches!(check.verdict, Verdict::Good | Verdict::Limited)) {
        checks.push(programs());
        checks.push(moved_bytes());
    }
    checks.extend(energy_source(options));
    checks.extend(cores(options));
    checks.push(counters());
    checks.push(java_processes(proc_root));
    checks.push(foreign_memory());
    checks.push(mapped_files());
    checks
}

/// Writes what checks found; the exit code is the one a recording would end with.
pub fn write(out: &mut impl Write, checks: &[Check], json: bool) -> Result<Exit> {
    if json {
        write_json(out, checks)?
    } else {
        write_text(out, checks)?
    }
    Ok(exit(checks))
}

fn exit(checks: &[Check]) -> Exit {
    let has = |verdict| checks.iter().any(|check| check.verdict == verdict);
    if has(Verdict::MissingPrivilege) {
        Exit::Privileges
    } else if has(Verdict::MissingFeature) {
        Exit::KernelFeature
    } else if has(Verdict::Failed) {
        Exit::Failure
    } else {
        Exit::Success
    }
}

/// Loads the programs and unloads them again.
fn programs() -> Check {
    let options = options(false);
    let chosen = options.sampler.name();
    match Programs::load(options) {
        Ok(loaded) if loaded.programs.event_name() != chosen => {
            let found = format!("they load and pass the verifier, but {TIMERS_REFUSED}");
            Check::new("eBPF programs", Verdict::Limited, found, Some("samples are taken by the event cpu-clock"))
        }
        Ok(_) => Check::new("eBPF programs", Verdict::Good, "they load and pass the verifier", None),
        Err(error) => {
            let verdict =
                if error.remedy() == Remedy::Privileges { Verdict::MissingPrivilege } else { Verdict::MissingFeature };
            Check::new("eBPF programs", verdict, error.to_string(), None)
        }
    }
}

/// What `--io` can count here.
fn moved_bytes() -> Check {
    let name = "moved bytes (--io)";
    match Programs::load(options(true)) {
        Ok(loaded) => {
            let missing = loaded.programs.io().map(io::Programs::missing).unwrap_or_default();
            if !missing.is_empty() {
                let found = format!("without those of {}", missing.join(", "));
                Check::new(name, Verdict::Limited, found, Some("--io counts the others"))
            } else if loaded.programs.io().is_some_and(io::Programs::is_at_tracepoints) {
                let found = "at tracepoints, because this kernel lets no program be put on its functions";
                Check::new(name, Verdict::Limited, found, Some("docs/io.md says what that changes"))
            } else {
                Check::new(name, Verdict::Good, "of sockets, files and devices", None)
            }
        }
        Err(error) => Check::new(name, Verdict::Limited, error.to_string(), Some("record without --io")),
    }
}

fn options(io: bool) -> LoadOptions {
    LoadOptions {
        counters: Vec::new(),
        allocations: false,
        io,
        sampler: Sampler::choose(&KernelRoots::default()).0,
        frequency_hz: 99,
        interval_ns: 1_000_000_000,
        all_targets: false,
        told: Told::default(),
        log: false,
        cpu_root: CPU_ROOT.into(),
        per_core: false,
        cycles: None,
    }
}

fn energy_source(options: &EnergyOptions) -> Vec<Check> {
    match energy::select(options) {
        Ok(mut selected) => {
            let updates = watch::watch(&mut [selected.source.as_mut()]).concat();
            let window_ns = nanoseconds(DEFAULT_INTERVAL);
            let domains = watch::noted(selected.source.domains(), &updates, window_ns);
            let found = energy_found(&domains, selected.reason, window_ns);
            [found].into_iter().chain(window_length(&domains)).collect()
        }
        Err(error) => vec![Check::new("energy", Verdict::MissingFeature, error.to_string(), None)],
    }
}

/// How short windows may be; `None`: it is not known how often counters advance, or none is measured.
fn window_length(domains: &[Domain]) -> Option<Check> {
    let shortest_ns = domains.iter().filter_map(Domain::update).map(Update::shortest_window_ns).max()?;
    let shortest_ns = shortest_ns.max(nanoseconds(SHORTEST_INTERVAL));
    // As people write it: two digits, and never shorter.
    let shortest_ms = shortest_ns.div_ceil(10_000_000) * 10;
    let found = format!("counters are plainly measured in windows of {shortest_ms} ms and more");
    let advice =
        "an --interval shorter than the turns that programs take divides their energy more exactly (docs/watts.md)";
    Some(Check::new("length of windows", Verdict::Good, found, Some(advice)))
}

/// What recordings with windows of this length would measure with.
fn energy_found(domains: &[Domain], reason: String, window_ns: u64) -> Check {
    let is = |label| move |domain: &Domain| domain.label == label;
    let limited = domains.iter().all(is(Label::Modelled)) || domains.iter().any(is(Label::MeasuredCoarsely));
    let slowest = domains.iter().filter_map(Domain::update).max_by_key(|update| update.interval_us);
    let advance = slowest.map(|update| format!("; counters advance every {update}")).unwrap_or_default();
    let verdict = if limited { Verdict::Limited } else { Verdict::Good };
    Check::new("energy", verdict, format!("{reason}{advance}"), watch::notice(domains, window_ns).as_deref())
}

/// Of a hybrid processor only.
fn cores(options: &EnergyOptions) -> Option<Check> {
    let types = core_types::types(&options.sys_root.join("devices/system/cpu"), false);
    if types.is_empty() {
        return None;
    }
    let names: Vec<String> = types.iter().map(|of| format!("{} {} CPUs", of.cpus.len(), of.name)).collect();
    let found = format!("hybrid: {}", names.join(", "));
    let is_calibrated = file::read(Path::new(file::DEFAULT_PATH)).is_ok_and(|stored| !stored.core_powers.is_empty());
    Some(if is_calibrated {
        Check::new("cores", Verdict::Good, format!("{found}; calibrated"), None)
    } else {
        let advice = "run `joular-bpf calibrate`; until then a second of each counts the same";
        Check::new("cores", Verdict::Limited, format!("{found}; what each draws is not known"), Some(advice))
    })
}

/// What `--counters` can count here.
fn counters() -> Check {
    let absent: Vec<Counter> = counters::absent(&Counter::ALL).collect();
    let named =
        |counters: &mut dyn Iterator<Item = Counter>| counters.map(Counter::name).collect::<Vec<_>>().join(", ");
    let present = named(&mut Counter::ALL.into_iter().filter(|counter| !absent.contains(counter)));
    let found = match absent.len() {
        0 => present,
        _ => format!("{present}; not on this machine: {}", named(&mut absent.into_iter())),
    };
    Check::new("counters", Verdict::Good, found, None)
}

fn java_processes(proc_root: &Path) -> Check {
    let files = ProcFiles::new(proc_root);
    let jvms = files
        .pids()
        .into_iter()
        .filter_map(|pid| files.process(pid))
        .filter(|process| matches!(process.runtime, Runtime::Jvm { .. }))
        .count();
    let found = match jvms {
        0 => "none running now; those that start later are found too".to_owned(),
        count => format!("{count} running"),
    };
    Check::new("JVMs", Verdict::Good, found, None)
}

/// Checks access to other processes' memory: stacks and names of a JVM are in it.
fn foreign_memory() -> Check {
    let name = "memory of processes";
    if privileges::may_read_processes() {
        return Check::new(name, Verdict::Good, "CAP_SYS_PTRACE", None);
    }
    let advice = "run as root or grant CAP_SYS_PTRACE: without it stacks and names of other users' JVMs are missing";
    Check::new(name, Verdict::MissingPrivilege, "CAP_SYS_PTRACE is missing", Some(advice))
}

/// Opens a file by a mapping of this very process: the kernel asks for the same privilege as for any other, and so may a
/// security module.
fn mapped_files() -> Check {
    let name = "mapped files";
    let (proc_root, pid) = (Path::new("/proc"), Pid(std::process::id()));
    let maps = Maps::read(proc_root, pid).unwrap_or_default();
    let Some(mapping) = maps.iter().find(|mapping| mapping.kind == MappingKind::File) else {
        return Check::new(name, Verdict::Good, "this program has none", None);
    };
    let Err(error) = open_mapped(proc_root, pid, mapping, u64::MAX) else {
        return Check::new(name, Verdict::Good, "they can be opened, whatever became of their names", None);
    };
    let advice = "grant CAP_CHECKPOINT_RESTORE; under SELinux, load the policy of the package: without it code has no \
                  names, and JVMs are not understood, where a file cannot be opened by its name";
    Check::new(name, Verdict::Limited, error.to_string(), Some(advice))
}

const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "ok",
        Verdict::Limited => "limited",
        Verdict::MissingPrivilege | Verdict::MissingFeature | Verdict::Failed => "FAILS",
    }
}

fn write_text(out: &mut impl Write, checks: &[Check]) -> Result<()> {
    for check in checks {
        let found = escape_lines(&check.found);
        writeln!(out, "{:<8} {:<20} {found}", verdict_name(check.verdict), check.name)?;
        if let Some(advice) = &check.advice {
            writeln!(out, "{:29} → {advice}", "")?;
        }
    }
    Ok(())
}

fn write_json(out: &mut impl Write, checks: &[Check]) -> Result<()> {
    let rows: Vec<Row<'_>> = checks
        .iter()
        .map(|check| Row {
            check: check.name,
            verdict: verdict_name(check.verdict),
            found: &check.found,
            advice: check.advice.as_deref(),
        })
        .collect();
    writeln!(out, "{}", harmless_json(&serde_json::to_string_pretty(&rows)?))
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::Meter;

    use super::*;

    fn check(verdict: Verdict) -> Check {
        Check::new("x", verdict, "found", Some("do this"))
    }

    #[test]
    fn the_worst_check_decides_the_exit_code() {
        for (verdicts, expected) in [
            (vec![Verdict::Good, Verdict::Limited], Exit::Success),
            (vec![Verdict::MissingFeature, Verdict::Good], Exit::KernelFeature),
            (vec![Verdict::MissingFeature, Verdict::MissingPrivilege], Exit::Privileges),
            (vec![Verdict::Good, Verdict::Failed], Exit::Failure),
        ] {
            let checks: Vec<Check> = verdicts.into_iter().map(check).collect();
            assert_eq!(exit(&checks), expected);
        }
    }

    #[test]
    fn the_shortest_windows_are_those_in_which_the_slowest_counter_is_plainly_measured() {
        let counter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1 };
        let domain = |meter| Domain::new("package", None, "powercap", Label::Measured, meter);
        let watched = |interval_us| {
            let update = Update { interval_us, is_least: false };
            domain(Meter::WatchedCounter { range_uj: 0, unit_uj: 1, max_watts: 1, update })
        };
        let found = |domains: &[Domain]| window_length(domains).map(|check| check.found);
        assert_eq!(found(&[domain(counter)]), None);
        for (domains, milliseconds) in [
            (vec![watched(1_000)], " 100 ms"),
            (vec![watched(2_010)], " 110 ms"),
            (vec![watched(1_000), watched(8_000)], " 400 ms"),
        ] {
            assert!(found(&domains).unwrap().contains(milliseconds), "{:?}", found(&domains));
        }
    }

    #[test]
    fn a_failed_check_says_what_to_do() {
        let mut out = Vec::new();
        write_text(&mut out, &[check(Verdict::MissingFeature)]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("FAILS") && text.contains("→ do this"), "{text}");
    }
}
