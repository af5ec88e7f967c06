//! Gives up the privileges that a recording does not need, once everything is loaded.
//!
//! joular-bpf runs as root beside processes that may be hostile. What remains is listed here with
//! its reason; the rest leaves the effective, permitted and bounding sets, so that the attach
//! helper cannot regain it either. [`lent`] is about copies of the program that have more rights than their users.

pub mod lent;

use rustix::{
    io,
    thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        remove_capability_from_bounding_set, set_capabilities,
    },
};

/// What a recording needs, and what for.
const NEEDED: [CapabilitySet; 12] = [
    // Maps and programs; perf events of CPUs that come online.
    CapabilitySet::BPF,
    CapabilitySet::PERFMON,
    // Root, memory map and namespaces of targets.
    CapabilitySet::SYS_PTRACE,
    // Files that a target has mapped and that were deleted or replaced, such as those of a JDK that
    // was upgraded, or that its paths do not lead to.
    CapabilitySet::CHECKPOINT_RESTORE,
    // Files of targets and counters (0400) …
    CapabilitySet::DAC_READ_SEARCH,
    // … and the output directory of the user behind sudo, whose files are
    // given to that user.
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::CHOWN,
    // The attach helper becomes the target's user and signals the target.
    CapabilitySet::SETUID,
    CapabilitySet::SETGID,
    CapabilitySet::KILL,
    // Kernel addresses in /proc/kallsyms.
    CapabilitySet::SYSLOG,
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
    capabilities(None).is_ok_and(|held| held.effective.contains(CapabilitySet::SYS_PTRACE))
}

/// Drops every other capability of this thread; must be called before there are other threads. `keep_sys_admin`: the
/// recording needs CAP_SYS_ADMIN for more than perf events.
pub fn drop_unneeded(keep_sys_admin: bool) -> io::Result<()> {
    let mut needed: CapabilitySet = NEEDED.into_iter().collect();
    if keep_sys_admin || perf_events_need_sys_admin() {
        // Not only to begin with: CPUs may come online.
        needed |= CapabilitySet::SYS_ADMIN;
    }
    let held = capabilities(None)?;
    // Needs CAP_SETPCAP, which a profiler with file capabilities lacks: what it
    // does not hold it need not drop.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in unneeded_and_bounding(needed) {
            remove_capability_from_bounding_set(capability)?;
        }
    }
    set_capabilities(
        None,
        CapabilitySets { effective: held.effective & needed, permitted: held.permitted & needed, ..held },
    )
}

/// By number, because a newer kernel may have some without a name here. The first one that it
/// refuses is beyond those that it knows.
fn unneeded_and_bounding(needed: CapabilitySet) -> impl Iterator<Item = CapabilitySet> {
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    all.map_while(|capability| Some((capability, capability_is_in_bounding_set(capability).ok()?)))
        .filter(move |(capability, is_bounding)| *is_bounding && !needed.contains(*capability))
        .map(|(capability, _)| capability)
}

/// Niceness of a recording. On a machine whose CPUs are all busy, the ring buffer must be
/// read before it is full.
const NICE: i32 = -10;

/// Raises the priority of this thread, and of those that it starts, if that is allowed
/// (`CAP_SYS_NICE`). A recording works without, and loses stacks earlier.
pub fn raise_priority() {
    let _allowed = rustix::process::setpriority_process(None, NICE);
}

/// Gives this thread, and those that it starts, the priority of other programs: only reading the ring buffer is urgent.
pub fn ordinary_priority() {
    let _lowered = rustix::process::setpriority_process(None, 0);
}

/// The other end: what runs only when nothing else wants to.
const LOWEST: i32 = 19;

/// Lowers the priority of this thread to the lowest, for disks as well: they go by it.
pub fn lower_priority() {
    let _lowered = rustix::process::setpriority_process(None, LOWEST);
}

/// User and group behind `sudo`: files belong to who ran the command. Only root was called by `sudo`: of anyone else the
/// variables are their own.
pub fn invoking_user() -> Option<(u32, u32)> {
    // The last number means nobody to the kernel: who becomes it stays as before.
    let number = |name: &str| std::env::var(name).ok()?.parse().ok().filter(|id| *id != u32::MAX);
    rustix::process::getuid().is_root().then(|| number("SUDO_UID").zip(number("SUDO_GID"))).flatten()
}
