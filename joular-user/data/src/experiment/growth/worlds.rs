//! Worlds for simulations: how energy truly grows, how runs vary, and which class may be called certain.

use super::{Class, Point};
use crate::noise::Noise;

/// How the energy of runs comes about.
#[derive(Clone)]
pub(super) struct World {
    pub(super) name: &'static str,
    /// The class of the algorithm; `None` if there is no class that describes it.
    pub(super) class: Option<Class>,
    pub(super) values: Vec<f64>,
    pub(super) joules: fn(f64) -> f64,
    /// Standard deviation of a run, as a part of its energy.
    pub(super) noise: f64,
    /// Standard deviation of what all runs of a value share, as a part of their energy.
    pub(super) shared: f64,
    /// How much more the last run needs than the first, as a part of its energy. The order is random.
    pub(super) drift: f64,
}

/// Runs of each value.
const RUNS: usize = 3;

impl World {
    /// A sweep of three runs of each value.
    pub(super) fn sweep(&self, noise: &mut Noise) -> Vec<Point> {
        let mut points = Vec::new();
        for value in &self.values {
            let shared = noise.around_one(self.shared);
            for _ in 0..RUNS {
                let drift = 1.0 + self.drift * noise.uniform();
                let joules = (self.joules)(*value) * shared * drift * noise.around_one(self.noise);
                points.push(Point { value: *value, joules, variance: 0.0 });
            }
        }
        points
    }

    fn of(name: &'static str, class: Option<Class>, noise: f64, joules: fn(f64) -> f64) -> Self {
        Self { name, class, values: spread(), joules, noise, shared: 0.0, drift: 0.0 }
    }
}

/// Twelve values from 10³ to 10⁶ in equal ratios.
fn spread() -> Vec<f64> {
    (0..12).map(|step| (10_f64).powf(3.0 + 3.0 * f64::from(step) / 11.0).round()).collect()
}

/// Energies that follow a class. All but the constant start with 2 J and end near 50 J.
pub(super) fn true_models(noise: f64) -> Vec<World> {
    let doubling: Vec<f64> = (0..12).map(|step| (10.0 + 16.0 * f64::from(step) / 11.0_f64).round()).collect();
    let of = |class: Class, joules| World::of(class.name(), Some(class), noise, joules);
    vec![
        of(Class::Constant, |_| 20.0),
        of(Class::Logarithmic, |n| 2.0 + 3.5 * n.ln()),
        of(Class::Linear, line),
        of(Class::Linearithmic, sort),
        of(Class::Quadratic, |n| 2.0 + 50e-12 * n * n),
        of(Class::Cubic, |n| 2.0 + 50e-18 * n.powi(3)),
        World { values: doubling, ..of(Class::Exponential, |n| 2.0 + 0.75e-6 * n.exp2()) },
        of(Class::Power, |n| 2.0 + 50e-9 * n.powf(1.5)),
    ]
}

/// 2 J, and 50 µJ for each item.
fn line(n: f64) -> f64 {
    2.0 + 50e-6 * n
}

/// 2 J, and as much as a merge sort of so many items.
fn sort(n: f64) -> f64 {
    2.0 + 3.6e-6 * n * n.ln()
}

/// What items beyond a cache need as items: 50 µJ for each.
fn beyond(cache: f64, n: f64) -> f64 {
    50e-6 * (n - cache).max(0.0)
}

/// Energy where the clock frequency falls once a run has needed 20 J.
fn without_turbo(joules: f64, part: f64) -> f64 {
    if joules > 20.0 { part * joules } else { joules }
}

/// What a JVM needs besides below 2·10⁴ items, where code runs in the interpreter and the compiler works: 1 J.
fn compilation(n: f64) -> f64 {
    if n < 2e4 { 1.0 } else { 0.0 }
}

/// What machines and JVMs do beside the algorithm. The first six are those for which the rule was changed.
pub(super) fn ordinary() -> Vec<World> {
    let of = |class, name, noise, joules| World::of(name, Some(class), noise, joules);
    let n = |name, noise, joules| of(Class::Linear, name, noise, joules);
    vec![
        n("n, 1 J of compilation below 2·10⁴", 0.01, |n| line(n) + compilation(n)),
        n("n, +30 % per item beyond a cache", 0.01, |n| line(n) + 0.3 * beyond(1e5, n)),
        n("n, ×2 beyond a cache", 0.03, |n| line(n) + beyond(1e5, n)),
        n("n, +10 % beyond a cache", 0.01, |n| line(n) + 0.1 * beyond(1e5, n)),
        n("n, 2 J (a full GC) above 3·10⁵", 0.02, |n| line(n) + if n > 3e5 { 2.0 } else { 0.0 }),
        World { shared: 0.02, ..n("n, 2 % shared by runs of a value", 0.01, line) },
        n("n, compilation that grows to 1.5 J", 0.02, |n| line(n) - 1.5 * (-n / 2e4).exp()),
        n("n, +20 % beyond a cache, +60 % beyond another", 0.02, |n| {
            line(n) + 0.2 * beyond(2e4, n) + 0.6 * beyond(3e5, n)
        }),
        n("n without start-up, +25 % beyond each of three caches", 0.02, |n| {
            line(n) - 2.0 + 0.25 * (beyond(3e3, n) + beyond(3e4, n) + beyond(3e5, n))
        }),
        n("n, a GC of 1 J for each 10⁵ items", 0.02, |n| 2.0 + 40e-6 * n + (n / 1e5).floor()),
        World { drift: 0.06, ..n("n, turbo that drifts by 6 % over the runs", 0.01, line) },
        n("n, −8 % where turbo ends", 0.01, |n| without_turbo(line(n), 0.92)),
        n("n beside 40 J of start-up", 0.02, |n| 38.0 + line(n)),
        World::of("n and n² in two phases", None, 0.01, |n| 2.0 + 40e-6 * n + 15e-12 * n * n),
        of(Class::Quadratic, "n log n below 3·10⁴, n² above", 0.02, |n| {
            2.0 + 3.6e-6 * n * 3e4_f64.ln() * if n < 3e4 { n.ln() / 3e4_f64.ln() } else { n / 3e4 }
        }),
        of(Class::Logarithmic, "log n, +15 % beyond a cache", 0.02, |n| {
            2.0 + 3.5 * n.ln() * if n > 1e5 { 1.15 } else { 1.0 }
        }),
        of(Class::Linearithmic, "n log n, 1 J of compilation below 2·10⁴", 0.01, |n| sort(n) + compilation(n)),
        of(Class::Linearithmic, "n log n, −10 % where turbo ends", 0.02, |n| without_turbo(sort(n), 0.9)),
        World { shared: 0.03, ..of(Class::Linearithmic, "n log n, 3 % shared by runs of a value", 0.01, sort) },
        World { shared: 0.03, ..of(Class::Constant, "constant, 3 % shared by runs of a value", 0.01, |_| 20.0) },
    ]
}
