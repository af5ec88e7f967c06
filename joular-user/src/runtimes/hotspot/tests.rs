//! Tests the parts together, on real JVMs.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use joular_data::{
    events::ProcessInfo,
    model::{
        frame::{Frame, FrameKind, Marker},
        target_text::TargetText,
        units::{Address, MonotonicNs, Pid},
    },
};
use joular_ebpf::{
    abi::{FrameRef, FrameWord, StackId, walk_end},
    walk::identity::hash_words,
};
use proptest::prelude::*;

use super::{
    collections::survival,
    jvm::Jvm,
    live::{LiveJvm, each_jvm},
    memory::MemoryImage,
    memory_recording::Recording,
    pinned::ArrivedStack,
    *,
};
use crate::symbols::{Symbolizer, SymbolizerOptions};

impl Jvm {
    pub(super) fn resolve(&mut self, word: FrameWord) -> Vec<Frame> {
        self.resolve_all(&[word]).remove(0)
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
            assert_eq!(
                (facts.collector.as_ref().map(TargetText::raw), facts.debug_non_safepoints),
                (Some(collector), Some(debug))
            );
            assert_eq!(facts.is_all_described, debug);
            assert!(facts.version.as_ref().unwrap().raw().starts_with(&facts.feature.to_string()), "{facts:?}");
        });
    }
}

/// A thread's buffer is in a young region.
#[test]
fn regions_of_g1_are_found_by_addresses() {
    const EDEN: u32 = 2;
    each_jvm(&["-XX:+UseG1GC"], |jvm| {
        let (attached, memory) = (jvm.attach(), jvm.memory());
        let survival = survival(&attached);
        let has_in_place_bit = u32::from(attached.facts().feature >= 24);
        assert_eq!((survival.is_known, survival.has_in_place_bit), (1, has_in_place_bit), "{}", jvm.name);
        let (build, _, bias) = attached.parts();
        let (threads, fields) = (build.layout.threads.unwrap(), build.layout.allocation.unwrap().fields);
        let mut kinds = Vec::new();
        for thread in threads.addresses(&memory, bias, &[]).unwrap() {
            let buffer = memory.u64(thread + u64::from(fields.tlab_start)).unwrap();
            if buffer != 0 {
                let region = memory.u64(survival.region_entry(buffer)).unwrap();
                kinds.push(memory.u32(region + u64::from(survival.region_kind)).unwrap());
            }
        }
        assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == EDEN), "{}: {kinds:?}", jvm.name);
    });
    each_jvm(&["-XX:+UseSerialGC"], |jvm| {
        let survival = survival(&jvm.attach());
        assert_eq!((survival.is_known, survival.regions), (1, 0), "{}", jvm.name);
    });
}

/// Where a deoptimised frame's return address leads, as the kernel side compares it.
#[test]
fn deoptimisation_handlers_push_their_own_address() {
    // By a call (C2), or by way of a register (C1).
    const BEGINNINGS: [u8; 3] = [0xe8, 0x49, 0x4c];
    each_jvm(&[], |jvm| {
        let (attached, memory) = (jvm.attach(), jvm.memory());
        let layout = attached.unwind_info().blob;
        let mut checked = 0u32;
        // Wrappers of native methods have none.
        let methods = attached
            .all_compiled()
            .into_iter()
            .filter(|blob| attached.unwind_info().nmethod_names.contains(&blob.name));
        for blob in methods {
            let handler = memory.field(blob.start, layout.deopt_handler).unwrap();
            let handler = if layout.has_offsets != 0 { blob.start + handler } else { handler };
            assert!(blob.contains(handler) && handler > blob.code_begin, "{}: {blob:x?} {handler:x}", jvm.name);
            let first = memory.u8(handler).unwrap();
            assert!(BEGINNINGS.contains(&first), "{}: {first:x}", jvm.name);
            checked += 1;
            let entry = memory.field(blob.start, layout.verified_entry).unwrap();
            let entry = if layout.has_offsets != 0 { blob.code_begin + entry } else { entry };
            assert!(blob.contains(entry) && entry >= blob.code_begin && entry < handler);
            let complete = memory.field(blob.start, layout.frame_complete).unwrap();
            assert!(complete < blob.size, "{}: {complete}", jvm.name);
        }
        assert!(checked > 50, "{}: {checked}", jvm.name);
    });
}

