use std::{collections::BTreeMap, fs::File};

use joular_data::model::units::Address;
use joular_ebpf::abi::{AddressRange, CodeMapping, ProcessUnwind, UnwindRow, rule};

use super::*;
use crate::{
    kernel::KernelError,
    runtimes::{CodeId, OwnCode},
    symbols::{files::FileKey, mapped_code::CodeOwner},
    unwind::{code::Code, reader::FileTable},
};

#[path = "writing_tests.rs"]
mod writing;

fn length<T>(values: &[T]) -> u32 {
    u32::try_from(values.len()).unwrap()
}

/// The kernel's tables, which check that nothing in use is written over.
#[derive(Debug, Default)]
struct Kernel {
    rows: BTreeMap<u32, UnwindRow>,
    mappings: BTreeMap<u32, CodeMapping>,
    jvms: BTreeMap<u32, JvmUnwind>,
    processes: BTreeMap<Pid, ProcessUnwind>,
    compiler_threads: BTreeMap<Tid, CompilerThread>,
    rows_written: usize,
    fails: bool,
    has_no_room_for_compilers: bool,
}

impl Kernel {
    fn mappings_of(&self, pid: Pid) -> Option<Vec<CodeMapping>> {
        let process = self.processes.get(&pid)?;
        Some((0..process.mapping_count).map(|index| self.mappings[&(process.first_mapping + index)]).collect())
    }

    fn failed(&self) -> Result<(), KernelError> {
        let source = std::io::Error::from_raw_os_error(libc::ENOMEM);
        if self.fails { Err(KernelError::WriteArray { map: "TEST", first: 0, source }) } else { Ok(()) }
    }

    /// The rule at an address, as the programs look it up.
    fn rule_at(&self, pid: Pid, address: u64) -> Option<u8> {
        let mappings = self.mappings_of(pid)?;
        let mapping = mappings.iter().find(|mapping| mapping.start <= address && address < mapping.end)?;
        let address = u32::try_from(address.wrapping_sub(mapping.bias)).ok()?;
        let rows = self.rows.range(mapping.first_row..mapping.first_row + mapping.row_count);
        rows.take_while(|(_, row)| row.address <= address).last().map(|(_, row)| row.rule)
    }
}

impl WalkTables for Kernel {
    fn write_rows(&mut self, first: u32, rows: &[UnwindRow]) -> Result<(), KernelError> {
        self.failed()?;
        self.rows_written += rows.len();
        let overlaps = |mapping: &CodeMapping| {
            first < mapping.first_row + mapping.row_count && mapping.first_row < first + length(rows)
        };
        for pid in self.processes.keys() {
            assert!(!self.mappings_of(*pid).unwrap().iter().any(overlaps), "rows in use are written over");
        }
        self.rows.extend((first..).zip(rows.iter().copied()));
        Ok(())
    }

    fn write_mappings(&mut self, first: u32, mappings: &[CodeMapping]) -> Result<(), KernelError> {
        self.failed()?;
        assert!(mappings.is_sorted_by_key(|mapping| mapping.start));
        for process in self.processes.values() {
            let end = process.first_mapping + process.mapping_count;
            let overlaps = first < end && process.first_mapping < first + length(mappings);
            assert!(!overlaps, "mappings in use are written over");
        }
        self.mappings.extend((first..).zip(mappings.iter().copied()));
        Ok(())
    }

    fn set_jvm(&mut self, index: u32, jvm: &JvmUnwind) -> Result<(), KernelError> {
        assert!(!self.processes.values().any(|process| process.jvm == index + 1), "a JVM in use is written over");
        self.jvms.insert(index, *jvm);
        Ok(())
    }

    fn set_process(&mut self, pid: Pid, process: ProcessUnwind) -> Result<(), KernelError> {
        self.processes.insert(pid, process);
        Ok(())
    }

    fn remove_process(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    fn set_compiler_thread(&mut self, tid: Tid, thread: CompilerThread) -> Result<(), KernelError> {
        if self.has_no_room_for_compilers {
            let source = std::io::Error::from_raw_os_error(libc::E2BIG);
            return Err(KernelError::WriteArray { map: "COMPILERS", first: 0, source });
        }
        self.compiler_threads.insert(tid, thread);
        Ok(())
    }

    fn remove_compiler_thread(&mut self, tid: Tid) {
        self.compiler_threads.remove(&tid);
    }
}

#[derive(Default)]
struct Source {
    code: HashMap<ProcessKey, (u64, Vec<MappedCode>)>,
    paths: HashMap<FileKey, &'static str>,
    own_code: HashMap<CodeId, OwnCode>,
    jvms: HashMap<ProcessKey, Option<JvmUnwind>>,
    compiler_threads: HashMap<ProcessKey, Vec<(Tid, CompilerThread)>>,
    names_version: u64,
}

impl ProcessSource for Source {
    fn code_version(&self, process: ProcessKey) -> Option<u64> {
        Some(self.code.get(&process)?.0)
    }

