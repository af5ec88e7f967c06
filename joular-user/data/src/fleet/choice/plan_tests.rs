use proptest::prelude::*;

use super::*;

const ALL: Hour = Hour { has_runs: true, minutes: true, hourly: true };
const MINUTES: Hour = Hour { hourly: false, ..ALL };
const RUNS: Hour = Hour { minutes: false, ..MINUTES };
const EXPIRED: Hour = Hour { has_runs: false, ..ALL };

const MINUTE_US: i64 = 60_000_000;

/// A time by hours and minutes.
fn at(hours: i64, minutes: i64) -> UnixMicros {
    UnixMicros(hours * HOUR_US + minutes * MINUTE_US)
}

fn asked(since: Option<UnixMicros>, until: Option<UnixMicros>) -> Asked {
    Asked { since, until }
}

/// Stretches as text: tier, and minutes from when until when.
fn planned(asked: Asked, coarsest: Tier, hours: &[(i64, Hour)]) -> Vec<(&'static str, i64, i64)> {
    let stretches = plan(asked, coarsest, &hours.iter().copied().collect());
    let one = |stretch: &Stretch| {
        let name = stretch.tier.map_or("raw", Tier::folder);
        (name, stretch.begin.0 / MINUTE_US, stretch.end.0 / MINUTE_US)
    };
    stretches.iter().map(one).collect()
}

#[test]
fn long_times_are_taken_from_long_windows() {
    for (hours, minutes, expected) in [
        (0, 0, None),
        (2, 59, None),
        (3, 0, Some(Tier::Minutes)),
        (47, 59, Some(Tier::Minutes)),
        (48, 0, Some(Tier::Hourly)),
        (10_000, 0, Some(Tier::Hourly)),
    ] {
        assert_eq!(coarsest(at(hours, minutes).0), expected, "{hours}:{minutes}");
    }
    assert_eq!(coarsest(i64::MIN), None, "it ends before it begins");
}

#[test]
fn an_end_that_is_not_said_is_that_of_what_there_is() {
    let hours: Hours = [(10, ALL), (70, RUNS)].into_iter().collect();
    assert_eq!(asked(None, None).length_us(&hours), 61 * HOUR_US);
    assert_eq!(asked(Some(at(60, 0)), None).length_us(&hours), 11 * HOUR_US);
    assert_eq!(asked(None, Some(at(11, 0))).length_us(&hours), HOUR_US);
    assert_eq!(asked(Some(at(0, 0)), Some(at(1, 30))).length_us(&hours), 90 * MINUTE_US);
    assert_eq!(asked(None, None).length_us(&Hours::new()), 0);
}

#[test]
fn edges_are_taken_from_finer_windows() {
    let hours = [(10, ALL), (11, ALL), (12, ALL)];
    let time = asked(Some(at(10, 37)), Some(at(12, 3)));
    assert_eq!(
        planned(time, Tier::Hourly, &hours),
        [("raw", 637, 640), ("minutes", 640, 660), ("hourly", 660, 720), ("raw", 720, 723)]
    );
    assert_eq!(planned(time, Tier::Minutes, &hours), [("raw", 637, 640), ("minutes", 640, 720), ("raw", 720, 723)]);
    assert_eq!(planned(asked(None, None), Tier::Hourly, &hours), [("hourly", 600, 780)]);
    let in_an_hour = asked(Some(at(10, 6)), Some(at(10, 9)));
    assert_eq!(planned(in_an_hour, Tier::Hourly, &hours), [("raw", 606, 609)]);
}

#[test]
fn hours_that_a_tier_lacks_are_taken_from_finer_windows_and_the_last_ones_from_runs() {
    let hours = [(10, ALL), (11, MINUTES), (12, ALL), (13, RUNS), (14, RUNS)];
    assert_eq!(
        planned(asked(None, None), Tier::Hourly, &hours),
        [("hourly", 600, 660), ("minutes", 660, 720), ("hourly", 720, 780), ("raw", 780, 900)]
    );
    assert_eq!(planned(asked(None, None), Tier::Minutes, &hours), [("minutes", 600, 780), ("raw", 780, 900)]);
}

#[test]
fn hours_of_which_there_is_nothing_divide_no_stretch_and_what_expired_is_in_tiers_alone() {
    let hours = [(10, EXPIRED), (30, EXPIRED), (31, ALL)];
    assert_eq!(planned(asked(None, None), Tier::Hourly, &hours), [("hourly", 600, 1920)]);
    let time = asked(Some(at(10, 37)), None);
    assert_eq!(planned(time, Tier::Hourly, &hours), [("minutes", 640, 660), ("hourly", 1800, 1920)]);
    assert_eq!(planned(asked(Some(at(32, 0)), None), Tier::Hourly, &hours), []);
}

fn hour() -> impl Strategy<Value = Hour> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(has_runs, minutes, hourly)| Hour {
        has_runs,
        minutes,
        hourly,
    })
}

proptest! {
    /// Each window of a minute that is asked for is in one stretch, of what has it; nothing else is in any.
    #[test]
    fn each_window_is_read_once(
        of_hours in proptest::collection::vec(hour(), 1..6),
        since in proptest::option::of(0_i64..400),
        long in proptest::option::of(0_i64..400),
        is_hourly: bool,
    ) {
        let hours: Hours = (0_i64..).zip(of_hours.iter().copied()).collect();
        let until = long.map(|long| since.unwrap_or(0) + long);
        let time = asked(since.map(|since| at(0, since)), until.map(|until| at(0, until)));
        let coarsest = if is_hourly { Tier::Hourly } else { Tier::Minutes };
        let stretches = plan(time, coarsest, &hours);
        for minute in 0..i64::try_from(of_hours.len()).unwrap() * 60 {
            let start = at(0, minute);
            let hour = hours[&(minute / 60)];
            let is_asked = since.is_none_or(|since| minute >= since) && until.is_none_or(|until| minute < until);
            let of: Vec<&Stretch> = stretches.iter().filter(|one| one.begin <= start && start < one.end).collect();
            prop_assert!(of.len() <= 1, "{minute}: {stretches:?}");
            let is_anything = hour.has_runs || hour.minutes || (hour.hourly && is_hourly);
            match of.first() {
                Some(one) => {
                    prop_assert!(is_asked, "{minute}: {stretches:?}");
                    let has_it = match one.tier {
                        None => hour.has_runs,
                        Some(tier) => hour.is_in(tier) && tier <= coarsest,
                    };
                    prop_assert!(has_it || !is_anything, "{minute}: {stretches:?}");
                }
                // Only a part of a window that a tier has, and whose runs are gone.
                None => prop_assert!(!is_asked || !hour.has_runs, "{minute}: {stretches:?}"),
            }
        }
        for one in &stretches {
            let window_us = one.tier.map_or(1, Tier::window_us);
            prop_assert!(one.begin < one.end && one.begin.0 % window_us == 0 && one.end.0 % window_us == 0);
        }
    }
}
