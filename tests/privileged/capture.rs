//! Holds a JVM that runs known scenarios, and makes an image of it: of what the walk's own code reads of it, judged by what the
//! scenarios' threads can be doing.
//!
//! Live tests do that here. In an emulated machine the program `jvm_image` does it, which is made of this file and its own.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashSet},
    fs::File,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_data::model::{
    frame::{Frame, FrameKind},
    quality::WalkEnd,
    target_text::TargetText,
    units::Pid,
};
use joular_ebpf::{
    abi::{CodeMapping, JvmUnwind, ProcessUnwind, UnwindRow},
    walk::{Tables, arch::Native},
};
use joular_tests::{
    clock::wait_for,
    freeze::{Frozen, Thread},
    java::Collector,
    known::{self, CallLines, Root, Verdict},
    registers, schedstat,
};
use joular_user::{
    elf::segment,
    procs::maps::{Mapping, MappingKind, Maps},
    runtimes::hotspot::{
        JvmBuild,
        host_walk::{ProcessTables, WalkedStack, walk},
        image::{ImageThread, JvmImage, NamedStack, compiler, cut},
        jvm::Jvm,
        libjvm::Libjvm,
        memory::ProcessMemory,
        memory_recording::Recording,
    },
    symbols::native::own_vdso,
    unwind::{code::Code, reader::FileTable},
};

const PROC: &str = "/proc";
/// CPU time for the JVM between two captures.
const PAUSE_NS: u64 = 300_000_000;
const THREADS: [&str; 7] = ["recurse-10", "recurse-1000", "lambdas", "inlined", "megamorphic", "natives", "exceptions"];
/// Of them, those that are elsewhere than in their leaf for much of their time.
const MOSTLY_ON_THEIR_WAY: [&str; 2] = ["natives", "exceptions"];

/// Notes which rows look-ups come by.
struct Noted {
    tables: ProcessTables,
    used: RefCell<HashSet<u32>>,
}

impl Tables for Noted {
    fn mapping(&self, index: u32) -> Option<&CodeMapping> {
        self.tables.mapping(index)
    }

    fn row(&self, index: u32) -> Option<&UnwindRow> {
        self.used.borrow_mut().insert(index);
        self.tables.row(index)
    }

    fn jvm(&self, process: &ProcessUnwind) -> Option<&JvmUnwind> {
        self.tables.jvm(process)
    }
}

/// The unwind tables of a process, as the profiler publishes them, and the names of
/// the files.
fn tables(pid: u32, maps: &Maps, files: &mut BTreeMap<String, FileTable>) -> Result<(ProcessTables, Vec<String>)> {
    let (mut tables, mut names) = (ProcessTables::default(), Vec::new());
    let mut placed: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for mapping in maps.iter().filter(|mapping| !mapping.is_generated_code()) {
        let name = mapping.file_name().unwrap_or_default().to_owned();
        let file = match mapping.kind {
            MappingKind::Vdso => own_vdso(Path::new(PROC)).ok(),
            MappingKind::File => mapping.path.as_deref().and_then(|path| File::open(path).ok()),
            _ => None,
        };
        let (start, end) = (mapping.start.0, mapping.end.0);
        let mut code = CodeMapping { start, end, ..CodeMapping::default() };
        if let Some(file) = file {
            let table = files.entry(name.clone()).or_insert_with(|| FileTable::read(&Code::File(file.into())));
            let first = u32::try_from(tables.rows.len())?;
            let (first, count) = *placed.entry(name.clone()).or_insert((first, u32::try_from(table.rows.len())?));
            if first as usize == tables.rows.len() {
                tables.rows.extend(&table.rows);
            }
            if let Some(bias) = segment::bias(&table.segments, start, mapping.offset) {
                code = CodeMapping { bias, first_row: first, row_count: count, ..code };
            }
        }
        tables.mappings.push(code);
        names.push(name);
    }
    // By another reader than the one whose reading is recorded.
    let jvm = attach(pid)?;
    for stubs in jvm.stub_code().ranges() {
        let code = jvm.read_stub_code(stubs.id).context("the code of stubs")?;
        let table = FileTable::read(&Code::RunTime(code));
        let (start, end) = (stubs.start.0, stubs.end.0);
        let (first_row, row_count) = (u32::try_from(tables.rows.len())?, u32::try_from(table.rows.len())?);
        tables.rows.extend(&table.rows);
        let place = tables.mappings.partition_point(|mapping| mapping.start < start);
        tables.mappings.insert(place, CodeMapping { start, end, bias: start, first_row, row_count });
        names.insert(place, String::new());
    }
    Ok((tables, names))
}