    fn mapped_code(&mut self, process: ProcessKey) -> Vec<MappedCode> {
        self.code.get(&process).map_or(Vec::new(), |(_, code)| code.clone())
    }

    fn open(&mut self, table: TableKey) -> Option<Code> {
        match table {
            TableKey::File(file) => Some(Code::File(File::open(self.paths.get(&file)?).ok()?.into())),
            TableKey::RunTime(id) => self.own_code.get(&id).cloned().map(Code::RunTime),
        }
    }

    fn is_jvm(&self, process: ProcessKey) -> bool {
        self.jvms.contains_key(&process)
    }

    fn jvm_unwind(&self, process: ProcessKey) -> Option<&JvmUnwind> {
        self.jvms.get(&process)?.as_ref()
    }

    fn compiler_threads(&self, process: ProcessKey) -> &[(Tid, CompilerThread)] {
        self.compiler_threads.get(&process).map_or(&[], Vec::as_slice)
    }

    fn names_version(&self, _process: ProcessKey) -> u64 {
        self.names_version
    }
}

impl Source {
    fn map(&mut self, process: ProcessKey, code: &[MappedCode]) {
        let (version, known) = self.code.entry(process).or_default();
        *version += 1;
        *known = code.to_vec();
    }

    fn file(&mut self, path: &'static str) -> FileKey {
        let key = FileKey::of(&File::open(path).unwrap()).unwrap();
        self.paths.insert(key, path);
        key
    }

