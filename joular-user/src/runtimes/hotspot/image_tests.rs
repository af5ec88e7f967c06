//! Tests the whole way from a JVM's memory to named stacks, on images of JVMs that were held still
//! (`tests/fixtures/jvm_images`): as they are, and with damage of all kinds.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use joular_data::model::{
    frame::{Frame, FrameKind, Marker},
    quality::WalkEnd,
};
use joular_ebpf::abi::{Field, FrameRef, FrameWord, MAX_USER_FRAMES};
use proptest::prelude::*;

use super::{
    image::{JvmImage, NamedStack},
    jvm::Jvm,
    memory::{MemoryImage, RemoteMemory, Unreadable},
    *,
};

/// Those of aarch64 are walked on any machine.
const NAMES: [&str; 7] = ["11", "17", "21", "25", "aarch64-17", "aarch64-21", "aarch64-25"];
/// Reads of memory: an intact JVM takes some ten thousand.
const MAX_READS: u64 = 3_000_000;

fn file(name: &str, extension: &str) -> PathBuf {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/jvm_images");
    PathBuf::from(fixtures).join(format!("{name}.{extension}"))
}

fn images() -> &'static [JvmImage] {
    static IMAGES: OnceLock<Vec<JvmImage>> = OnceLock::new();
    let read = |name: &&str| JvmImage::decode(&fs::read(file(name, "jimg")).unwrap()).unwrap();
    IMAGES.get_or_init(|| NAMES.iter().map(read).collect())
}

#[test]
fn every_stack_is_exactly_the_expected_one() {
    for (image, name) in images().iter().zip(NAMES) {
        let text = image.text().unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(file(name, "txt"), &text).unwrap();
        }
        let expected = fs::read_to_string(file(name, "txt")).unwrap();
        let differs = text.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
        assert!(text == expected, "{name}: first in line {:?}:\n{text}", differs.map(|line| line + 1));
    }
}

#[test]
fn java_threads_go_to_their_root_with_all_their_lines() {
    for image in images() {
        let mut jvm = image.attach().unwrap();
        let (mut kinds, mut of_recursion) = (std::collections::BTreeSet::new(), 0);
        for thread in &image.threads {
            let walked = image.walk(&image.memory, &jvm, thread);
            let stack = image.name(&mut jvm, &walked);
            if !stack.frames.iter().any(|frame| frame.kind.is_java()) {
                continue;
            }
            assert_eq!(stack.quality.end, WalkEnd::Root, "{} {}", image.jvm, thread.name);
            for frame in stack.frames.iter().filter(|frame| frame.kind.is_java()) {
                assert!(frame.class.is_some(), "{} {}: {frame:?}", image.jvm, thread.name);
                let is_ours = frame.class.as_ref().is_some_and(|class| class.raw().starts_with("known."));
                // Proxies of lambdas have no source.
                assert!(!is_ours || frame.line.is_some() || frame.method().raw().contains("$$Lambda"), "{frame:?}");
                kinds.insert(frame.kind);
            }
            of_recursion += stack.frames.iter().filter(|frame| frame.method() == "known.Recursion.descend").count();
        }
        for kind in [FrameKind::Interpreted, FrameKind::CompiledC2, FrameKind::Inlined] {
            assert!(kinds.contains(&kind), "{}: {kinds:?}", image.jvm);
        }
        assert_eq!(of_recursion, 10 + 1000, "{}", image.jvm);
    }
}

#[test]
fn every_release_says_where_threads_keep_what_they_allocated() {
    for image in images() {
        let jvm = image.attach().unwrap();
        let layout = jvm.parts().0.layout.allocation.unwrap();
        let fields = layout.fields;
        // A buffer is part of its thread, and its fields stand beside each other.
        assert!(fields.tlab_start < fields.tlab_top && fields.tlab_top - fields.tlab_start <= 64, "{layout:?}");
        assert!(fields.tlab_desired_size.abs_diff(fields.tlab_start) <= 128, "{layout:?}");
        assert!(fields.allocated_bytes > 0 && fields.klass_name > 0, "{layout:?}");
        assert!([2, 4, 6].contains(&(fields.symbol_hash + 2)), "{layout:?}");
    }
}

