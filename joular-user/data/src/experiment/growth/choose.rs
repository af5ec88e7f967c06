//! Chooses a class by the criterion, the simpler one unless the evidence is clear.

use super::{APART, CLEARLY, Class, Fit, Growth, Point, Refused, solve};

/// A constant is sure if no class that fits allows more growth over the range, as a part of the energy.
const LITTLE: f64 = 0.1;

/// Fits all classes to points whose distinct values these are, and chooses one.
pub(super) fn choose(points: &[Point], values: &[f64]) -> Growth {
    let range = (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default());
    let sampled = solve::Sampled::of(points);
    let (mut fits, mut refused) = (Vec::new(), Vec::new());
    for class in Class::ALL {
        let why = match class.refused(values) {
            Some(why) => why,
            None => match solve::fit(class, &sampled, range.1) {
                Some(fit) if fit.aicc.is_finite() => {
                    fits.push(fit);
                    continue;
                }
                Some(_) => "its likelihood is not a number",
                None => "there are too few points for its coefficients",
            },
        };
        refused.push(Refused { class, why: why.to_owned() });
    }
    fits.sort_by(|a, b| a.aicc.total_cmp(&b.aicc));
    let class = chosen(&fits, range);
    let (next, alternatives) = others(&fits, class, range);
    let aicc = |class: Class| fits.iter().find(|fit| fit.class == class).map_or(0.0, |fit| fit.aicc);
    let weight = next.map_or(1.0, |next| 1.0 / (1.0 + ((aicc(class) - aicc(next)) / 2.0).exp()));
    Growth {
        class,
        is_certain: alternatives.is_empty(),
        weight,
        alternatives,
        fits,
        refused,
        range,
        points: points.len(),
        values: values.len(),
    }
}

fn chosen(fits: &[Fit], range: (f64, f64)) -> Class {
    let constant = fits.iter().find(|fit| fit.class == Class::Constant);
    let named = fits.iter().find(|fit| fit.class != Class::Power);
    let power = fits.iter().find(|fit| fit.class == Class::Power);
    let mut chosen = named;
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
        let is_near = other.aicc < chosen.aicc + APART;
        // Any class is a constant if it does not grow: what counts is how much it may grow.
        let relative = |value: f64| solve::relative(other.class, value, range.1, 1.0);
        let growth = other.grown.high * (relative(range.1) - relative(range.0));
        is_near && (class != Class::Constant || growth > LITTLE * chosen.constant.value)
    };
    let alternatives = others.iter().filter(is_open).map(|fit| fit.class).collect();
    (others.first().map(|fit| fit.class), alternatives)
}
