//! Tests by simulation whether intervals of methods that are charged for a collector hold the truth as often as they say.

use super::{super::sums::EnergySums, rates::Bytes, *};
use crate::{
    model::{
        frame::{Frame, FrameKind},
        measure::Measure,
        units::Tid,
    },
    noise::Noise,
    report::{
        profile::{Catalog, Overview, Process, Profile, Thread, ThreadIndex},
        ranking::{by::By, groups::Groups, slots::Slots, sums},
    },
    sampling::Sampled,
};

/// A thread whose first method has a share of its CPU time, and another share of the bytes that it allocates.
#[derive(Clone, Copy, Debug)]
struct Case {
    of_time: f64,
    of_bytes: f64,
    /// Sampled objects that can be expected in a window.
    objects: f64,
    by: ChargeBy,
}

const WINDOWS: i64 = 20;
/// Places of paths: the method, what else the thread does, and no sample.
const METHOD: PathIndex = PathIndex(0);
const OTHER: PathIndex = PathIndex(1);
const NO_SAMPLE: PathIndex = PathIndex(2);

/// A run as a data set has it, and the truth.
#[derive(Default)]
struct Run {
    own: Vec<EnergyRow>,
    charges: Vec<EnergyRow>,
    windows: BTreeMap<UnixMicros, WindowCharges>,
    allocated: Vec<(PathIndex, UnixMicros, Sampled)>,
    survived: Vec<(PathIndex, UnixMicros, u64)>,
    truth_uj: f64,
}

/// What a path has allocated since the last collections.
#[derive(Clone, Copy, Default)]
struct Since {
    young: u64,
    old: u64,
    window: u64,
    survived: u64,
    old_survived: u64,
}

fn row(path: PathIndex, start: UnixMicros, energy: u64, samples: u64) -> EnergyRow {
    EnergyRow {
        run: 0,
        window_start: start,
        window_ns: 1_000_000_000,
        thread: ThreadIndex(0),
        path,
        energy: MicroJoules(energy),
        cpu_ns: 0,
        samples,
        inferred: None,
        pooled: None,
        divided_by: DividedBy::CpuTime,
    }
}

fn part(whole: u64, weight: u64, all: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(weight) / u128::from(all.max(1))).unwrap()
}

fn hits(noise: &mut Noise, of: u64, share: f64) -> u64 {
    (0..of).filter(|_| noise.uniform() < share).count() as u64
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "simulation")]
impl Case {
    fn run(&self, noise: &mut Noise) -> Run {
        let (mut run, mut since) = (Run::default(), [Since::default(); 3]);
        for number in 0..WINDOWS {
            let start = UnixMicros(number * 1_000_000);
            let (energy, samples) = (500_000 + noise.below(500_000), 40 + noise.below(60));
            let of_method = hits(noise, samples, self.of_time);
            let own = part(energy, of_method, samples);
            run.own.extend([row(METHOD, start, own, of_method), row(OTHER, start, energy - own, samples - of_method)]);
            run.truth_uj += energy as f64 * self.of_time;
            self.allocate(noise, &mut run, &mut since, start);
            self.collect(noise, &mut run, &mut since, number);
        }
        run
    }

    fn allocate(&self, noise: &mut Noise, run: &mut Run, since: &mut [Since; 3], start: UnixMicros) {
        let (bytes, objects) = (50_000_000 + noise.below(50_000_000), noise.poisson(self.objects));
        let of_method = hits(noise, objects, self.of_bytes);
        let own = part(bytes, of_method, objects);
        let found = match objects {
            0 => vec![(NO_SAMPLE, bytes, 0)],
            _ => vec![(METHOD, own, of_method), (OTHER, bytes - own, objects - of_method)],
        };
        since.iter_mut().for_each(|since| (since.window, since.survived) = (0, 0));
        for (path, bytes, objects) in found {
            let of_path = &mut since[path.index()];
            (of_path.young, of_path.old, of_path.window) = (of_path.young + bytes, of_path.old + bytes, bytes);
            run.allocated.push((path, start, Sampled::of(MicroJoules(bytes), objects)));
            if objects > 0 {
                // Half of the objects survive, whoever allocated them.
                of_path.survived = part(bytes, hits(noise, objects, 0.5), objects);
                of_path.old_survived += of_path.survived;
                run.survived.push((path, start, of_path.survived));
            }
        }
    }

