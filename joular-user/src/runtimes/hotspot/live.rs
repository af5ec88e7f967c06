//! Starts real JVMs for tests, with a program whose methods are known.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use joular_data::model::units::Pid;
use joular_ebpf::abi::FrameWord;

use super::{JvmBuild, jvm::Jvm, libjvm::Libjvm, memory::ProcessMemory};
use crate::procs::maps::Maps;

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
pub struct LiveJvm {
    pub child: Child,
    pub name: String,
}

impl LiveJvm {
    /// `None`, with a word, if this machine cannot run it.
    pub fn start(java: &Path, flags: &[&str]) -> Option<Self> {
        let Some(classes) = classes() else {
            joular_tests::notes::skipped("there is no javac");
            return None;
        };
        let mut command = Command::new(java);
        command.args(flags).arg("-cp").arg(classes).arg("Known").stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            joular_tests::notes::skipped(&format!("{} does not start", java.display()));
            return None;
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let jvm = Self { child, name: format!("{} {flags:?}", java.display()) };
        assert_eq!(line, "warm\n", "{}", jvm.name);
        Some(jvm)
    }

    pub fn memory(&self) -> ProcessMemory {
        ProcessMemory::open(Path::new("/proc"), Pid(self.child.id())).unwrap()
    }

    pub fn maps(&self) -> Maps {
        Maps::read(Path::new("/proc"), Pid(self.child.id())).unwrap()
    }

    pub fn build(&self) -> (JvmBuild, u64) {
        let maps = self.maps();
        let code = maps.iter().find(|mapping| mapping.file_name() == Some("libjvm.so")).unwrap();
        let file = File::open(code.path.as_deref().unwrap()).unwrap();
        let libjvm = Libjvm::read(&file).unwrap();
        let bias = libjvm.bias(code.start.0, code.offset);
        (JvmBuild::read(&self.memory(), libjvm, bias).unwrap(), bias)
    }

    /// Compile id and an address of the recursive method.
    pub fn place_in_fib(&self) -> (u32, u64) {
        let mut attached = self.attach();
        let low = attached.unwind_info().code_low;
        let places = attached.all_described();
        let is_fib = |&(id, pc): &(u32, u64)| {
            let frames = attached.resolve(FrameWord::compiled_call(id, u32::try_from(pc - low).unwrap()));
            frames[0].method() == "Known.fib" && frames.len() == 1
        };
        places.into_iter().rfind(is_fib).unwrap()
    }

    pub fn attach(&self) -> Jvm {
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

pub fn each_jvm(flags: &[&str], check: impl Fn(&LiveJvm)) {
    for java in javas() {
        if let Some(jvm) = LiveJvm::start(&java, flags) {
            check(&jvm);
        }
    }
}
