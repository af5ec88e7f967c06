//! The parts together, on real JVMs.

use std::{
    collections::HashSet,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use joular_ebpf::abi::FrameWord;

use super::{jvm::Jvm, memory::ProcessMemory, *};
use crate::{
    procs::maps::Maps,
    stacks::{Frame, FrameKind},
    units::{Address, Pid},
};

/// A program whose methods are known, which says when they are warm.
const PROGRAM: &str = r#"
public class Known {
    static volatile long sink;
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static int outer(int n) { return middle(n) + 1; }
    static int middle(int n) { return inner(n) * 3; }
    static int inner(int n) { int s = 0; for (int i = 0; i < n; i++) { s += i ^ (s << 1); } return s; }
    static int library(int n) { return java.util.stream.IntStream.range(n, n + 40).mapToObj(i -> "k" + i).sorted().map(String::hashCode).reduce(0, (a, b) -> a ^ b); }
    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + 60_000_000_000L;
        boolean said = false;
        for (int round = 0; System.nanoTime() < end; round++) {
            sink += fib(15) + outer(round & 0xff) + (round % 8 == 0 ? library(round) : 0);
            if (round > 20_000 && !said) { said = true; System.out.println("warm"); }
            if (said) { Thread.sleep(1); }
        }
    }
}
"#;

/// The compiled program, if there is a compiler.
fn classes() -> Option<&'static Path> {
    static CLASSES: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let directory = CLASSES.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("Known.java");
        std::fs::write(&source, PROGRAM).unwrap();
        let mut compiler = Command::new("javac");
        compiler.args(["--release", "11", "-g", "-d"]).arg(directory.path()).arg(&source);
        compiler.output().ok().filter(|output| output.status.success()).map(|_| directory)
    });
    directory.as_ref().map(tempfile::TempDir::path)
}

/// JVMs to test with: the system's, and those that `JOULAR_JDKS` names (`:` between).
fn javas() -> Vec<PathBuf> {
    let more = std::env::var("JOULAR_JDKS").unwrap_or_default();
    let more = more.split(':').filter(|path| !path.is_empty()).map(PathBuf::from);
    more.chain(["java".into()]).collect()
}

/// A running JVM, ended on drop.
struct LiveJvm {
    child: Child,
    name: String,
}

impl LiveJvm {
    /// `None`, with a word, if this machine cannot run it.
    fn start(java: &Path, flags: &[&str]) -> Option<Self> {
        let Some(classes) = classes() else {
            println!("skipped: no javac");
            return None;
        };
        let mut command = Command::new(java);
        command.args(flags).arg("-cp").arg(classes).arg("Known").stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            println!("skipped: {} does not start", java.display());
            return None;
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let jvm = Self { child, name: format!("{} {flags:?}", java.display()) };
        assert_eq!(line, "warm\n", "{}", jvm.name);
        Some(jvm)
    }

    fn memory(&self) -> ProcessMemory {
        ProcessMemory::open(Path::new("/proc"), Pid(self.child.id())).unwrap()
    }

    fn maps(&self) -> Maps {
        Maps::read(Path::new("/proc"), Pid(self.child.id())).unwrap()
    }

    fn build(&self) -> (JvmBuild, u64) {
        let maps = self.maps();
        let code = maps.iter().find(|mapping| mapping.executable && mapping.file_name() == Some("libjvm.so")).unwrap();
        let file = File::open(code.path.as_deref().unwrap()).unwrap();
        let libjvm = Libjvm::read(&file).unwrap();
        let bias = libjvm.bias(code.start.0, code.offset);
        (JvmBuild::read(&self.memory(), libjvm, bias).unwrap(), bias)
    }

    fn attach(&self) -> Jvm {
        let (build, bias) = self.build();
        Jvm::attach(Box::new(self.memory()), build.into(), bias).unwrap()
    }
}

impl Drop for LiveJvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn each_jvm(flags: &[&str], check: impl Fn(&LiveJvm)) {
    for java in javas() {
        if let Some(jvm) = LiveJvm::start(&java, flags) {
            check(&jvm);
        }
    }
}

