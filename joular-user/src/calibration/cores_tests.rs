use joular_data::{
    model::{
        domain::{Label, Meter},
        units::MicroJoules,
    },
    noise::Noise,
};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn domains() -> Vec<Domain> {
    let domain = |name: &str| Domain::new(name, Some(0), "test", Label::Measured, Meter::Power);
    vec![domain("package"), domain("dram")]
}

/// A second of eight CPUs: busy time, and watts of package and memory.
fn window(busy_ms: u64, watts: [u64; 2]) -> IdleWindow {
    let energy = watts.map(|watts| Some(MicroJoules(watts * 1_000_000))).to_vec();
    IdleWindow { busy_ns: busy_ms * 1_000_000, cpu_ns: 8 * SECOND, read_ns: SECOND, energy }
}

fn power(name: &str, typical: u64, kilohertz: u64) -> CorePower {
    let microwatts = Summary { count: 8, least: typical, typical, spread: 0 };
    CorePower { name: name.into(), cpus: vec![0], microwatts, kilohertz }
}

fn types() -> Vec<CoreType> {
    let of = |name: &str| CoreType {
        name: name.into(),
        time_permille: ONE_PERMILLE,
        cycles_permille: ONE_PERMILLE,
        ..CoreType::default()
    };
    vec![of("performance"), of("efficiency")]
}

fn kind(name: &str, cpus: impl IntoIterator<Item = u32>) -> CoreKind {
    CoreKind { name: name.into(), cpus: cpus.into_iter().collect() }
}

/// A CPU, and the number of its sibling.
fn cpu(id: u32, sibling: Option<u32>) -> Cpu {
    Cpu { id, sibling, ..Cpu::default() }
}

/// Six cores of two threads, and four of one.
fn hybrid() -> (Vec<CoreKind>, Vec<Cpu>) {
    let online = (0..12).map(|id| cpu(id, Some(id ^ 1))).chain((12..16).map(|id| cpu(id, None)));
    (vec![kind("performance", 0..12), kind("efficiency", 12..16)], online.collect())
}

#[test]
fn loads_begin_with_one_core_and_end_with_all_threads() {
    let (kinds, online) = hybrid();
    let steps = |name: &str, first, cores: &[u32], threads: &[u32]| Steps {
        name: name.into(),
        first: vec![first],
        cores: cores.to_vec(),
        threads: threads.to_vec(),
    };
    let expected = [
        steps("performance", 10, &[10, 4, 6, 8], &[10, 4, 6, 8, 5, 7, 9, 11]),
        steps("efficiency", 15, &[15, 12, 13, 14], &[]),
    ];
    assert_eq!(Steps::of(&kinds, &online), expected);
    // Where a type has one core, another type keeps the package awake.
    let single = [kind("performance", [0]), kind("efficiency", 1..3)];
    let online: Vec<Cpu> = (0..3).map(|id| cpu(id, None)).collect();
    let expected = [steps("performance", 2, &[2, 0], &[]), steps("efficiency", 2, &[2, 1], &[])];
    assert_eq!(Steps::of(&single, &online), expected);
    // One core with two threads cannot be told from what wakes with it.
    assert_eq!(Steps::of(&[kind("all", 0..2)], &[cpu(0, Some(1)), cpu(1, Some(0))]), []);
    // Power of two sockets' wake-up would not be one CPU's.
    let sockets: Vec<Cpu> = (0..4).map(|id| Cpu { socket: id / 2, ..cpu(id, None) }).collect();
    assert_eq!(Steps::of(&[kind("all", 0..4)], &sockets), [steps("all", 3, &[3, 2], &[])]);
}

#[test]
fn power_is_of_the_cpus_that_were_busy_in_addition() {
    let one = vec![window(1_000, [30, 4]); 4];
    let found = added_cpu_microwatts(&domains(), &one, &vec![window(3_000, [70, 6]); 4]).unwrap();
    assert_eq!((found.count, found.typical), (4, 21_000_000));
    // Half a CPU more that something else used.
    let found = added_cpu_microwatts(&domains(), &one, &vec![window(3_500, [80, 6]); 4]).unwrap();
    assert_eq!(found.typical, 20_800_000);
}

