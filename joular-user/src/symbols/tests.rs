//! Tests the façade on trees made up like /proc, and on real short-lived processes.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use std::{fs::File, io::Read as _, sync::Arc};

use joular_data::{
    events::{JvmNews, RawStack, Runtime},
    model::quality::StackQuality,
};
use joular_ebpf::abi::FrameWord;

use super::*;
use crate::{
    procs::maps::Maps,
    runtimes::{Build, Instance, LoadedLibrary, OpenError},
};

const CODE: Address = Address(0x7f00_0000_1008);

/// Process 7 with generated code, and a perf map if `map` has text.
fn tree(map: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
    fs::write(directory.path().join("7/maps"), "7f0000000000-7f0000010000 rwxp 00000000 00:00 0 \n").unwrap();
    if !map.is_empty() {
        fs::write(directory.path().join("7/root/tmp/perf-3.map"), map).unwrap();
    }
    directory
}

fn info(pid: u32, runtime: Runtime) -> ProcessInfo {
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

/// A second run-time system: all that it takes to be one.
#[derive(Debug)]
struct Tiny;

/// A version of it, by what its library says.
#[derive(Debug)]
struct TinyBuild(String);

#[derive(Debug)]
struct TinyInstance(Arc<TinyBuild>);

impl RuntimeSystem for Tiny {
    fn name(&self) -> &'static str {
        "tiny"
    }

    fn is_library(&self, file_name: &str) -> bool {
        file_name == "libtiny.so"
    }

    fn is_runtime(&self, _runtime: &Runtime) -> bool {
        false
    }

    fn writes_perf_map_on_request(&self) -> bool {
        false
    }

    fn perf_map_frame(&self, name: &str) -> Frame {
        Frame::new(FrameKind::Stub, name)
    }

    fn read_build(&self, mut file: &File, _library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
        let mut version = String::new();
        file.read_to_string(&mut version).map_err(|error| OpenError::NotUnderstood(error.into()))?;
        Ok(Arc::new(TinyBuild(version)))
    }
}

impl Build for TinyBuild {
    fn open(self: Arc<Self>, library: &LoadedLibrary<'_>) -> Result<Box<dyn Instance>, OpenError> {
        assert_eq!((library.pid, library.mapping.start), (Pid(7), Address(0x1000)));
        Ok(Box::new(TinyInstance(self)))
    }

    fn of_copy(&self, _library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
        Ok(Arc::new(Self(self.0.clone())))
    }
}

impl Instance for TinyInstance {
    fn news(&self) -> Option<JvmNews> {
        let version = Some(self.0.0.as_str().into());
        Some(JvmNews { version, unwinding: Some(Tiny.name().into()), ..JvmNews::default() })
    }

    fn has_code(&self, address: Address) -> bool {
        address == CODE
    }

    fn frames_of_words(&mut self, words: &[FrameWord]) -> Vec<Vec<Frame>> {
        words.iter().map(|word| vec![Frame::new(FrameKind::Compiled, format!("word {:x}", word.0))]).collect()
    }

    fn frames_at(&mut self, address: Address) -> Vec<Frame> {
        ["outer", "inner"].map(|name| Frame::new(FrameKind::Compiled, format!("{name} {:x}", address.0))).to_vec()
    }

    fn pin(&mut self, stacks: &mut [(u8, RawStack)]) {
        for (generation, stack) in stacks {
            stack.frames.iter_mut().for_each(|word| word.0 += u64::from(*generation));
        }
    }

    fn end_window(&mut self) -> bool {
        true
    }
}

#[test]
fn another_run_time_system_names_its_frames_by_the_same_path() {
    let directory = tree("7f0000000000 1000 from_the_map\n");
    let library = directory.path().join("7/root/lib/libtiny.so");
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    fs::write(&library, "3.2").unwrap();
    let maps = directory.path().join("7/maps");
    let of_code = fs::read_to_string(&maps).unwrap();
    fs::write(&maps, format!("1000-2000 r-xp 00000000 fe:00 1 /lib/libtiny.so\n{of_code}")).unwrap();
    let options = SymbolizerOptions { attach_helper: None };
    let mut symbolizer = Symbolizer::with_systems(directory.path(), options, &[&Tiny]);
    let process = info(7, Runtime::Native);
    let key = (process.pid, process.start_boottime_ns);
    symbolizer.process_started(&process);
    // It is opened beside; this machine may be busy.
    symbolizer.settle(Duration::from_secs(30));

    let news = symbolizer.jvm_news(key).unwrap();
    assert_eq!((news.version, news.unwinding), (Some("3.2".into()), Some("tiny".into())));
    assert_eq!(symbolizer.poll().refreshed, [key]);
    let word = FrameWord::compiled_call(1, 2);
    let elsewhere = Address(CODE.0 + 8);
    let symbols = symbolizer.resolve(&process, &[CODE, Address(word.0), elsewhere]);
    let names: Vec<Vec<&str>> =
        symbols.iter().map(|symbol| symbol.frames.iter().map(|frame| frame.name.raw()).collect()).collect();
    let of_word = format!("word {:x}", word.0);
    assert_eq!(names, [vec!["outer 7f0000001008", "inner 7f0000001008"], vec![&of_word], vec![]]);

    let quality = StackQuality::default();
    let stack = |id, frames| RawStack { id, is_kernel: false, quality, frames };
    let mut stacks = vec![(3, stack(1, vec![CODE])), (4, stack(2, vec![CODE, CODE]))];
    symbolizer.take_in_stacks(&process, &mut stacks);
    let fixed: Vec<&[Address]> = stacks.iter().map(|(_, stack)| &*stack.frames).collect();
    assert_eq!(fixed, [&[Address(CODE.0 + 3)][..], &[Address(CODE.0 + 4); 2]]);
    assert_eq!(symbolizer.names_version(key), 0);
    symbolizer.begin_window(crate::clock::monotonic_now());
    assert_eq!(symbolizer.names_version(key), 1);
    // The kernel has no tables for it: frame pointers lead through its code.
    assert!(symbolizer.runs_system(key) && symbolizer.jvm_unwind(key).is_none());
}
