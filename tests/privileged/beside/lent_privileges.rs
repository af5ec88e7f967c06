//! Tests that a copy of joular-bpf with file capabilities serves its user with a recording, and nobody with anything
//! else: no command runs as another user, no JVM of another user is asked, and no file is opened that the user may not
//! open.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::Workload,
    paths,
    process::{Finished, Running},
};
use rustix::fs::{XattrFlags, setxattr};
use tempfile::TempDir;

use crate::burner::Burner;

const LIMIT: Duration = Duration::from_secs(60);
/// A user without rights: `nobody`.
const USER: u32 = 65534;

/// Numbers of include/uapi/linux/capability.h.
const NUMBERS: [(&str, u32); 13] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_FOWNER", 3),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYSLOG", 34),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
    ("CAP_CHECKPOINT_RESTORE", 40),
];

/// A copy of the program that lends whoever executes it the capabilities of docs/operating.md.
struct Copy {
    dir: TempDir,
    program: PathBuf,
}

impl Copy {
    fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let program = dir.path().join("joular-bpf");
        fs::copy(paths::joular_bpf(), &program)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        setxattr(&program, "security.capability", &file_capabilities(documented()?), XattrFlags::empty())?;
        Ok(Self { dir, program })
    }

    /// A folder of the user's own.
    fn home(&self, name: &str) -> Result<PathBuf> {
        let home = self.dir.path().join(name);
        fs::create_dir(&home)?;
        chown(&home, Some(USER), Some(USER))?;
        Ok(home)
    }

    /// The command line of an ordinary user. Descriptor 3 is a pipe with a byte in it, as what opens a gate is.
    fn as_user(&self, arguments: &[&str]) -> Result<Finished> {
        let mut command = Command::new("sh");
        command.args(["-c", "printf '!' | \"$0\" \"$@\" 3<&0"]).arg(&self.program).args(arguments);
        self.finish(command.uid(USER).gid(USER))
    }

    fn as_root(&self, arguments: &[&str]) -> Result<Finished> {
        self.finish(Command::new(&self.program).args(arguments))
    }

    fn finish(&self, command: &mut Command) -> Result<Finished> {
        Running::spawn("joular-bpf", command.current_dir(self.dir.path()))?.finish(LIMIT)
    }
}

/// Capabilities that the first table of docs/operating.md lists, and that of Debian's kernels.
fn documented() -> Result<u64> {
    let text = fs::read_to_string(paths::root().join("docs/operating.md"))?;
    let rows = text.lines().filter(|line| line.starts_with("| CAP_"));
    let names: Vec<&str> =
        rows.filter_map(|row| row.split('|').nth(1)).flat_map(|names| names.split(',').map(str::trim)).collect();
    ensure!(names.len() == 12 && text.contains("keeps CAP_SYS_ADMIN too"), "{names:?}");
    names.into_iter().chain(["CAP_SYS_ADMIN"]).try_fold(0, |bits, name| {
        let number = NUMBERS.iter().find(|(known, _)| *known == name).with_context(|| format!("{name}: no number"))?;
        Ok(bits | 1 << number.1)
    })
}

/// What `setcap …=ep` writes: revision 2 of `struct vfs_cap_data`.
fn file_capabilities(bits: u64) -> Vec<u8> {
    let (low, high) = (bits & 0xffff_ffff, bits >> 32);
    let words = [0x0200_0001, low, 0, high, 0];
    words.iter().flat_map(|word| u32::try_from(*word).unwrap_or(0).to_le_bytes()).collect()
}

/// Says who runs it, and what that may do.
const WHO: [&str; 3] = ["sh", "-c", "id -u; id -g; id -G; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status"];

/// What the user is without any copy: what a command of theirs may say of itself at most.
fn is_only_the_user(said: &str) -> bool {
    let none = ["CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"];
    let own = USER.to_string();
    said.lines().take(3).eq([own.as_str(); 3])
        && said.lines().skip(3).eq(none.into_iter().chain(["CapAmb:\t0000000000000000"]))
}

#[test]
fn no_command_runs_as_anyone_but_the_user() -> Result<()> {
    let copy = Copy::new()?;
    for user in [
        "0:0:0",
        "0:0:",
        "65534:0:0",
        "65534:65534:0",
        "65534:65534:65534",
        "0:65534:65534",
        "1:1:1",
        "4294967295:4294967295:",
        "4294967295:0:0",
        "65534:4294967295:65534",
        "65534:65534:65534,65534,0",
    ] {
        let finished = copy.as_user(&[&["__launch", "3", user, "--"], &WHO[..]].concat())?;
        ensure!(finished.stdout.is_empty() && finished.code().is_some_and(|code| code != 0), "{user}: {finished:?}");
        ensure!(finished.stderr.contains("joular-bpf"), "{user}: nobody said why: {finished:?}");
    }
    // As themselves they may, and with nothing that the copy lent.
    let finished = copy.as_user(&[&["__launch", "3", "-", "--"], &WHO[..]].concat())?;
    ensure!(finished.code() == Some(0) && is_only_the_user(&finished.stdout), "{finished:?}");
    // The same through the front door.
    for options in [&["--user", "root"][..], &["--user", "0"], &["--user", "daemon"]] {
        let line = [&["run", "--quiet", "--energy", "model"], options, &["--"], &WHO].concat();
        let finished = copy.as_user(&line)?;
        ensure!(finished.stdout.is_empty() && finished.stderr.contains("only root may"), "{options:?}: {finished:?}");
    }
    let orders = r#"{"output":null,"shows_output":true,"outcome":3}"#;
    let line = [&["__trial", orders, "3"], &WHO[..], &["joular-bpf", "run", "--user", "root", "--", "true"]].concat();
    let finished = copy.as_user(&line)?;
    ensure!(finished.stdout.is_empty() && finished.stderr.contains("only root may"), "{finished:?}");
    Ok(())
}