/// Every place that compilers have described in all living code has names, and
/// those of our own program are right.
#[test]
fn all_compiled_code_has_names() {
    each_jvm(&[], |jvm| {
        let deadline = Instant::now() + Duration::from_secs(30);
        // It takes a while until all three are compiled into one.
        while !check_all(jvm) {
            assert!(Instant::now() < deadline, "{}: nothing was inlined", jvm.name);
        }
    });
}

/// Says whether what is known to be inlined was seen so.
fn check_all(jvm: &LiveJvm) -> bool {
    let mut attached = jvm.attach();
    let places = attached.all_described();
    let low = attached.unwind_info().code_low;
    let (mut of_fib, mut is_inlined, mut evicted) = (0, false, 0);
    for &(compile_id, pc) in &places {
        let offset = u32::try_from(pc - low).unwrap();
        let frames = attached.resolve(FrameWord::compiled_call(compile_id, offset));
        // Code goes on being made and thrown away meanwhile.
        if frames[0].kind == FrameKind::Marker {
            evicted += 1;
            continue;
        }
        frames.iter().for_each(|frame| check_method(frame, &jvm.name));
        assert!(frames[1..].iter().all(|frame| frame.kind == FrameKind::Inlined));
        let path = frames.iter().map(|frame| frame.method().into_raw()).collect::<Vec<_>>().join(";");
        of_fib += usize::from(path.contains("Known.fib"));
        is_inlined |= path.contains("Known.outer;Known.middle;Known.inner");
        // The address alone leads to the same, as long as the code is there.
        assert!(attached.has_code(pc));
        // As a blob that is none of a method it was something else, which is gone.
        let blob = &attached.resolve(FrameWord::blob(offset))[0];
        assert_eq!((blob.kind, blob.name.raw()), (FrameKind::Marker, Marker::Evicted.name()));
    }
    assert!(places.len() > 500 && evicted * 4 < places.len() && of_fib > 0, "{}: {}", jvm.name, places.len());
    is_inlined
}

fn check_method(frame: &Frame, jvm: &str) {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_$.<>-".contains(c));
    let class = frame.class.as_ref().map_or("", TargetText::raw);
    assert!(is_word(class) && is_word(frame.name.raw()), "{jvm}: {frame:?}");
    let signature = frame.signature.as_ref().map_or("", TargetText::raw);
    assert!(signature.starts_with('(') && signature.contains(')'), "{jvm}: {frame:?}");
    if class == "Known" {
        assert_eq!(frame.file, Some("Known.java".into()));
        let lines = match frame.name.raw() {
            "fib" => 4..=4,
            "outer" => 5..=5,
            "middle" => 6..=6,
            "inner" => 7..=7,
            _ => 8..=17,
        };
        assert!(lines.contains(&frame.line.unwrap()), "{jvm}: {frame:?}");
    }
}

#[test]
fn the_symbolizer_attaches_by_itself_and_asks_for_no_map() {
    each_jvm(&[], |jvm| {
        let pid = jvm.child.id();
        let uid = rustix::process::geteuid().as_raw();
        let info = ProcessInfo { pid: Pid(pid), namespace_pid: pid, start_boottime_ns: 1, uid, ..Default::default() };
        let key = (info.pid, info.start_boottime_ns);
        let mut symbolizer = Symbolizer::new(Path::new("/proc"), SymbolizerOptions { attach_helper: None });
        symbolizer.process_started(&info);
        // It is opened beside, and this machine may be busy.
        symbolizer.settle(Duration::from_secs(30));
        let low = symbolizer.jvm_unwind(key).unwrap().code_low;
        assert!(symbolizer.jvm_news(key).unwrap().version.is_some());
        let (compile_id, pc) = jvm.place_in_fib();
        let word = FrameWord::compiled_at(compile_id, u32::try_from(pc - low).unwrap());
        let symbols =
            symbolizer.resolve(&info, &[Address(word.0), Address(pc), Address(FrameWord::blob(0x7fff_fff0).0)]);
        for symbol in &symbols[..2] {
            assert_eq!(symbol.frames[0].method(), "Known.fib", "{}: {symbol:?}", jvm.name);
        }
        assert_eq!(symbols[2].frames[0].name, Marker::Evicted.name());
        symbolizer.begin_window(MonotonicNs(0));
        assert_eq!(symbolizer.names_version(key), 0);
        assert_eq!(symbolizer.poll().notices, []);
        let compilers = symbolizer.compiler_threads(key);
        assert!(!compilers.is_empty(), "{}", jvm.name);
        let memory = jvm.memory();
        for (_, thread) in compilers {
            // On the thread's own stack while it compiles.
            let env = memory.u64(thread.env).unwrap();
            assert!(env == 0 || memory.u64(env + u64::from(thread.task)).is_ok(), "{}: {env:x}", jvm.name);
        }
        assert_eq!(symbolizer.poll().notices, []);
        symbolizer.process_ended(key.0, key.1);
        assert_eq!(symbolizer.jvm_unwind(key), None);
    });
}

