//! Tests what happens to a process whose tables cannot be written, or not all of them.

use super::*;

/// Of the range of all mappings: none is forgotten.
fn has_all_mappings_back(publisher: &mut Publisher<Kernel>) -> bool {
    (0..3).for_each(|_| publisher.pass_window());
    publisher.mappings.take(MAX_MAPPINGS).is_some()
}

#[test]
fn what_is_published_stays_until_the_rest_can_be_written() {
    let (mut publisher, mut source) = publisher();
    let (a, b) = (source.code(A, 0x1000_0000), source.code(B, 0x3000_0000));
    source.map(FIRST, &[a]);
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    let before = publisher.tables.mappings_of(FIRST.0);
    publisher.tables.fails = true;
    source.map(FIRST, &[a, b]);
    publisher.sampled(FIRST, &mut source);
    assert!(!settle(&mut publisher, &mut source).is_empty());
    assert_eq!(publisher.tables.mappings_of(FIRST.0), before, "still right, and better than none");
    assert!(publisher.tables.rule_at(FIRST.0, 0x1000_0000 + 0x500).is_some());
    // Nobody needs to sample it for what is missing.
    publisher.tables.fails = false;
    publisher.pass_window();
    settle(&mut publisher, &mut source);
    assert_eq!(publisher.tables.mappings_of(FIRST.0).map(|mappings| mappings.len()), Some(2));
    publisher.ended(FIRST.0);
    assert!(has_all_mappings_back(&mut publisher));
}

#[test]
fn what_is_wrong_is_not_published_any_more() {
    let (mut publisher, mut source) = publisher();
    let (a, b) = (source.code(A, 0x1000_0000), source.code(B, 0x1000_0000));
    source.map(FIRST, &[a]);
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    publisher.tables.fails = true;
    source.map(FIRST, &[b]);
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    assert!(publisher.tables.processes.is_empty(), "another file in its place");
    assert!(has_all_mappings_back(&mut publisher));
}

#[test]
fn without_room_for_new_mappings_the_old_ones_stay() {
    let (mut publisher, mut source) = publisher();
    let code: Vec<MappedCode> = (1..=3).map(|at| source.code(A, 0x1000_0000 * at)).collect();
    publisher.mappings = Ranges::new(5);
    for (process, count) in [(FIRST, 2), (SECOND, 1)] {
        source.map(process, &code[..count]);
        publisher.sampled(process, &mut source);
    }
    let count = |publisher: &Publisher<Kernel>| publisher.tables.mappings_of(FIRST.0).map(|mappings| mappings.len());
    publisher.files = Files::with_rows(0);
    source.map(FIRST, &code);
    source.names_version += 1;
    let generation = publisher.tables.processes[&FIRST.0].generation;
    publisher.sampled(FIRST, &mut source);
    let notices = publisher.poll(&mut source);
    assert!(notices.iter().any(|notice| notice.contains("mappings")), "{notices:?}");
    assert_eq!(count(&publisher), Some(2));
    assert_ne!(publisher.tables.processes[&FIRST.0].generation, generation, "names changed all the same");
    publisher.ended(SECOND.0);
    (0..2).for_each(|_| publisher.pass_window());
    publisher.poll(&mut source);
    assert_eq!(count(&publisher), Some(3), "the other's room");
}

#[test]
fn threads_that_compile_have_bounds_and_cost_nothing_else() {
    let (mut publisher, mut source) = publisher();
    source.map(FIRST, &[generated(0x1000, 0x2000)]);
    source.map(SECOND, &[generated(0x1000, 0x2000)]);
    let threads = |first: u32| (first..first + 1000).map(|tid| (Tid(tid), CompilerThread::default())).collect();
    source.compiler_threads.insert(FIRST, threads(1));
    publisher.sampled(FIRST, &mut source);
    assert_eq!(publisher.tables.compiler_threads.len(), MAX_COMPILER_THREADS_OF_JVM);
    publisher.tables.has_no_room_for_compilers = true;
    source.compiler_threads.insert(SECOND, threads(2000));
    publisher.sampled(SECOND, &mut source);
    assert_eq!(publisher.poll(&mut source).len(), 1, "said once");
    assert!(publisher.tables.processes.contains_key(&SECOND.0));
}

#[test]
fn code_of_a_run_time_system_has_rows_once_the_kernel_knows_its_jvm() {
    let (mut publisher, mut source) = publisher();
    let id = CodeId(7);
    // push rbx; pop rbx; ret
    let called = std::iter::once(0..3).collect();
    source.own_code.insert(id, OwnCode { bytes: vec![0x53, 0x5b, 0xc3], called, ..OwnCode::default() });
    let own = |start: u64| MappedCode {
        start: Address(start),
        end: Address(start + 3),
        offset: 0,
        owner: CodeOwner::RunTime(id),
    };
    source.map(FIRST, &[generated(0x1000_0000, 0x2000_0000), own(0x1000_1000)]);
    source.map(SECOND, &[generated(0x5000_0000, 0x6000_0000), own(0x5000_3000)]);
    source.jvms.insert(FIRST, None);
    source.jvms.insert(SECOND, Some(jvm(0x5000_0000)));
    publisher.sampled(FIRST, &mut source);
    publisher.sampled(SECOND, &mut source);
    settle(&mut publisher, &mut source);
    let starts = |publisher: &Publisher<Kernel>, process: ProcessKey| {
        let mappings = publisher.tables.mappings_of(process.0).unwrap();
        mappings.iter().map(|mapping| (mapping.start, mapping.row_count > 0)).collect::<Vec<_>>()
    };
    assert_eq!(starts(&publisher, FIRST), [(0x1000_0000, false)], "all of it by frame pointers");
    assert_eq!(starts(&publisher, SECOND), [(0x5000_3000, true)]);
    source.jvms.insert(FIRST, Some(jvm(0x1000_0000)));
    settle(&mut publisher, &mut source);
    assert_eq!(starts(&publisher, FIRST), [(0x1000_1000, true)]);
    let rows = |process: ProcessKey| publisher.tables.mappings_of(process.0).unwrap()[0].first_row;
    assert_eq!(rows(FIRST), rows(SECOND), "the same code has its rows once");
}

#[test]
fn code_of_files_goes_before_what_a_process_generates() {
    let (mut publisher, mut source) = publisher();
    let file = source.code(A, 0x1_0000_0000);
    let count = MAX_MAPPINGS_OF_PROCESS as u64 + 9;
    let code: Vec<MappedCode> = (1..=count).map(|at| generated(at << 13, (at << 13) + 0x1000)).chain([file]).collect();
    let before = MAPPINGS.count();
    source.map(FIRST, &code);
    publisher.sampled(FIRST, &mut source);
    settle(&mut publisher, &mut source);
    let mappings = publisher.tables.mappings_of(FIRST.0).unwrap();
    assert_eq!((mappings.len(), mappings.last().unwrap().start), (MAX_MAPPINGS_OF_PROCESS, 0x1_0000_0000));
    assert!(MAPPINGS.count() >= before + 10);
}