fn image_thread(thread: &Thread) -> ImageThread {
    ImageThread { name: thread.name.clone(), tid: thread.tid, registers: registers::walked(&thread.registers).to_vec() }
}

/// Of a process, and its load bias.
pub fn libjvm(maps: &Maps) -> Result<(Libjvm, u64)> {
    let is_libjvm = |of: &&Mapping| of.file_name() == Some("libjvm.so");
    let code = maps.iter().find(is_libjvm).context("no libjvm")?;
    let libjvm = Libjvm::read(&File::open(code.path.as_deref().context("libjvm's path")?)?)?;
    let bias = libjvm.bias(code.start.0, code.offset);
    Ok((libjvm, bias))
}

/// A live JVM, as the profiler understands it.
pub fn attach(pid: u32) -> Result<Jvm> {
    let (libjvm, bias) = libjvm(&Maps::read(Path::new(PROC), Pid(pid))?)?;
    let memory = ProcessMemory::open(Path::new(PROC), Pid(pid))?;
    let build = JvmBuild::read(&memory, libjvm, bias)?;
    Ok(Jvm::attach(Box::new(memory), build.into(), bias)?)
}

/// A JVM that was held, seen as it was, and its image.
pub struct Capture {
    pub image: JvmImage,
    walked: Vec<WalkedStack>,
    named: Vec<NamedStack>,
}

impl Capture {
    /// Of a process that is held now.
    fn of(frozen: &Frozen, pid: u32, files: &mut BTreeMap<String, FileTable>) -> Result<Self> {
        let maps = Maps::read(Path::new(PROC), Pid(pid))?;
        let (libjvm, bias) = libjvm(&maps)?;
        let memory = Arc::new(Recording::new(ProcessMemory::open(Path::new(PROC), Pid(pid))?));
        let build = JvmBuild::read(&memory, libjvm.clone(), bias)?;
        let mut jvm = Jvm::attach(Box::new(Arc::clone(&memory)), build.into(), bias)?;
        let (tables, names) = tables(pid, &maps, files)?;
        let noted = Noted { tables, used: RefCell::default() };
        let mappings = noted.tables.mappings.len();
        let threads: Vec<ImageThread> = frozen.threads.iter().map(image_thread).collect();
        let walk = |thread: &ImageThread| {
            let compiler = compiler(&jvm, thread);
            walk(&memory, &noted, mappings, jvm.unwind_info(), thread.registers::<Native>(), compiler.as_ref())
        };
        let walked: Vec<WalkedStack> = threads.iter().map(walk).collect();
        let version = jvm.facts().version.clone().unwrap_or_default().into_raw();
        let mut image = JvmImage::default().with_tables(&noted.tables, &names);
        (image.jvm, image.libjvm, image.bias, image.threads) = (version, libjvm, bias, threads);
        let named = walked.iter().map(|stack| image.name(&mut jvm, stack)).collect();
        let used = noted.used.borrow();
        image = image.with_tables(&cut(&noted.tables, &|index| used.contains(&index)), &names);
        image.memory = memory.image();
        Ok(Self { image, walked, named })
    }

    /// The image's file. The walk of what is in it gives what the walk of the held JVM gave.
    pub fn file(&self) -> Result<Vec<u8>> {
        let encoded = self.image.encode()?;
        let image = JvmImage::decode(&encoded)?;
        ensure!(image == self.image, "an image is not what was put in");
        let mut jvm = image.attach()?;
        for ((thread, walked), named) in image.threads.iter().zip(&self.walked).zip(&self.named) {
            let again = image.walk(&image.memory, &jvm, thread);
            ensure!(again == *walked, "{}: {again:?} of the image, {walked:?} of the JVM", thread.name);
            let again = image.name(&mut jvm, walked);
            ensure!(again == *named, "{}, of the image:\n{again}of the JVM:\n{named}", thread.name);
        }
        Ok(encoded)
    }