#[test]
fn what_the_kernel_side_needs_is_found() {
    each_jvm(&[], |jvm| {
        let attached = jvm.attach();
        let (memory, unwind) = (jvm.memory(), attached.unwind_info());
        let maps = jvm.maps();
        let is_code = |address: u64| maps.find(Address(address)).is_some_and(|mapping| mapping.is_generated_code());
        for heap in unwind.code_heaps.iter().filter(|heap| heap.memory.end != 0) {
            assert!(is_code(heap.memory.start), "{}", jvm.name);
        }
        assert!(is_code(unwind.interpreter.start) && is_code(unwind.call_stub_return));
        assert!(unwind.interpreter.start <= unwind.method_entries.start);
        assert!(unwind.method_entries.start < unwind.method_entries.end);
        assert!(unwind.method_entries.end <= unwind.interpreter.end);
        assert_eq!(memory.c_string(unwind.nmethod_names[0], 64).unwrap(), b"nmethod");
        assert_eq!(memory.c_string(unwind.native_names[0], 64).unwrap(), b"native nmethod");
        assert_eq!(memory.c_string(unwind.vtable_names[0], 64).unwrap(), b"vtable chunks");
        assert_eq!(unwind.continuation_stubs.start != 0, attached.facts().feature >= 21);
    });
}

#[test]
fn facts_of_a_jvm() {
    for (flags, collector, debug) in [
        (&["-XX:+UseSerialGC", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"][..], "Serial", true),
        (&["-XX:+UseG1GC"], "G1", false),
    ] {
        each_jvm(flags, |jvm| {
            let attached = jvm.attach();
            let facts = attached.facts();
            assert_eq!((facts.collector.as_deref(), facts.debug_non_safepoints), (Some(collector), Some(debug)));
            assert!(facts.version.as_deref().unwrap().starts_with(&facts.feature.to_string()), "{facts:?}");
        });
    }
}

/// Every place that compilers have described in all living code has names, and
/// those of our own program are right.
#[test]
fn all_compiled_code_has_names() {
    each_jvm(&[], |jvm| {
        let mut attached = jvm.attach();
        let places = attached.all_described();
        let low = attached.unwind_info().code_low;
        let (mut of_fib, mut chains, mut evicted) = (0, HashSet::new(), 0);
        for &(compile_id, pc) in &places {
            let offset = u32::try_from(pc - low).unwrap();
            let frames = attached.resolve(FrameWord::compiled_call(compile_id, offset));
            assert!(!frames.is_empty());
            // Code goes on being made and thrown away meanwhile.
            if frames[0].kind == FrameKind::Marker {
                evicted += 1;
                continue;
            }
            for frame in &frames {
                check_method(frame, &jvm.name);
            }
            assert!(frames[1..].iter().all(|frame| frame.kind == FrameKind::Inlined));
            of_fib += usize::from(frames.iter().any(|frame| frame.method() == "Known.fib"));
            chains.insert(frames.iter().map(Frame::method).collect::<Vec<_>>().join(";"));
        }
        println!("{}: {} places, {evicted} evicted, {of_fib} of fib", jvm.name, places.len());
        assert!(places.len() > 1000 && evicted * 4 < places.len() && of_fib > 0, "{}", jvm.name);
        let inlined = "Known.outer;Known.middle;Known.inner";
        assert!(chains.contains(inlined), "{}: {chains:?}", jvm.name);
    });
}

fn check_method(frame: &Frame, jvm: &str) {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_$.<>-".contains(c));
    let class = frame.class.as_deref().unwrap_or_default();
    assert!(is_word(class) && is_word(&frame.name), "{jvm}: {frame:?}");
    let signature = frame.signature.as_deref().unwrap_or_default();
    assert!(signature.starts_with('(') && signature.contains(')'), "{jvm}: {frame:?}");
    if class == "Known" {
        assert_eq!(frame.file.as_deref(), Some("Known.java"));
        let lines = match &*frame.name {
            "fib" => 4..=4,
            "outer" => 5..=5,
            "middle" => 6..=6,
            "inner" => 7..=7,
            _ => 8..=17,
        };
        assert!(lines.contains(&frame.line.unwrap()), "{jvm}: {frame:?}");
    }
}