    /// A file's code, mapped at this address.
    fn code(&mut self, path: &'static str, start: u64) -> MappedCode {
        let key = self.file(path);
        let segment = table(path).segments[0];
        let (start, offset) = (Address(start), segment.offset - segment.offset % 4096);
        MappedCode { start, end: Address(start.0 + segment.bytes), offset, owner: CodeOwner::File(key) }
    }
}

fn table(path: &str) -> FileTable {
    FileTable::read(&Code::File(File::open(path).unwrap().into()))
}

const A: &str = "/bin/true";
const B: &str = "/bin/cat";
const FIRST: ProcessKey = (Pid(7), 100);
const SECOND: ProcessKey = (Pid(8), 100);

fn generated(start: u64, end: u64) -> MappedCode {
    MappedCode { start: Address(start), end: Address(end), offset: 0, owner: CodeOwner::Generated }
}

fn jvm(code_low: u64) -> JvmUnwind {
    JvmUnwind { code_low, interpreter: AddressRange { start: code_low, end: code_low + 1 }, ..JvmUnwind::default() }
}

fn settle(publisher: &mut Publisher<Kernel>, source: &mut Source) -> Vec<String> {
    publisher.settle(source, std::time::Duration::from_secs(30));
    assert!(publisher.is_settled(), "files are not read");
    // Once more: what was settled may have told of a JVM.
    publisher.poll(source)
}

fn publisher() -> (Publisher<Kernel>, Source) {
    (Publisher::new(Kernel::default()), Source::default())
}

#[test]
fn a_process_is_published_at_once_and_gets_rows_later() {
    let (mut publisher, mut source) = publisher();
    let code = [source.code(A, 0x7f00_0000_0000), generated(0x7f80_0000_0000, 0x7f80_0000_1000)];
    source.map(FIRST, &code);
    publisher.sampled(FIRST, &mut source);
    let first = publisher.tables.mappings_of(FIRST.0).unwrap();
    assert_eq!(
        first.iter().map(|mapping| (mapping.start, mapping.row_count)).collect::<Vec<_>>(),
        [(0x7f00_0000_0000, 0), (0x7f80_0000_0000, 0)]
    );
    assert_eq!(settle(&mut publisher, &mut source), [""; 0]);
    let kernel = &publisher.tables;
    // Every place in the file has the rule that its table gives.
    let table = table(A);
    let mapping = kernel.mappings_of(FIRST.0).unwrap()[0];
    assert_eq!(mapping.row_count as usize, table.rows.len());
    for row in &table.rows {
        let address = u64::from(row.address).wrapping_add(mapping.bias);
        assert_eq!(kernel.rule_at(FIRST.0, address), (address < mapping.end).then_some(row.rule), "{row:?}");
    }
    assert!(table.rows.iter().any(|row| row.rule == rule::ROOT), "a program begins somewhere");
}

#[test]
fn rows_are_shared_and_stay_for_a_while() {
    let (mut publisher, mut source) = publisher();
    for (process, start) in [(FIRST, 0x1000_0000), (SECOND, 0x2000_0000)] {
        let code = source.code(A, start);
        source.map(process, &[code]);
        publisher.sampled(process, &mut source);
    }
    settle(&mut publisher, &mut source);
    let rows = |publisher: &Publisher<Kernel>, process: ProcessKey| {
        let mapping = publisher.tables.mappings_of(process.0).unwrap()[0];
        (mapping.first_row, mapping.row_count)
    };
    let shared = rows(&publisher, FIRST);
    assert_eq!(rows(&publisher, SECOND), shared);
    assert_eq!(publisher.tables.rows_written, shared.1 as usize, "once");
    publisher.ended(FIRST.0);
    publisher.ended(SECOND.0);
    assert!(publisher.tables.processes.is_empty());
    // A program that is started again finds them there, at first sight.
    (0..10).for_each(|_| publisher.pass_window());
    publisher.sampled(SECOND, &mut source);
    assert_eq!(rows(&publisher, SECOND), shared);
    publisher.ended(SECOND.0);
    (0..40).for_each(|_| publisher.pass_window());
    publisher.sampled(SECOND, &mut source);
    assert_eq!(rows(&publisher, SECOND).1, 0, "let go of");
}

#[test]
fn only_a_change_of_what_was_there_raises_the_generation() {
    let (mut publisher, mut source) = publisher();
    let (a, b) = (source.code(A, 0x1000_0000), source.code(B, 0x3000_0000));
    let steps = [
        (vec![a], 1, "found"),
        (vec![a, b], 1, "a library is loaded"),
        (vec![b], 1, "one is unloaded"),
        (vec![MappedCode { end: Address(b.end.0 - 1), ..b }], 1, "its end is unmapped"),
        (vec![MappedCode { owner: a.owner, ..b }], 2, "another file in its place"),
        (vec![MappedCode { offset: b.offset + 4096, owner: a.owner, ..b }], 3, "another part of the file"),
        (vec![generated(b.start.0, b.end.0)], 4, "made code in its place"),
        (vec![generated(b.start.0 + 8, b.end.0)], 4, "made code changes"),
    ];
    for (code, generation, what) in steps {
        source.map(FIRST, &code);
        publisher.sampled(FIRST, &mut source);
        settle(&mut publisher, &mut source);
        assert_eq!(publisher.tables.processes[&FIRST.0].generation, generation, "{what}");
        let starts: Vec<u64> = code.iter().map(|code| code.start.0).collect();
        let published = publisher.tables.mappings_of(FIRST.0).unwrap();
        assert_eq!(published.iter().map(|mapping| mapping.start).collect::<Vec<_>>(), starts, "{what}");
        publisher.pass_window();
    }
    source.names_version += 1;
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    assert_eq!(publisher.tables.processes[&FIRST.0].generation, 5, "the JVM says so");
    let again = (FIRST.0, 200);
    source.map(again, &[a]);
    publisher.sampled(again, &mut source);
    assert_eq!(publisher.tables.processes[&FIRST.0].generation, 2, "another process with its number");
    // Others' changes do not bring a process back to where it was.
    let of_first = |publisher: &Publisher<Kernel>| publisher.tables.processes[&FIRST.0].generation;
    for pid in 1000..1255 {
        source.map((Pid(pid), 1), &[a]);
        publisher.sampled((Pid(pid), 1), &mut source);
    }
    let before = of_first(&publisher);
    source.names_version += 1;
    publisher.sampled(again, &mut source);
    settle(&mut publisher, &mut source);
    assert_eq!(of_first(&publisher), before + 1);
}

#[test]
fn a_jvm_is_told_when_its_layout_is_known() {
    let (mut publisher, mut source) = publisher();
    let code = [source.code(A, 0x1000_0000), generated(0x2000_0000, 0x2000_1000), generated(0x2000_1000, 0x2000_3000)];
    source.map(FIRST, &code);
    source.jvms.insert(FIRST, None);
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    let published = publisher.tables.mappings_of(FIRST.0).unwrap();
    assert_eq!((published.len(), publisher.tables.processes[&FIRST.0].jvm), (2, 0), "by frame pointers until then");
    source.jvms.insert(FIRST, Some(jvm(0x2000_0000)));
    // Nobody needs to sample it for that.
    settle(&mut publisher, &mut source);
    let index = publisher.tables.processes[&FIRST.0].jvm;
    assert_eq!(publisher.tables.jvms[&(index - 1)], jvm(0x2000_0000));
    assert_eq!(publisher.tables.mappings_of(FIRST.0).unwrap().len(), 1, "the code cache is not a mapping");
    publisher.ended(FIRST.0);
    source.map(SECOND, &code);
    source.jvms.insert(SECOND, Some(jvm(0x3000_0000)));
    publisher.sampled(SECOND, &mut source);
    assert_ne!(publisher.tables.processes[&SECOND.0].jvm, index, "someone may still be reading");
}

#[test]
fn threads_that_compile_come_and_go() {
    let (mut publisher, mut source) = publisher();
    source.map(FIRST, &[generated(0x1000, 0x2000)]);
    let thread = |env| CompilerThread { env, ..CompilerThread::default() };
    let steps: [&[(Tid, CompilerThread)]; 4] = [
        &[(Tid(1), thread(0x10)), (Tid(2), thread(0x20))],
        &[(Tid(2), thread(0x20)), (Tid(3), thread(0x30))],
        &[(Tid(2), thread(0x28))],
        &[],
    ];
    for threads in steps {
        source.compiler_threads.insert(FIRST, threads.to_vec());
        publisher.sampled(FIRST, &mut source);
        settle(&mut publisher, &mut source);
        assert_eq!(publisher.tables.compiler_threads, threads.iter().copied().collect());
    }
    source.compiler_threads.insert(FIRST, steps[0].to_vec());
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    publisher.ended(FIRST.0);
    assert!(publisher.tables.compiler_threads.is_empty());
}

#[test]
fn what_does_not_fit_is_walked_by_frame_pointers_and_said_once() {
    let (mut publisher, mut source) = publisher();
    let (a, b) = (source.code(A, 0x1000_0000), source.code(B, 0x3000_0000));
    let rows = |path| length(&table(path).rows);
    publisher.files = Files::with_rows(rows(B));
    source.map(FIRST, &[b]);
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    source.map(SECOND, &[a]);
    publisher.sampled(SECOND, &mut source);
    assert_eq!(settle(&mut publisher, &mut source).len(), 1);
    assert_eq!(publisher.poll(&mut source).len(), 0);
    let row_count = |publisher: &Publisher<Kernel>| publisher.tables.mappings_of(SECOND.0).unwrap()[0].row_count;
    assert_eq!(row_count(&publisher), 0);
    // When the first is long gone there is room.
    publisher.ended(FIRST.0);
    (0..40).for_each(|_| publisher.pass_window());
    settle(&mut publisher, &mut source);
    assert_eq!(row_count(&publisher), rows(A));
}

#[test]
fn the_process_that_was_not_sampled_for_longest_makes_room() {
    let (mut publisher, mut source) = publisher();
    let code = [generated(0x1000, 0x2000)];
    let process = |pid: u32| (Pid(pid), 1);
    for pid in 1..=MAX_PROCESSES {
        source.map(process(pid), &code);
        publisher.sampled(process(pid), &mut source);
    }
    let late = process(MAX_PROCESSES + 1);
    source.map(late, &code);
    publisher.sampled(late, &mut source);
    assert_eq!(publisher.poll(&mut source).len(), 1, "all were sampled just now");
    for window in 0..3 {
        publisher.pass_window();
        (1..=MAX_PROCESSES).filter(|pid| *pid != 9).for_each(|pid| publisher.sampled(process(pid), &mut source));
        assert!(!publisher.tables.processes.contains_key(&late.0), "{window}");
    }
    publisher.sampled(late, &mut source);
    let has = |pid: u32| publisher.tables.processes.contains_key(&Pid(pid));
    assert_eq!((has(9), has(8), has(late.0.0)), (false, true, true));
    assert_eq!(publisher.tables.processes.len(), MAX_PROCESSES as usize);
}