#[test]
fn interpreted_methods_have_names_and_keep_their_identity() {
    each_jvm(&[], |jvm| {
        let mut attached = jvm.attach();
        let methods = attached.all_methods();
        assert!(!methods.is_empty());
        for &method in methods.iter().take(20) {
            let word = attached.pinned(FrameWord::interpreted(method, 0));
            let frames = attached.resolve(word);
            assert_eq!(frames[0].kind, FrameKind::Interpreted);
            check_method(&frames[0], &jvm.name);
            let word = attached.pinned(FrameWord::compiling(method));
            let compiling = attached.resolve(word);
            assert_eq!(compiling[0].name, format!("compiling {}", frames[0].method()));
        }
        check_pinning(&mut attached, methods[0]);
        let unwind = *attached.unwind_info();
        for (address, name) in [(unwind.call_stub_return, "call stub"), (unwind.interpreter.start, "Interpreter")] {
            let word = FrameWord::blob(u32::try_from(address - unwind.code_low).unwrap());
            assert_eq!(
                (attached.resolve(word)[0].name.raw(), attached.resolve_address(address)[0].kind),
                (name, FrameKind::Stub)
            );
        }
        let nowhere = attached.resolve(FrameWord::interpreted(0x7fff_0000, 0));
        assert_eq!(nowhere[0].name, Marker::Evicted.name());
    });
}

/// A stack is named if its hash says that the methods are those that were sampled.
fn check_pinning(attached: &mut Jvm, method: u64) {
    let words = [FrameWord::interpreted(method, 3), FrameWord::native(0x1000)];
    let identity = attached.identity(method);
    let id = hash_words(7, words.into_iter().zip([Some(identity), None]), walk_end::ROOT);
    for (id, generation, end, is_named) in
        [(id, 7, walk_end::ROOT, true), (id, 8, walk_end::ROOT, false), (StackId(id.0 ^ 1), 7, walk_end::ROOT, false)]
    {
        let mut stack = words.map(|word| Address(word.0));
        attached.pin([ArrivedStack { id, generation, end, words: &mut stack }]);
        let frame = attached.resolve(FrameWord(stack[0].0)).remove(0);
        assert_eq!(frame.kind == FrameKind::Interpreted, is_named, "{frame:?}");
        assert_eq!(stack[1], Address(0x1000));
    }
}

#[test]
fn a_jvm_that_compiles_nothing_is_understood() {
    let Some(jvm) = LiveJvm::start("java".as_ref(), &["-Xint"]) else { return };
    let mut attached = jvm.attach();
    assert_ne!(attached.unwind_info().nmethod_names[0], 0, "a guess");
    assert!(!attached.end_window());
}

/// What one JVM shows, as an image, with its load bias and words to ask for.
type Recorded = (MemoryImage, JvmBuild, u64, Vec<FrameWord>);

