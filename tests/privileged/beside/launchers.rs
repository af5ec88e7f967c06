//! Tests that JVMs are found whatever launched them, and are called by what they run, however they were told to.

use std::{ffi::OsStr, fs, os::unix::fs::symlink, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::text,
    java,
    jdk::Jdk,
    process::Running,
    profiler::{END, Output, Run},
};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(60);
/// A JVM says what it runs when its memory has been read, in the first window or the second.
const RECORDED: &str = "6s";
const MAIN: &str = "Busy";

/// A JDK whose launcher has another name. All but the launcher is linked.
struct OwnLauncher {
    _directory: TempDir,
    launcher: PathBuf,
}

impl OwnLauncher {
    fn new(jdk: &Jdk, name: &str) -> Result<Self> {
        let home = jdk.java.parent().and_then(|bin| bin.parent()).context("a JDK without a home")?;
        let directory = tempfile::tempdir()?;
        for entry in fs::read_dir(home).with_context(|| format!("listing {}", home.display()))? {
            let entry = entry?;
            if entry.file_name() != "bin" {
                symlink(entry.path(), directory.path().join(entry.file_name()))?;
            }
        }
        let launcher = directory.path().join("bin").join(name);
        fs::create_dir(directory.path().join("bin"))?;
        fs::copy(&jdk.java, &launcher).with_context(|| format!("copying {}", jdk.java.display()))?;
        Ok(Self { _directory: directory, launcher })
    }
}

fn start<S: AsRef<OsStr>>(command: &mut Command, arguments: &[S]) -> Result<Running> {
    let mut jvm = Running::spawn("a JVM", command.args(arguments))?;
    jvm.wait_stdout("ready", LIMIT)?;
    Ok(jvm)
}

/// A JVM, and what it is to be called: the process, the service, and what gave the service its name.
type Named = (Running, [&'static str; 3]);

#[test]
fn jvms_are_called_by_what_they_run_across_jdks() -> Result<()> {
    let (output, files, classes) = (Output::new()?, tempfile::tempdir()?, java::classes()?);
    let in_file = files.path().join("arguments");
    fs::write(&in_file, format!("# all of it\n-Xmx64m -cp \"{}\"\n{MAIN}\n", classes.display()))?;
    let classes = classes.to_str().context("a path that is not text")?;
    let run = ["-Xmx64m", "-cp", classes, MAIN];
    let (mut jvms, mut launchers): (Vec<(&Jdk, Named)>, Vec<OwnLauncher>) = Default::default();
    for jdk in Jdk::tried()?.into_iter().filter(|jdk| !jdk.is_system) {
        let java = || Command::new(&jdk.java);
        let own = OwnLauncher::new(jdk, "shop-server")?;
        let main = |comm| [comm, MAIN, "main-class"];
        jvms.extend([
            (jdk, (start(&mut java(), &[format!("@{}", in_file.display())])?, main("java"))),
            (jdk, (start(java().args(["--add-reads", "java.base=ALL-UNNAMED"]), &run)?, main("java"))),
            (jdk, (start(&mut Command::new(&own.launcher), &run)?, main("shop-server"))),
            (jdk, (start(java().env("OTEL_SERVICE_NAME", "checkout"), &run)?, ["java", "checkout", "otel"])),
        ]);
        launchers.push(own);
    }
    let recorded = Run::modelled().argument("--jvms").with("--duration", RECORDED).output(output.dir());
    let finished = recorded.finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    jvms.iter().try_for_each(|(jdk, named)| judge(&output, named).with_context(|| format!("JDK {jdk}")))
}

fn judge(output: &Output, (jvm, [comm, service, from]): &Named) -> Result<()> {
    let rows = output.data.rows(&format!(
        "SELECT arg_max(comm, window_start) AS comm, arg_max(main_class, window_start) AS main_class, \
         arg_max(service, window_start) AS service, arg_max(service_from, window_start) AS service_from \
         FROM processes WHERE pid = {}",
        jvm.pid()
    ))?;
    let row = rows.first().context("it is not in table processes")?;
    let found = [text(row, "comm")?, text(row, "main_class")?, text(row, "service")?, text(row, "service_from")?];
    ensure!(found == [comm, MAIN, service, from], "{found:?} instead of {comm}, {MAIN}, {service}, {from}");
    Ok(())
}