#[test]
fn an_ordinary_user_records_and_runs_commands_of_their_own() -> Result<()> {
    let copy = Copy::new()?;
    let mut burner = Burner::start(&[100])?;
    burner.begin(Duration::from_secs(30))?;
    let out = copy.home("home")?.join("out");
    let (pid, out) = (burner.pid().to_string(), out.to_str().context("text")?.to_owned());
    let line = ["--pid", &pid, "--energy", "model", "--duration", "2s", "--quiet", "--output", &out];
    let finished = copy.as_user(&line)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(fs::metadata(&out)?.uid() == USER);
    let samples = joular_tests::dataset::DataSet::at(out).number("SELECT sum(samples)::DOUBLE FROM threads")?;
    // However busy the machine is.
    ensure!(samples >= 5.0, "{samples} samples of a process of root's in two seconds");
    // Variables of sudo are anybody's to set.
    for variables in [&[][..], &[("SUDO_UID", "0"), ("SUDO_GID", "0")]] {
        let mut command = Command::new(&copy.program);
        command.args(["run", "--quiet", "--energy", "model", "--"]).args(WHO).envs(variables.iter().copied());
        let finished = copy.finish(command.uid(USER).gid(USER))?;
        ensure!(finished.code() == Some(0) && is_only_the_user(&finished.stdout), "{variables:?}: {finished:?}");
    }
    Ok(())
}

#[test]
fn no_file_is_opened_that_the_user_may_not_open() -> Result<()> {
    const SECRET: &str = "root:$6$salt:19000:0:99999:7:::";
    let copy = Copy::new()?;
    let home = copy.home("home")?;
    let secret = copy.dir.path().join("secret");
    fs::write(&secret, format!("{SECRET}\n"))?;
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600))?;
    let closed = copy.dir.path().join("closed");
    fs::create_dir(&closed)?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700))?;
    symlink(&closed, home.join("link"))?;
    let fake = home.join("roots");
    fs::create_dir(&fake)?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("text");
    let (file, folder, link, fake) =
        (text(&secret)?, text(&closed.join("out"))?, text(&home.join("link"))?, text(&fake)?);
    let out = text(&home.join("out"))?;
    let pid = std::process::id().to_string();
    let live = ["--pid", &pid, "--energy", "model", "--duration", "200ms", "--quiet"];
    let beneath = format!("{link}/out");
    for more in [
        &["--energy", "microjoules", "--energy-file", &file, "--pid", &pid, "--duration", "200ms", "--output", &out][..],
        &["--config", &file],
        &["agent", "--config", &file],
        &["--replay", &file],
        &["report", &file],
        &["report", &folder],
        &[&live[..], &["--output", &folder]].concat(),
        &[&live[..], &["--output", &beneath]].concat(),
        &[&live[..], &["--no-output", "--record", &file]].concat(),
        &[&live[..], &["--output", &out, "--calibration", &file]].concat(),
        &[&live[..], &["--no-output", "--metrics", "--metrics-token", &file]].concat(),
        &[&live[..], &["--no-output", "--otlp", "--otlp-headers", &file]].concat(),
        &["doctor", "--powercap-root", &fake],
        &["sources", "--proc-root", &fake],
        &[&live[..], &["--no-output", "--sys-root", &fake]].concat(),
        &[&live[..], &["--no-output", "--cpu-root", &fake]].concat(),
        &["calibrate", "--energy", "model", "--duration", "6s", "--output", &file],
    ] {
        let finished = copy.as_user(more)?;
        ensure!(finished.code().is_some_and(|code| code != 0), "{more:?}: {finished:?}");
        ensure!(!format!("{}{}", finished.stdout, finished.stderr).contains("$6$"), "{more:?}: {finished:?}");
        ensure!(fs::read_to_string(&secret)?.trim_end() == SECRET, "{more:?} wrote it");
        ensure!(fs::read_dir(&closed)?.next().is_none(), "{more:?} wrote there");
    }
    Ok(())
}

/// Arguments of the attach helper for this process.
fn helper_line(pid: u32, user: u32, proc_root: &str, command: &str) -> Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, behind) = stat.rsplit_once(") ").context("a name in brackets")?;
    let start = behind.split(' ').nth(19).context("the start")?;
    let (pid, user) = (pid.to_string(), user.to_string());
    let line = ["__attach-helper", "--pid", &pid, "--ns-pid", &pid, "--uid", &user, "--gid", &user];
    let rest = ["--start-ticks", start, "--proc-root", proc_root, "--command", command];
    Ok(line.into_iter().chain(rest).map(str::to_owned).collect())
}