#[test]
fn windows_that_are_uncertain_or_too_few_give_nothing() {
    let one = vec![window(1_000, [30, 4]); 4];
    let unread = IdleWindow { energy: vec![Some(MicroJoules(1)), None], ..window(2_000, [50, 4]) };
    for (before, after) in [
        (one.clone(), vec![window(2_000, [50, 4]); 3]),
        (one[..3].to_vec(), vec![window(2_000, [50, 4]); 9]),
        (one.clone(), vec![unread; 9]),
        (one.clone(), vec![window(1_400, [50, 4]); 9]),
        (one, vec![window(500, [50, 4]); 9]),
    ] {
        assert_eq!(added_cpu_microwatts(&domains(), &before, &after), None);
    }
    assert_eq!(added_cpu_microwatts(&[], &vec![window(0, [1, 1]); 4], &vec![window(1_000, [9, 9]); 9]), None);
}

#[test]
fn a_second_thread_counts_relative_to_its_core() {
    let summary = |typical| Summary { count: 8, least: typical, typical, spread: typical / 10 };
    let expected = Summary { count: 8, least: 1_150, typical: 1_150, spread: 15 };
    assert_eq!(smt_permille(summary(20_000_000), summary(3_000_000)), Some(expected));
    assert_eq!(smt_permille(summary(20_000_000), summary(30_000_000)), None);
    assert_eq!(smt_permille(summary(50_000), summary(5_000)), None);
    let ratio = |typical| SmtRatio { cpus: vec![0, 1], permille: summary(typical) }.policy_permille();
    assert_eq!([ratio(1_150), ratio(2_150)], [Some(1_150), Some(2_000)]);
}

#[test]
fn coefficients_are_relative_to_the_first_type() {
    let mut found = types();
    apply(&mut found, &[power("efficiency", 5_000_000, 3_000_000), power("performance", 20_000_000, 4_000_000)]);
    let figures: Vec<_> = found.iter().map(|of| (of.time_permille, of.cycles_permille, of.basis)).collect();
    assert_eq!(figures, [(1_000, 1_000, CoreBasis::Calibrated), (250, 333, CoreBasis::Calibrated)]);
    let mut found = types();
    apply(&mut found, &[power("efficiency", 5_000_000, 0), power("performance", 20_000_000, 4_000_000)]);
    assert_eq!((found[1].time_permille, found[1].cycles_permille), (250, 250));
}

#[test]
fn what_was_not_measured_for_every_type_changes_nothing() {
    for powers in [
        vec![],
        vec![power("performance", 20_000_000, 0)],
        vec![power("efficiency", 5_000_000, 0)],
        vec![power("performance", 50_000, 0), power("efficiency", 20_000, 0)],
        vec![power("performance", 20_000_000, 0), power("efficiency", 0, 0)],
    ] {
        let mut found = types();
        apply(&mut found, &powers);
        assert_eq!(found, types(), "{powers:?}");
    }
}

/// A hybrid machine whose package draws `awake` W more while any CPU is busy. A performance core draws 20 W, and `smt` times as
/// much with both threads; an efficiency core 6 W. All busy performance cores draw `turbo` less of that for each further one.
/// Windows of half a second waver by 0.5 W, and something else runs now and then.
struct Machine {
    awake: f64,
    smt: f64,
    turbo: f64,
    noise: Noise,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers of a simulation"
)]
impl Machine {
    fn watts(&self, busy: &[u32]) -> f64 {
        let (kinds, online) = hybrid();
        let threads = |cpu: &Cpu| busy.iter().filter(|id| **id == cpu.id || Some(**id) == cpu.sibling).count();
        let cores = online.iter().filter(|cpu| cpu.sibling.is_none_or(|sibling| cpu.id < sibling));
        let [mut performance, mut efficient, mut count] = [0.0; 3];
        for cpu in cores {
            match (kinds[0].cpus.contains(&cpu.id), threads(cpu)) {
                (_, 0) => {}
                (true, threads) => {
                    performance += if threads == 2 { 20.0 * self.smt } else { 20.0 };
                    count += 1.0;
                }
                (false, _) => efficient += 6.0,
            }
        }
        let awake = if busy.is_empty() { 0.0 } else { self.awake };
        10.0 + awake + performance * (1.0 - self.turbo * (count - 1.0_f64).max(0.0)) + efficient
    }

