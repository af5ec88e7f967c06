//! Tests the reader on chunks that are made up, on a recording that a JVM made, and on both after they were damaged.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use proptest::prelude::*;

use super::{
    made::{MadeField, MadeType, Pool, checkpoint, chunk, constant, field, natural, naturals, sized, text},
    *,
};

const TEXT: u64 = 2;
const LONG: u64 = 3;
const INT: u64 = 4;
const TIMESPAN: u64 = 5;
const CLASS: u64 = 6;
const SYMBOL: u64 = 7;
const CAUSE: u64 = 8;
const THREAD: u64 = 9;
const REQUEST: u64 = 20;
const TICK: u64 = 21;

const SPAN: MadeField<'_> = MadeField { annotation: Some(TIMESPAN), ..field("waited", LONG) };
const MANY: MadeField<'_> = MadeField { is_array: true, ..field("numbers", INT) };

const TYPES: [MadeType<'_>; 10] = [
    (TEXT, "java.lang.String", &[]),
    (LONG, "long", &[]),
    (INT, "int", &[]),
    (TIMESPAN, "jdk.jfr.Timespan", &[field("value", TEXT)]),
    (CLASS, "java.lang.Class", &[constant("package", CLASS), constant("name", SYMBOL)]),
    (SYMBOL, "jdk.types.Symbol", &[field("string", TEXT)]),
    (CAUSE, "jdk.types.GCCause", &[field("cause", TEXT)]),
    (THREAD, "java.lang.Thread", &[field("osName", TEXT), field("osThreadId", LONG), field("javaName", TEXT)]),
    (
        REQUEST,
        "com.acme.HttpRequest",
        &[
            field("startTime", LONG),
            field("duration", LONG),
            constant("eventThread", THREAD),
            field("path", TEXT),
            field("status", INT),
            SPAN,
            MANY,
            constant("cause", CAUSE),
            constant("of", CLASS),
        ],
    ),
    (TICK, "com.acme.Tick", &[field("startTime", LONG)]),
];

fn request(start: u64, path: &[u8], [cause, class]: [u64; 2]) -> Vec<u8> {
    let fields =
        [naturals(&[start, 250, 1]), path.to_vec(), naturals(&[0xffff_ffff, 77, 2, 5, 6, cause, class])].concat();
    sized(REQUEST, &fields)
}

/// Constants stand behind the events that have them, some in each of two places.
fn good() -> Vec<u8> {
    let threads = [(1, [text("java"), natural(7), text("main")].concat())];
    let causes = [(4, text("System.gc()"))];
    let symbols = [(3, text("com/acme/Cart"))];
    let classes = [(5, naturals(&[5, 3])), (6, naturals(&[6, 99]))];
    chunk(
        &TYPES,
        &[
            request(2_000, &text("/a"), [4, 5]),
            checkpoint(&[(THREAD, &threads), (CAUSE, &causes)]),
            request(1_500, &[2, 9], [4, 6]),
            sized(TICK, &natural(3_000)),
            checkpoint(&[
                (TEXT, &[(9, text("/from-a-constant")), (8, vec![2, 8])]),
                (SYMBOL, &symbols),
                (CLASS, &classes),
            ]),
            request(500, &[2, 8], [0, 0]),
            sized(999, &[1, 2, 3]),
        ],
    )
}

type Seen = (String, i64, Option<u64>, String);

/// All events of a recording, as far as it can be read.
fn read(bytes: &[u8]) -> (Vec<Seen>, Result<(), FlightError>) {
    let mut recording = Recording::of(Path::new("shop.jfr"), bytes);
    let mut seen = Vec::new();
    loop {
        let chunk = match recording.next_chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return (seen, Ok(())),
            Err(error) => return (seen, Err(error)),
        };
        let read = recording.counts(&chunk).map(drop).and_then(|()| {
            recording.events(
                &chunk,
                |_| true,
                |event| {
                    seen.push((event.name().to_owned(), event.start_ns, event.length_ns, event.text()));
                },
            )
        });
        if let Err(error) = read {
            return (seen, Err(error));
        }
    }
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).1.unwrap_err().to_string()
}

