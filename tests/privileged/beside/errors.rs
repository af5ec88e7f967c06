//! Tests that what is missing is named, with an exit code that scripts can use.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Result;
use joular_tests::{
    paths,
    process::{Finished, Running},
    profiler::{Output, Run},
};

use crate::burner::Burner;

const LIMIT: Duration = Duration::from_secs(30);

/// The kernel's `nobody`, on every distribution.
const NOBODY: u32 = 65534;

/// A user without rights, with a copy of joular-bpf in a directory of their own:
/// the one in `target` may lie below a home that they cannot enter.
pub struct Unprivileged {
    dir: tempfile::TempDir,
    program: PathBuf,
}

impl Unprivileged {
    pub fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let program = dir.path().join("joular-bpf");
        fs::copy(paths::joular_bpf(), &program)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        chown(dir.path(), Some(NOBODY), Some(NOBODY))?;
        Ok(Self { dir, program })
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// A copy of a file that they may read.
    pub fn adopt(&self, file: &Path) -> Result<String> {
        let copy = self.path("adopted");
        fs::copy(file, &copy)?;
        chown(&copy, Some(NOBODY), Some(NOBODY))?;
        Ok(copy)
    }

    pub fn joular_bpf(&self, arguments: &[&str]) -> Result<Running> {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]);
        Running::spawn("joular-bpf", command.arg(&self.program).args(arguments).current_dir(self.dir.path()))
    }
}

fn expect_error(finished: &Finished, code: i32, words: &[&str]) {
    assert_eq!(finished.code(), Some(code), "{finished:?}");
    for word in words {
        assert!(finished.stderr.contains(word), "the message lacks '{word}': {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

#[test]
fn without_privileges_it_says_which_are_missing() -> Result<()> {
    let user = Unprivileged::new()?;
    let finished = user.joular_bpf(&["--all", "--duration", "2s", "--output", &user.path("out")])?.finish(LIMIT)?;
    expect_error(&finished, 3, &["root"]);
    Ok(())
}

#[test]
fn doctor_works_without_privileges_and_says_what_is_missing() -> Result<()> {
    let user = Unprivileged::new()?;
    let finished = user.joular_bpf(&["doctor"])?.finish(LIMIT)?;
    assert_ne!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.code().is_some(), "a signal ended it: {finished:?}");
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("root") || said.contains("CAP_BPF"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    Ok(())
}

#[test]
fn doctor_finds_this_machine_fit() -> Result<()> {
    let finished = Run::new().argument("doctor").finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.contains("BTF"), "{}", finished.stdout);
    Ok(())
}

/// Runs it in a mount namespace of its own, in which the kernel shows no BTF.
fn without_btf(arguments: &str) -> Result<Finished> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    command.arg(format!("mount -t tmpfs -o ro none /sys/kernel/btf && exec \"$0\" {arguments}"));
    Running::spawn("joular-bpf", command.arg(paths::joular_bpf()))?.finish(LIMIT)
}

#[test]
fn without_btf_it_says_so() -> Result<()> {
    let output = Output::new()?;
    let finished = without_btf(&format!("--all --duration 2s --output {}", output.dir().display()))?;
    expect_error(&finished, 4, &["BTF"]);
    Ok(())
}

#[test]
fn when_nothing_matches_during_the_run_it_says_so() -> Result<()> {
    let output = Output::new()?;
    let run = Run::modelled().with("--comm", "no-such-process").with("--duration", "2s").output(output.dir());
    expect_error(&run.finish(LIMIT)?, 5, &["no-such-process"]);
    Ok(())
}

#[test]
fn a_pid_that_is_not_there_is_named() -> Result<()> {
    let output = Output::new()?;
    let mut gone = Burner::start(&[1])?;
    gone.burn(Duration::from_millis(10))?;
    let pid = gone.pid();
    drop(gone);
    let finished = Run::modelled().pid(pid).with("--duration", "2s").output(output.dir()).finish(LIMIT)?;
    assert!(matches!(finished.code(), Some(2 | 5)), "{finished:?}");
    assert!(finished.stderr.contains(&pid.to_string()), "{}", finished.stderr);
    Ok(())
}

#[test]
fn an_energy_source_that_is_not_there_is_named_with_its_path() -> Result<()> {
    let output = Output::new()?;
    let empty = tempfile::tempdir()?;
    let run = Run::new().argument("--all").with("--energy", "powercap").with("--powercap-root", empty.path());
    let finished = run.with("--duration", "2s").output(output.dir()).finish(LIMIT)?;
    assert!(matches!(finished.code(), Some(1 | 2 | 4)), "{finished:?}");
    assert!(finished.stderr.contains(&empty.path().display().to_string()), "{}", finished.stderr);
    Ok(())
}

#[test]
fn auto_takes_the_model_where_nothing_measures_and_labels_it() -> Result<()> {
    let output = Output::new()?;
    let empty = tempfile::tempdir()?;
    let mut burner = Burner::start(&[100])?;
    burner.begin(Duration::from_secs(20))?;
    let run = Run::new().pid(burner.pid()).with("--energy", "auto").with("--powercap-root", empty.path());
    let finished = run.with("--duration", "2s").output(output.dir()).finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(format!("{}{}", finished.stdout, finished.stderr).contains("model"), "{finished:?}");
    let rows = output.data.rows("SELECT DISTINCT source FROM windows")?;
    assert_eq!(rows, [serde_json::json!({"source": "model"})]);
    Ok(())
}
