//! Tests lanes: which events they have, which windows are covered, and what is said of power.

use std::{fs, path::PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use super::{
    super::{Page, PageChoice, PageError, page, tests::choice},
    covered::Cover,
    lanes::{LEAST_WINDOWS, MOST, Side},
    *,
};
use crate::{
    model::{policy::Policy, units::MicroJoules},
    report::{
        flight::made::{MadeType, START_NS, chunk, field, naturals, sized, text},
        profile::{Filter, Profile, WindowSpan},
    },
};

const SECOND_US: i64 = 1_000_000;

/// Windows of a second from 10 s on.
fn windows(count: i64) -> Windows {
    let span = |at: i64| WindowSpan { run: 0, start: UnixMicros((10 + at) * SECOND_US), length_ns: 1_000_000_000 };
    Windows::of((0..count).map(span).collect())
}

fn clock(windows: u64) -> Clock {
    Clock { start_us: 10 * SECOND_US, width_us: SECOND_US.unsigned_abs(), buckets: usize::try_from(windows).unwrap() }
}

fn covers(windows: &Windows, stretches: &[(i64, i64)]) -> String {
    let mut covered = Covered::of(windows);
    stretches.iter().for_each(|(from, to)| covered.add(windows, *from, *to));
    let letter = |cover| match cover {
        Cover::None => '.',
        Cover::Part => 'p',
        Cover::Whole => 'W',
    };
    covered.covers().map(letter).collect()
}

#[test]
fn a_window_is_covered_if_events_have_all_of_it() {
    let windows = windows(5);
    for (stretches, expected) in [
        (&[][..], "....."),
        (&[(110, 140)], ".WWW."),
        (&[(111, 139)], ".pWp."),
        (&[(115, 116)], ".p..."),
        (&[(115, 115)], ".p..."),
        (&[(0, 500)], "WWWWW"),
        (&[(0, 99), (150, 500)], "....."),
        // The slice in which one ends and the other begins is of neither.
        (&[(110, 113), (113, 120)], ".p..."),
        (&[(110, 116), (114, 120)], ".W..."),
        (&[(114, 120), (110, 116), (135, 138)], ".W.p."),
    ] {
        let tenth = SECOND_US / 10;
        let stretches: Vec<(i64, i64)> = stretches.iter().map(|(from, to)| (from * tenth, to * tenth)).collect();
        assert_eq!(covers(&windows, &stretches), expected, "{stretches:?}");
    }
}

proptest! {
    /// Compared with looking at each millisecond.
    #[test]
    fn no_window_is_covered_too_early(stretches in proptest::collection::vec((9_000_i64..16_000, 0_i64..3_000), 0..6)) {
        let windows = windows(5);
        let stretches: Vec<(i64, i64)> = stretches.into_iter().map(|(from, length)| (from * 1000, (from + length) * 1000)).collect();
        let has = |at: i64| stretches.iter().any(|(from, to)| (*from..*to).contains(&at));
        for (place, cover) in covers(&windows, &stretches).chars().enumerate() {
            let start = (10 + i64::try_from(place).unwrap()) * SECOND_US;
            let known = (0..1000).filter(|ms| has(start + ms * 1000)).count();
            let is_moment = stretches.iter().any(|(from, to)| from == to && (start..start + SECOND_US).contains(from));
            match cover {
                'W' => prop_assert_eq!(known, 1000),
                '.' => prop_assert!(known == 0 && !is_moment),
                _ => prop_assert!(known > 0 || is_moment),
            }
            // One event that has all of it is enough.
            if stretches.iter().any(|(from, to)| *from <= start && *to >= start + SECOND_US) {
                prop_assert_eq!(cover, 'W');
            }
        }
    }
}

fn lane(windows: &Windows, clock: Clock, events: &[(i64, i64)]) -> Lane {
    let mut lane = Lane::new(windows, clock);
    lane.has_durations = true;
    for (from, to) in events {
        lane.add(Part { from_ns: from * 1_000_000, to_ns: to * 1_000_000 }, String::new, clock, windows);
    }
    lane
}

#[test]
fn shorter_events_are_joined_and_none_is_lost() {
    let (windows, clock) = (windows(5), clock(5));
    let count = i64::try_from(MOST).unwrap() + 500;
    let events: Vec<(i64, i64)> = (0..count).map(|at| (10_000 + at, 10_000 + at + at % 7)).collect();
    let lane = lane(&windows, clock, &events);
    let drawn = lane.drawn();
    assert_eq!(drawn.len(), MOST);
    assert!(drawn.windows(2).all(|two| two[0].from_ns.0 <= two[1].from_ns.0));
    let joined: u64 = lane.joined.iter().map(|(count, _)| count).sum();
    let sum_ns: u64 =
        lane.joined.iter().map(|(_, sum)| sum).sum::<u64>() + drawn.iter().map(|event| event.length_ns).sum::<u64>();
    assert_eq!((joined, lane.count), (500, count.unsigned_abs()));
    assert_eq!(sum_ns, lane.total_ns);
    assert!(drawn.iter().all(|event| event.length_ns >= 1_000_000), "those without length gave way");
}

#[test]
fn power_is_told_only_of_windows_that_events_had_all_of() {
    let (mut windows, clock) = (windows(10), clock(10));
    windows.set_energies((1..=10).map(|joules| MicroJoules(joules * 1_000_000)));
    let mut recorded = Covered::of(&windows);
    // The JVM did not record in the last window.
    recorded.add(&windows, 0, 19 * SECOND_US);
    let long = lane(&windows, clock, &[(9_000, 13_000), (15_500, 15_600)]);
    let sides = long.sides(&windows, &recorded);
    let side = |joules: u64, windows: u64| Side {
        energy: MicroJoules(joules * 1_000_000),
        time_us: windows * 1_000_000,
        windows,
    };
    assert_eq!((sides.with, sides.without, sides.partly), (side(1 + 2 + 3, 3), side(4 + 5 + 7 + 8 + 9, 5), 1));
    assert_eq!(sides.why_not(&long, &windows), None);
    let said = |events: &[(i64, i64)]| {
        let lane = lane(&windows, clock, events);
        lane.sides(&windows, &recorded).why_not(&lane, &windows).unwrap()
    };
    assert_eq!(said(&[(12_000, 12_005), (14_100, 14_200)]), "shorter than a window");
    assert_eq!(said(&[(12_000, 13_000), (14_000, 15_000)]), "fewer than 3 windows lie within these events");
    assert_eq!(said(&[(9_000, 17_000)]), "fewer than 3 windows are without such an event");
    assert_eq!(LEAST_WINDOWS, 3, "as the texts say");
    let nothing = long.sides(&windows, &Covered::of(&windows));
    assert_eq!(nothing.why_not(&long, &windows).unwrap(), "no window lies within the time that the file is of");
}

#[test]
fn windows_of_two_hosts_at_a_time_have_no_power_of_one() {
    let at = |run: usize, start: i64| WindowSpan { run, start: UnixMicros(start), length_ns: 1_000_000_000 };
    for (second, expected) in [(10_000_000, true), (10_400_000, true), (10_990_000, false), (11_000_000, false)] {
        assert_eq!(Windows::of(vec![at(0, 10_000_000), at(1, second)]).are_side_by_side, expected, "{second}");
    }
}

const TYPES: [MadeType<'_>; 6] = [
    (2, "java.lang.String", &[]),
    (3, "long", &[]),
    (20, "com.acme.HttpRequest", &[field("startTime", 3), field("duration", 3), field("path", 2)]),
    (21, "jdk.GarbageCollection", &[field("startTime", 3), field("duration", 3)]),
    (22, "jdk.JVMInformation", &[field("startTime", 3), field("jvmStartTime", 3), field("pid", 3)]),
    (23, "jdk.ThreadSleep", &[field("startTime", 3), field("duration", 3)]),
];

/// Events of a type: milliseconds into the file, and how many each took.
fn events(of: u64, times: &[(u64, u64)]) -> Vec<Vec<u8>> {
    let event = |(at, length): &(u64, u64)| {
        let said = if of == 20 { text("/</script><b>\u{202e}") } else { Vec::new() };
        sized(of, &[naturals(&[1000 + at, *length]), said].concat())
    };
    times.iter().map(event).collect()
}

struct Case {
    root: tempfile::TempDir,
    start_us: i64,
}

impl Case {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        crate::dataset::fixture::write(&root.path().join("out"), Policy::default());
        let choice = choice(&root.path().join("out"));
        let (figures, _) = shown(&choice).unwrap();
        Self { root, start_us: figures["time"]["start_us"].as_i64().unwrap() }
    }

    /// Writes a recording that begins so many seconds after the data set does.
    fn file(&self, name: &str, into_s: i64, events: &[Vec<u8>]) -> PathBuf {
        let mut bytes = chunk(&TYPES, events);
        let start_ns = (self.start_us + into_s * SECOND_US) * 1000;
        assert_eq!(bytes[32..40], START_NS.to_be_bytes());
        bytes[32..40].copy_from_slice(&start_ns.to_be_bytes());
        let path = self.root.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn page(&self, files: &[&PathBuf], events: &[&str]) -> Result<(Value, Vec<String>), PageError> {
        let events: Vec<String> = events.iter().map(|name| (*name).to_owned()).collect();
        let flights = Flights {
            files: files.iter().map(|path| (*path).clone()).collect(),
            events: Names::parse(&events).unwrap(),
        };
        shown(&PageChoice { flights, ..choice(&self.root.path().join("out")) })
    }
}

fn shown(choice: &PageChoice) -> Result<(Value, Vec<String>), PageError> {
    let Page { bytes, notices, .. } = page(choice)?;
    let page = String::from_utf8(bytes).unwrap();
    assert_eq!(page.matches("</script>").count(), 2, "the figures and the script");
    let json = page.split_once("id=\"figures\">").unwrap().1.split_once("</script>").unwrap().0;
    Ok((serde_json::from_str(json).unwrap(), notices))
}

fn text_at<'a>(figures: &'a Value, place: &Value) -> &'a str {
    figures["strings"][usize::try_from(place.as_u64().unwrap()).unwrap()].as_str().unwrap()
}