fn recorded() -> Option<&'static Recorded> {
    static RECORDED: OnceLock<Option<Recorded>> = OnceLock::new();
    let recorded = RECORDED
        .get_or_init(|| {
            let jvm = LiveJvm::start("java".as_ref(), &[])?;
            let (build, bias) = jvm.build();
            let memory = Arc::new(Recording::new(jvm.memory()));
            let mut attached = Jvm::attach(Box::new(Arc::clone(&memory)), build.clone().into(), bias).unwrap();
            let low = attached.unwind_info().code_low;
            let mut words: Vec<FrameWord> = (attached.all_described().into_iter().take(200))
                .map(|(id, pc)| FrameWord::compiled_call(id, u32::try_from(pc - low).unwrap()))
                .collect();
            let inside = |call: &FrameWord| match call.decode() {
                FrameRef::CompiledCall { compile_id, offset } => FrameWord::compiled_at(compile_id, offset - 1),
                _ => *call,
            };
            words.extend(words.iter().map(inside).collect::<Vec<_>>());
            words.extend(attached.all_methods().into_iter().take(20).map(|method| FrameWord::interpreted(method, 3)));
            words.iter().for_each(|word| drop(attached.resolve(*word)));
            Some((memory.image(), build, bias, words))
        })
        .as_ref();
    if recorded.is_none() {
        // Only the first one tried to start it.
        joular_tests::notes::skipped("there is no JVM to record");
    }
    recorded
}

#[test]
fn an_image_of_a_jvm_tells_what_the_jvm_does() {
    let Some((image, build, bias, words)) = recorded() else { return };
    let mut attached = Jvm::attach(Box::new(image.clone()), build.clone().into(), *bias).unwrap();
    let named = words.iter().filter(|word| attached.resolve(**word)[0].class.is_some()).count();
    assert!(named * 10 > words.len() * 9, "{named} of {}", words.len());
}

#[test]
fn compiled_code_of_an_unloaded_method_has_no_name() {
    let Some((image, build, bias, words)) = recorded() else { return };
    let attach = |image: MemoryImage| Jvm::attach(Box::new(image), build.clone().into(), *bias).unwrap();
    let methods: Vec<u64> = attach(image.clone()).all_compiled().iter().map(|blob| blob.start).collect();
    let at = u64::from(build.layout.nmethod.method.offset);
    let mut ranges: Vec<(u64, Vec<u8>)> = image.ranges().map(|(at, bytes)| (at, bytes.to_vec())).collect();
    for (start, bytes) in &mut ranges {
        for method in methods.iter().filter_map(|blob| usize::try_from((blob + at).checked_sub(*start)?).ok()) {
            bytes.get_mut(method..method + 8).into_iter().for_each(|word| word.fill(0));
        }
    }
    let mut attached = attach(MemoryImage::from_ranges(ranges));
    let compiled = words.iter().filter(|word| matches!(word.decode(), FrameRef::CompiledCall { .. }));
    assert!(compiled.clone().count() > 100);
    compiled.for_each(|word| assert_eq!(attached.resolve(*word)[0].name, Marker::Evicted.name()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever a process writes over its JVM's structures.
    #[test]
    fn a_hostile_jvm_is_survived(changes in proptest::collection::vec((any::<u64>(), any::<u64>(), 0u64..3), 1..60)) {
        let Some((image, build, bias, words)) = recorded() else { return Ok(()) };
        let ranges: Vec<(u64, Vec<u8>)> = image.ranges().map(|(at, bytes)| (at, bytes.to_vec())).collect();
        let total: u64 = ranges.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let mut changed = ranges.clone();
        for (place, value, kind) in changes {
            let mut at = (place % total) & !7;
            let target = changed.iter_mut().find(|(_, bytes)| {
                let is_here = at < bytes.len() as u64;
                at -= if is_here { 0 } else { bytes.len() as u64 };
                is_here
            });
            let (_, bytes) = target.unwrap();
            // A pointer to somewhere there is something, a small number, anything.
            let value = match kind {
                0 => ranges[usize::try_from(value % ranges.len() as u64).unwrap()].0 + (value >> 32) % 4096,
                1 => value % 300,
                _ => value,
            };
            let at = usize::try_from(at).unwrap();
            if let Some(word) = bytes.get_mut(at..at + 8) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
        let changed = MemoryImage::from_ranges(changed);
        let _ = JvmBuild::read(&changed, build.libjvm.clone(), *bias);
        if let Ok(mut attached) = Jvm::attach(Box::new(changed), build.clone().into(), *bias) {
            words.iter().for_each(|word| drop(attached.resolve(*word)));
            let mut stack: Vec<Address> = words.iter().map(|word| Address(word.0)).collect();
            attached.pin([ArrivedStack { id: StackId(1), generation: 0, end: walk_end::ROOT, words: &mut stack }]);
            attached.end_window();
            attached.learn_names();
        }
    }
}
