//! Tests the façade on trees made up like /proc, and on real short-lived processes.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use joular_data::{
    events::{RawStack, Runtime},
    model::quality::StackQuality,
    stacks::path::lookup_addresses,
};

use super::*;
use crate::procs::maps::Maps;

pub(super) const CODE: Address = Address(0x7f00_0000_1008);

impl Symbolizer {
    /// Asks for a process's map at once, whatever the pace, and waits for it.
    /// Says whether there is one. Tests need that; a run never waits.
    pub fn ensure_map(&mut self, pid: Pid, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let Some(key) = self.processes.keys().copied().filter(|key| key.0 == pid).max() else { return false };
        let before = self.finished(key);
        loop {
            self.start_request(key, true, Instant::now());
            let left = deadline.saturating_duration_since(Instant::now());
            match self.requests.wait(left) {
                Some(finished) => self.take_in(finished),
                None => break,
            }
            if self.finished(key) != before {
                break;
            }
        }
        self.processes
            .get(&key)
            .and_then(|process| process.code.as_ref())
            .is_some_and(|code| code.generations.is_some())
    }

    fn finished(&self, key: ProcessKey) -> u64 {
        self.processes.get(&key).and_then(|process| process.code.as_ref()).map_or(0, |code| code.finished)
    }
}

/// Process 7 with generated code, and a perf map if `map` has text.
pub(super) fn tree(map: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
    fs::write(directory.path().join("7/maps"), "7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n").unwrap();
    if !map.is_empty() {
        fs::write(directory.path().join("7/root/tmp/perf-3.map"), map).unwrap();
    }
    directory
}

pub(super) fn info(pid: u32, runtime: Runtime) -> ProcessInfo {
    let uid = rustix::process::geteuid().as_raw();
    ProcessInfo { pid: Pid(pid), start_boottime_ns: 1, namespace_pid: 3, uid, runtime, ..Default::default() }
}

fn jvm() -> Runtime {
    Runtime::UNKNOWN_JVM
}

fn symbolizer(proc_root: &Path, helper: Option<&str>) -> Symbolizer {
    Symbolizer::new(proc_root, SymbolizerOptions { attach_helper: helper.map(PathBuf::from) })
}

/// Renews the map until the address is called so: a program that was just
/// written may be busy for a moment, when another test forks meanwhile.
fn renew_until(symbolizer: &mut Symbolizer, process: &ProcessInfo, expected: &str) {
    let mut last = None;
    for _ in 0..20 {
        symbolizer.ensure_map(process.pid, Duration::from_secs(5));
        last = method(&symbolizer.resolve(process, &[CODE]));
        if last.as_deref() == Some(expected) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{last:?} instead of {expected}");
}

/// Polls until there is news.
fn news(symbolizer: &mut Symbolizer) -> Update {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let update = symbolizer.poll();
        if update != Update::default() {
            return update;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no news within 10 s");
}

fn method(symbols: &[Symbol]) -> Option<String> {
    symbols.first()?.frames.first().map(|frame| frame.method().into_raw())
}

#[test]
fn a_perf_map_is_read_when_an_address_asks_for_it() {
    let directory = tree("7f0000001000 10 LazyCompile:*foo file.js:1\n");
    let mut symbolizer = symbolizer(directory.path(), None);
    let node = info(7, Runtime::Native);
    assert_eq!(method(&symbolizer.resolve(&node, &[CODE])), None);
    assert_eq!(news(&mut symbolizer).refreshed, [(Pid(7), 1)]);
    let symbols = symbolizer.resolve(&node, &[CODE, Address(0x10)]);
    assert_eq!(method(&symbols).as_deref(), Some("LazyCompile:*foo file.js:1"));
    assert_eq!((symbols[1].address, symbols[1].frames.len()), (Address(0x10), 0));
    // It was there before us, so it stays.
    symbolizer.finish();
    assert!(directory.path().join("7/root/tmp/perf-3.map").exists());
}

#[test]
fn a_map_that_a_jvm_wrote_for_us_is_removed() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tree("");
    let map = directory.path().join("7/root/tmp/perf-3.map");
    // Stands for helper and JVM: writes the map and says so.
    let helper = directory.path().join("helper");
    let script = format!(
        "#!/bin/sh\necho '7f0000001000 10 int A.b(int)' > {}\necho '{{\"Done\":{{\"text\":\"\"}}}}'\n",
        map.display()
    );
    fs::write(&helper, script).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let mut symbolizer = symbolizer(directory.path(), helper.to_str());
    let java = info(7, jvm());
    symbolizer.process_started(&java);
    renew_until(&mut symbolizer, &java, "A.b");
    // Reused memory: a window that began before the newer map may mean either.
    fs::write(&helper, fs::read_to_string(&helper).unwrap().replace("A.b", "C.d")).unwrap();
    symbolizer.begin_window(crate::clock::monotonic_now());
    renew_until(&mut symbolizer, &java, "[stale]");
    symbolizer.begin_window(crate::clock::monotonic_now());
    assert_eq!(method(&symbolizer.resolve(&java, &[CODE])).as_deref(), Some("C.d"));
    assert!(map.exists());
    symbolizer.process_ended(Pid(7), 1);
    assert!(!map.exists());
}

#[test]
fn a_map_that_a_runtime_wrote_by_itself_stays() {
    let directory = tree("");
    let map = directory.path().join("7/root/tmp/perf-3.map");
    let mut symbolizer = symbolizer(directory.path(), None);
    let node = info(7, Runtime::Native);
    symbolizer.process_started(&node);
    assert_eq!(method(&symbolizer.resolve(&node, &[CODE])), None);
    fs::write(&map, "7f0000001000 10 foo\n").unwrap();
    renew_until(&mut symbolizer, &node, "foo");
    symbolizer.process_ended(Pid(7), 1);
    assert!(map.exists());
}

#[test]
fn an_answer_of_the_program_before_is_not_of_the_one_after() {
    let directory = tree("7f0000001000 10 foo\n");
    let mut symbolizer = symbolizer(directory.path(), None);
    let node = info(7, Runtime::Native);
    assert_eq!(method(&symbolizer.resolve(&node, &[CODE])), None);
    // It executes another program while the map is read.
    symbolizer.process_ended(Pid(7), 1);
    symbolizer.process_started(&node);
    let finished = symbolizer.requests.wait(Duration::from_secs(5)).unwrap();
    assert!(finished.result.is_ok());
    symbolizer.take_in(finished);
    assert_eq!(symbolizer.poll().refreshed, []);
}

#[test]
fn a_jvm_that_cannot_be_asked_stays_without_names() {
    let directory = tree("");
    let mut symbolizer = symbolizer(directory.path(), Some("/none"));
    let java = info(7, jvm());
    symbolizer.process_started(&java);
    assert!(!symbolizer.ensure_map(Pid(7), Duration::from_secs(5)));
    assert_eq!(symbolizer.poll().refreshed, []);
    assert_eq!(method(&symbolizer.resolve(&java, &[CODE])), None);
    symbolizer.finish();
}

#[test]
fn an_unknown_process_has_no_names_and_does_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let mut symbolizer = symbolizer(directory.path(), None);
    assert_eq!(method(&symbolizer.resolve(&info(9, Runtime::Native), &[CODE])), None);
    assert!(!symbolizer.ensure_map(Pid(8), Duration::ZERO));
    symbolizer.process_ended(Pid(9), 1);
}

