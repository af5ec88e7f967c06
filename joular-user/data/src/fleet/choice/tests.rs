use std::{collections::BTreeMap, fs, path::Path};

use tempfile::TempDir;

use super::{
    super::{
        erase::{Order, Subject, erase},
        tests::{NOW, compacted, fleet, share, ship, ship_as},
    },
    *,
};
use crate::{
    dataset::store::SharedPlace,
    model::{measure::Measure, target_text::TargetText},
    report::{
        profile::{Profile, Unreadable},
        tree::Levels,
    },
    shipping::Layout,
};

const MINUTE_US: i64 = 60_000_000;
const HOUR_US: i64 = 60 * MINUTE_US;

/// Sums of a profile: µJ, those that are inferred, ns, and samples.
type Sums = BTreeMap<String, [u64; 4]>;

/// This many hours before and after the runs of the fixture, which are of three hours.
fn around(before: i64, after: i64) -> Filter {
    let at = |hours: i64| Some(Moment::At(UnixMicros(NOW.0 + hours * HOUR_US)));
    Filter { since: at(-before), until: at(after), ..Filter::default() }
}

fn with(filter: &Filter, wish: Wish) -> Filter {
    Filter { sources: sources(wish, [View::Tree(Levels::Frames)]), ..filter.clone() }
}

fn read(place: &Path, filter: &Filter) -> (Sums, ReadFrom) {
    let profile = Profile::read(place, filter, None).unwrap();
    let mut sums = Sums::new();
    for entry in &profile.entries {
        let thread = profile.catalog.thread(entry.thread);
        let process = profile.catalog.process(thread.process);
        let frames = profile.catalog.paths.frames_of(entry.path).map(|frame| frame.method().raw().to_owned());
        let path = frames.collect::<Vec<_>>().join(";");
        let key = format!("{:?} {:?} {} {path}", process.service, process.version, thread.category.name());
        let of_entry = [entry.energy.0, entry.inferred.0, entry.cpu_ns, entry.samples];
        for (sum, amount) in sums.entry(key).or_default().iter_mut().zip(of_entry) {
            *sum += amount;
        }
    }
    for fact in profile.facts(Measure::Allocated) {
        sums.entry("allocated".to_owned()).or_default()[0] += fact.amount;
    }
    sums.entry("measured".to_owned()).or_default()[0] = profile.overview.measured.0;
    sums.entry("attributed".to_owned()).or_default()[0] = profile.overview.attributed.0;
    (sums, profile.overview.read_from.unwrap())
}

/// Σ energy² / samples, of which intervals are made.
fn squares(place: &Path, filter: &Filter) -> f64 {
    Profile::read(place, filter, None).unwrap().entries.iter().map(|entry| entry.squares).sum()
}

/// What is read by itself, which has to be what the runs have.
fn chosen(place: &TempDir, filter: &Filter) -> ReadFrom {
    let (runs, from) = read(place.path(), &with(filter, Wish::Raw));
    assert_eq!((from.tier, from.reason), (ReadFrom::RAW, None));
    let (sums, from) = read(place.path(), &with(filter, Wish::Auto));
    assert!(sums.len() > 3 && sums["measured"][0] > 0, "{sums:?}");
    assert_eq!(sums, runs, "{from:?}");
    let [of_runs, of_sums] = [Wish::Raw, Wish::Auto].map(|wish| squares(place.path(), &with(filter, wish)));
    // Both are sums of figures that are written to two digits.
    assert!((of_sums - of_runs).abs() <= of_runs * 0.05, "{of_sums} {of_runs}: {from:?}");
    from
}

#[test]
fn what_tiers_answer_is_what_the_runs_have() {
    let place = fleet();
    compacted(place.path());
    for (before, after, tier) in [(4, 1, "minutes"), (40, 7, "minutes"), (40, 8, "hourly"), (400, 0, "hourly")] {
        let from = chosen(&place, &around(before, after));
        assert_eq!((from.tier, from.is_joined), (tier, false), "{before} {after}");
    }
    let from = chosen(&place, &around(3, -2));
    assert_eq!(from.tier, ReadFrom::RAW, "an hour");
    let from = chosen(&place, &Filter::default());
    assert_eq!((from.tier, from.is_joined), ("minutes", false), "there are three hours of it");
}

#[test]
fn edges_within_windows_are_read_from_finer_ones_and_nothing_counts_twice() {
    let place = fleet();
    compacted(place.path());
    // The runs of two hosts are from 23:59:54 until 00:00:24, and the last one's is from 00:59:39 until 01:00:09.
    let mut joined = 0;
    for (minutes, seconds) in [(59, 55), (60, 10), (61, 0), (119, 50), (120, 5)] {
        let edge = Some(Moment::At(UnixMicros(NOW.0 - 190 * MINUTE_US + (minutes * 60 + seconds) * 1_000_000)));
        let wide = around(100, 100);
        for filter in [Filter { since: edge, ..wide.clone() }, Filter { until: edge, ..wide }] {
            let runs = Profile::read(place.path(), &with(&filter, Wish::Raw), None).unwrap();
            if runs.overview.measured.0 > 0 && runs.energy().0 > 0 {
                let from = chosen(&place, &filter);
                assert_ne!(from.tier, ReadFrom::RAW, "{minutes}:{seconds}");
                joined += usize::from(from.is_joined);
            }
        }
    }
    assert!(joined > 2, "{joined}");
}

