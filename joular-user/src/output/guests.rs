//! Tells virtual machines what they use, in files that the host shares with them.
//!
//! For the virtual machine NAME there are `DIR/NAME/energy_uj`, the running total of the energy that its process got, with
//! the times of the last windows, and `DIR/NAME/watts`, its power in the last window, as JoularJX and PowerJoular read it.
//! Totals go on where they were, so a guest that reads `energy_uj` misses nothing while the recording is restarted.
//!
//! A guest may own what it chooses: its name and, if it may write there, its directory. So names are made harmless,
//! nothing in the directory is followed or trusted, and temporary files are outside it.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use joular_data::{
    attribution::window_report::{DomainAudit, WindowReport},
    events::{ProcessInfo, RunEnd, RunInfo},
    model::{
        domain::FaultCause,
        target_text::TargetText,
        units::{MicroJoules, Pid},
    },
    output::{Output, Result},
    stacks::StackTable,
};
use rustix::fs::OFlags;

use crate::{
    energy::shared_file::{MOST_BYTES, Totals},
    failing::Failing,
};

const ENERGY: &str = "energy_uj";
const POWER: &str = "watts";
/// Longest name of a directory.
const MAX_NAME_BYTES: usize = 64;

/// Writes the files of all virtual machines among the targets.
pub struct GuestPower<F> {
    directory: PathBuf,
    guests: BTreeMap<(Pid, u64), Guest>,
    /// Start of the first window whose energy comes with a later one.
    unread_since_us: Option<i64>,
    warn: F,
    failing: Failing<io::ErrorKind>,
}

#[derive(Debug)]
struct Guest {
    name: String,
    totals: Totals,
    /// Of the last window.
    used: MicroJoules,
}

impl<F: FnMut(&str)> GuestPower<F> {
    pub fn new(directory: PathBuf, warn: F) -> Self {
        Self { directory, guests: BTreeMap::new(), unread_since_us: None, warn, failing: Failing::default() }
    }

    fn path(&self, name: &str, file: &str) -> PathBuf {
        self.directory.join(name).join(file)
    }

    /// Says that a guest is not told: each cause once until all are told again.
    fn note(&mut self, outcome: &io::Result<()>) {
        let is_news = self.failing.is_news(outcome.as_ref().copied().map_err(io::Error::kind));
        if let (true, Err(error)) = (is_news, outcome) {
            let shown = self.directory.display();
            (self.warn)(&format!("telling virtual machines in {shown} what they use: {error}: check --guest-power"));
        }
    }

    /// Tells a guest its total, and its power in a window of this length.
    fn write(&self, guest: &Guest, length_ns: u64) -> io::Result<()> {
        let power_uw = u128::from(guest.used.0) * 1_000_000_000 / u128::from(length_ns.max(1));
        DirBuilder::new().recursive(true).mode(0o755).create(self.directory.join(&guest.name))?;
        self.replace(&guest.name, ENERGY, &guest.totals.to_string())?;
        self.replace(&guest.name, POWER, &format!("{}.{:06}\n", power_uw / 1_000_000, power_uw % 1_000_000))
    }

    /// Readers see the file before or after, and nothing between.
    fn replace(&self, name: &str, file: &str, text: &str) -> io::Result<()> {
        let temporary = self.directory.join(format!(".{name}.{file}"));
        let _absent = fs::remove_file(&temporary);
        let mut new = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        // Whatever a service's umask is: the directory above decides who on the host may read.
        new.set_permissions(Permissions::from_mode(0o644))?;
        new.write_all(text.as_bytes())?;
        fs::rename(&temporary, self.path(name, file))
    }

    /// A power that is no longer true is worse than none.
    fn forget(&self, guest: &Guest) {
        let _absent = fs::remove_file(self.path(&guest.name, POWER));
    }
}

impl<F: FnMut(&str)> Output for GuestPower<F> {
    fn run_started(&mut self, _: &RunInfo) -> Result<()> {
        let created = DirBuilder::new().recursive(true).mode(0o755).create(&self.directory);
        self.note(&created);
        Ok(())
    }

    /// A virtual machine's name stands there.
    fn needs_command_lines(&self) -> bool {
        true
    }

