//! Simulates hosts with many JVMs that use little of a CPU each: almost all energy gets a name, and
//! intervals hold the truth as often as they say.

use super::inference::{Did, did, write};
use crate::{
    noise::Noise,
    report::{
        Format, diff,
        measure::Measure,
        profile::{Filter, Names, Profile},
        ranking::{By, Ranking, Sort, groups::Groups, rows::Cut},
    },
};

const JVMS: u32 = 60;
const SECONDS: u32 = 40;
const HZ: f64 = 99.0;
const METHODS: u64 = 4;

/// What methods 1 to 4 take of a thread's time while it does small things, and while it works hard.
const SMALL: [f64; 4] = [0.5, 0.3, 0.15, 0.05];
const HARD: [f64; 4] = [0.1, 0.1, 0.1, 0.7];

/// µs of a thread in a second, and which methods take them.
struct Part {
    cpu_us: f64,
    shares: [f64; 4],
}

/// A host of JVMs that use 0.5 % of a CPU: one thread does most of the work, others a little each.
/// Truth is µs by method; energy is 1 µJ/µs.
struct Host {
    windows: Vec<Vec<Did>>,
    truth: [f64; 4],
}

fn host(noise: &mut Noise, part: impl Fn(&mut Noise, u32, u32) -> Part) -> Host {
    let (mut windows, mut truth) = (Vec::new(), [0.0; 4]);
    for second in 0..SECONDS {
        let mut window = Vec::new();
        for jvm in 0..JVMS {
            for (thread, name) in ["main", "worker", "worker", "VM Periodic Tas"].into_iter().enumerate() {
                let thread = u32::try_from(thread).unwrap();
                let Part { cpu_us, shares } = part(noise, second, thread);
                let mut seen = Vec::new();
                for ((method, share), truth) in (1..).zip(shares).zip(&mut truth) {
                    *truth += cpu_us * share;
                    let hits = u32::try_from(noise.poisson(cpu_us * share * HZ / 1e6)).unwrap();
                    seen.extend((hits > 0).then_some((method, hits)));
                }
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
                window.push(did(100 * (jvm + 1) + thread, name, cpu_us.round() as u64, &seen));
            }
        }
        windows.push(window);
    }
    Host { windows, truth }
}

/// 0.5 % of a CPU: 3.5, 0.7, 0.7 and 0.1 ms a second, each now more, now less.
fn idling(noise: &mut Noise, _: u32, thread: u32) -> Part {
    let mean_us = [3_500.0, 700.0, 700.0, 100.0][thread as usize];
    Part { cpu_us: mean_us * (0.2 + 1.6 * noise.uniform()), shares: SMALL }
}

/// The same, but every thread works hard for a second now and then, and does something else then.
fn bursting(noise: &mut Noise, second: u32, thread: u32) -> Part {
    match idling(noise, second, thread) {
        Part { cpu_us, .. } if noise.uniform() < 0.05 => Part { cpu_us: cpu_us * 20.0, shares: HARD },
        part => part,
    }
}

/// What a report says of a method: its energy, and the interval.
fn figures(profile: &Profile) -> [(f64, f64, f64); 4] {
    let cut = Cut { top: 0, sort: Sort::Own, is_partial: false };
    let ranking = Ranking::of(profile, &Groups::of(By::Method, profile), cut, None, None);
    [1, 2, 3, 4].map(|method| {
        let row = ranking.rows.iter().find(|row| row.group.name == format!("A.m{method}"));
        row.map_or((0.0, 0.0, 0.0), |row| {
            let interval = row.own.interval;
            #[allow(clippy::cast_precision_loss, reason = "small numbers")]
            let [energy, low, high] = [row.own.amounts.energy.0, interval.low.0, interval.high.0].map(|uj| uj as f64);
            (energy, low, high)
        })
    })
}

fn nameless_percent(profile: &Profile) -> f64 {
    let markers = crate::report::ranking::unnamed::by_marker(profile);
    let nameless = markers.values().map(|energy| energy.joules()).sum::<f64>();
    100.0 * nameless / profile.energy().joules()
}

