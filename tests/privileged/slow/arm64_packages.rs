//! Tests the packages for arm64 on an emulated machine: Debian's dpkg installs the one for Debian, the script installs the
//! archive, their programs run, and nothing is left when they are removed.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{initramfs::Initramfs, machine::AARCH64, notes, packages::Packages};

use super::debian_package::said;

/// An emulated machine takes a minute or two. It bounds a hang.
const LIMIT: Duration = Duration::from_secs(600);

/// Each part says what it found, as `name: value`. The database of packages is not what a package leaves. The shell has a dpkg of
/// its own, which it prefers to that of Debian where no directory is named.
const SCRIPT: &str = "\
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n\
    list() { find / -xdev | grep -v -e '^/var/lib/dpkg/' -e '^/tmp/' | sort > /tmp/$1; }\n\
    list before\n\
    /usr/bin/dpkg --install /packages/*.deb; echo installed: $?\n\
    /usr/bin/dpkg-query --show --showformat 'status: ${Status} ${Architecture}\\n' joular-bpf\n\
    echo \"changed: $(/usr/bin/dpkg --verify joular-bpf)\"\n\
    echo packaged: $(joular-bpf --version)\n\
    joular-bpf doctor; echo doctor: $?\n\
    list with; echo files: $(diff /tmp/before /tmp/with | grep -c '^+/')\n\
    /usr/bin/dpkg --purge joular-bpf; echo purged: $?\n\
    list after; echo \"left: $(diff /tmp/before /tmp/after)\"\n\
    sh /packages/install.sh --prefix /opt/joular /packages > /dev/null; echo unpacked: $?\n\
    echo static: $(/opt/joular/bin/joular-bpf --version)\n\
    sh /packages/install.sh --prefix /opt/joular --uninstall > /dev/null; echo removed: $?\n\
    echo \"kept: $(find /opt/joular -type f)\"\n";

/// dpkg, a shell and tools, the packages, and the script.
fn machine(packages: &Packages) -> Result<Initramfs> {
    let mut root = AARCH64.root(SCRIPT)?;
    let directory = packages.directory();
    for file in [packages.deb()?, packages.archive()?, directory.join("install.sh"), directory.join("SHA256SUMS")] {
        let name = file.file_name().context("a file has a name")?.to_string_lossy();
        let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        root.file(&format!("packages/{name}"), &bytes);
    }
    root.whole(&AARCH64.dpkg())?;
    Ok(root)
}

#[test]
fn the_packages_for_arm64_install_programs_that_run_and_leave_nothing() -> Result<()> {
    let of_arm64 = |packages: &Packages| packages.machine().processor == AARCH64.processor;
    let Some(packages) = Packages::all().into_iter().find(of_arm64) else {
        notes::skipped("there are no packages for arm64 to test: `cargo xtask test --slow` makes them");
        return Ok(());
    };
    if let Some(reason) = AARCH64.missing() {
        notes::skipped(reason);
        return Ok(());
    }
    if AARCH64.is_this() || !AARCH64.dpkg().exists() {
        notes::skipped("dpkg for arm64 was not unpacked (`cargo xtask setup --slow` does that on another machine)");
        return Ok(());
    }
    let kernel = AARCH64.kernels().pop().context("no kernel")?;
    let console = kernel.boot(machine(&packages)?, LIMIT)?.stdout.replace('\r', "");
    let version = concat!("joular-bpf ", env!("CARGO_PKG_VERSION"));
    for (what, expected) in [
        ("installed", "0"),
        ("status", "install ok installed arm64"),
        ("changed", ""),
        ("packaged", version),
        ("doctor", "0"),
        ("purged", "0"),
        ("left", ""),
        ("unpacked", "0"),
        ("static", version),
        ("removed", "0"),
        ("kept", ""),
    ] {
        let found = said(&console, what)?.trim();
        ensure!(found == expected, "{what} is '{found}', not '{expected}': {console}");
    }
    ensure!(said(&console, "files")?.parse::<u32>()? > 50, "{console}");
    Ok(())
}