    fn process(&mut self, process: &ProcessInfo) {
        let key = (process.pid, process.start_boottime_ns);
        // A name that cannot be read in time comes later.
        if !process.is_target || process.command_line.is_empty() || self.guests.contains_key(&key) {
            return;
        }
        let Some(name) = guest_name(process) else { return };
        let is_taken = self.guests.values().any(|guest| guest.name == name);
        let name = if is_taken { format!("{name}-{}", process.pid) } else { name };
        let totals = Totals::from(total_in(&self.path(&name, ENERGY)).unwrap_or(0));
        let guest = Guest { name, totals, used: MicroJoules(0) };
        // So that the guest can begin with its first window.
        let written = self.write(&guest, 0);
        self.note(&written);
        self.guests.insert(key, guest);
    }

    fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        if let Some(guest) = self.guests.remove(&(pid, start_boottime_ns)) {
            self.forget(&guest);
        }
    }

    fn window(&mut self, report: &WindowReport, _: &StackTable) -> Result<()> {
        let mut used: BTreeMap<(Pid, u64), MicroJoules> = BTreeMap::new();
        for thread in &report.threads {
            let Some(process) = report.processes.get(thread.process) else { continue };
            let energy = used.entry((process.pid, process.start_boottime_ns)).or_insert(MicroJoules(0));
            *energy = energy.saturating_add(thread.energy);
        }
        let (start_us, end_us) = times(report);
        let start_us = self.unread_since_us.take().unwrap_or(start_us);
        if !is_measured(report) {
            self.unread_since_us = Some(start_us);
        }
        for (key, guest) in &mut self.guests {
            guest.used = used.get(key).copied().unwrap_or(MicroJoules(0));
            if self.unread_since_us.is_none() {
                guest.totals.add(start_us, end_us, guest.used);
            }
        }
        if !self.guests.is_empty() {
            // One that cannot be told does not keep the others from it.
            let told = self.guests.values().map(|guest| self.write(guest, report.length_ns));
            let outcome = told.fold(Ok(()), io::Result::and);
            self.note(&outcome);
        }
        Ok(())
    }

    fn run_ended(&mut self, _: &RunEnd) -> Result<()> {
        self.guests.values().for_each(|guest| self.forget(guest));
        Ok(())
    }
}

/// What the clock says at a window's start and end, µs since 1970.
fn times(report: &WindowReport) -> (i64, i64) {
    let offset_us = report.context.as_ref().map_or(0, |context| context.clock_offset_us);
    let start_us = report.wall_start.0.saturating_add(offset_us);
    (start_us, start_us.saturating_add_unsigned(report.length_ns / 1000))
}

/// Whether anything is known of a window's energy. If not, it comes with a later window.
fn is_measured(report: &WindowReport) -> bool {
    let failed = |audit: &DomainAudit| audit.fault.is_some_and(FaultCause::is_failed_read);
    report.domains.is_empty() || !report.domains.iter().all(failed)
}

/// The total of an earlier recording.
fn total_in(path: &Path) -> Option<u64> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut text = String::new();
    let is_file = file.metadata().ok()?.is_file();
    is_file.then(|| file.take(MOST_BYTES).read_to_string(&mut text).ok()).flatten()?;
    text.parse().ok().map(|totals: Totals| totals.now_uj)
}

/// The name of a virtual machine, as a directory can have it; `None`: the process is none.
fn guest_name(process: &ProcessInfo) -> Option<String> {
    let arguments: Vec<&str> = process.command_line.iter().map(TargetText::raw).collect();
    let program = process.executable.as_ref().map(TargetText::raw).or(arguments.first().copied())?;
    let program = program.trim_end_matches(" (deleted)");
    let program = program.rsplit('/').next().unwrap_or(program);
    let after = |flags: &[&str]| {
        let at = arguments.iter().position(|argument| flags.contains(argument))?;
        arguments.get(at + 1).copied()
    };
    let given = match program {
        "firecracker" => after(&["--id"]),
        "cloud-hypervisor" => None,
        _ if program.starts_with("qemu-system-") || ["qemu-kvm", "kvm"].contains(&program) => {
            qemu_name(after(&["-name", "--name"])).or_else(|| after(&["-uuid", "--uuid"]))
        }
        _ => return None,
    };
    Some(given.and_then(harmless).unwrap_or_else(|| format!("pid-{}", process.pid)))
}