#[test]
fn hidden_kernel_symbols_are_told_once() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("kallsyms"), "0000000000000000 T _text\n").unwrap();
    let mut symbolizer = symbolizer(directory.path(), None);
    for notices in [1, 0] {
        assert_eq!(method(&symbolizer.resolve_kernel(&[Address(1)])), None);
        assert_eq!(symbolizer.poll().notices.len(), notices);
    }
}

#[test]
fn kernel_stacks_keep_one_address_of_each_function() {
    let directory = tempfile::tempdir().unwrap();
    let text = "ffffffff81000000 T _text\nffffffff81000100 t enter\nffffffff81000200 t leave\n";
    fs::write(directory.path().join("kallsyms"), text).unwrap();
    let mut symbolizer = symbolizer(directory.path(), None);
    let at = |offset: u64| Address(0xffff_ffff_8100_0000 + offset);
    let names = |symbolizer: &mut Symbolizer, stack: &RawStack| -> Vec<Option<String>> {
        let addresses: Vec<Address> = lookup_addresses(stack).collect();
        addresses.iter().map(|address| method(&symbolizer.resolve_kernel(&[*address]))).collect()
    };
    // The second one returns to the first byte behind its function, the last is nowhere.
    let stack = |frames: &[Address]| {
        let frames = frames.to_vec();
        RawStack { id: 1, is_kernel: true, quality: StackQuality::default(), frames }
    };
    let mut stacks = [[at(0x180), at(0x200), at(0x250), Address(8)], [at(0x1ff), at(0x1f0), at(0x2ff), Address(8)]]
        .map(|frames| (0, stack(&frames)));
    let before = stacks.clone().map(|(_, stack)| names(&mut symbolizer, &stack));
    symbolizer.take_in_kernel_stacks(&mut stacks);
    assert_eq!(before, stacks.clone().map(|(_, stack)| names(&mut symbolizer, &stack)));
    let expected = [at(0x100), at(0x101), at(0x201), Address(8)];
    assert_eq!(stacks.map(|(_, stack)| stack.frames), [expected.to_vec(), expected.to_vec()]);
}

/// A child of ours, ended on drop.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It answers when its libraries are mapped.
        use std::io::{Read as _, Write as _};
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn libraries_are_named_after_the_process_has_ended() {
    let sleeper = Sleeper::start();
    let pid = sleeper.0.id();
    let maps = Maps::read(Path::new("/proc"), Pid(pid)).unwrap();
    let libc = maps.iter().find(|mapping| mapping.file_name().is_some_and(|name| name.starts_with("libc"))).unwrap();
    let addresses: Vec<Address> = (libc.start.0..libc.end.0).step_by(4096).map(Address).collect();
    let mut symbolizer = symbolizer(Path::new("/proc"), None);
    let info = info(pid, Runtime::Native);
    symbolizer.process_started(&info);
    drop(sleeper);
    let symbols = symbolizer.resolve(&info, &addresses);
    let frames: Vec<&Frame> = symbols.iter().flat_map(|symbol| &symbol.frames).collect();
    assert_eq!(frames.len(), addresses.len());
    assert!(frames.iter().any(|frame| !frame.is_unresolved()));
    symbolizer.process_ended(Pid(pid), 1);
}

#[test]
fn names_of_other_runtimes_are_kept_as_they_are() {
    let frame = perf_map_frame(None, "LazyCompile:*foo file.js:1\n");
    assert_eq!((frame.kind, frame.name.raw()), (FrameKind::Native, "LazyCompile:*foo file.js:1"));
}