#[test]
fn events_have_their_times_and_what_they_say() {
    let (seen, read) = read(&good());
    read.unwrap();
    let request =
        |start_ns, said: &str| ("com.acme.HttpRequest".to_owned(), start_ns, Some(250_000_000), said.to_owned());
    let expected = [
        request(2_000_000_000, "path /a, status -1, cause System.gc(), of com.acme.Cart, thread main"),
        request(1_500_000_000, "path /from-a-constant, status -1, cause System.gc(), thread main"),
        ("com.acme.Tick".to_owned(), 3_000_000_000, None, String::new()),
        request(500_000_000, "status -1, thread main"),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn chunks_stand_for_themselves() {
    let (one, _) = read(&good());
    let (two, all) = read(&[good(), good()].concat());
    all.unwrap();
    assert_eq!(two, [one.clone(), one].concat());
}

#[test]
fn a_recording_that_ends_early_is_read_up_to_there() {
    let (whole, _) = read(&good());
    let file = [good(), good()].concat();
    for length in 1..good().len() {
        let (seen, error) = read(&file[..good().len() + length]);
        let error = error.unwrap_err();
        assert_eq!(seen, whole);
        assert!(error.is_of_the_end() || length < 4, "{length}: {error}");
        assert!(read(&file[..length]).1.is_err(), "{length}");
    }
    let mut growing = file;
    growing[good().len() + 8..][..8].fill(0);
    let (seen, error) = read(&growing);
    let error = error.unwrap_err();
    assert!(seen == whole && error.is_of_the_end() && error.to_string().contains("JFR.dump"), "{error}");
}

#[test]
fn what_is_not_a_recording_is_told_apart() {
    for (bytes, expected) in [
        (&[][..], "it is empty"),
        (b"\x1f\x8b\x08\0", "`gunzip`"),
        (b"PK\x03\x04\0", "`unzip`"),
        (&[0x04, 0x22, 0x4d, 0x18, 0], "`lz4 -d`"),
        (&[0x28, 0xb5, 0x2f, 0xfd, 0], "`zstd -d`"),
        (b"#!/bin/sh\n", "does not begin as one does"),
    ] {
        let message = refused(bytes);
        assert!(message.contains(expected) && message.contains("shop.jfr is not a recording"), "{message}");
    }
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good();
        change(&mut bytes);
        refused(&bytes)
    };
    let old = with(|bytes| bytes[5] = 0);
    assert!(old.contains("version 0.1") && old.contains("JDK 9"), "{old}");
    let large = with(|bytes| bytes[8] = 0x7f);
    assert!(large.contains("at most 1024 MiB"), "{large}");
    let behind = with(|bytes| bytes.extend(b"more"));
    assert!(behind.contains("not a chunk"), "{behind}");
}

/// Types that are within each other, of which none has a byte, would take 10¹⁶ steps.
#[test]
fn types_without_an_end_are_refused() {
    let within = [(30, "A", &[field("a", 30)][..])];
    let types = [&TYPES[..], &within].concat();
    let nested = refused(&chunk(&types, &[checkpoint(&[(30, &[(1, Vec::new())])])]));
    assert!(nested.contains("within each other"), "{nested}");
    let wide: Vec<[MadeField<'_>; 10]> = (0..15).map(|level| [field("x", 31 + level); 10]).collect();
    let mut types = TYPES.to_vec();
    let empty: &[MadeField<'_>] = &[];
    let levels = wide.iter().map(|fields| &fields[..]).chain([empty]);
    types.extend((30..).zip(levels).map(|(id, fields)| (id, "X", fields)));
    let wide = refused(&chunk(&types, &[checkpoint(&[(30, &[(1, Vec::new())])])]));
    assert!(wide.contains("within each other"), "{wide}");
}

#[test]
fn constants_that_refer_to_each_other_have_no_name() {
    let names = [(1, vec![2, 1])];
    let classes = [(5, naturals(&[5, 1]))];
    let symbols = [(1, vec![2, 1])];
    let pools: [Pool<'_>; 3] = [(TEXT, &names), (CLASS, &classes), (SYMBOL, &symbols)];
    let (seen, read) = read(&chunk(&TYPES, &[checkpoint(&pools), request(2_000, &[2, 1], [4, 5])]));
    read.unwrap();
    assert_eq!(seen[0].3, "status -1");
    // A type whose best name is a constant of the same type.
    let (name, fields) = ([constant("name", 40)], [field("startTime", LONG), constant("loop", 40)]);
    let mut types = TYPES.to_vec();
    types.extend([(40, "Loop", &name[..]), (41, "E", &fields[..])]);
    let file = chunk(&types, &[checkpoint(&[(40, &[(1, natural(1))])]), sized(41, &naturals(&[1, 1]))]);
    let (seen, looped) = self::read(&file);
    looped.unwrap();
    assert_eq!((seen.len(), &*seen[0].3), (1, ""));
}

#[test]
fn numbers_that_claim_more_than_there_is_are_refused() {
    let most = u64::MAX >> 1;
    for (what, event) in [
        ("constants", sized(1, &[naturals(&[0, 0, 0]), vec![0], naturals(&[1, TEXT, most])].concat())),
        ("pools", sized(1, &[naturals(&[0, 0, 0]), vec![0], natural(most)].concat())),
        ("a type that is not described", checkpoint(&[(777, &[(1, vec![1])])])),
        ("an event without a size", vec![0; 4]),
        ("an event beyond the end", vec![0xff, 0xff, 0xff, 0x7f]),
    ] {
        let (_, read) = read(&chunk(&TYPES, &[event]));
        assert!(read.is_err(), "{what}");
    }
    // The array of an event has no room: what comes before is told.
    let fields = [naturals(&[2_000, 250, 1]), text("/a"), naturals(&[7, 77, most])].concat();
    let (seen, read) = read(&chunk(&TYPES, &[sized(REQUEST, &fields)]));
    read.unwrap();
    assert_eq!(seen[0].3, "path /a, status 7");
}

/// A recording of `FlightRecorded.java`, and what the JDK's `jfr summary` says of it: see the README beside them.
fn recorded() -> (Vec<u8>, BTreeMap<String, u64>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/recordings");
    let packed = std::fs::read(folder.join("flight.jfr.gz")).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let summary = std::fs::read_to_string(folder.join("flight.summary")).unwrap();
    let counted = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, count, bytes] = words[..] else { return None };
        let (count, _) = (count.parse().ok()?, bytes.parse::<u64>().ok()?);
        Some((name.to_owned(), count))
    };
    (bytes, summary.lines().filter_map(counted).collect())
}

#[test]
fn a_jvms_recording_has_the_events_that_the_jdk_counts() {
    let (bytes, mut expected) = recorded();
    let (seen, read) = read(&bytes);
    read.unwrap();
    let mut counts = BTreeMap::new();
    for (name, _, _, said) in &seen {
        *counts.entry(name.clone()).or_default() += 1;
        if name == "jdk.GarbageCollection" {
            assert!(said.contains("name ") && said.contains("cause "), "{said}");
        }
    }
    // They are what events are described by.
    for name in ["jdk.CheckPoint", "jdk.Metadata"] {
        assert!(expected.remove(name).is_some());
    }
    assert_eq!(counts, expected);
    assert!(seen.iter().any(|(name, _, length, said)| {
        name == "com.acme.HttpRequest"
            && length.is_some_and(|length| length > 0)
            && said.contains("path /orders/µ0, status 200")
    }));
}

proptest! {
    #[test]
    fn no_bytes_end_the_program(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
        let mut chunk = good();
        drop(chunk.splice(header::SIZE.., bytes));
        let size = chunk.len() as u64;
        chunk[8..16].copy_from_slice(&size.to_be_bytes());
        let _ = read(&chunk);
    }

    #[test]
    fn a_damaged_chunk_is_read_or_refused(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = good();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_recording_of_a_jvm_is_read_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut bytes, _) = recorded();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(read(&bytes).1.is_err(), "it is cut");
    }
}