#[test]
fn a_file_that_is_no_image_is_refused() {
    let whole = fs::read(file(NAMES[0], "jimg")).unwrap();
    for (bytes, why) in [
        (Vec::new(), "not an image"),
        (whole[..9].to_vec(), "not an image"),
        ([b"JOULARIMG\0\x02\0", &whole[12..]].concat(), "version"),
        (whole[..12].to_vec(), "reading"),
        (whole[..whole.len() / 2].to_vec(), "reading"),
        ([&whole[..12], &[0; 5 << 20]].concat(), "larger"),
        ([&whole[..12], &zstd::bulk::compress(&vec![0; 65 << 20], 1).unwrap()].concat(), "larger"),
    ] {
        let error = JvmImage::decode(&bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Counts reads, and gives none beyond the limit.
#[derive(Debug)]
struct Counted {
    image: MemoryImage,
    reads: Arc<AtomicU64>,
}

impl RemoteMemory for Counted {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if self.reads.fetch_add(1, Ordering::Relaxed) >= MAX_READS {
            return Err(Unreadable { address, length: buffer.len() });
        }
        self.image.read(address, buffer)
    }
}

/// Goes all the way with other memory, by the layout that the intact image has or
/// by what is found now. Gives the stacks, if it can be attached to.
fn survive(image: &JvmImage, memory: &MemoryImage, layout: Option<&JvmBuild>) -> Vec<NamedStack> {
    let reads = Arc::new(AtomicU64::new(0));
    let counted = || Counted { image: memory.clone(), reads: Arc::clone(&reads) };
    let build = match layout {
        Some(build) => Ok(build.clone()),
        None => JvmBuild::read(&counted(), image.libjvm.clone(), image.bias),
    };
    let jvm = build.and_then(|build| Jvm::attach(Box::new(counted()), build.into(), image.bias));
    let mut stacks = Vec::new();
    if let Ok(mut jvm) = jvm {
        let memory = counted();
        for thread in &image.threads {
            let walked = image.walk(&memory, &jvm, thread);
            assert!(walked.words.len() <= MAX_USER_FRAMES);
            assert_ne!(walked.quality.end, WalkEnd::Budget, "each step adds a frame, or is the last");
            let stack = image.name(&mut jvm, &walked);
            // What could not be named says so, and nothing is left out.
            assert!(stack.frames.len() >= walked.words.len());
            stacks.push(stack);
        }
        jvm.end_window();
        jvm.learn_names();
    }
    assert!(reads.load(Ordering::Relaxed) < MAX_READS, "{} reads", reads.load(Ordering::Relaxed));
    stacks
}

/// Words of the image's stacks that say what compiled code is.
fn compiled_words(image: &JvmImage, jvm: &Jvm) -> Vec<FrameWord> {
    let walked = image.threads.iter().flat_map(|thread| image.walk(&image.memory, jvm, thread).words);
    let is_compiled =
        |word: &FrameWord| matches!(word.decode(), FrameRef::CompiledAt { .. } | FrameRef::CompiledCall { .. });
    walked.filter(is_compiled).collect()
}

/// What happens to one word, or page.
#[derive(Clone, Copy, Debug)]
enum Damage {
    PageGone,
    /// A pointer to somewhere there is something.
    Pointer(u64),
    Small(u64),
    Any(u64),
}

fn damage() -> impl Strategy<Value = (u64, Damage)> {
    let kind = prop_oneof![
        Just(Damage::PageGone),
        any::<u64>().prop_map(Damage::Pointer),
        (0u64..300).prop_map(Damage::Small),
        prop_oneof![any::<u64>(), Just(u64::MAX), Just(u64::from(u32::MAX)), Just(1 << 31)].prop_map(Damage::Any),
    ];
    (any::<u64>(), kind)
}

fn damaged(image: &MemoryImage, damages: &[(u64, Damage)]) -> MemoryImage {
    const PAGE: usize = 4096;
    let split = |(start, bytes): (u64, &[u8])| {
        let pages = bytes.chunks(PAGE).enumerate();
        pages.map(|(index, page)| (start + (index * PAGE) as u64, page.to_vec())).collect::<Vec<_>>()
    };
    let mut pages: Vec<(u64, Vec<u8>)> = image.ranges().flat_map(split).collect();
    let starts: Vec<u64> = pages.iter().map(|(start, _)| *start).collect();
    for (place, damage) in damages {
        let at = usize::try_from(place % pages.len() as u64).unwrap();
        // Where something was asked for: the rest is zero, and nobody looks.
        let used = pages[at].1.chunks(8).enumerate().filter(|(_, word)| word.iter().any(|byte| *byte != 0));
        let used: Vec<usize> = used.map(|(index, _)| index * 8).collect();
        let value = match damage {
            Damage::PageGone => {
                pages[at].1.clear();
                continue;
            }
            Damage::Pointer(to) => starts[usize::try_from(to % starts.len() as u64).unwrap()] + (to >> 32) % 4096,
            Damage::Small(value) | Damage::Any(value) => *value,
        };
        if let Some(word) = used.get(usize::try_from(place >> 32).unwrap() % used.len().max(1)) {
            pages[at].1[*word..*word + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
    let mut damaged = MemoryImage::default();
    pages.iter().filter(|(_, bytes)| !bytes.is_empty()).for_each(|(start, bytes)| damaged.insert(*start, bytes));
    damaged
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Tables, code cache, debug information and stacks alike.
    #[test]
    fn damage_anywhere_is_survived(which in 0..images().len(), damages in proptest::collection::vec(damage(), 1..80)) {
        let image = &images()[which];
        survive(image, &damaged(&image.memory, &damages), None);
    }

    /// The same when the layout was read before: stacks are walked for certain.
    #[test]
    fn damage_while_it_runs_is_survived(which in 0..images().len(), damages in proptest::collection::vec(damage(), 1..80)) {
        let image = &images()[which];
        survive(image, &damaged(&image.memory, &damages), Some(&image.build().unwrap()));
    }

    #[test]
    fn registers_that_are_anything_are_survived(which in 0..images().len(), registers: [u64; 8], pc: u64) {
        let mut image = images()[which].clone();
        let heaps = image.attach().unwrap().unwind_info().code_heaps;
        let code = heaps[0].memory;
        for thread in &mut image.threads {
            for (register, other) in thread.registers.iter_mut().zip(registers) {
                // Some stay: a walk goes on for longer where something makes sense.
                if other % 2 == 0 {
                    *register = other;
                }
            }
            thread.registers[0] = code.start + pc % (code.end - code.start);
        }
        survive(&image, &image.memory, Some(&image.build().unwrap()));
    }
}

/// Each field of a compiled method, in all of them, has values that make no sense.
#[test]
fn absurd_sizes_are_survived() {
    // With debug information inside the code's blob, and apart.
    let of = |release: &str| images().iter().find(|image| image.jvm.starts_with(release)).unwrap();
    for image in [of("17."), of("25.")] {
        let build = image.build().unwrap();
        let jvm = image.attach().unwrap();
        let (blob, code) = (build.layout.blob, build.layout.nmethod);
        let fields = [
            blob.name,
            blob.frame_size,
            blob.frame_complete,
            blob.code_begin,
            blob.size,
            blob.compile_id,
            blob.deopt_handler,
            blob.orig_pc,
            blob.verified_entry,
            code.method,
            code.scopes_pcs_offset,
            code.scopes_data_offset,
            code.scopes_data_begin,
            code.dependencies_offset,
            code.metadata_offset,
            code.immutable_data,
            code.immutable_data_size,
            code.mutable_data,
            code.mutable_data_size,
        ];
        let blobs = jvm.all_compiled();
        assert!(blobs.len() > 5);
        let whole = survive(image, &image.memory, Some(&build));
        let mut harmed = 0;
        for field in fields.into_iter().filter(|field| field.width != 0) {
            for value in [0, 0x7fff_ffff, u64::MAX] {
                let places = blobs.iter().map(|blob| (blob.start, field, value));
                let found = survive(image, &patched(&image.memory, places), Some(&build));
                harmed += u32::from(found != whole);
            }
        }
        assert!(harmed > 20, "{}: the fields matter", image.jvm);
    }
}

/// Code that was replaced between walk and naming: no method's name is given, and
/// everything else is as it was.
#[test]
fn replaced_code_is_marked_and_never_named() {
    for image in images() {
        let (build, mut jvm) = (image.build().unwrap(), image.attach().unwrap());
        let blobs = jvm.all_compiled();
        let others = blobs.iter().map(|blob| (blob.start, build.layout.blob.compile_id, 0x1234_5678));
        let replaced = patched(&image.memory, others);
        let mut later = Jvm::attach(Box::new(replaced), build.clone().into(), image.bias).unwrap();
        let mut evicted = 0;
        for thread in &image.threads {
            for word in image.walk(&image.memory, &jvm, thread).words {
                let (before, after) = (jvm.resolve(word), later.resolve(word));
                if matches!(word.decode(), FrameRef::CompiledAt { .. } | FrameRef::CompiledCall { .. }) {
                    assert_eq!(after, [Frame::marker(Marker::Evicted)], "{before:?}");
                    evicted += 1;
                } else {
                    assert_eq!(before, after);
                }
            }
        }
        assert!(evicted > 100, "{}: {evicted}", image.jvm);
    }
}

fn patched(image: &MemoryImage, places: impl Iterator<Item = (u64, Field, u64)>) -> MemoryImage {
    let mut ranges: Vec<(u64, Vec<u8>)> = image.ranges().map(|(start, bytes)| (start, bytes.to_vec())).collect();
    for (base, field, value) in places {
        let at = base + u64::from(field.offset);
        let range = ranges.iter_mut().rfind(|(start, _)| *start <= at);
        let Some((start, bytes)) = range else { continue };
        let at = usize::try_from(at - *start).unwrap();
        if let Some(target) = bytes.get_mut(at..at + usize::from(field.width)) {
            target.copy_from_slice(&value.to_le_bytes()[..usize::from(field.width)]);
        }
    }
    MemoryImage::from_ranges(ranges)
}

/// Debug information that is all one byte: scopes whose sender is themselves, or one
/// another, and descriptors in no order.
#[test]
fn cyclic_scopes_are_survived() {
    for image in images() {
        let build = image.build().unwrap();
        let ranges = image.attach().unwrap().all_debug_information();
        assert!(ranges.len() > 5);
        for byte in [0, 1, 2, 3, 0x40, 0x7f, 0x80, 0xc0, 0xff] {
            let of = |(start, end): &(u64, u64)| {
                let bytes = *start..(*end).min(start + 65536);
                bytes.map(|at| (at, Field { offset: 0, width: 1 }, byte)).collect::<Vec<_>>()
            };
            survive(image, &patched(&image.memory, ranges.iter().flat_map(of)), Some(&build));
        }
    }
}

#[path = "image_reads_tests.rs"]
mod reads;
