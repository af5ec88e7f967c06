//! Checks what the kernel's security modules allow: lockdown, SELinux, AppArmor.

use std::fs;

use super::{
    features::{Check, Verdict},
    roots::KernelRoots,
};

/// Those that are in force; none on most hosts.
pub(super) fn checks(roots: &KernelRoots) -> Vec<Check> {
    let lockdown = fs::read_to_string(roots.kernel.join("security/lockdown")).unwrap_or_default();
    // SELinux ends it with a zero byte.
    let label = fs::read_to_string(roots.proc.join("self/attr/current")).unwrap_or_default();
    let label = label.trim_end_matches(['\0', '\n']);
    [lockdown_check(&lockdown), selinux(label), apparmor(label)].into_iter().flatten().collect()
}

/// `none [integrity] confidentiality`: kernel_lockdown(7).
fn lockdown_check(text: &str) -> Option<Check> {
    let level = text.split_once('[')?.1.split_once(']')?.0;
    match level {
        "none" => None,
        "confidentiality" => {
            let advice = "eBPF programs may not read the kernel's memory then: boot with lockdown=integrity";
            Some(Check::new("lockdown", Verdict::MissingFeature, level, Some(advice)))
        }
        _ => Some(Check::new("lockdown", Verdict::Good, level, None)),
    }
}

/// `user:role:type:level`. The type says what a process may do.
fn selinux(label: &str) -> Option<Check> {
    let kind = label.split(':').nth(2)?;
    if !kind.starts_with("container") {
        return Some(Check::new("SELinux", Verdict::Good, kind, None));
    }
    let found = format!("{kind}, which may neither load eBPF programs nor read other processes");
    let advice = "give the container the type spc_t: `--security-opt label=type:spc_t`, seLinuxOptions of a pod";
    Some(Check::new("SELinux", Verdict::Limited, found, Some(advice)))
}

/// `unconfined`, or `PROFILE (enforce)`.
fn apparmor(label: &str) -> Option<Check> {
    let (profile, mode) = label.strip_suffix(')')?.rsplit_once(" (")?;
    if mode != "enforce" && mode != "kill" {
        return Some(Check::new("AppArmor", Verdict::Good, label, None));
    }
    let found = format!("profile {profile}, which may forbid reading the memory of other processes");
    let advice =
        "run it unconfined: `--security-opt apparmor=unconfined`, appArmorProfile of a pod; or allow ptrace (read)";
    Some(Check::new("AppArmor", Verdict::Limited, found, Some(advice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_shown_with_what_it_forbids() {
        for (lockdown, label, expected) in [
            ("", "", &[][..]),
            ("[none] integrity confidentiality\n", "unconfined\n", &[]),
            ("none [integrity] confidentiality\n", "", &[("lockdown", Verdict::Good)]),
            ("none integrity [confidentiality]\n", "", &[("lockdown", Verdict::MissingFeature)]),
            ("", "unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\0", &[("SELinux", Verdict::Good)]),
            ("", "system_u:system_r:spc_t:s0\0", &[("SELinux", Verdict::Good)]),
            ("", "system_u:system_r:joular_bpf_t:s0\0", &[("SELinux", Verdict::Good)]),
            ("", "system_u:system_r:container_t:s0:c1,c2\0", &[("SELinux", Verdict::Limited)]),
            ("", "docker-default (enforce)\n", &[("AppArmor", Verdict::Limited)]),
            ("", "/usr/bin/joular-bpf (complain)\n", &[("AppArmor", Verdict::Good)]),
        ] {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in [("kernel/security/lockdown", lockdown), ("proc/self/attr/current", label)] {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let found = checks(&KernelRoots::below(root.path()));
            let found: Vec<_> = found.iter().map(|check| (check.name, check.verdict)).collect();
            assert_eq!(found, expected, "{lockdown:?} {label:?}");
        }
    }
}