    /// What makes it a bad example, if anything. A thread on its way is not an error, but not an example of
    /// its whole path.
    fn complaint(&self, lines: &CallLines) -> Result<Option<String>> {
        for name in THREADS {
            let Some(at) = self.image.threads.iter().position(|thread| thread.name == name) else {
                return Ok(Some(format!("no thread {name}")));
            };
            if has_just_entered_the_safepoint_handler(&self.named[at]) {
                return Ok(Some(format!("{name} has just entered the JVM's handler for safepoints")));
            }
            let scenario = known::scenario(name).context("a scenario of each name")?;
            let frames: Vec<known::Frame> = self.named[at].frames.iter().map(as_known).collect();
            let verdict = known::judge(&scenario, &frames, lines, Root::Native);
            ensure!(
                !matches!(verdict, Verdict::WrongMethod(_) | Verdict::WrongPath(_)),
                "{name}: {verdict:?}\n{}",
                self.named[at]
            );
            let kinds: HashSet<FrameKind> = self.named[at].frames.iter().map(|frame| frame.kind).collect();
            let wanted = if name == "inlined" { FrameKind::Inlined } else { FrameKind::CompiledC2 };
            let is_whole = verdict == Verdict::Exact || MOSTLY_ON_THEIR_WAY.contains(&name);
            if !is_whole || !kinds.contains(&wanted) {
                return Ok(Some(format!("{name}: {verdict:?}, {kinds:?}")));
            }
        }
        let stacks = self.image.threads.iter().zip(&self.named);
        let mut cut = stacks.filter(|(_, stack)| stack.quality.end != WalkEnd::Root);
        Ok(cut.next().map(|(thread, stack)| format!("{} is not whole:\n{stack}", thread.name)))
    }
}

/// The one place from which nobody finds the caller: the handler has pushed a word for its return address and not written
/// it yet (docs/jvm.md). The walk says that it is not whole.
fn has_just_entered_the_safepoint_handler(stack: &NamedStack) -> bool {
    let is_alone = matches!(&stack.frames[..], [only] if only.name.raw() == "SafepointBlob");
    is_alone && stack.quality.end == WalkEnd::Implausible
}

fn as_known(frame: &Frame) -> known::Frame {
    let of = |text: &Option<TargetText>| text.as_ref().map_or("", TargetText::raw).to_owned();
    known::Frame {
        kind: frame.kind.name().to_owned(),
        class: of(&frame.class),
        name: frame.name.raw().to_owned(),
        module: of(&frame.module),
        file: of(&frame.file),
        line: frame.line,
    }
}

/// Starts a JVM, and holds it when all its threads are where their whole paths are seen, compiled. There is a limit to waiting.
pub fn capture(java: &Path, collector: Collector, limit: Duration) -> Result<Capture> {
    let lines = CallLines::read()?;
    let workload = known::workload().java(java).flag(&collector.flag());
    let workload = THREADS.iter().fold(workload, |all, name| all.argument(name));
    // What is inlined between two safepoints counts as the second one's method.
    let leaves = ["known.Recursion::leaf", "known.Lambdas::leaf", "known.Megamorphic*::leaf*"];
    let jvm = leaves.iter().fold(workload, |workload, leaf| workload.dont_inline(leaf)).start()?;
    let mut files = BTreeMap::new();
    let mut last = None;
    let mut spent = 0;
    let captured = wait_for("all threads to be on their whole paths", limit, || {
        // Held all the time, it would never get anywhere.
        if schedstat::process(jvm.pid())? < spent + PAUSE_NS {
            return Ok(None);
        }
        let frozen = Frozen::new(jvm.pid())?;
        spent = schedstat::process(jvm.pid())?;
        let capture = Capture::of(&frozen, jvm.pid(), &mut files)?;
        last = capture.complaint(&lines)?;
        Ok(last.is_none().then_some(capture))
    });
    captured.with_context(|| format!("{} with {collector}: {last:?}", java.display()))
}
