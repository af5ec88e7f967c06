//! Reads what /proc says about one process. Everything is bounded, and a process that vanishes
//! meanwhile is simply not there.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read as _},
    path::{Path, PathBuf},
};

use joular_data::{
    events::{ProcessInfo, Runtime},
    model::{
        target_text::TargetText,
        units::{Pid, Tid},
    },
};
use rustix::io::Errno;

use super::{
    containers,
    java::{self, Launched},
    kubernetes::Pods,
    maps::Maps,
    namespaces::{Expect, Links, Owner, TargetRoot},
    service::{
        self, Sources,
        jar::{self, JarIdentity},
        otel::Declared,
        rules::SharedRules,
        unit,
    },
};

use crate::bounds::Bound;

/// Longest command line kept.
const MAX_COMMAND_LINE: u64 = 16 * 1024;
/// Longest text of the other files.
const MAX_FILE: u64 = 64 * 1024;
/// Threads of one process that are looked at.
const MAX_THREADS: usize = 1 << 14;
pub static COMMAND_LINES: Bound = Bound::new(
    "command_line_cut",
    MAX_COMMAND_LINE,
    "bytes of a command line",
    "the rest is not recorded, and the main class of a JVM may be in it",
);
pub static THREADS: Bound = Bound::new(
    "threads_not_listed",
    MAX_THREADS as u64,
    "threads of a process that are looked for by name or by their numbers in its namespace",
    "allocation of the rest is not known",
);
/// Clock ticks of `/proc/PID/stat`: 100 per second on every Linux port (USER_HZ).
pub const TICK_NS: u64 = 10_000_000;

/// Where a process comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descent {
    pub parent: Pid,
    pub start_boottime_ns: u64,
}

/// The /proc of the host.
#[derive(Clone, Debug)]
pub struct ProcFiles {
    root: PathBuf,
    /// Name services.
    rules: SharedRules,
    /// Know what Kubernetes runs here.
    pods: Pods,
}

