//! Checks what this kernel and these privileges allow, each with what to do if not.

use std::{fs, path::Path};

use joular_ebpf::abi::MAX_STACK_FRAMES;
use perf_event::{Builder, events::Hardware};

use super::{
    btf::{KernelTypes, VMLINUX_BTF},
    hinted_pages::{self, PageTables, balanced_nodes},
    lsm,
    roots::KernelRoots,
    sampler::Sampler,
};
use crate::privileges;

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it, where something can be done.
    pub advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// It works, but with less.
    Limited,
    /// joular-bpf cannot record like this: the process lacks privileges.
    MissingPrivilege,
    /// joular-bpf cannot record like this: the kernel lacks something.
    MissingFeature,
    /// It does not work as it is configured.
    Failed,
}

impl Check {
    pub fn new(name: &'static str, verdict: Verdict, found: impl Into<String>, advice: Option<&str>) -> Self {
        Self { name, verdict, found: found.into(), advice: advice.map(str::to_owned) }
    }
}

/// Whether hardware cycles can be counted: bare metal yes, most VMs no.
pub fn has_cycles() -> bool {
    Builder::new(Hardware::CPU_CYCLES).any_pid().one_cpu(0).build().is_ok()
}

/// Frames of the deepest stack that the kernel hands out.
pub(super) fn stack_limit() -> u32 {
    let most = u32::try_from(MAX_STACK_FRAMES).unwrap_or(u32::MAX);
    fs::read_to_string("/proc/sys/kernel/perf_event_max_stack")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(most)
        .min(most)
}

/// Whether process ids here are those of the kernel. The initial PID namespace
/// has a fixed inode (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
pub fn in_host_pid_namespace() -> bool {
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
}

/// All checks of the kernel side.
pub fn checks() -> Vec<Check> {
    let mut checks = vec![privileges(), pid_namespace(), kernel_version(), kernel_types(), sampling_event()];
    checks.extend(numa_balancing(&KernelRoots::default()));
    checks.extend(lsm::checks(&KernelRoots::default()));
    checks
}

/// Where the kernel moves memory between nodes, it takes the access to pages away, and the programs read such a page by the
/// kernel's page tables. The setting's first bit is for nodes of CPUs, the second one for slower memory; each marks
/// pages so.
fn numa_balancing(roots: &KernelRoots) -> Option<Check> {
    let setting = fs::read_to_string(roots.proc.join("sys/kernel/numa_balancing")).unwrap_or_default();
    let nodes = balanced_nodes(roots)?;
    if setting.trim().parse::<u32>().is_ok_and(|bits| bits == 0) {
        return None;
    }
    if PageTables::of(roots) != PageTables::default() {
        return Some(Check::new("NUMA balancing", Verdict::Good, format!("on, over {nodes} nodes"), None));
    }
    let found = format!("on, over {nodes} nodes: many stacks of JVMs may be cut (`unreadable`)");
    let advice = if hinted_pages::CAN_BE_READ {
        "let /proc/kallsyms show addresses (kernel.kptr_restrict), or record with the sysctl kernel.numa_balancing at 0"
    } else {
        "record with the sysctl kernel.numa_balancing at 0"
    };
    Some(Check::new("NUMA balancing", Verdict::Limited, found, Some(advice)))
}

fn pid_namespace() -> Check {
    if in_host_pid_namespace() {
        Check::new("PID namespace", Verdict::Good, "the host's", None)
    } else {
        let advice = "run on the host, or in a container with the host's PID namespace (`--pid=host`)";
        Check::new("PID namespace", Verdict::MissingFeature, "a container's own", Some(advice))
    }
}