fn names(figures: &Value) -> Vec<&str> {
    let lanes = figures["flights"][0]["lanes"].as_array().unwrap();
    lanes.iter().map(|lane| text_at(figures, &lane["name"])).collect()
}

#[test]
fn applications_events_and_collections_are_shown_and_others_if_asked_for() {
    let case = Case::new();
    let all = [events(23, &[(0, 1)]), events(21, &[(1_500, 5)]), events(20, &[(1_000, 20), (3_000, 2_000)])].concat();
    let file = case.file("shop.jfr", 2, &all);
    let (figures, notices) = case.page(&[&file], &[]).unwrap();
    assert_eq!(names(&figures), ["com.acme.HttpRequest", "jdk.GarbageCollection"]);
    assert_eq!(notices, [""; 0]);
    let requests = &figures["flights"][0]["lanes"][0];
    assert_eq!((&requests["count"], &requests["total_ns"]), (&2.into(), &2_020_000_000_u64.into()));
    assert_eq!(requests["at_us"], serde_json::json!([3_000_000, 5_000_000]));
    assert_eq!(text_at(&figures, &requests["text"][0]), "path /</script><b>\\u{202e}", "a text, spelled out");
    let (figures, _) = case.page(&[&file], &["jdk.Thread*"]).unwrap();
    assert_eq!(names(&figures), ["jdk.ThreadSleep"]);
    let refused = case.page(&[&file], &["jdk.NoSuch"]).unwrap_err().to_string();
    assert!(refused.contains("--jfr-event") && refused.contains("com.acme.HttpRequest (2)"), "{refused}");
}