    /// Eight windows, as four seconds have.
    fn windows(&mut self, busy: &[u32]) -> Vec<IdleWindow> {
        let watts = self.watts(busy);
        let mut window = || {
            let else_ms = self.noise.uniform() * 10.0;
            let joules = (watts + 0.5 * self.noise.normal() + else_ms / 1000.0 * 20.0) / 2.0;
            IdleWindow {
                busy_ns: busy.len() as u64 * SECOND / 2 + (else_ms * 500_000.0) as u64,
                cpu_ns: 8 * SECOND,
                read_ns: SECOND / 2,
                energy: vec![Some(MicroJoules((joules * 1e6) as u64)), Some(MicroJoules(0))],
            }
        };
        (0..8).map(|_| window()).collect()
    }

    /// The efficiency core's power relative to the performance core's, and the ratio of hyper-threads.
    fn calibrated(&mut self) -> [f64; 2] {
        let (kinds, online) = hybrid();
        let (mut powers, mut smt) = (Vec::new(), 0.0);
        for steps in Steps::of(&kinds, &online) {
            let [first, cores] = [&steps.first, &steps.cores].map(|cpus| self.windows(cpus));
            let core = added_cpu_microwatts(&domains(), &first, &cores).unwrap();
            powers.push(core.typical as f64);
            if !steps.threads.is_empty() {
                let thread = added_cpu_microwatts(&domains(), &cores, &self.windows(&steps.threads)).unwrap();
                smt = smt_permille(core, thread).unwrap().typical as f64 / 1000.0;
            }
        }
        [powers[1] / powers[0], smt]
    }

    /// As it was: one CPU of each type, above idle.
    fn with_its_wake_up(&mut self) -> f64 {
        let [idle, performance, efficient] = [&[][..], &[10], &[15]].map(|cpus| self.windows(cpus));
        let above = |loaded: &[IdleWindow]| added_cpu_microwatts(&domains(), &idle, loaded).unwrap().typical as f64;
        above(&efficient) / above(&performance)
    }
}

/// Mean and standard deviation.
fn spread(figures: &[f64]) -> (f64, f64) {
    let count = f64::from(u32::try_from(figures.len()).unwrap());
    let mean = figures.iter().sum::<f64>() / count;
    (mean, (figures.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt())
}

/// docs/measured/statistics.md has the figures.
#[test]
fn simulation_what_the_package_draws_when_it_wakes_is_no_cores() {
    for turbo in [0.0, 0.01] {
        for (awake, smt) in [(0.0, 1.0), (4.0, 1.1), (8.0, 1.25), (12.0, 1.4)] {
            let mut machine = Machine { awake, smt, turbo, noise: Noise(8) };
            let found: Vec<[f64; 2]> = (0..500).map(|_| machine.calibrated()).collect();
            let before: Vec<f64> = (0..500).map(|_| machine.with_its_wake_up()).collect();
            let [cores, threads] = [0, 1].map(|of| spread(&found.iter().map(|both| both[of]).collect::<Vec<_>>()));
            let before = spread(&before);
            eprintln!("turbo {turbo}: {awake} W, {smt}: before {before:.3?}, cores {cores:.3?}, threads {threads:.3?}");
            let most = 0.02 + turbo;
            assert!(found.iter().all(|of| (of[0] - 0.3).abs() < most && (of[1] - smt).abs() < most), "{awake} {smt}");
            assert!(awake == 0.0 || before.0 > 0.4, "it was off: {before:?}");
        }
    }
}