fn privileges() -> Check {
    // CAP_SYS_ADMIN covers both; 38 is CAP_PERFMON, 39 CAP_BPF (linux/capability.h).
    let effective = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?.trim().to_owned();
            u64::from_str_radix(&line, 16).ok()
        })
        .unwrap_or(0);
    let has = |bit: u32| effective >> bit & 1 == 1;
    if privileges::perf_events_need_sys_admin() && !has(21) {
        let advice = "run as root, grant CAP_SYS_ADMIN, or set the sysctl kernel.perf_event_paranoid to 2";
        let found = "no CAP_SYS_ADMIN, which this kernel wants for perf events";
        return Check::new("privileges", Verdict::MissingPrivilege, found, Some(advice));
    }
    if has(21) || (has(38) && has(39)) {
        Check::new("privileges", Verdict::Good, "CAP_BPF and CAP_PERFMON", None)
    } else {
        let advice = "run as root, e.g. `sudo joular-bpf …`, or grant CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
        Check::new("privileges", Verdict::MissingPrivilege, "no CAP_BPF and CAP_PERFMON", Some(advice))
    }
}

fn kernel_version() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    kernel_of(release.trim())
}

/// Distributions bring features to older kernels, so a version alone decides nothing: whether the
/// programs load is checked next.
fn kernel_of(release: &str) -> Check {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (5, 15) {
        Check::new("kernel", Verdict::Good, release, None)
    } else {
        let advice = "Linux 5.15 or later is needed, or one with its eBPF features, as RHEL 9 has";
        Check::new("kernel", Verdict::Limited, release, Some(advice))
    }
}

fn kernel_types() -> Check {
    let advice = Some("the kernel must be built with CONFIG_DEBUG_INFO_BTF=y (all current distributions are)");
    match fs::read(Path::new(VMLINUX_BTF)) {
        Ok(bytes) => match KernelTypes::parse(&bytes).and_then(|types| types.member_offset("task_struct", "tgid")) {
            Ok(_) => Check::new("kernel types (BTF)", Verdict::Good, VMLINUX_BTF, None),
            Err(error) => Check::new("kernel types (BTF)", Verdict::MissingFeature, error.to_string(), advice),
        },
        Err(error) => {
            Check::new("kernel types (BTF)", Verdict::MissingFeature, format!("{VMLINUX_BTF}: {error}"), advice)
        }
    }
}

fn sampling_event() -> Check {
    match Sampler::choose(&KernelRoots::default()) {
        (Sampler::Timer(_), _) => {
            Check::new("sampling", Verdict::Good, "timers at random moments, while targets run", None)
        }
        (Sampler::Event, reason) => {
            let found = format!("by the event cpu-clock: {}", reason.unwrap_or_default());
            let advice = "samples come at a fixed rate, also on idle CPUs: programs that wake at fixed times may get too many or too few";
            Check::new("sampling", Verdict::Limited, found, Some(advice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balancing_matters_only_where_there_are_nodes_to_balance() {
        let limited = Some(Verdict::Limited);
        let readable = if hinted_pages::CAN_BE_READ { Some(Verdict::Good) } else { limited };
        for (setting, nodes, symbols, verdict) in [
            ("1\n", "0-1\n", "", limited),
            ("2\n", "0,2\n", "", limited),
            ("1\n", "0-1\n", "ffffffff82a00010 D page_offset_base\n", readable),
            ("1\n", "0\n", "", None),
            ("0\n", "0-7\n", "", None),
        ] {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/sys/kernel/numa_balancing", setting);
            write("proc/kallsyms", symbols);
            write("system/node/has_memory", nodes);
            let check = numa_balancing(&KernelRoots::below(root.path()));
            assert_eq!(check.map(|check| check.verdict), verdict, "{setting:?} {nodes:?}");
        }
    }

    #[test]
    fn an_old_kernel_is_no_reason_not_to_try() {
        for (release, verdict) in [
            ("6.12.0-1-amd64", Verdict::Good),
            ("5.15", Verdict::Good),
            ("5.14.0-427.el9.x86_64", Verdict::Limited),
            ("4.18.0", Verdict::Limited),
            ("", Verdict::Limited),
        ] {
            assert_eq!(kernel_of(release).verdict, verdict, "{release}");
        }
    }
}
