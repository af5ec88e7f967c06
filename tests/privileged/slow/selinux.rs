//! Tests the service's policy for SELinux on a Debian that enforces it, with its own kernel, in a virtual machine: the
//! service does what it does elsewhere, in a domain of its own, and that domain may not do more. `tests/fixtures/selinux.sh`
//! is what the administrator does.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use joular_tests::{debian, initramfs::Initramfs, notes, paths};

use super::debian_package::{machine_of, needed, said};

/// An emulated machine takes minutes each time that it translates the policy; on a loaded one many.
const LIMIT: Duration = Duration::from_secs(2700);
const ARGUMENTS: [&str; 2] = ["-append", "console=ttyS0 quiet panic=-1 security=selinux selinux=1 enforcing=1"];

/// The file system that the kernel starts with has one label for all files: another one gets labels, and is started.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/sbin:/usr/bin
mount -t tmpfs -o mode=755,size=75% tmpfs /mnt
for path in /*; do [ "$path" = /mnt ] || cp -a "$path" /mnt; done
mkdir -p /mnt/mnt /mnt/proc
mount -t proc proc /mnt/proc
chroot /mnt load_policy -i
chroot /mnt setfiles -F /etc/selinux/default/contexts/files/file_contexts /
exec switch_root /mnt /usr/lib/systemd/systemd < /dev/console > /dev/console 2>&1
"#;

/// The administrator's shell is not confined.
const SHELL: &str = "[Service]\nSELinuxContext=system_u:system_r:unconfined_t:s0\n";

/// Of stacks, in percent, that are complete. The first windows of each recording have few, and here last for seconds: 70 were
/// measured. Without the JVM's library there are none.
const LEAST_COMPLETE: f64 = 40.0;

const DENIED: &str = "Permission denied (os error 13)";
const DOMAIN: &str = "system_u:system_r:joular_bpf_t:s0";

#[test]
fn the_service_runs_in_a_domain_of_its_own_that_may_do_what_it_does_and_no_more() -> Result<()> {
    let Some((packages, kernel)) = needed()? else { return Ok(()) };
    let script = fs::read_to_string(paths::fixtures().join("selinux.sh"))?;
    let mut root = Initramfs::default();
    root.file("/init", INIT.as_bytes());
    root.file("/etc/systemd/system/script.service.d/shell.conf", SHELL.as_bytes());
    let root = machine_of(&debian::WITH_SELINUX, root, &packages, &script)?;
    let console = kernel.start(root, &ARGUMENTS)?.finish(LIMIT)?.stdout.replace('\r', "");
    notes::figure(&format!("SELinux:\n{}", console.split_once("== install").map_or("", |(_, rest)| rest)));
    for (what, expected) in [
        ("mode", "Enforcing"),
        ("checked", "0"),
        ("confined", DOMAIN),
        ("scraped", "HTTP/1.1 200 OK"),
        ("reloaded", DOMAIN),
        ("upgraded", DOMAIN),
        ("stopped", "success"),
        ("shipped", "0 runs differ"),
    ] {
        ensure!(
            said(&console, what)? == expected,
            "{what} is '{}', not '{expected}': {console}",
            said(&console, what)?
        );
    }
    for what in ["before", "removed"] {
        ensure!(!said(&console, what)?.contains("joular"), "{what}: {console}");
    }
    ensure!(console.contains("Busy.spin"), "the report does not name the method: {console}");
    let complete = console.lines().find_map(|line| {
        line.strip_prefix("Of the JVMs' stacks ")?.strip_suffix(" % complete and named")?.parse::<f64>().ok()
    });
    ensure!(complete.is_some_and(|complete| complete >= LEAST_COMPLETE), "{console}");
    // Files of the JVM can be opened, before the policy is loaded by their names alone.
    ensure!(!console.contains("falling back to the perf map"), "{console}");
    ensure!(!console.contains("\nrefused: "), "the policy refused something: {console}");
    // The capability to read all files does not help, nor does being root.
    ensure!(said(&console, "reading")?.contains(DENIED), "{console}");
    ensure!(!said(&console, "reading unconfined")?.contains(DENIED), "{console}");
    ensure!(said(&console, "writing")?.contains(DENIED), "{console}");
    ensure!(said(&console, "writing unconfined")?.starts_with("joular-bpf: wrote "), "{console}");
    let forbidden = |kind: &str| {
        console.lines().any(|line| {
            line.starts_with("forbidden: ")
                && line.contains(kind)
                && line.contains(DOMAIN)
                && line.contains("permissive=0")
        })
    };
    ensure!(forbidden(":shadow_t:") && forbidden(":etc_t:"), "{console}");
    Ok(())
}