#[test]
fn events_outside_of_the_pages_time_are_counted_and_a_file_of_another_time_is_refused() {
    let case = Case::new();
    let all = events(20, &[(1_000, 20), (3_000, 2_000), (6_000, 100)]);
    let (figures, notices) = case.page(&[&case.file("early.jfr", -4, &all)], &[]).unwrap();
    let requests = &figures["flights"][0]["lanes"][0];
    assert_eq!(
        (&requests["count"], &requests["total_ns"]),
        (&2.into(), &1_100_000_000_u64.into()),
        "as far as they are within"
    );
    assert_eq!(notices, ["early.jfr: outside of the page's time, and left out: 1 event"]);
    let refused = case.page(&[&case.file("old.jfr", -86_400, &all)], &[]).unwrap_err().to_string();
    assert!(refused.starts_with("no event of ") && refused.contains("old.jfr lies within the recording"), "{refused}");
}

#[test]
fn the_jvm_is_named_as_the_data_set_does() {
    let case = Case::new();
    let jvm = |pid: u64, start_us: i64| sized(22, &naturals(&[1000, u64::try_from(start_us / 1000).unwrap(), pid]));
    let profile = Profile::read(&case.root.path().join("out"), &Filter::default(), None).unwrap();
    let process = &profile.catalog.processes[0];
    for (start_us, is_known) in [(process.start.0, true), (process.start.0 + 3_600 * SECOND_US, false)] {
        let all = [vec![jvm(process.pid.0.into(), start_us)], events(20, &[(1_000, 20)])].concat();
        let (figures, notices) = case.page(&[&case.file("shop.jfr", 2, &all)], &[]).unwrap();
        let named = text_at(&figures, &figures["flights"][0]["jvm"]).to_owned();
        assert_eq!(named.contains(process.title().raw()), is_known, "{named}");
        assert!(named.contains(&format!("pid {}", process.pid)), "{named}");
        assert_eq!(notices.iter().any(|notice| notice.contains("of another host?")), !is_known, "{notices:?}");
    }
}

#[test]
fn a_file_that_ends_early_is_shown_up_to_there() {
    let case = Case::new();
    let whole = fs::read(case.file("shop.jfr", 2, &events(20, &[(1_000, 20)]))).unwrap();
    let path = case.root.path().join("cut.jfr");
    fs::write(&path, [&whole[..], &whole[..whole.len() / 2]].concat()).unwrap();
    let (figures, notices) = case.page(&[&path], &[]).unwrap();
    assert_eq!(figures["flights"][0]["lanes"][0]["count"], 1);
    assert!(
        notices[0].contains("ends within the chunk") && notices[0].contains("What comes before is shown"),
        "{notices:?}"
    );
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(case.page(&[&path], &[]).unwrap_err().to_string().contains("ends within the chunk at byte 0"));
    for absent in [case.root.path().join("absent.jfr"), case.root.path().to_owned()] {
        assert!(case.page(&[&absent], &[]).is_err());
    }
}
