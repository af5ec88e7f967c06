//! Compiles the Java workloads of `tests/fixtures/java` once, starts them, and waits until they say
//! `ready`.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

pub use crate::jdk::{Collector, Jdk};
use crate::{
    paths,
    process::{Finished, Running},
    schedstat,
};

/// A cold JVM on a loaded machine needs seconds; a minute means that it hangs.
const READY: Duration = Duration::from_secs(180);

/// A thread stops when it next leaves the kernel: at the latest with its next tick.
const FREEZE: Duration = Duration::from_secs(10);

/// Path of a JDK tool: below `JAVA_HOME` if that is set, else from `PATH`.
pub fn tool(name: &str) -> PathBuf {
    env::var_os("JAVA_HOME")
        .map(|home| Path::new(&home).join("bin").join(name))
        .filter(|path| path.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// The class path of the workloads, compiled if a source is newer.
pub fn classes() -> Result<PathBuf> {
    static CLASSES: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    CLASSES.get_or_init(|| compile().map_err(|e| format!("{e:#}"))).clone().map_err(anyhow::Error::msg)
}

fn compile() -> Result<PathBuf> {
    let mut sources = Vec::new();
    list_sources(&paths::fixtures().join("java"), &mut sources)?;
    let classes = paths::target().join("fixtures/java");
    let mains: Vec<_> = sources.iter().map(|(path, _)| path.clone()).collect();
    compile_newer(&sources, &classes, |javac| javac.args(mains))?;
    Ok(classes)
}

/// Compiles a class with all that it needs, of sources in a directory and of jars, to `classes`.
pub fn compile_class(sources: &Path, file: &str, jars: &str, classes: &Path) -> Result<()> {
    let mut found = Vec::new();
    list_sources(sources, &mut found)?;
    compile_newer(&found, classes, |javac| {
        javac.arg("-sourcepath").arg(sources.parent().unwrap_or(sources)).args(["-cp", jars]).arg(sources.join(file))
    })
}

/// Compiles if a source is newer than what was compiled.
fn compile_newer(
    sources: &[(PathBuf, SystemTime)],
    classes: &Path,
    what: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<()> {
    let stamp = classes.join("compiled");
    let compiled = fs::metadata(&stamp).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let newest = sources.iter().map(|(_, modified)| *modified).max().context("there are no Java sources")?;
    if newest < compiled {
        return Ok(());
    }
    fs::create_dir_all(classes).with_context(|| format!("creating {}", classes.display()))?;
    let mut javac = Command::new(tool("javac"));
    what(javac.args(["--release", "11", "-nowarn", "-d"]).arg(classes));
    let output = javac.output().context("starting javac: is a JDK installed? `cargo xtask setup` says how")?;
    ensure!(output.status.success(), "javac: {}", String::from_utf8_lossy(&output.stderr));
    fs::write(&stamp, "").with_context(|| format!("writing {}", stamp.display()))
}

fn list_sources(dir: &Path, found: &mut Vec<(PathBuf, SystemTime)>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list_sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "java") {
            let modified = fs::metadata(&path)?.modified()?;
            found.push((path, modified));
        }
    }
    Ok(())
}

/// A JVM about to be started.
pub struct Workload {
    java: PathBuf,
    main_class: String,
    flags: Vec<String>,
    arguments: Vec<String>,
    /// A program that becomes the JVM, with its arguments before those of the JVM.
    launcher: Vec<String>,
    /// The name of its process instead of `java`.
    name: Option<String>,
}

impl Workload {
    pub fn new(main_class: &str) -> Self {
        // Small heaps, so that several JVMs fit any machine.
        let flags = vec!["-Xmx256m".to_owned(), "-XX:CompileCommand=quiet".to_owned()];
        Self {
            java: tool("java"),
            main_class: main_class.to_owned(),
            flags,
            arguments: Vec::new(),
            launcher: Vec::new(),
            name: None,
        }
    }

    /// Runs it on this JDK instead of the system's.
    pub fn jdk(self, jdk: &Jdk) -> Self {
        self.java(&jdk.java)
    }

    /// The same by the path of its `java`.
    pub fn java(self, java: &Path) -> Self {
        Self { java: java.to_owned(), ..self }
    }

    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Lets frame pointers lead through compiled frames.
    pub fn frame_pointers(self) -> Self {
        self.flag("-XX:+PreserveFramePointer")
    }

    pub fn dont_inline(self, method: &str) -> Self {
        self.flag(&format!("-XX:CompileCommand=dontinline,{method}"))
    }

    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Keeps all its threads on one CPU.
    pub fn cpu(self, cpu: usize) -> Self {
        self.launched_by(&["taskset", "--cpu-list", &cpu.to_string()])
    }

    /// Started by a program that executes what stands behind its arguments.
    pub fn launched_by(self, launcher: &[&str]) -> Self {
        Self { launcher: launcher.iter().map(|&argument| argument.to_owned()).collect(), ..self }
    }

    /// Gives its process another name than `java`, so that who records those has it not.
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Starts it and waits for its `ready`.
    pub fn start(mut self) -> Result<Jvm> {
        let link = self.name.take().map(|name| Link::new(&self.java, &name)).transpose()?;
        if let Some(link) = &link {
            self.java.clone_from(&link.java);
        }
        let mut command = match self.launcher.split_first() {
            Some((launcher, arguments)) => {
                let mut command = Command::new(launcher);
                command.args(arguments).arg(&self.java);
                command
            }
            None => Command::new(&self.java),
        };
        command.args(&self.flags).arg("-cp").arg(classes()?).arg(&self.main_class).args(&self.arguments);
        let mut process = Running::spawn(&self.main_class, &mut command)?;
        process.wait_stdout("ready", READY)?;
        Ok(Jvm { process, _link: link })
    }
}

/// A link by which a JVM is started: its process has the link's name.
struct Link {
    java: PathBuf,
    _directory: TempDir,
}

impl Link {
    fn new(java: &Path, name: &str) -> Result<Self> {
        let search = env::var_os("PATH").unwrap_or_default();
        let mut places = env::split_paths(&search).map(|directory| directory.join(java));
        let java = places.find(|path| path.is_file()).with_context(|| format!("no {} in PATH", java.display()))?;
        let directory = tempfile::tempdir()?;
        let link = directory.path().join(name);
        symlink(java, &link).with_context(|| format!("linking {}", link.display()))?;
        Ok(Self { java: link, _directory: directory })
    }
}

/// A running JVM; killed when dropped.
pub struct Jvm {
    process: Running,
    _link: Option<Link>,
}

impl Jvm {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Stops all its threads; their on-CPU nanoseconds are exact then.
    pub fn freeze(&self) -> Result<BTreeMap<u32, u64>> {
        self.signal(Signal::STOP)?;
        schedstat::when_stopped(self.pid(), FREEZE)
    }

    /// Lets a frozen one go on.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Everything that it has printed so far.
    pub fn stdout(&self) -> String {
        self.process.stdout()
    }

    /// The JSON objects that it has printed so far, one a line.
    pub fn records(&self) -> Vec<serde_json::Value> {
        self.process.stdout().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Writes a line to its input.
    pub fn say(&mut self, line: &str) -> Result<()> {
        self.process.say(line)
    }

    /// Waits until it ends by itself.
    pub fn finish(self, limit: Duration) -> Result<Finished> {
        self.process.finish(limit)
    }
}

/// Whether a JDK is there, and which.
pub fn version() -> Result<String> {
    let output = Command::new(tool("javac")).arg("-version").output().context("starting javac")?;
    if !output.status.success() {
        bail!("javac -version: {}", String::from_utf8_lossy(&output.stderr));
    }
    // JDK 8 wrote it to the other stream.
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Jars of Debian by which a test of JUnit 4 or 5 runs; their packages bring all that these need.
pub fn junit_jars() -> [PathBuf; 2] {
    ["junit4", "junit-platform-console"].map(|name| PathBuf::from(format!("/usr/share/java/{name}.jar")))
}