#[test]
fn hours_with_a_host_that_was_late_are_read_from_the_runs_until_they_are_summed_again() {
    let place = fleet();
    compacted(place.path());
    ship(place.path(), "e", "1", HOUR_US * 3);
    let from = chosen(&place, &around(40, 8));
    assert_eq!((from.tier, from.is_joined), ("hourly", true), "the new hour is not summed yet");
    ship(place.path(), "d", "3", 0);
    chosen(&place, &around(40, 8));
    compacted(place.path());
    let from = chosen(&place, &around(40, 1));
    assert_eq!(from.tier, "minutes");
}

#[test]
fn without_a_sum_that_is_of_all_runs_these_are_read_and_that_is_said() {
    let place = fleet();
    let expect = |from: ReadFrom, word: &str| {
        assert_eq!(from.tier, ReadFrom::RAW);
        assert!(from.line().is_some_and(|line| line.contains(word)), "{from:?}");
    };
    // Without any tier there is nothing to choose from.
    let filter = with(&around(40, 8), Wish::Auto);
    assert_eq!(Profile::read(place.path(), &filter, None).unwrap().overview.read_from, None);
    compacted(place.path());
    ship(place.path(), "d", "3", 0);
    ship(place.path(), "e", "3", HOUR_US);
    expect(chosen(&place, &around(40, 8)), "no tier has any hour");
    ship_as(Layout::Tables, place.path(), "f", "1", 0);
    expect(chosen(&place, &around(40, 8)), "files of tables");
}

#[test]
fn an_hour_of_which_a_run_was_left_out_is_read_from_the_runs() {
    let place = fleet();
    let files = crate::dataset::fixture::files(place.path());
    let (name, bytes) = files.into_iter().find(|(name, _)| name.contains("host=b")).unwrap();
    fs::write(place.path().join(&name), &bytes[..bytes.len() / 2]).unwrap();
    compacted(place.path());
    fs::write(place.path().join(&name), &bytes).unwrap();
    let from = chosen(&place, &around(4, 1));
    assert_eq!((from.tier, from.is_joined), ("minutes", true), "another hour has all of its runs");
}

#[test]
fn of_runs_that_have_expired_tiers_have_what_they_had() {
    let place = fleet();
    compacted(place.path());
    let filter = around(40, 8);
    let (before, _) = read(place.path(), &with(&filter, Wish::Raw));
    fs::remove_dir_all(place.path().join("raw")).unwrap();
    let (sums, from) = read(place.path(), &with(&filter, Wish::Auto));
    assert_eq!((sums, from.tier), (before, "hourly"));
}

#[test]
fn a_file_of_sums_that_cannot_be_read_is_no_loss() {
    let place = fleet();
    compacted(place.path());
    let files = crate::dataset::fixture::files(&place.path().join("hourly"));
    let (name, bytes) = files.into_iter().find(|(name, _)| name.contains("host=shop")).unwrap();
    fs::write(place.path().join("hourly").join(&name), &bytes[..bytes.len() / 2]).unwrap();
    let leaving_out = Filter { unreadable: Unreadable::left_out(), ..around(40, 8) };
    for filter in [around(40, 8), leaving_out] {
        let from = chosen(&place, &filter);
        assert!(from.tier == ReadFrom::RAW && from.line().is_some_and(|line| line.contains("host=shop")), "{from:?}");
    }
}

#[test]
fn runs_that_cannot_be_read_are_left_out_beside_sums_of_other_hours() {
    let place = fleet();
    compacted(place.path());
    let hours = around(40, 8);
    let (sums, _) = read(place.path(), &with(&hours, Wish::Auto));
    // An hour of a single host, which is damaged.
    ship(place.path(), "e", "1", HOUR_US * 3);
    let files = crate::dataset::fixture::files(place.path());
    let (name, bytes) = files.into_iter().find(|(name, _)| name.contains("host=e")).unwrap();
    fs::write(place.path().join(&name), &bytes[..bytes.len() / 2]).unwrap();
    let leaving_out = || Filter { unreadable: Unreadable::left_out(), ..hours.clone() };
    let filter = leaving_out();
    assert_eq!(read(place.path(), &with(&filter, Wish::Auto)).0, sums);
    assert_eq!(filter.skipped().skipped.len(), 1);
    let from = chosen(&place, &leaving_out());
    assert_eq!((from.tier, from.is_joined), ("hourly", true));
}