    /// Young collections come at random. In three of ten windows the whole heap is marked, and in the last of them collected.
    fn collect(&self, noise: &mut Noise, run: &mut Run, since: &mut [Since; 3], number: i64) {
        let (is_young, is_old) = (noise.uniform() < 0.5, number % 10 >= 7);
        let energies = [(is_young, 0), (is_old, 1), (!is_young && !is_old, 2)]
            .map(|(counts, kind)| if counts { (400_000 + noise.below(200_000)) >> kind } else { 0 });
        let sum = |of: &dyn Fn(&Since) -> u64| since.iter().map(of).sum::<u64>();
        let mut window = WindowCharges { young: MicroJoules(energies[0]), ..WindowCharges::default() };
        let if_so = |counts: bool, bytes: u64| if counts { bytes } else { 0 };
        window.since_young.add(if_so(is_young, sum(&|it| it.young)), if_so(is_young, sum(&|it| it.survived)));
        window.since_old.add(if_so(is_old, sum(&|it| it.old)), if_so(is_old, sum(&|it| it.old_survived)));
        window.in_window = if_so(!is_young && !is_old, sum(&|it| it.window));
        let start = UnixMicros(number * 1_000_000);
        let divided = |energy: u64, bytes: Bytes, of: [u64; 2]| match self.by {
            ChargeBy::Survived if bytes.survived > 0 => part(energy, of[1], bytes.survived),
            _ => part(energy, of[0], bytes.allocated),
        };
        for path in [METHOD, OTHER, NO_SAMPLE] {
            let of_path = since[path.index()];
            let charged = divided(energies[0], window.since_young, [of_path.young, of_path.survived])
                + divided(energies[1], window.since_old, [of_path.old, of_path.old_survived])
                + part(energies[2], of_path.window, window.in_window);
            window.charged = window.charged.saturating_add(MicroJoules(charged));
            run.charges.push(row(path, start, charged, 0));
            run.truth_uj += if path == NO_SAMPLE { 0.0 } else { charged as f64 * self.of_bytes };
        }
        let left = noise.uniform();
        let after = |bytes: u64| (bytes as f64 * left) as u64;
        if is_young || number % 10 == 9 {
            since.iter_mut().for_each(|since| since.young = after(since.window));
            window.end(CollectionKind::Young, left);
        }
        if number % 10 == 9 {
            since.iter_mut().for_each(|since| (since.old, since.old_survived) = (after(since.window), 0));
            window.end(CollectionKind::Old, left);
        }
        run.windows.insert(start, window);
    }

    /// How often, in per cent, the interval holds what the method truly had: as it is shown, and as if charges were exact.
    fn coverage(&self, runs: u32) -> [f64; 2] {
        let (mut noise, mut held, catalog) = (Noise(1), [0_u32; 2], catalog());
        for _ in 0..runs {
            // Shares are not round: coverage of one share alone goes up and down with each sample.
            let wobble = |noise: &mut Noise, share: f64| share * (0.8 + 0.4 * noise.uniform());
            let (of_time, of_bytes) = (wobble(&mut noise, self.of_time), wobble(&mut noise, self.of_bytes));
            let run = Self { of_time, of_bytes, ..*self }.run(&mut noise);
            for (held, knows_objects) in held.iter_mut().zip([true, false]) {
                let interval = self.interval(&catalog, &run, knows_objects);
                *held += u32::from(interval.0 <= run.truth_uj && run.truth_uj <= interval.1);
            }
        }
        held.map(|held| f64::from(held) * 100.0 / f64::from(runs))
    }

