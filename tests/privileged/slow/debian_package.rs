//! Tests the Debian package on a Debian with its own kernel, in a virtual machine: it is installed, its service
//! records as it is configured, and nothing is left when it is purged.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    debian::{self, Debian},
    initramfs::Initramfs,
    java::{self, Jdk},
    kernels::{self, Kernel},
    notes,
    packages::{MOST_EXPOSURE, Packages, is_of_an_older_systemd},
    paths,
};

/// An emulated machine takes a minute; on a loaded one several.
const LIMIT: Duration = Duration::from_secs(900);
/// The service begins a new run every quarter of an hour, by the clock. This clock does not come to one within the
/// limit.
const CLOCK: [&str; 2] = ["-rtc", "base=2026-11-23T12:00:00"];

/// Runs once the system has started. Each part says what it found, as `name: value`.
const SCRIPT: &str = r#"#!/bin/bash
cd /root || exit
. ./administrator.sh
state() { echo "$1: $(systemctl is-enabled joular-bpf 2> /dev/null) $(systemctl is-active joular-bpf)"; }
dpkg --install joular-bpf.deb
state installed
/jdk/bin/java -Xmx64m -XX:TieredStopAtLevel=1 -cp /home/shop/classes Busy seconds=900 > java.txt &
until grep -q ready java.txt; do sleep 0.2; done
systemctl enable --quiet --now joular-bpf
state started
recording
main=$(systemctl show --property MainPID --value joular-bpf)
echo "capabilities: $(grep CapEff "/proc/$main/status")"
sleep 4
dpkg --install joular-bpf.deb
recording
state upgraded
[ "$main" != "$(systemctl show --property MainPID --value joular-bpf)" ] && echo "new process: yes"
sleep 4
systemctl stop joular-bpf
echo "result: $(systemctl show --property Result --value joular-bpf)"
joular-bpf report /var/lib/joular-bpf/data
systemctl start joular-bpf
systemd-analyze security --no-pager joular-bpf | tail -n 1
journalctl --no-pager --unit joular-bpf --priority warning --output cat | sed 's/^/warning: /'
dpkg --purge joular-bpf
state purged
echo "left: $(ls -d /usr/bin/joular-bpf /etc/joular-bpf /var/lib/joular-bpf /etc/systemd/system/*.wants/joular* 2> /dev/null)"
systemctl poweroff
"#;

const UNIT: &str = "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/root/script\n";

/// Debian's root directory with the package, a JVM, the script in it, and what the script sources.
pub(super) fn machine(packages: &Packages, script: &str) -> Result<Initramfs> {
    machine_of(&debian::PLAIN, Initramfs::default(), packages, script)
}

/// The same of a certain Debian. What is in `root` already counts, instead of what is there otherwise.
pub(super) fn machine_of(debian: &Debian, mut root: Initramfs, packages: &Packages, script: &str) -> Result<Initramfs> {
    root.file("/root/script", script.as_bytes());
    root.file("/root/administrator.sh", &fs::read(paths::fixtures().join("administrator.sh"))?);
    root.file("/root/joular-bpf.deb", &fs::read(packages.deb()?)?);
    root.file("/etc/systemd/system/script.service", UNIT.as_bytes());
    root.link("/etc/systemd/system/multi-user.target.wants/script.service", "../script.service");
    // It would wait a minute and a half for its device, which nobody announces here.
    root.link("/etc/systemd/system/serial-getty@ttyS0.service", "/dev/null");
    root.link("/init", "usr/lib/systemd/systemd");
    root.whole(&debian.root().context("no Debian")?)?;
    let jdk = Jdk::pinned()?.find(|jdk| jdk.release == 17).context("no JDK 17")?;
    root.whole_at("/jdk", jdk.java.ancestors().nth(2).context("java is in bin")?)?;
    // The service sees no home directory, but those of its targets.
    root.whole_at("/home/shop/classes", &java::classes()?)?;
    Ok(root)
}

/// Packages, and a kernel to start; without them the test is skipped.
pub(super) fn needed() -> Result<Option<(Packages, Kernel)>> {
    let Some(packages) = Packages::find() else {
        notes::skipped("there are no packages to test: `cargo xtask test --slow` makes them");
        return Ok(None);
    };
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(None);
    }
    Ok(Some((packages, kernels::all().pop().context("no kernel")?)))
}

/// What the script said about something.
pub(super) fn said<'a>(console: &'a str, name: &str) -> Result<&'a str> {
    let line = console.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.with_context(|| format!("nothing is said of '{name}': {console}"))
}

#[test]
fn the_debian_package_installs_a_service_that_records_and_leaves_nothing() -> Result<()> {
    let Some((packages, kernel)) = needed()? else { return Ok(()) };
    let console = kernel.start(machine(&packages, SCRIPT)?, &CLOCK)?.finish(LIMIT)?.stdout.replace('\r', "");
    for (what, expected) in [
        ("installed", "disabled inactive"),
        ("started", "enabled active"),
        ("upgraded", "enabled active"),
        ("new process", "yes"),
        ("result", "success"),
        ("purged", " inactive"),
        ("left", ""),
    ] {
        ensure!(
            said(&console, what)? == expected,
            "{what} is '{}', not '{expected}': {console}",
            said(&console, what)?
        );
    }
    // CHECKPOINT_RESTORE, BPF, PERFMON, SYSLOG, SYS_PTRACE, DAC_READ_SEARCH.
    ensure!(said(&console, "capabilities")?.ends_with("000001c400080004"), "{console}");
    // One before the upgrade, one after.
    ensure!(console.contains("2 runs on ") && console.contains("Busy.spin"), "{console}");
    // Where the host of an emulated machine is busy, reading memory may take longer than the profiler waits.
    let is_of_slowness = |line: &str| line.contains("its memory does not answer");
    let is_warning =
        |line: &str| line.starts_with("warning: ") && !is_of_an_older_systemd(line) && !is_of_slowness(line);
    ensure!(!console.lines().any(is_warning), "{console}");
    let exposure = console.lines().find_map(|line| line.split_once("Overall exposure level for joular-bpf.service: "));
    let (_, exposure) = exposure.with_context(|| format!("no exposure: {console}"))?;
    let exposure: f64 = exposure.split(' ').next().context("a number")?.parse()?;
    ensure!(exposure <= MOST_EXPOSURE, "{console}");
    notes::figure(&format!("the unit of the Debian package, on Linux {}: exposure {exposure}", kernel.release));
    Ok(())
}