impl ProcFiles {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), rules: SharedRules::default(), pods: Pods::default() }
    }

    /// The same, where these rules name services.
    #[must_use]
    pub fn with_rules(self, rules: SharedRules) -> Self {
        Self { rules, ..self }
    }

    pub const fn rules(&self) -> &SharedRules {
        &self.rules
    }

    /// The same, where these pods are known.
    #[must_use]
    pub fn with_pods(self, pods: Pods) -> Self {
        Self { pods, ..self }
    }

    pub const fn pods(&self) -> &Pods {
        &self.pods
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All processes there are now.
    pub fn pids(&self) -> Vec<Pid> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let mut pids: Vec<Pid> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid)).collect();
        pids.sort_unstable();
        pids
    }

    /// Name of the process, read cheaply: enough to decide whether it is wanted.
    pub fn comm(&self, pid: Pid) -> Option<TargetText> {
        let bytes = self.read(pid, "comm", 64)?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').into())
    }

    /// Whether the process that started then is still there; true if that is not known.
    pub fn is_there(&self, pid: Pid, start_boottime_ns: u64) -> bool {
        let mut text = Vec::new();
        let read = File::open(self.path(pid, "stat")).and_then(|file| file.take(MAX_FILE).read_to_end(&mut text));
        match read {
            Ok(_) => parse_stat(&String::from_utf8_lossy(&text))
                .is_none_or(|stat| stat.start_ticks.saturating_mul(TICK_NS) == start_boottime_ns),
            Err(error) => {
                error.kind() != io::ErrorKind::NotFound && error.raw_os_error() != Some(Errno::SRCH.raw_os_error())
            }
        }
    }

    /// What it descends from, read cheaply.
    pub fn descent(&self, pid: Pid) -> Option<Descent> {
        let stat = parse_stat(&String::from_utf8_lossy(&self.read(pid, "stat", MAX_FILE)?))?;
        Some(Descent { parent: stat.parent, start_boottime_ns: stat.start_ticks.saturating_mul(TICK_NS) })
    }

    /// Effective user and group.
    pub fn user(&self, pid: Pid) -> Option<(u32, u32)> {
        let status = String::from_utf8_lossy(&self.read(pid, "status", MAX_FILE)?).into_owned();
        Some((status_field(&status, "Uid:", 1), status_field(&status, "Gid:", 1)))
    }

    /// Name of one of its threads.
    pub fn thread_comm(&self, pid: Pid, tid: Tid) -> Option<TargetText> {
        let bytes = self.read(pid, &format!("task/{tid}/comm"), 64)?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').into())
    }

    /// Threads whose name is wanted, each with its number in its own namespace.
    pub fn threads_named(&self, pid: Pid, wanted: impl Fn(&str) -> bool) -> Vec<(Tid, u32)> {
        let directory = self.root.join(pid.to_string()).join("task");
        let Ok(entries) = fs::read_dir(&directory) else { return Vec::new() };
        let mut entries = entries.flatten().peekable();
        let tids = entries.by_ref().take(MAX_THREADS).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let named = tids.map(Tid).filter(|&tid| self.thread_comm(pid, tid).is_some_and(|name| wanted(name.raw())));
        let numbered = named.filter_map(|tid| Some((tid, self.thread_number(pid, tid)?))).collect();
        THREADS.cut_of(pid, entries.count() as u64);
        numbered
    }

    /// The number of one of its threads in the thread's own namespace.
    pub fn thread_number(&self, pid: Pid, tid: Tid) -> Option<u32> {
        let status = self.read(pid, &format!("task/{tid}/status"), MAX_FILE)?;
        Some(namespace_pid(&String::from_utf8_lossy(&status)).unwrap_or(tid.0))
    }

    /// Whether it has such a thread; true if that is not known.
    pub fn has_thread(&self, pid: Pid, tid: Tid) -> bool {
        self.path(pid, &format!("task/{tid}")).try_exists().unwrap_or(true)
    }

    /// Everything to know about a process. It may make us wait.
    pub fn process(&self, pid: Pid) -> Option<ProcessInfo> {
        let outline = self.outline(pid)?;
        let mut command_line = self.read(pid, "cmdline", MAX_COMMAND_LINE + 1).unwrap_or_default();
        if command_line.len() as u64 > MAX_COMMAND_LINE {
            COMMAND_LINES.cut_of(pid, 1);
            command_line.pop();
        }
        let command_line = split_command_line(&command_line);
        let launcher = outline.executable.as_ref().map(TargetText::raw).filter(|path| java::is_launcher(path));
        let launched = launcher.and_then(|_| Launched::of_line(&command_line, |path| self.text(pid, path)));
        let runtime = self.runtime(pid, launcher, launched.as_ref(), &command_line);
        let environment = self.read(pid, "environ", MAX_FILE).unwrap_or_default();
        let declared = Declared::read(&environment, &command_line);
        let jar = launched.as_ref().and_then(Launched::jar).map(|path| self.jar(pid, path));
        let info = ProcessInfo { command_line, runtime, ..outline };
        let service = Some(service::of(&info, Sources { jar, declared }, &self.rules.now()));
        Some(ProcessInfo { service, ..info })
    }

    /// Takes over what a JVM says that it runs. Returns whether that is new.
    pub fn learn_command(&self, info: &mut ProcessInfo, command: &TargetText) -> bool {
        let Some(launched) = Launched::of_command(command.raw(), &info.command_line) else { return false };
        let Runtime::Jvm { main_class, .. } = &mut info.runtime else { return false };
        let title = Some(launched.title());
        if *main_class == title {
            return false;
        }
        *main_class = title;
        info.service = service::launched(info, &launched, &self.rules.now());
        true
    }

    /// A process of which no more can be learned, with the service that follows.
    pub fn with_service(&self, info: ProcessInfo) -> ProcessInfo {
        ProcessInfo { service: Some(service::of(&info, Sources::default(), &self.rules.now())), ..info }
    }

    /// A process with another name, and the service that follows.
    pub fn renamed(&self, info: &ProcessInfo, comm: &TargetText) -> ProcessInfo {
        let info = ProcessInfo { comm: comm.clone(), ..info.clone() };
        ProcessInfo { service: service::renamed(&info, &self.rules.now()), ..info }
    }

    /// A process whose pod is known only now, or known better, and the service that follows. `None`: nothing is new.
    pub fn placed(&self, info: &ProcessInfo) -> Option<ProcessInfo> {
        let workload = self.pods.find(info.container.as_ref(), info.pod.as_ref());
        if workload.is_none() || workload == info.workload {
            return None;
        }
        let info = ProcessInfo { workload, ..info.clone() };
        Some(ProcessInfo { service: Some(service::placed(&info, &self.rules.now())), ..info })
    }

    /// Control group of a process.
    pub fn cgroup(&self, pid: Pid) -> Option<TargetText> {
        let text = self.read(pid, "cgroup", MAX_FILE)?;
        containers::cgroup_path(&String::from_utf8_lossy(&text)).map(TargetText::from)
    }

    /// What the kernel knows without asking the process's memory or files.
    pub fn outline(&self, pid: Pid) -> Option<ProcessInfo> {
        let stat = parse_stat(&String::from_utf8_lossy(&self.read(pid, "stat", MAX_FILE)?))?;
        let status = String::from_utf8_lossy(&self.read(pid, "status", MAX_FILE)?).into_owned();
        let executable =
            fs::read_link(self.path(pid, "exe")).ok().map(|path| path.to_string_lossy().into_owned().into());
        let cgroup = self.cgroup(pid);
        let container = cgroup.as_ref().map(|path| containers::container_of(path.raw())).unwrap_or_default();
        let unit = cgroup.as_ref().and_then(|path| unit::of_cgroup(path.raw())).map(TargetText::from);
        let workload = self.pods.find(container.id.as_ref(), container.pod.as_ref());
        Some(self.with_service(ProcessInfo {
            pid,
            start_boottime_ns: stat.start_ticks.saturating_mul(TICK_NS),
            parent: stat.parent,
            comm: stat.comm,
            command_line: Vec::new(),
            executable,
            uid: status_field(&status, "Uid:", 1),
            gid: status_field(&status, "Gid:", 1),
            namespace_pid: namespace_pid(&status).unwrap_or(pid.0),
            cgroup,
            container: container.id,
            pod: container.pod,
            unit,
            workload,
            service: None,
            runtime: Runtime::Native,
            is_target: false,
            is_helper: false,
        }))
    }

    /// Recognises a JVM by its launcher, or by libjvm in its memory.
    fn runtime(
        &self,
        pid: Pid,
        launcher: Option<&str>,
        launched: Option<&Launched>,
        command_line: &[TargetText],
    ) -> Runtime {
        if launcher.is_none() && !self.maps_libjvm(pid) {
            return Runtime::Native;
        }
        let release = launcher.and_then(|path| self.release(pid, path));
        java::runtime(launched, command_line, release.as_deref())
    }

    /// The `release` file beside a launcher. The process chooses the file there, and beside a
    /// launcher that was replaced it describes the successor.
    fn release(&self, pid: Pid, launcher: &str) -> Option<String> {
        if launcher.ends_with(java::DELETED) {
            return None;
        }
        self.text(pid, Path::new(launcher).parent()?.parent()?.join("release").to_str()?)
    }

    /// The text of a small file, by the path that the process knows it by. The process chooses what is there.
    fn text(&self, pid: Pid, path: &str) -> Option<String> {
        let mut text = Vec::new();
        self.file(pid, path, MAX_FILE)?.take(MAX_FILE).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// A file of at most so many bytes, by the path that the process knows it by.
    fn file(&self, pid: Pid, path: &str, max_bytes: u64) -> Option<File> {
        let directory = fs::read_link(self.path(pid, "cwd")).unwrap_or_default();
        let expect = Expect { links: Links::WithinRoot, owner: Owner::Anyone, max_bytes };
        TargetRoot::open(&self.root, pid).ok()?.open_file(directory.join(path).to_str()?, &expect).ok()
    }

    /// The jar that a JVM runs. The process chooses that file.
    fn jar(&self, pid: Pid, path: &str) -> JarIdentity {
        jar::identity(java::file_name(path), self.manifest(pid, path).as_deref())
    }

    fn manifest(&self, pid: Pid, path: &str) -> Option<String> {
        let mut jar = BufReader::new(self.file(pid, path, u64::MAX)?.take(jar::MAX_READ));
        let manifest = jar::manifest(&mut jar);
        if manifest.is_none() && jar.into_inner().limit() == 0 {
            jar::BYTES.cut_of(pid, 1);
        }
        manifest
    }

    /// Whether HotSpot is in its memory, even one whose file was replaced.
    pub fn maps_libjvm(&self, pid: Pid) -> bool {
        Maps::read(&self.root, pid).is_ok_and(|maps| maps.has_libjvm())
    }

    fn path(&self, pid: Pid, file: &str) -> PathBuf {
        self.root.join(pid.0.to_string()).join(file)
    }

    fn read(&self, pid: Pid, file: &str, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path(pid, file)).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

pub(super) struct Stat {
    pub(super) comm: TargetText,
    pub(super) parent: Pid,
    pub(super) start_ticks: u64,
}

/// `pid (comm) state ppid … starttime …`: the name may itself hold spaces and
/// parentheses, so the last `)` ends it (proc(5)).
pub(super) fn parse_stat(text: &str) -> Option<Stat> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
    Some(Stat {
        comm: text.get(open + 1..close)?.into(),
        parent: Pid(fields.get(1)?.parse().ok()?),
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

/// The `nth` number of a line of `/proc/PID/status`; the second of `Uid:` is
/// the effective one.
fn status_field(status: &str, name: &str, nth: usize) -> u32 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().nth(nth)?.parse().ok())
        .unwrap_or(u32::MAX)
}

/// The pid in the innermost namespace: the last of `NSpid:`.
fn namespace_pid(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().next_back()?.parse().ok())
}

fn split_command_line(bytes: &[u8]) -> Vec<TargetText> {
    let is_cut = bytes.len() as u64 >= MAX_COMMAND_LINE;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    let mut words: Vec<String> = bytes.split(|byte| *byte == 0).map(text).collect();
    if let Some(last) = words.last_mut().filter(|_| is_cut) {
        *last = cut_short(last);
    }
    words.into_iter().map(Into::into).collect()
}

/// What is kept of a word of which the end is not known: its name. Of its value nobody could tell whether it is secret, as
/// `//user:pass` is not user information without what comes after it.
fn cut_short(word: &str) -> String {
    let kept = match word.find(['=', ':']) {
        Some(at) => word.get(..=at).unwrap_or_default(),
        None if word.starts_with('-') => "-",
        None => "",
    };
    format!("{kept}…")
}

#[cfg(test)]
mod tests;