    /// As tables of methods have it, µJ.
    fn interval(&self, catalog: &Catalog, run: &Run, knows_objects: bool) -> (f64, f64) {
        let windows = HashMap::from_iter([(ProcessIndex(0), run.windows.clone())]);
        let mut objects = Objects::of(&windows, self.by);
        run.charges.iter().for_each(|row| objects.charge(row));
        for (path, window, bytes) in run.allocated.iter().filter(|_| knows_objects) {
            objects.allocated((ThreadIndex(0), *path), (ProcessIndex(0), *window), bytes);
        }
        for (path, window, bytes) in run.survived.iter().filter(|_| self.by == ChargeBy::Survived) {
            objects.survived((ThreadIndex(0), *path), (ProcessIndex(0), *window), *bytes);
        }
        let mut sums = EnergySums::default();
        run.own.iter().for_each(|row| sums.add(row));
        for row in &run.charges {
            let mut row = *row;
            objects.divide(&mut row);
            sums.add(&row);
        }
        let filter = Filter { charge_gc: Some(self.by), ..Filter::default() };
        let profile = Profile::of_entries(catalog.clone(), sums.into_entries(), Overview::default(), &filter, None);
        let groups = Groups::of(By::Method, &profile);
        let cells = sums::cells(&profile, Measure::Energy, &Slots::each(&profile, &groups), false);
        (cells[0].own.low as f64, cells[0].own.high as f64)
    }
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.processes.push(Process::default());
    catalog.threads.push(Thread {
        process: ProcessIndex(0),
        tid: Tid(1),
        start: UnixMicros(0),
        name: "main".into(),
        category: Category::Java,
    });
    for name in ["method", "other", "[no sample]"] {
        let frame = catalog.paths.frame_index(Frame::new(FrameKind::CompiledC2, name));
        catalog.paths.push([frame]);
    }
    catalog
}

#[test]
fn with_charges_by_many_objects_an_interval_holds_the_truth_in_95_of_100_runs() {
    for (of_time, of_bytes) in [(0.02, 0.3), (0.1, 0.1), (0.3, 0.7), (0.5, 0.03)] {
        let case = Case { of_time, of_bytes, objects: 30.0, by: ChargeBy::Allocated };
        let [held, as_if_exact] = case.coverage(2_000);
        println!("{held:.1} %, {as_if_exact:.1} % if charges were exact: {case:?}");
        assert!((93.0..=97.0).contains(&held), "{held} %: {case:?}");
    }
}

#[test]
fn with_charges_by_thirty_objects_an_interval_holds_the_truth_in_95_of_100_runs() {
    for (of_time, of_bytes) in [(0.02, 0.33), (0.1, 0.2), (0.3, 0.7)] {
        let case = Case { of_time, of_bytes, objects: 1.5, by: ChargeBy::Allocated };
        let [held, as_if_exact] = case.coverage(2_000);
        println!("{held:.1} %, {as_if_exact:.1} % if charges were exact: {case:?}");
        assert!((93.0..=97.0).contains(&held), "{held} %: {case:?}");
    }
}

#[test]
fn with_charges_by_what_survived_an_interval_holds_the_truth_in_95_of_100_runs() {
    for (of_time, of_bytes, objects) in [(0.02, 0.3, 30.0), (0.1, 0.1, 30.0), (0.3, 0.7, 3.0)] {
        let case = Case { of_time, of_bytes, objects, by: ChargeBy::Survived };
        let [held, as_if_exact] = case.coverage(2_000);
        println!("{held:.1} %, {as_if_exact:.1} % if charges were exact: {case:?}");
        assert!((92.5..=98.0).contains(&held), "{held} %: {case:?}");
    }
}

/// 0.4 J of its own, known by as many samples as leave 0.12 J to either side, and 5 of 15 J of charges by 10 of 30 objects.
#[test]
fn five_joules_by_ten_of_thirty_objects_are_not_certain() {
    let mut sums = EnergySums::default();
    let start = UnixMicros(0);
    for (path, own, samples, charged, objects) in
        [(METHOD, 400_000, 46, 5_000_000, 10), (OTHER, 8_300_000, 954, 10_000_000, 20)]
    {
        sums.add(&row(path, start, own, samples));
        let Sampled { squares, .. } = Sampled::of(MicroJoules(charged), objects);
        let (pooled, divided_by) = (Some(Pooled { squares, ..Pooled::COMPLETE }), DividedBy::Objects(objects));
        sums.add(&EnergyRow { pooled, divided_by, ..row(path, start, charged, 0) });
    }
    let filter = Filter { charge_gc: Some(ChargeBy::Allocated), ..Filter::default() };
    let profile = Profile::of_entries(catalog(), sums.into_entries(), Overview::default(), &filter, None);
    let groups = Groups::of(By::Method, &profile);
    let figure = sums::cells(&profile, Measure::Energy, &Slots::each(&profile, &groups), false)[0].own;
    let joules = [figure.low, figure.amount, figure.high].map(|energy| MicroJoules(energy).joules());
    println!("{joules:?} J");
    assert!((2.8..3.4).contains(&joules[0]) && (7.7..8.2).contains(&joules[2]), "{joules:?}");
    assert!((joules[1] - 5.4).abs() < 1e-9, "{joules:?}");
}
