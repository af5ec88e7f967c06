//! Tests recordings as a whole: what is in them is what the selection has, however they are cut.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    reading::{Chunk, Event},
    *,
};
use crate::{
    attribution::window_report::Category,
    dataset::fixture,
    events::RunInfo,
    model::{
        frame::{Frame, FrameKind, Marker},
        policy::Policy,
        units::{Pid, Tid, UnixMicros},
    },
    report::profile::{App, Names, PathIndex, Process, ProcessIndex, Profile, Thread, ThreadIndex},
};

fn written() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    root
}

fn selection<'a>(root: &'a tempfile::TempDir, filter: &'a Filter, app: Option<&'a App>) -> Selection<'a> {
    Selection { data: root.path(), filter, app, measure: Measure::Energy }
}

/// The chunks of a recording of a selection, none of which is much larger than said.
fn recorded(selection: &Selection<'_>, chunk_bytes: usize) -> (Exported, Vec<Chunk>) {
    let mut out = Vec::new();
    let exported = write_in_chunks(selection, &mut out, chunk_bytes).unwrap();
    (exported, reading::chunks(&out))
}

fn named<'a>(chunks: &'a [Chunk], name: &'a str) -> impl Iterator<Item = &'a Event> {
    chunks.iter().flat_map(|chunk| &chunk.events).filter(move |event| event.name == name)
}

fn sum(chunks: &[Chunk], name: &str, field: &str) -> u64 {
    named(chunks, name).map(|event| event.natural(field)).sum()
}

#[test]
fn energies_samples_and_bytes_sum_to_those_of_the_selection() {
    let root = written();
    let methods = Filter { methods: Names::parse(&["*.m1*".to_owned()]).unwrap(), ..Filter::default() };
    let app = App::of(&["com.example".to_owned()]);
    for (filter, app) in [(Filter::default(), None), (methods, None), (Filter::default(), app.as_ref())] {
        let profile = Profile::read(root.path(), &filter, app).unwrap();
        let (exported, chunks) = recorded(&selection(&root, &filter, app), CHUNK_BYTES);
        assert_eq!(exported, Exported::of(&profile));
        assert_eq!(sum(&chunks, "joular.Energy", "energy_uj"), profile.energy().0);
        let samples: u64 = profile.entries.iter().map(|entry| entry.samples).sum();
        let cpu_ns: u64 = profile.entries.iter().map(|entry| entry.cpu_ns).sum();
        assert_eq!(sum(&chunks, "joular.Energy", "samples"), samples);
        assert_eq!(sum(&chunks, "joular.Energy", "cpu_ns"), cpu_ns);
        assert_eq!(named(&chunks, "jdk.ExecutionSample").count() as u64, samples);
        let allocated: u64 = profile.facts(Measure::Allocated).map(|fact| fact.amount).sum();
        assert_eq!(sum(&chunks, "jdk.ObjectAllocationSample", "weight"), allocated);
        assert_eq!(sum(&chunks, "joular.Power", "energy_uj"), profile.overview.measured.0);
        assert!(samples > 0 && allocated > 0 && profile.overview.measured.0 > 0);
    }
}

#[test]
fn however_a_recording_is_cut_it_has_the_same_events() {
    let root = written();
    let filter = Filter::default();
    let selection = selection(&root, &filter, None);
    let events = |chunks: &[Chunk]| -> Vec<String> {
        chunks.iter().flat_map(|chunk| &chunk.events).map(|event| format!("{event:?}")).collect()
    };
    let (exported, whole) = recorded(&selection, usize::MAX);
    assert_eq!(whole.len(), 1);
    for chunk_bytes in [0, 2000, 20_000] {
        let (cut, chunks) = recorded(&selection, chunk_bytes);
        assert!(chunks.len() > 1 && cut == exported, "{chunk_bytes}");
        assert_eq!(events(&chunks), events(&whole), "{chunk_bytes}");
        let lengths: u64 = chunks.iter().map(|chunk| chunk.length_ns).sum();
        assert!(lengths <= whole[0].length_ns, "no time counts twice");
        let first = &whole[0];
        for chunk in &chunks {
            assert_eq!(chunk.start_ns - first.start_ns, chunk.start_ticks - first.start_ticks, "one clock");
        }
    }
}

