//! The parts together, on real JVMs.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use super::{memory::ProcessMemory, *};
use crate::{
    procs::maps::Maps,
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
    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + 60_000_000_000L;
        boolean said = false;
        for (int round = 0; System.nanoTime() < end; round++) {
            sink += fib(15) + outer(round & 0xff);
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
        let (build, bias) = jvm.build();
        let memory = jvm.memory();
        let unwind = introspect(&memory, &build, bias).unwrap();
        println!("{}: JDK {} {unwind:#x?}", jvm.name, build.layout.feature);
        let maps = jvm.maps();
        let is_code = |address: u64| maps.find(Address(address)).is_some_and(|mapping| mapping.is_generated_code());
        for heap in unwind.code_heaps.iter().filter(|heap| heap.memory.end != 0) {
            assert!(is_code(heap.memory.start));
        }
        assert!(is_code(unwind.interpreter.start) && is_code(unwind.call_stub_return));
        assert!(unwind.interpreter.start <= unwind.method_entries.start);
        assert!(unwind.method_entries.start < unwind.method_entries.end);
        assert!(unwind.method_entries.end <= unwind.interpreter.end);
        assert_eq!(memory.c_string(unwind.nmethod_names[0], 64).unwrap(), b"nmethod");
        assert_eq!(memory.c_string(unwind.native_names[0], 64).unwrap(), b"native nmethod");
        assert_eq!(memory.c_string(unwind.vtable_names[0], 64).unwrap(), b"vtable chunks");
        assert_eq!(unwind.continuation_stubs.start != 0, build.layout.feature >= 21);
    });
}