/// `-name NAME,…` or `-name guest=NAME,…`.
fn qemu_name(argument: Option<&str>) -> Option<&str> {
    let mut parts = argument?.split(',');
    let first = parts.clone().next().filter(|part| !part.contains('='));
    first.or_else(|| parts.find_map(|part| part.strip_prefix("guest=")))
}

/// A name without what means something in a path; `None`: nothing of it is left.
fn harmless(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().take(MAX_NAME_BYTES).map(|c| if allowed(c) { c } else { '_' }).collect();
    (!name.trim_matches(['.', '_']).is_empty() && !name.starts_with('.')).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use joular_data::{
        attribution::{
            counter::Delta,
            window_report::{Category, ProcessRef, ThreadRow},
        },
        events::WindowContext,
        model::{
            domain::{Domain, Label, Meter},
            units::{Tid, UnixMicros},
        },
    };

    use super::*;

    fn process(pid: u32, arguments: &[&str]) -> ProcessInfo {
        let command_line = arguments.iter().map(|&argument| argument.into()).collect();
        ProcessInfo { pid: Pid(pid), command_line, is_target: true, ..ProcessInfo::default() }
    }

    fn window(energies: &[(u32, u64)]) -> WindowReport {
        let processes =
            energies.iter().map(|&(pid, _)| ProcessRef { pid: Pid(pid), start_boottime_ns: 0, comm: "qemu".into() });
        let threads = energies.iter().enumerate().map(|(process, &(pid, energy))| ThreadRow {
            process,
            tid: Tid(pid),
            start_boottime_ns: 0,
            name: "CPU 0/KVM".into(),
            category: Category::Native,
            cpu_ns: 1,
            samples: 0,
            energy: MicroJoules(energy),
            by_bytes: MicroJoules(0),
        });
        let (processes, threads) = (processes.collect(), threads.collect());
        WindowReport { length_ns: 500_000_000, processes, threads, ..WindowReport::default() }
    }

    /// A window that ends so many ms after 1970.
    fn ending(at_ms: i64, energies: &[(u32, u64)]) -> WindowReport {
        WindowReport { wall_start: UnixMicros((at_ms - 500) * 1000), ..window(energies) }
    }

    #[test]
    fn virtual_machines_have_the_names_that_their_hypervisors_were_given() {
        for (arguments, expected) in [
            (&["/usr/bin/qemu-system-x86_64", "-name", "guest=web-1,debug-threads=on"][..], Some("web-1")),
            (&["/usr/libexec/qemu-kvm", "-m", "1", "-name", "web-1"], Some("web-1")),
            (&["qemu-system-aarch64", "-name", "debug-threads=on,guest=a b/c"], Some("a_b_c")),
            (
                &["qemu-system-x86_64", "-uuid", "5f1e0000-0000-4000-8000-000000000001"],
                Some("5f1e0000-0000-4000-8000-000000000001"),
            ),
            (&["qemu-system-x86_64", "-name", "../../etc"], Some("pid-7")),
            (&["qemu-system-x86_64", "-name", "__"], Some("pid-7")),
            (&["qemu-system-x86_64", "-name"], Some("pid-7")),
            (&["/usr/bin/firecracker", "--id", "fc-9"], Some("fc-9")),
            (&["cloud-hypervisor"], Some("pid-7")),
            (&["java", "-name", "x"], None),
            (&["/bin/qemu-img", "-name", "x"], None),
            (&[], None),
        ] {
            assert_eq!(guest_name(&process(7, arguments)).as_deref(), expected, "{arguments:?}");
        }
        assert_eq!(harmless(&"x".repeat(500)).map(|name| name.len()), Some(MAX_NAME_BYTES));
    }

    #[test]
    fn totals_are_all_that_a_guest_got_and_go_on_in_the_next_recording() {
        let directory = tempfile::tempdir().unwrap();
        let read = |file: &str| fs::read_to_string(directory.path().join(file)).ok();
        let total = |name: &str| Some(read(&format!("{name}/energy_uj"))?.lines().next_back()?.to_owned());
        let recording = |energies: &[&[(u32, u64)]]| {
            let mut output = GuestPower::new(directory.path().into(), |text: &str| panic!("{text}"));
            output.process(&process(7, &["qemu-system-x86_64", "-name", "web"]));
            output.process(&process(8, &["qemu-system-x86_64", "-name", "web"]));
            output.process(&process(9, &["java"]));
            for energies in energies {
                output.window(&window(energies), &StackTable::default()).unwrap();
            }
            output
        };
        let mut output = recording(&[&[(7, 500_000), (8, 1), (9, 5)], &[(7, 250_001)], &[]]);
        assert_eq!(total("web").as_deref(), Some("750001"));
        assert_eq!(fs::metadata(directory.path().join("web/energy_uj")).unwrap().mode() & 0o777, 0o644);
        assert_eq!(total("web-8").as_deref(), Some("1"));
        assert_eq!(read("web/watts").as_deref(), Some("0.000000\n"));
        output.window(&window(&[(7, 500_001)]), &StackTable::default()).unwrap();
        assert_eq!(read("web/watts").as_deref(), Some("1.000002\n"));
        output.process_ended(Pid(8), 0);
        assert_eq!((read("web-8/watts"), total("web-8").as_deref()), (None, Some("1")));
        output.run_ended(&RunEnd { ended: UnixMicros(0), reason: "signal".to_owned() }).unwrap();
        assert_eq!(read("web/watts"), None);
        recording(&[&[(7, 10)]]);
        assert_eq!(total("web").as_deref(), Some("1250012"));
    }

    #[test]
    fn totals_have_the_ends_of_windows_by_the_clock_and_what_was_read_late_is_of_all_windows_since() {
        let directory = tempfile::tempdir().unwrap();
        let mut output = GuestPower::new(directory.path().into(), |text: &str| panic!("{text}"));
        output.process(&process(7, &["qemu-system-x86_64", "-name", "web"]));
        let domain = Domain::new("package", Some(0), "test", Label::Measured, Meter::Power);
        let delta = Delta { fault: Some(FaultCause::Unreadable), ..Delta::default() };
        let unread = DomainAudit::new(&domain, &delta);
        let context = WindowContext { clock_offset_us: -250_000, ..WindowContext::default() };
        for report in [
            ending(1_000, &[(7, 5)]),
            WindowReport { domains: vec![unread], ..ending(1_500, &[(7, 0)]) },
            ending(2_000, &[(7, 20)]),
            WindowReport { context: Some(context), ..ending(2_750, &[(7, 3)]) },
        ] {
            output.window(&report, &StackTable::default()).unwrap();
        }
        let text = fs::read_to_string(directory.path().join("web/energy_uj")).unwrap();
        assert_eq!(text, "500000 0\n1000000 5\n2000000 25\n2500000 28\n28\n");
    }

    #[test]
    fn what_a_guest_puts_into_its_directory_is_neither_followed_nor_believed() {
        let (directory, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret");
        fs::write(&secret, "42\n").unwrap();
        let own = directory.path().join("web");
        fs::create_dir(&own).unwrap();
        for file in [ENERGY, POWER] {
            std::os::unix::fs::symlink(&secret, own.join(file)).unwrap();
        }
        let mut output = GuestPower::new(directory.path().into(), |text: &str| panic!("{text}"));
        output.process(&process(7, &["qemu-system-x86_64", "-name", "web"]));
        output.window(&window(&[(7, 5)]), &StackTable::default()).unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "42\n");
        assert_eq!(fs::read_to_string(own.join(ENERGY)).unwrap().lines().next_back(), Some("5"));
        for planted in ["-1", "99999999999999999999999999", "x"] {
            fs::write(own.join(ENERGY), planted).unwrap();
            assert_eq!(total_in(&own.join(ENERGY)), None, "{planted}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told_once_and_ends_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let mut told = Vec::new();
        let mut output = GuestPower::new(file, |text: &str| told.push(text.to_owned()));
        output.process(&process(7, &["qemu-system-x86_64"]));
        for _ in 0..3 {
            output.window(&window(&[(7, 5)]), &StackTable::default()).unwrap();
        }
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("telling virtual machines in ") && told[0].ends_with("check --guest-power"));
    }
}