#[test]
fn a_recording_of_nothing_has_a_chunk_that_says_of_what() {
    let root = written();
    let nothing = Filter { methods: Names::parse(&["no.such.method".to_owned()]).unwrap(), ..Filter::default() };
    let (exported, chunks) = recorded(&selection(&root, &nothing, None), CHUNK_BYTES);
    assert_eq!((exported.energy, chunks.len()), (MicroJoules(0), 1));
    assert_eq!(named(&chunks, "joular.Energy").count(), 0);
    assert_eq!(named(&chunks, "jdk.OSInformation").count(), 1);
    let origin = named(&chunks, "jdk.ActiveSetting").find(|event| event.text("name") == "origin").unwrap();
    assert_eq!(origin.text("value"), exported.origin);
}

#[test]
fn collections_have_their_time_and_their_energy() {
    let root = written();
    let filter = Filter::default();
    let selection = selection(&root, &filter, None);
    let mut timeline = selection.timeline().unwrap();
    let collected = timeline.collected().unwrap().collections;
    let (_, chunks) = recorded(&selection, CHUNK_BYTES);
    assert_eq!(named(&chunks, "jdk.GarbageCollection").count(), collected.len());
    assert!(!collected.is_empty());
    let energy: u64 = collected.values().map(|seen| seen.energy.0).sum();
    assert_eq!(sum(&chunks, "jdk.GarbageCollection", "energy_uj"), energy);
    let (clock_ns, ticks) = (chunks[0].start_ns, chunks[0].start_ticks);
    let starts = named(&chunks, "jdk.GarbageCollection").map(|event| clock_ns + event.natural("startTime") - ticks);
    let expected = collected.keys().map(|(start, ..)| u64::try_from(start.0).unwrap() * 1000);
    assert_eq!(starts.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let numbers: BTreeSet<u64> = named(&chunks, "jdk.GarbageCollection").map(|event| event.natural("gcId")).collect();
    assert_eq!(numbers.len(), collected.len(), "no two collections have one number");
}

#[test]
fn samples_lie_within_their_window_and_apart() {
    let window = During { start: 1_000, end: 2_000 };
    assert_eq!(moments(window, 0).count(), 0);
    assert_eq!(moments(window, 1).collect::<Vec<_>>(), [1_500]);
    assert_eq!(moments(window, 4).collect::<Vec<_>>(), [1_125, 1_375, 1_625, 1_875]);
    let longest = During { start: 7, end: u64::MAX };
    let all: Vec<u64> = moments(longest, MOST_SAMPLES).collect();
    assert!(all.is_sorted() && all.iter().all(|at| (longest.start..longest.end).contains(at)));
}

#[test]
fn a_thread_belongs_to_its_process_and_only_java_s_threads_have_an_id_of_java() {
    let root = written();
    let filter = Filter::default();
    let selection = selection(&root, &filter, None);
    let timeline = selection.timeline().unwrap();
    let catalog = timeline.catalog();
    let groups: BTreeSet<String> =
        catalog.threads.iter().map(|thread| pools::process_title(catalog, thread.process)).collect();
    let (_, chunks) = recorded(&selection, CHUNK_BYTES);
    let mut found = BTreeSet::new();
    for event in named(&chunks, "joular.Energy") {
        let thread = &event.fields["eventThread"];
        found.insert(thread["group"]["name"].as_str().unwrap().to_owned());
        let is_java = event.text("category") == "java";
        assert_eq!(thread["javaName"].is_string(), is_java, "{event:?}");
        assert_eq!(thread["javaThreadId"] == thread["osThreadId"], is_java, "{event:?}");
    }
    assert!(found.len() > 1 && found.is_subset(&groups), "{found:?}");
}

/// A catalog of one thread of a JVM, and these paths.
fn catalog(paths: &[&[Frame]]) -> Catalog {
    let run = Run { info: RunInfo { host: "h".into(), ..RunInfo::default() }, ..Run::default() };
    let process = Process { pid: Pid(7), comm: "java".into(), ..Process::default() };
    let thread = Thread {
        process: ProcessIndex(0),
        tid: Tid(8),
        start: UnixMicros(0),
        name: "main".into(),
        category: Category::Java,
    };
    let mut catalog =
        Catalog { runs: vec![run], processes: vec![process], threads: vec![thread], ..Catalog::default() };
    for path in paths {
        let frames: Vec<_> = path.iter().map(|frame| catalog.paths.frame_index(frame.clone())).collect();
        catalog.paths.push(frames);
    }
    catalog
}

/// What a recording says of stacks, one event each.
fn stacks(paths: &[&[Frame]]) -> Vec<serde_json::Value> {
    let (catalog, mut out) = (catalog(paths), Vec::new());
    let clock = Clock { start: UnixMicros(0) };
    let mut chunks = Chunks::new(&mut out, clock, Pools::new(&catalog), usize::MAX);
    for path in catalog.paths.indices() {
        let thread = chunks.pools.thread(&catalog, ThreadIndex(0));
        let stack = chunks.pools.stack(&catalog.paths, path);
        chunks.push(&events::ExecutionSample { at: 0, thread, stack });
    }
    chunks.finish().unwrap();
    reading::chunks(&out)[0].events.iter().map(|event| event.fields["stackTrace"].clone()).collect()
}

#[test]
fn frames_stand_leaf_first_with_their_kind_and_line() {
    let java = |kind, name: &str| Frame {
        class: Some("com.acme.Shop".into()),
        signature: Some("(I)I".into()),
        line: Some(42),
        ..Frame::new(kind, name)
    };
    let path = [
        Frame::new(FrameKind::Vm, "JavaThread::run"),
        java(FrameKind::Interpreted, "main"),
        java(FrameKind::CompiledC1, "warm"),
        java(FrameKind::CompiledC2, "hot"),
        java(FrameKind::Inlined, "price"),
        Frame::new(FrameKind::Kernel, "page_fault"),
    ];
    let stack = &stacks(&[&path])[0];
    let frames = stack["frames"].as_array().unwrap();
    let of =
        |part: &str| -> Vec<&serde_json::Value> { frames.iter().map(|frame| &frame[part]["description"]).collect() };
    assert_eq!(of("type"), ["Kernel", "Inlined", "JIT compiled", "C1 compiled", "Interpreted", "C++"]);
    let text = |frame: usize, part: &str| frames[frame]["method"][part]["string"].as_str().unwrap();
    assert_eq!((text(1, "name"), text(1, "descriptor"), &frames[1]["lineNumber"]), ("price", "(I)I", &42.into()));
    assert_eq!(frames[1]["method"]["type"]["name"]["string"], "com/acme/Shop");
    assert_eq!(frames[1]["method"]["type"]["package"]["name"]["string"], "com/acme");
    assert_eq!((text(0, "name"), text(0, "descriptor")), ("page_fault", names::NO_DESCRIPTOR));
    assert_eq!(frames[0]["method"]["type"]["name"]["string"], "");
    assert_eq!(frames[0]["lineNumber"], u32::MAX, "-1 in 32 bits");
    assert_eq!(stack["truncated"], false);
}

#[test]
fn a_stack_that_lacks_a_part_says_so_and_shows_what_is_not_known() {
    let leaf = Frame::new(FrameKind::Native, "memcpy");
    for marker in Marker::ALL {
        let stack = &stacks(&[&[Frame::marker(marker), leaf.clone()]])[0];
        let is_part = !Marker::UNNAMED.contains(&marker) && marker != Marker::NoSample;
        assert_eq!(stack["truncated"], is_part, "{marker:?}");
        assert_eq!(stack["frames"][1]["method"]["name"]["string"], marker.name());
    }
}

#[test]
fn lines_and_kinds_make_no_other_method_of_it() {
    let frame = |kind, line| Frame { class: Some("A".into()), line, ..Frame::new(kind, "a") };
    let catalog = catalog(&[&[frame(FrameKind::Interpreted, Some(1)), frame(FrameKind::Compiled, None)]]);
    let mut out = Vec::new();
    let clock = Clock { start: UnixMicros(0) };
    let mut chunks = Chunks::new(&mut out, clock, Pools::new(&catalog), usize::MAX);
    let stack = chunks.pools.stack(&catalog.paths, PathIndex(0));
    chunks.push(&events::ExecutionSample { at: 0, thread: 0, stack });
    chunks.finish().unwrap();
    let constants: BTreeMap<String, usize> = reading::chunks(&out).remove(0).constants;
    assert_eq!((constants["jdk.types.Method"], constants["jdk.types.StackTrace"]), (1, 1), "{constants:?}");
}

#[test]
fn every_event_that_is_described_has_fields_of_its_own_names() {
    for of in [constants::TYPES, events::TYPES, about::TYPES].into_iter().flatten() {
        let names: BTreeSet<&str> = of.fields.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), of.fields.len(), "{}", of.name);
    }
}
