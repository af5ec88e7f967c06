//! Says how the processes of a service are: their memory, threads, limits and control group.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use joular_data::model::units::Pid;

use crate::procs::proc_files::ProcFiles;

/// The program's name as the kernel has it, and what it is called with.
const COMM: &str = "joular-bpf";
const SUBCOMMAND: &str = "agent";
/// The file that it reads if it is called without one.
const CONFIGURATION: &str = "/etc/joular-bpf/agent.toml";

/// Lines of `/proc/PID/status`.
const STATUS: [&str; 14] = [
    "State",
    "Uid",
    "FDSize",
    "VmPeak",
    "VmHWM",
    "VmRSS",
    "VmLck",
    "VmSwap",
    "Threads",
    "CapEff",
    "CapBnd",
    "NoNewPrivs",
    "Seccomp",
    "Cpus_allowed_list",
];
/// Files of a control group (version 2).
const GROUP: [&str; 8] = [
    "memory.current",
    "memory.peak",
    "memory.high",
    "memory.max",
    "memory.events",
    "cpu.max",
    "cpu.stat",
    "pids.current",
];

/// Processes that run as a service with this configuration file.
pub fn processes(configuration: &Path) -> Vec<Pid> {
    let files = ProcFiles::new("/proc");
    let is_it = |pid: &Pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        files.comm(*pid).is_some_and(|comm| comm.raw() == COMM) && is_service(&line, configuration)
    };
    files.pids().into_iter().filter(is_it).collect()
}

/// Whether a command line, whose words end with a zero byte, is that of a service with this configuration file.
fn is_service(line: &[u8], configuration: &Path) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let behind = words.windows(2).find_map(|two| (two[0] == b"--config").then_some(two[1]));
    let named = behind.or_else(|| words.iter().find_map(|word| word.strip_prefix(b"--config=")));
    let is_named = named.map_or(configuration == Path::new(CONFIGURATION), |named| {
        configuration.as_os_str().as_encoded_bytes() == named
    });
    words.contains(&SUBCOMMAND.as_bytes()) && is_named
}

pub(super) fn text(configuration: &Path) -> String {
    let found = processes(configuration);
    if found.is_empty() {
        return format!("no process '{COMM} {SUBCOMMAND}' runs with this configuration");
    }
    found.iter().map(|pid| one(&PathBuf::from(format!("/proc/{pid}")), Path::new("/sys/fs/cgroup"))).collect()
}

/// A process, whose files are in `proc`.
fn one(proc: &Path, groups: &Path) -> String {
    let read = |file: &str| fs::read_to_string(proc.join(file)).unwrap_or_default();
    let mut text = format!("{}\n", proc.display());
    let status = read("status");
    let is_shown = |line: &&str| line.split_once(':').is_some_and(|(name, _)| STATUS.contains(&name));
    status.lines().filter(is_shown).for_each(|line| add(&mut text, line));
    let descriptors = fs::read_dir(proc.join("fd")).map_or(0, Iterator::count);
    add(&mut text, &format!("open files: {descriptors}"));
    read("limits").lines().skip(1).for_each(|line| add(&mut text, line));
    let group = read("cgroup");
    let group = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    add(&mut text, &format!("control group: {group}"));
    for file in GROUP {
        let value = fs::read_to_string(groups.join(group.trim_start_matches('/')).join(file)).unwrap_or_default();
        if !value.is_empty() {
            add(&mut text, &format!("{file}: {}", value.trim().replace('\n', ", ")));
        }
    }
    let mut threads: Vec<PathBuf> = fs::read_dir(proc.join("task"))
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    threads.sort();
    for thread in threads {
        let read = |file: &str| fs::read_to_string(thread.join(file)).unwrap_or_default();
        // Time on CPUs and waiting for one, in nanoseconds, and turns: Documentation/scheduler/sched-stats.
        add(&mut text, &format!("thread {}: schedstat {}", read("comm").trim(), read("schedstat").trim()));
    }
    text
}

fn add(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_by_its_configuration() {
        let usual = CONFIGURATION;
        for (line, file, expected) in [
            ("joular-bpf\0agent\0", usual, true),
            ("joular-bpf\0agent\0--config\0/tmp/a.toml\0", usual, false),
            ("joular-bpf\0agent\0--config\0/tmp/a.toml\0", "/tmp/a.toml", true),
            ("joular-bpf\0agent\0--config=/tmp/a.toml\0", "/tmp/a.toml", true),
            ("joular-bpf\0agent\0", "/tmp/a.toml", false),
            ("joular-bpf\0--comm\0java\0", usual, false),
        ] {
            assert_eq!(is_service(line.as_bytes(), Path::new(file)), expected, "{line:?} {file}");
        }
    }

    #[test]
    fn a_process_is_shown_with_its_limits_group_and_threads() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("7/status", "Name:\tjoular-bpf\nVmRSS:\t  39000 kB\nThreads:\t4\n");
        write("7/limits", "Limit  Soft\nMax open files  1024\n");
        write("7/cgroup", "0::/system.slice/joular-bpf.service\n");
        write("7/task/7/comm", "joular-bpf\n");
        write("7/task/7/schedstat", "100 2 3\n");
        write("groups/system.slice/joular-bpf.service/memory.max", "1073741824\n");
        let text = one(&root.path().join("7"), &root.path().join("groups"));
        for line in [
            "  VmRSS:\t  39000 kB",
            "  Max open files  1024",
            "  control group: /system.slice/joular-bpf.service",
            "  memory.max: 1073741824",
            "  thread joular-bpf: schedstat 100 2 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("Name:"), "{text}");
    }
}
