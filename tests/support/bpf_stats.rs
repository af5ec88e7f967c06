//! Reads what the kernel counts of a profiler's eBPF programs: runs, and nanoseconds in them.

use std::{collections::BTreeMap, fs, os::fd::OwnedFd};

use anyhow::{Context as _, Result};
use aya::{
    programs::loaded_programs,
    sys::{Stats, enable_stats},
};

use crate::profiler::Profiler;

/// The kernel counts while this lives.
pub struct BpfStats {
    _enabled: OwnedFd,
}

impl BpfStats {
    pub fn enable() -> Result<Self> {
        Ok(Self {
            _enabled: enable_stats(Stats::RunTime).context("having the kernel count the time of eBPF programs")?,
        })
    }
}

/// What `/proc/PID/fdinfo` says about one program.
#[derive(Clone, Default)]
pub struct Program {
    /// At most 15 bytes of it, which the kernel keeps.
    pub name: String,
    /// Of `enum bpf_prog_type`.
    pub kind: u32,
    pub runs: u64,
    pub run_time_ns: u64,
}

/// The programs that the profiler holds, by their ids.
pub fn programs(profiler: &Profiler) -> Result<BTreeMap<u64, Program>> {
    let names: BTreeMap<u64, String> = loaded_programs()
        .flatten()
        .map(|program| (program.id().into(), program.name_as_str().unwrap_or_default().to_owned()))
        .collect();
    let dir = format!("/proc/{}/fdinfo", profiler.pid());
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("listing {dir}"))? {
        // A descriptor may be closed between listing and reading.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        };
        if let (Some(id), Some(kind), Some(runs), Some(run_time_ns)) =
            (field("prog_id"), field("prog_type"), field("run_cnt"), field("run_time_ns"))
        {
            let name = names.get(&id).cloned().unwrap_or_default();
            found.insert(id, Program { name, kind: u32::try_from(kind)?, runs, run_time_ns });
        }
    }
    Ok(found)
}