/// Erases what began before so many minutes before now.
fn erased(place: &TempDir, subject: Subject, minutes: i64) {
    let before = Some(UnixMicros(NOW.0 - minutes * MINUTE_US));
    let order = Order { subject: Some(subject), before, records_anyway: true, is_trial: false };
    let of = SharedPlace::Directory { root: place.path().to_owned(), owner: None };
    let done = erase(&of, &order, &std::env::temp_dir(), NOW).unwrap();
    assert!(!done.is_incomplete(), "{done:?}");
}

#[test]
fn an_hour_in_which_a_service_was_erased_is_still_read_from_a_tier() {
    let place = fleet();
    compacted(place.path());
    let (before, _) = read(place.path(), &with(&around(40, 8), Wish::Auto));
    erased(&place, Subject::Service("shop".to_owned()), 0);
    let from = chosen(&place, &around(40, 8));
    assert_eq!((from.tier, from.is_joined), ("hourly", false));
    let (after, _) = read(place.path(), &with(&around(40, 8), Wish::Auto));
    assert_eq!(after["measured"], before["measured"]);
    let shop = format!("{:?} ", Some(TargetText::from("shop")));
    assert!(before.keys().any(|key| key.starts_with(&shop)) && !after.keys().any(|key| key.starts_with(&shop)));
}

#[test]
fn hours_around_the_end_of_an_erasure_are_read_from_the_runs() {
    let place = fleet();
    compacted(place.path());
    // At 23:30: runs of that hour began later, and sums of it are erased whole.
    erased(&place, Subject::Service("shop".to_owned()), 160);
    let from = chosen(&place, &around(40, 8));
    assert_eq!((from.tier, from.is_joined), ("hourly", true));
}

#[test]
fn hours_in_which_a_pod_may_have_been_erased_are_read_from_the_runs_while_there_are_any() {
    let place = fleet();
    compacted(place.path());
    erased(&place, Subject::Pod("p".to_owned()), 0);
    let from = chosen(&place, &around(40, 8));
    assert!(from.tier == ReadFrom::RAW && from.is_unexpected, "{from:?}");
    fs::remove_dir_all(place.path().join("raw")).unwrap();
    assert_eq!(read(place.path(), &with(&around(40, 8), Wish::Auto)).1.tier, "hourly");
}

#[test]
fn without_knowing_what_was_erased_runs_are_read() {
    let place = fleet();
    compacted(place.path());
    fs::create_dir(place.path().join("erasures")).unwrap();
    fs::write(place.path().join("erasures/0001.json"), "{}").unwrap();
    let from = chosen(&place, &around(40, 8));
    assert!(from.tier == ReadFrom::RAW && from.line().is_some_and(|line| line.contains("erased")), "{from:?}");
}

#[test]
fn a_tier_that_is_named_is_read_alone() {
    let place = fleet();
    compacted(place.path());
    for tier in Tier::ALL {
        let (sums, from) = read(place.path(), &with(&around(1000, 1000), Wish::Tier(tier)));
        assert_eq!(sums, read(place.path(), &with(&Filter::default(), Wish::Raw)).0);
        assert_eq!((from.tier, from.resolution), (tier.folder(), Some(tier.resolution())));
    }
    let without = share();
    ship(without.path(), "a", "1", 0);
    let message = |place: &Path| {
        let filter = with(&Filter::default(), Wish::Tier(Tier::Hourly));
        Profile::read(place, &filter, None).unwrap_err().to_string()
    };
    assert!(message(without.path()).contains("joular-bpf compact"), "{}", message(without.path()));
    fs::remove_file(without.path().join(SHARE_MARK)).unwrap();
    assert!(message(without.path()).contains("leave --tier out"), "{}", message(without.path()));
}

#[test]
fn rules_about_hosts_are_not_applied_to_services() {
    use crate::report::profile::{Access, Allowance, Names};

    let place = fleet();
    compacted(place.path());
    let hosts = Names::parse(&["shop".to_owned()]).unwrap();
    let access = Access::of([Allowance { hosts, ..Allowance::default() }]);
    let filter = Filter { access, ..around(40, 8) };
    let error = Profile::read(place.path(), &with(&filter, Wish::Tier(Tier::Hourly)), None).unwrap_err().to_string();
    assert!(error.contains("tiers do not have hosts"), "{error}");
    let seen = Profile::read(place.path(), &with(&filter, Wish::Auto), None).unwrap();
    assert!(seen.entries.is_empty() && seen.overview.read_from.unwrap().tier == ReadFrom::RAW);
}

#[test]
fn wishes_have_names() {
    for wish in Wish::ALL {
        assert_eq!(Wish::named(wish.name()), Some(wish));
    }
    assert_eq!((Wish::named("daily"), Wish::default()), (None, Wish::Auto));
}