/// Mean share without a name in per cent as recorded and as shown, how often in per cent intervals
/// hold the truth, and how far methods are off on the average, in per cent of all.
fn simulated(runs: u64, part: impl Fn(&mut Noise, u32, u32) -> Part) -> (f64, f64, f64, [f64; 4]) {
    let (mut recorded, mut shown, mut held, mut asked, mut bias) = (0.0, 0.0_f64, 0.0, 0.0, [0.0; 4]);
    for run in 0..runs {
        let host = host(&mut Noise(run << 32), &part);
        let root = tempfile::tempdir().unwrap();
        write(root.path(), METHODS, &host.windows);
        let read = |filter: &Filter| Profile::read(root.path(), filter, None).unwrap();
        recorded += nameless_percent(&read(&Filter { no_infer: true, ..Filter::default() }));
        let profile = read(&Filter::default());
        shown = shown.max(nameless_percent(&profile));
        let all: f64 = host.truth.iter().sum();
        // What has no name could be anybody's, and stays out of the comparison.
        let named = 1.0 - nameless_percent(&profile) / 100.0;
        for (((energy, low, high), truth), bias) in figures(&profile).into_iter().zip(host.truth).zip(&mut bias) {
            asked += 1.0;
            held += f64::from(u8::from(low <= truth * named && truth * named <= high));
            *bias += 100.0 * (energy - truth * named) / all;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "few runs")]
    let runs = runs as f64;
    let (recorded, held, bias) = (recorded / runs, 100.0 * held / asked, bias.map(|bias| bias / runs));
    println!(
        "{recorded:.1} % [no sample], at most {shown:.2} % of it shown; {held:.1} % of intervals hold; off by {bias:.2?} %"
    );
    (recorded, shown, held, bias)
}

/// 60 JVMs at 0.5 % of a CPU for 40 s at 99 Hz.
#[test]
fn on_a_host_of_idling_jvms_almost_all_energy_has_a_name_and_intervals_hold() {
    let (recorded, shown, held, bias) = simulated(40, idling);
    assert!(recorded > 70.0, "recorded as [no sample]: {recorded} %");
    assert!(shown <= 3.0, "shown as [no sample]: {shown} %");
    assert!((90.0..=99.0).contains(&held), "{held} % of intervals hold the truth");
    assert!(bias.iter().all(|bias| bias.abs() < 0.6), "{bias:?} % of all");
}

/// Samples of busy seconds must not speak for the quiet ones.
#[test]
fn bursts_do_not_take_the_energy_of_quiet_windows() {
    let (_, shown, held, bias) = simulated(40, bursting);
    assert!(shown <= 3.0, "shown as [no sample]: {shown} %");
    assert!((90.0..=99.0).contains(&held), "{held} % of intervals hold the truth");
    assert!(bias.iter().all(|bias| bias.abs() < 0.6), "{bias:?} % of all");
}

/// 20 samples of a JVM say less than 1 200 of all.
#[test]
fn one_jvm_of_many_has_wide_intervals_that_hold() {
    let (mut held, mut asked) = (0.0, 0.0);
    for run in 0..6_u64 {
        // Threads of all JVMs are alike, and so is the truth.
        let host = host(&mut Noise((run + 1_000) << 32), idling);
        let root = tempfile::tempdir().unwrap();
        write(root.path(), METHODS, &host.windows);
        for jvm in 1..=20 {
            let pids = vec![crate::model::units::Pid(jvm)];
            let filter = Filter { pids, threads: Names::parse(&["main".into()]).unwrap(), ..Filter::default() };
            let profile = Profile::read(root.path(), &filter, None).unwrap();
            let energy = profile.energy().joules() * 1e6;
            for ((_, low, high), share) in figures(&profile).into_iter().zip(SMALL) {
                // A method that nobody saw has no row, and no interval.
                if high > 0.0 {
                    asked += 1.0;
                    held += f64::from(u8::from(low <= share * energy && share * energy <= high));
                }
            }
        }
    }
    let held = 100.0 * held / asked;
    assert!((90.0..=99.5).contains(&held), "{held} % of intervals hold the truth");
}

/// Each sample also speaks for windows around it, on both sides alike; that must make no change out of
/// noise.
#[test]
fn two_hosts_that_idle_alike_do_not_differ() {
    let (mut judged, mut changed) = (0.0, 0.0);
    for pair in 0..25_u64 {
        let [a, b] = [0, 1].map(|side| {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), METHODS, &host(&mut Noise((3_000 + 2 * pair + side) << 32), idling).windows);
            root
        });
        let choices = diff::Choices {
            measure: Measure::Energy,
            by: diff::CompareBy::Method,
            view: diff::View::Itself,
            per: diff::Per::Time,
            margin: 0.05,
            fail_above: None,
            fail_on: diff::FailOn::Total,
            top: None,
            format: Format::Csv,
            again_in: None,
        };
        let found = diff::run(a.path(), b.path(), &Filter::default(), None, &choices).unwrap();
        assert!(found.a.total.inferred.0 > 0 && found.b.total.inferred.0 > 0);
        for row in found.rows.iter().filter(|row| row.key.name.raw().starts_with("A.m")) {
            judged += f64::from(u8::from(row.change.p.is_some()));
            changed += f64::from(u8::from(row.change.p.is_some_and(|p| p < 0.05)));
        }
    }
    let percent = 100.0 * changed / judged;
    println!("{percent} % of {judged} rows");
    assert!(judged >= 50.0 && percent <= 10.0, "{percent} % of {judged} rows");
}
