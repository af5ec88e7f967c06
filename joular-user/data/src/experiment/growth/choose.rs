//! Chooses a class by the criterion, the simpler one unless the evidence is clear.

use super::{
    APART, CLEARLY, Class, DOUBTFUL, Fit, Growth, LocalExponent, Point, Refused, UNFIT,
    runs::{Energy, Runs},
    solve,
};

/// A constant is sure if no class that fits allows more growth over the range, as a part of the energy.
const LITTLE: f64 = 0.1;

/// Caches and warm-ups change the exponent by up to this.
const BESIDE: f64 = 0.25;

/// The upper half of the values says how energy grows there, but no fewer than these: a power law has three coefficients.
const LEAST_ABOVE: usize = 5;

/// An interval of the local exponent that is wider tells nothing.
const WIDEST: f64 = 1.0;

/// Fits all classes to points whose distinct values these are, and chooses one.
pub(super) fn choose(points: &[Point], values: &[f64]) -> Growth {
    let range = (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default());
    let runs = Runs::of(points, values);
    let (mut fits, mut refused) = (Vec::new(), Vec::new());
    for class in Class::ALL {
        let why = match class.refused(values) {
            Some(why) => why,
            None => match solve::fit(class, &runs, range.1) {
                Some(fit) if fit.aicc.is_finite() => {
                    fits.push(fit);
                    continue;
                }
                Some(_) => "its likelihood is not a number",
                None => "there are too few values for its coefficients",
            },
        };
        refused.push(Refused { class, why: why.to_owned() });
    }
    fits.sort_by(|a, b| a.aicc.total_cmp(&b.aicc));
    let class = chosen(&fits, range);
    let (next, alternatives) = others(&fits, class, range);
    let fit = |class: Class| fits.iter().find(|fit| fit.class == class);
    let aicc = |class: Class| fit(class).map_or(0.0, |fit| fit.aicc);
    let weight = next.map_or(1.0, |next| 1.0 / (1.0 + ((aicc(class) - aicc(next)) / 2.0).exp()));
    let lack_of_fit = fit(class).and_then(|fit| fit.lack_of_fit);
    let has_class = lack_of_fit.is_none_or(|chance| chance >= UNFIT);
    Growth {
        class,
        has_class,
        local: if has_class { None } else { local(&runs.means, range.1) },
        is_certain: lack_of_fit.is_some_and(|chance| chance >= DOUBTFUL)
            && alternatives.iter().all(|other| class.is_near(*other)),
        weight,
        alternatives,
        fits,
        refused,
        range,
        points: points.len(),
        values: values.len(),
    }
}

/// Of the classes that fit, or of all if none does.
fn chosen(fits: &[Fit], range: (f64, f64)) -> Class {
    let does_fit = |fit: &&Fit| fit.lack_of_fit.is_none_or(|chance| chance >= UNFIT);
    let does_any = fits.iter().any(|fit| does_fit(&fit));
    let candidates = || fits.iter().filter(|fit| !does_any || does_fit(fit));
    let constant = candidates().find(|fit| fit.class == Class::Constant);
    let named = candidates().find(|fit| fit.class != Class::Power);
    let power = candidates().find(|fit| fit.class == Class::Power);
    let mut chosen = named.or(power);
    if let (Some(named), Some(power)) = (named, power) {
        let is_better = power.aicc + CLEARLY <= named.aicc;
        if is_better && !is_like_a_named(power, fits, range) {
            chosen = Some(power);
        }
    }
    if let (Some(constant), Some(found)) = (constant, chosen)
        && found.aicc + CLEARLY > constant.aicc
    {
        chosen = Some(constant);
    }
    chosen.map_or(Class::Constant, |fit| fit.class)
}

/// Whether the power law's exponent may be that of a named class which explains the points about as well.
fn is_like_a_named(power: &Fit, fits: &[Fit], (least, most): (f64, f64)) -> bool {
    let Some(exponent) = power.exponent else { return true };
    let mut named = fits.iter().filter(|fit| fit.class != Class::Power && fit.aicc - power.aicc < 2.0 * APART);
    named.any(|fit| fit.class.exponent_between(least, most).is_some_and(|named| exponent.contains(named)))
}

/// The class next to the chosen one, and all that cannot be told from it.
fn others(fits: &[Fit], class: Class, range: (f64, f64)) -> (Option<Class>, Vec<Class>) {
    let Some(chosen) = fits.iter().find(|fit| fit.class == class) else { return (None, Vec::new()) };
    // A power law beside a named class is that class, or something between it and the next.
    let others: Vec<&Fit> = fits.iter().filter(|fit| fit.class != class && fit.class != Class::Power).collect();
    let is_open = |other: &&&Fit| {
        if class != Class::Constant {
            return other.lenient_aic < chosen.lenient_aic + APART
                || class.is_near(other.class)
                || is_beside(chosen, other.class, range);
        }
        // Any class is a constant if it does not grow: what counts is how much it may grow.
        let relative = |value: f64| solve::relative(other.class, value, range.1, 1.0);
        let growth = other.grown.high * (relative(range.1) - relative(range.0));
        other.aicc < chosen.aicc + APART && growth > LITTLE * chosen.constant.value
    };
    let alternatives = others.iter().filter(is_open).map(|fit| fit.class).collect();
    (others.first().map(|fit| fit.class), alternatives)
}

/// Whether a power law's exponent is so near to a named class's that the latter with a cache or a warm-up would look so.
fn is_beside(power: &Fit, named: Class, (least, most): (f64, f64)) -> bool {
    let exponent = named.exponent_between(least, most).filter(|_| named != Class::Constant);
    power.exponent.zip(exponent).is_some_and(|(power, named)| (power.value - named).abs() < BESIDE)
}

/// The exponent over the upper half of the values, where start-up and warm-up weigh least.
fn local(means: &[Energy], largest: f64) -> Option<LocalExponent> {
    let above = means.len().div_ceil(2).max(LEAST_ABOVE).min(means.len());
    let upper = means.get(means.len() - above..)?;
    let from = upper.first().map(|mean| mean.value).filter(|from| *from > 0.0)?;
    let (_, exponent, _) = solve::power(upper, largest)?;
    (exponent.high - exponent.low <= WIDEST).then_some(LocalExponent { from, exponent })
}
