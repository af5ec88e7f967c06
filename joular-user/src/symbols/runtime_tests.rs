//! Tests that another run-time system, also beside a JVM in one process, names its frames by the same path.

use std::{
    fs::{self, File},
    io::Read as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use joular_data::{
    events::{JvmNews, RawStack, Runtime},
    model::quality::StackQuality,
};
use joular_ebpf::abi::FrameWord;

use super::{
    tests::{CODE, info, tree},
    *,
};
use crate::runtimes::{Build, Instance, LoadedLibrary, OpenError};

/// Another run-time system: all that it takes to be one. It has a number among those that are not JVMs, or is one.
#[derive(Clone, Copy, Debug)]
struct Tiny {
    name: &'static str,
    library: &'static str,
    number: u8,
}

const TINY: Tiny = Tiny { name: "tiny", library: "libtiny.so", number: 0 };
const SMALL: Tiny = Tiny { name: "small", library: "libsmall.so", number: 1 };

/// A version of it, by what its library says.
#[derive(Debug)]
struct TinyBuild(Tiny, String);

#[derive(Debug)]
struct TinyInstance(Arc<TinyBuild>);

impl RuntimeSystem for Tiny {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_library(&self, file_name: &str) -> bool {
        file_name == self.library
    }

    fn is_jvm(&self) -> bool {
        self.number == 0
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
        Ok(Arc::new(TinyBuild(*self, version)))
    }
}

impl Build for TinyBuild {
    fn open(self: Arc<Self>, library: &LoadedLibrary<'_>) -> Result<Box<dyn Instance>, OpenError> {
        assert_eq!((library.pid, library.mapping.file_name()), (Pid(7), Some(self.0.library)));
        Ok(Box::new(TinyInstance(self)))
    }

    fn of_copy(&self, _library: &LoadedLibrary<'_>) -> Result<Arc<dyn Build>, OpenError> {
        Ok(Arc::new(Self(self.0, self.1.clone())))
    }
}

impl Instance for TinyInstance {
    fn news(&self) -> Option<JvmNews> {
        let TinyBuild(system, version) = &*self.0;
        let news = JvmNews { unwinding: Some(system.name.into()), ..JvmNews::default() };
        system.is_jvm().then(|| JvmNews { version: Some(version.as_str().into()), ..news })
    }

    fn has_word(&self, word: FrameWord) -> bool {
        match self.0.0.number {
            0 => word.is_of_a_jvm(),
            number => word.other_runtime() == number,
        }
    }

    fn has_code(&self, address: Address) -> bool {
        address == CODE
    }

    fn frames_of_words(&mut self, words: &[FrameWord]) -> Vec<Vec<Frame>> {
        words
            .iter()
            .map(|word| vec![Frame::new(FrameKind::Compiled, format!("{} {:x}", self.0.0.name, word.0))])
            .collect()
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

/// Process 7 with all libraries mapped, its run-time systems open.
fn open_with(proc_root: &Path, systems: Systems) -> (Symbolizer, ProcessInfo) {
    let maps = proc_root.join("7/maps");
    let mut text = fs::read_to_string(&maps).unwrap();
    fs::create_dir_all(proc_root.join("7/root/lib")).unwrap();
    for (system, start) in [(TINY, 1), (SMALL, 3)] {
        fs::write(proc_root.join("7/root/lib").join(system.library), "3.2").unwrap();
        let range = format!("{start}000-{}000", start + 1);
        text = format!("{range} r-xp 00000000 fe:00 {start} /lib/{}\n{text}", system.library);
    }
    fs::write(&maps, text).unwrap();
    let mut symbolizer = Symbolizer::with_systems(proc_root, SymbolizerOptions { attach_helper: None }, systems);
    let process = info(7, Runtime::Native);
    symbolizer.process_started(&process);
    // They are opened beside; this machine may be busy.
    symbolizer.settle(Duration::from_secs(30));
    (symbolizer, process)
}

const JVM_FIRST: Systems = &[&[&TINY], &[&SMALL]];
const JVM_LAST: Systems = &[&[&SMALL], &[&TINY]];
const JVM_OR_OTHER: Systems = &[&[&TINY, &SMALL]];
const OTHER_OR_JVM: Systems = &[&[&SMALL, &TINY]];

/// A JVM inside Python.
#[test]
fn each_run_time_system_of_a_process_names_its_own_words() {
    let (jvms, other) = (FrameWord::compiled_call(1, 2), FrameWord::of_runtime(SMALL.number, 5));
    let words = [Address(jvms.0), Address(other.0)];
    let names = |systems: Systems| {
        let directory = tree("");
        let (mut symbolizer, process) = open_with(directory.path(), systems);
        let key = (process.pid, process.start_boottime_ns);
        let symbols = symbolizer.resolve(&process, &words);
        let names = symbols.iter().map(|symbol| symbol.frames.first().map(|frame| frame.name.raw().to_owned()));
        (names.collect::<Vec<_>>(), symbolizer.jvm_news(key).is_some())
    };
    let (of_jvm, of_other) = (Some(format!("tiny {:x}", jvms.0)), Some(format!("small {:x}", other.0)));
    let both = [of_jvm.clone(), of_other.clone()];
    for (systems, expected, is_jvm) in [
        (JVM_FIRST, both.clone(), true),
        (JVM_LAST, both, true),
        // Of alternatives the first one counts.
        (JVM_OR_OTHER, [of_jvm, None], true),
        (OTHER_OR_JVM, [None, of_other], false),
    ] {
        assert_eq!(names(systems), (expected.to_vec(), is_jvm), "{systems:?}");
    }
}

#[test]
fn another_run_time_system_names_its_frames_by_the_same_path() {
    let directory = tree("7f0000000000 1000 from_the_map\n");
    let (mut symbolizer, process) = open_with(directory.path(), &[&[&TINY]]);
    let key = (process.pid, process.start_boottime_ns);
    let news = symbolizer.jvm_news(key).unwrap();
    assert_eq!((news.version, news.unwinding), (Some("3.2".into()), Some("tiny".into())));
    assert_eq!(symbolizer.poll().refreshed, [key]);
    let word = FrameWord::compiled_call(1, 2);
    let elsewhere = Address(CODE.0 + 8);
    let symbols = symbolizer.resolve(&process, &[CODE, Address(word.0), elsewhere]);
    let names: Vec<Vec<&str>> =
        symbols.iter().map(|symbol| symbol.frames.iter().map(|frame| frame.name.raw()).collect()).collect();
    let of_word = format!("tiny {:x}", word.0);
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