/// A made-up /proc, in which a process is a JVM of the user's that wants a signal.
fn made_up_proc(home: &Path, pid: u32) -> Result<()> {
    let process = home.join(pid.to_string());
    fs::create_dir_all(process.join("task/1"))?;
    fs::create_dir_all(home.join("root/tmp"))?;
    let real = PathBuf::from(format!("/proc/{pid}"));
    fs::write(process.join("stat"), fs::read(real.join("stat"))?)?;
    let status = format!("State:\tS (sleeping)\nUid:\t{USER}\t{USER}\t{USER}\t{USER}\nSigCgt:\tffffffffffffffff\n");
    fs::write(process.join("status"), status)?;
    fs::write(process.join("maps"), "1000-2000 r-xp 0 0:0 1 /jdk/lib/server/libjvm.so\n")?;
    fs::write(process.join("cmdline"), "java\0")?;
    fs::write(process.join("task/1/comm"), "Signal Dispatch\n")?;
    for name in ["root", "cwd"] {
        symlink(home.join("root"), process.join(name))?;
    }
    for folder in ["root", "root/tmp"] {
        chown(home.join(folder), Some(USER), Some(USER))?;
    }
    Ok(())
}

#[test]
fn no_process_of_another_user_is_attached_to_or_gets_a_signal() -> Result<()> {
    let copy = Copy::new()?;
    let jvm = Workload::new("Allocations").start()?;
    for user in [0, USER] {
        let line = helper_line(jvm.pid(), user, "/proc", "VM.version")?;
        let finished = copy.as_user(&line.iter().map(String::as_str).collect::<Vec<_>>())?;
        ensure!(finished.code() == Some(1) && !finished.stdout.contains("Done"), "{finished:?}");
    }
    // SIGQUIT ends whoever does not expect it.
    let mut other = Command::new("sleep").arg("60").spawn()?;
    let home = copy.home("proc")?;
    made_up_proc(&home, other.id())?;
    let line = helper_line(other.id(), USER, home.to_str().context("text")?, "VM.version")?;
    let finished = copy.as_user(&line.iter().map(String::as_str).collect::<Vec<_>>())?;
    let ended = other.try_wait()?;
    other.kill()?;
    other.wait()?;
    ensure!(ended.is_none() && finished.code() == Some(1), "it got a signal and ended: {ended:?}, {finished:?}");
    // Neither the JVM, which would have said so.
    ensure!(!jvm.stdout().contains("Full thread dump"), "{}", jvm.stdout());
    // Root may.
    let line = helper_line(jvm.pid(), 0, "/proc", "VM.version")?;
    let finished = copy.as_root(&line.iter().map(String::as_str).collect::<Vec<_>>())?;
    ensure!(finished.code() == Some(0) && finished.stdout.contains("Done"), "{finished:?}");
    Ok(())
}

#[test]
fn the_load_of_a_calibration_has_no_capabilities() -> Result<()> {
    let copy = Copy::new()?;
    let mut command = Command::new(&copy.program);
    command.args(["--calibration-load-internal", "cpu0"]).uid(USER).gid(USER);
    let mut load = Running::spawn("a load", &mut command)?;
    load.wait_stdout("ready", LIMIT)?;
    let status = fs::read_to_string(format!("/proc/{}/status", load.pid()))?;
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        ensure!(status.contains(&format!("{set}:\t0000000000000000\n")), "{status}");
    }
    Ok(())
}

#[test]
fn root_and_those_behind_sudo_are_served_as_before() -> Result<()> {
    let copy = Copy::new()?;
    let command = ["run", "--quiet", "--energy", "model"];
    let who = ["--", "sh", "-c", "id -u; id -g"];
    let finished = copy.as_root(&[&command[..], &who].concat())?;
    ensure!(finished.code() == Some(0) && finished.stdout == "0\n0", "{finished:?}");
    let finished = copy.as_root(&[&command[..], &["--user", "nobody"], &who].concat())?;
    ensure!(finished.code() == Some(0) && finished.stdout == format!("{USER}\n{USER}"), "{finished:?}");
    // One with few rights, as a service is, cannot execute a file that lends more: there the file lends nothing.
    let few = "-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+syslog,+setuid,+setgid";
    let (lent, plain) = (copy.program.clone(), paths::joular_bpf());
    for (launcher, program) in [(&[][..], lent), (&["setpriv", "--bounding-set", few, "--inh-caps=-all"][..], plain)] {
        let line = [launcher, &[program.to_str().context("text")?], &command, &who].concat();
        let (first, rest) = line.split_first().context("a program")?;
        let sudo = [("SUDO_UID", USER.to_string()), ("SUDO_GID", USER.to_string())];
        let finished = copy.finish(Command::new(first).args(rest).envs(sudo))?;
        ensure!(
            finished.code() == Some(0) && finished.stdout == format!("{USER}\n{USER}"),
            "{launcher:?}: {finished:?}"
        );
    }
    Ok(())
}
