//! Warns where two data sets were recorded under different loads or frequencies. A processor draws
//! more per unit of work at higher frequencies, and less per busy core the more cores are busy.

use super::comparability::Differences;
use crate::{
    report::profile::Load,
    text::{count, escape},
};

/// Mean frequencies that are this much apart, as a ratio, are different ones. Voltage falls with
/// frequency, so energy changes by more than this.
const FREQUENCY: f64 = 0.03;
/// The same for the number of busy CPUs, and the least difference in CPUs that counts.
const BUSY: f64 = 0.1;
const BUSY_CPUS: f64 = 0.1;
/// The hypervisor takes less than this share of the CPUs' time on a host that is not overloaded.
const STOLEN: f64 = 0.01;

/// Adds a warning for each circumstance that differs, where both sides know it.
pub fn compare(found: &mut Differences, a: &Load, b: &Load) {
    let both = |of: fn(&Load) -> Option<f64>| of(a).zip(of(b));
    let apart = |(a, b): (f64, f64)| (a - b).abs() / a.max(b).max(f64::MIN_POSITIVE);
    if let Some((a, b)) = both(Load::gigahertz).filter(|pair| apart(*pair) > FREQUENCY) {
        found.compare("mean frequencies of busy CPUs differ", &format!("{a:.2} GHz"), &format!("{b:.2} GHz"));
    }
    let differ = |pair: (f64, f64)| apart(pair) > BUSY && (pair.0 - pair.1).abs() > BUSY_CPUS;
    if let Some((a, b)) = both(Load::busy_cpus).filter(|pair| differ(*pair)) {
        found.compare("mean numbers of busy CPUs differ", &format!("{a:.2}"), &format!("{b:.2}"));
    }
    if !a.governors.is_empty() && !b.governors.is_empty() {
        let names = |load: &Load| load.governors.iter().map(|name| escape(name)).collect::<Vec<_>>().join(", ");
        found.compare("frequency governors differ", &names(a), &names(b));
    }
    if let Some((a, b)) = both(Load::stolen).filter(|(a, b)| a.max(*b) > STOLEN) {
        let (a, b) = (a * 100.0, b * 100.0);
        found.warnings.push(format!("the hypervisor took time of the CPUs: {a:.1} % in A, {b:.1} % in B"));
    }
    for (name, side) in [("A", a), ("B", b)] {
        if side.suspended > 0 {
            let windows = count(side.suspended, "window");
            found
                .warnings
                .push(format!("{name}: the machine was suspended in {windows}, so energy is incomplete there"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::profile::made_up::load;

    fn warnings(a: &Load, b: &Load) -> Vec<String> {
        let mut found = Differences::default();
        compare(&mut found, a, b);
        assert!(found.are_comparable(), "circumstances forbid no comparison");
        found.warnings
    }

    #[test]
    fn each_circumstance_that_differs_is_told() {
        let a = load(3.0, 2.4, "powersave", 0.0);
        assert_eq!(warnings(&a, &a), <[&str; 0]>::default());
        for (b, told) in [
            (load(3.0, 3.1, "powersave", 0.0), "mean frequencies of busy CPUs differ: 2.40 GHz in A, 3.10 GHz in B"),
            (load(1.5, 2.4, "powersave", 0.0), "mean numbers of busy CPUs differ: 3.00 in A, 1.50 in B"),
            (load(3.0, 2.4, "performance", 0.0), "frequency governors differ: powersave in A, performance in B"),
            (load(3.0, 2.4, "powersave", 0.05), "the hypervisor took time of the CPUs: 0.0 % in A, 5.0 % in B"),
        ] {
            assert_eq!(warnings(&a, &b), [told]);
        }
    }

    #[test]
    fn a_little_noise_is_no_difference_and_what_is_not_known_is_none() {
        let a = load(3.0, 2.4, "powersave", 0.002);
        assert_eq!(warnings(&a, &load(2.8, 2.44, "powersave", 0.009)), <[&str; 0]>::default());
        assert_eq!(warnings(&a, &load(3.0, 0.0, "", 0.0)), <[&str; 0]>::default());
        // Nearly idle machines: a tenth of a CPU more or less is other processes.
        assert_eq!(warnings(&load(0.02, 2.4, "", 0.0), &load(0.09, 2.4, "", 0.0)), <[&str; 0]>::default());
        assert_eq!(warnings(&Load::default(), &Load::default()), <[&str; 0]>::default());
    }
}
