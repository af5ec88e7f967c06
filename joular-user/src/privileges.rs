//! Gives up what a recording does not need, once everything is loaded.
//!
//! joular-bpf runs as root beside processes that may be hostile. What remains
//! is listed here with its reason; the rest leaves the effective, permitted
//! and bounding sets, so that the attach helper cannot regain it either.

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};

/// What a recording needs, and what for.
const NEEDED: [Capability; 11] = [
    // Maps and programs; perf events of CPUs that come online.
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    // Root, memory map and namespaces of targets.
    Capability::CAP_SYS_PTRACE,
    // Files of targets and counters (0400) …
    Capability::CAP_DAC_READ_SEARCH,
    // … and the output directory of the user behind sudo, whose files are
    // given to that user.
    Capability::CAP_DAC_OVERRIDE,
    Capability::CAP_FOWNER,
    Capability::CAP_CHOWN,
    // The attach helper becomes the target's user and signals the target.
    Capability::CAP_SETUID,
    Capability::CAP_SETGID,
    Capability::CAP_KILL,
    // Kernel addresses in /proc/kallsyms.
    Capability::CAP_SYSLOG,
];

/// Above 2, which is as high as Linux itself goes, the kernels of Debian and
/// Android want CAP_SYS_ADMIN of who opens perf events. Debian's default is 3.
const PARANOID_LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";

/// Whether CAP_PERFMON is not enough for perf events on this kernel.
pub fn perf_events_need_sys_admin() -> bool {
    let level = std::fs::read_to_string(PARANOID_LEVEL).ok().and_then(|text| text.trim().parse::<i32>().ok());
    level.is_some_and(|level| level > 2)
}

/// Whether the memory of other users' processes can be read.
pub fn may_read_processes() -> bool {
    caps::has_cap(None, CapSet::Effective, Capability::CAP_SYS_PTRACE).unwrap_or(false)
}

/// Drops every other capability of this thread; to be called before there are
/// others.
pub fn drop_unneeded() -> Result<(), CapsError> {
    let mut needed: CapsHashSet = NEEDED.into_iter().collect();
    if perf_events_need_sys_admin() {
        // Not only to begin with: CPUs may come online.
        needed.insert(Capability::CAP_SYS_ADMIN);
    }
    for capability in caps::read(None, CapSet::Bounding)?.difference(&needed) {
        // Needs CAP_SETPCAP, which a profiler with file capabilities lacks:
        // what it does not hold it need not drop.
        if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            caps::drop(None, CapSet::Bounding, *capability)?;
        }
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        let kept: CapsHashSet = caps::read(None, set)?.intersection(&needed).copied().collect();
        caps::set(None, set, &kept)?;
    }
    Ok(())
}

/// Niceness of a recording. On a machine whose CPUs are all busy, the ring buffer must be
/// read before it is full.
const NICE: i32 = -10;

/// Raises the priority of this thread, and of those that it starts, if that is allowed
/// (`CAP_SYS_NICE`). A recording works without, and loses stacks earlier.
pub fn raise_priority() {
    let _allowed = rustix::process::setpriority_process(None, NICE);
}

/// User and group behind `sudo`: files belong to who ran the command.
pub fn invoking_user() -> Option<(u32, u32)> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    rustix::process::geteuid().is_root().then(|| number("SUDO_UID").zip(number("SUDO_GID"))).flatten()
}
