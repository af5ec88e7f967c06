//! Fits one class to the means of values by weighted least squares, in turns with the noise.
//!
//! `f` is divided by its value at the largest `n`, so that `b` is an energy of that place and no power overflows.

use super::{
    ALLOWED, CLOSE, Class, Fit, Interval,
    runs::{Energy, LEAST_OF_GRAIN, NOISE, Runs, noise_of, squares},
};
use crate::report::diff::{student, verdict::LEVEL};

/// Turns until weights stay; in a class that fits, three or four do.
const TURNS: usize = 25;

/// Bounds of the power law's exponent, and how finely they are looked through at first.
const EXPONENTS: (f64, f64, usize) = (0.05, 8.0, 40);

/// Coefficients with the noise for which they were found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solved {
    constant: f64,
    grown: f64,
    noise: f64,
    /// −2 × the logarithm of the likelihood.
    deviance: f64,
}

/// Fits a class to the means of values; `None` if there are too few for its coefficients.
#[allow(clippy::cast_precision_loss, reason = "numbers of values and runs")]
pub(super) fn fit(class: Class, runs: &Runs, largest: f64) -> Option<Fit> {
    let means = &runs.means;
    let (count, fitted) = (means.len() as f64, f64::from(class.parameters()));
    // One of the fitted numbers is the noise.
    let freedom = count - fitted + 1.0;
    if count - fitted - 1.0 <= 0.0 {
        return None;
    }
    let (exponent, bounds, solved) = match class {
        Class::Power => {
            let (exponent, bounds, solved) = power(means, largest)?;
            (exponent, Some(bounds), solved)
        }
        _ => (1.0, None, solve(class, means, largest, 1.0)),
    };
    let model = |energies: &[Energy]| -> Vec<f64> {
        let at = |energy: &Energy| solved.constant + solved.grown * relative(class, energy.value, largest, exponent);
        energies.iter().map(at).collect()
    };
    let (of_means, of_runs) = (model(means), model(&runs.each));
    // Runs of one value tell the noise, too. Few means alone would hide all growth but the plainest.
    let told = runs.freedom.map_or(count, |freedom| count + freedom);
    let correction = 2.0 * fitted + 2.0 * fitted * (fitted + 1.0) / (told - fitted - 1.0);
    // A maximum of likelihood takes the noise for less than it is.
    let solved = Solved { noise: noise_of(means, &of_means, freedom), ..solved };
    let t = student::quantile(LEVEL, freedom);
    let covariance = covariance(class, means, largest, exponent, &solved);
    let interval = |value: f64, at: usize, least: f64| {
        let error = t * covariance.get(at).and_then(|row| row.get(at)).copied().unwrap_or_default().max(0.0).sqrt();
        Interval { value, low: (value - error).max(least), high: value + error }
    };
    let chance = |within| student::beyond_f(squares(means, &of_means, CLOSE) / freedom, freedom, within);
    let likeliest = noise_of(means, &of_means, count);
    Some(Fit {
        class,
        constant: interval(solved.constant, 0, 0.0),
        grown: if class == Class::Constant { Interval::default() } else { interval(solved.grown, 1, 0.0) },
        exponent: bounds,
        noise: noise_of(&runs.each, &of_runs, runs.each.len() as f64 - fitted + 1.0),
        off: solved.noise,
        lack_of_fit: runs.freedom.map(chance),
        r_squared: r_squared(means, &of_means, solved.noise),
        aicc: deviance(means, &of_means, likeliest.max(CLOSE)) + correction,
        lenient_aic: deviance(means, &of_means, likeliest.max(ALLOWED)) + 2.0 * fitted,
        noise_of_runs: noise_of_runs(class, &runs.each, &of_runs),
        covariance,
        t,
        largest,
    })
}

/// `f(n)` as a part of `f` of the largest value.
pub(super) fn relative(class: Class, value: f64, largest: f64, exponent: f64) -> f64 {
    if class == Class::Constant {
        return 0.0;
    }
    (class.log_f(value, exponent) - class.log_f(largest, exponent)).exp()
}

/// ρ of a further run. A maximum of likelihood takes the noise for less than it is, by the fitted coefficients. And where
/// sampling is most of the variance, runs do not tell ρ apart from none: then it is the largest that is within a
/// standard deviation of what they say.
#[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
fn noise_of_runs(class: Class, runs: &[Energy], model: &[f64]) -> f64 {
    let count = runs.len() as f64;
    let noise = noise_of(runs, model, count);
    let each = runs.iter().zip(model);
    let sampled = each.map(|(run, model)| run.variance(*model, 0.0) / run.variance(*model, noise));
    let part = sampled.sum::<f64>() / count;
    // Where hardly a sample is expected, hardly any deviation is.
    let each = runs.iter().zip(model);
    let telling = each.map(|(run, model)| {
        let least = LEAST_OF_GRAIN * run.grain;
        if *model < least { model / least } else { 1.0 }
    });
    let freedom = (telling.sum::<f64>() - f64::from(class.parameters()) + 1.0).max(1.0);
    noise_of(runs, model, freedom - part * (2.0 * freedom).sqrt())
}

/// Coefficients and noise, in turns; of all turns the likeliest.
#[allow(clippy::cast_precision_loss, reason = "numbers of points")]
fn solve(class: Class, points: &[Energy], largest: f64, exponent: f64) -> Solved {
    let shape: Vec<f64> = points.iter().map(|point| relative(class, point.value, largest, exponent)).collect();
    // As if each point's own energy were the model's. Energies that are 0 have no weight of their own.
    let mean = points.iter().map(|point| point.joules).sum::<f64>() / shape.len().max(1) as f64;
    let mut model: Vec<f64> = points.iter().map(|point| point.joules.max(0.01 * mean)).collect();
    let mut noise = 0.05;
    let mut best: Option<Solved> = None;
    for _ in 0..TURNS {
        let variance: Vec<f64> =
            points.iter().zip(&model).map(|(point, model)| point.variance(*model, noise)).collect();
        let (constant, grown) = coefficients(points, &shape, &variance, class == Class::Constant);
        model = shape.iter().map(|part| constant + grown * part).collect();
        let last = noise;
        noise = noise_of(points, &model, points.len() as f64);
        let deviance = deviance(points, &model, noise);
        if best.is_none_or(|best| deviance < best.deviance) {
            best = Some(Solved { constant, grown, noise, deviance });
        }
        if (noise / last - 1.0).abs() < 1e-6 {
            break;
        }
    }
    best.unwrap_or(Solved { constant: mean, grown: 0.0, noise: NOISE.1, deviance: f64::INFINITY })
}

/// Both coefficients that are not below 0.
fn coefficients(points: &[Energy], shape: &[f64], variance: &[f64], is_constant: bool) -> (f64, f64) {
    let (mut w, mut wf, mut wff, mut wy, mut wfy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((point, part), variance) in points.iter().zip(shape).zip(variance) {
        let weight = 1.0 / variance;
        w += weight;
        wf += weight * part;
        wff += weight * part * part;
        wy += weight * point.joules;
        wfy += weight * part * point.joules;
    }
    let flat = (wy / w, 0.0);
    let determinant = w * wff - wf * wf;
    if is_constant || determinant <= 1e-12 * w * wff {
        return flat;
    }
    let (constant, grown) = ((wff * wy - wf * wfy) / determinant, (w * wfy - wf * wy) / determinant);
    match (constant >= 0.0, grown >= 0.0) {
        (true, true) => (constant, grown),
        (_, false) => flat,
        (false, true) => (0.0, wfy / wff),
    }
}

fn deviance(points: &[Energy], model: &[f64], noise: f64) -> f64 {
    let each = points.iter().zip(model);
    let widths = each.map(|(point, model)| (std::f64::consts::TAU * point.variance(*model, noise)).ln());
    widths.sum::<f64>() + squares(points, model, noise)
}

/// The likeliest power law: its exponent, the exponent's interval, coefficients. The interval is that of the
/// likelihood: all exponents that Student's t does not refuse.
#[allow(clippy::cast_precision_loss, reason = "numbers of steps and points")]
pub(super) fn power(points: &[Energy], largest: f64) -> Option<(f64, Interval, Solved)> {
    let (least, most, steps) = EXPONENTS;
    let at = |exponent: f64| solve(Class::Power, points, largest, exponent);
    let width = (most - least) / steps as f64;
    let tried = (0..=steps).map(|step| least + width * step as f64).map(|exponent| (exponent, at(exponent)));
    let (coarse, _) = tried.min_by(|a, b| a.1.deviance.total_cmp(&b.1.deviance))?;
    let (mut low, mut high) = ((coarse - width).max(least), (coarse + width).min(most));
    for _ in 0..24 {
        let third = (high - low) / 3.0;
        if at(low + third).deviance < at(high - third).deviance {
            high -= third;
        } else {
            low += third;
        }
    }
    let exponent = f64::midpoint(low, high);
    let solved = at(exponent);
    let freedom = points.len() as f64 - 3.0;
    let t = student::quantile(LEVEL, freedom);
    let allowed = solved.deviance + points.len() as f64 * (t * t / freedom).ln_1p();
    let bound = |mut outside: f64| {
        if at(outside).deviance <= allowed {
            return outside;
        }
        let mut inside = exponent;
        for _ in 0..16 {
            let middle = f64::midpoint(inside, outside);
            if at(middle).deviance <= allowed {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        inside
    };
    Some((exponent, Interval { value: exponent, low: bound(least), high: bound(most) }, solved))
}

/// Covariance of constant, grown and exponent: the inverse of the information in the points.
fn covariance(class: Class, points: &[Energy], largest: f64, exponent: f64, solved: &Solved) -> [[f64; 3]; 3] {
    let mut information = [[0.0; 3]; 3];
    for point in points {
        let row = gradient(class, point.value, largest, exponent, solved.grown);
        let part = relative(class, point.value, largest, exponent);
        let model = solved.constant + solved.grown * part;
        let variance = point.variance(model, solved.noise);
        for (line, of_line) in information.iter_mut().zip(row) {
            for (cell, of_cell) in line.iter_mut().zip(row) {
                *cell += of_line * of_cell / variance;
            }
        }
    }
    inverse(information)
}

/// How the model's energy changes with constant, grown and exponent; 0 for what the class does not have.
pub(super) fn gradient(class: Class, value: f64, largest: f64, exponent: f64, grown: f64) -> [f64; 3] {
    let part = relative(class, value, largest, exponent);
    let by_exponent = if class == Class::Power { grown * part * (value / largest).ln() } else { 0.0 };
    [1.0, part, by_exponent]
}

/// Inverse of a symmetric matrix; rows and columns of what is not fitted stay 0.
fn inverse(matrix: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let mut left = matrix;
    let mut right = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for at in 0..3 {
        let pivot = left[at][at];
        // Of what other columns explain already, rounding is left.
        if pivot <= 1e-12 * matrix[at][at] || pivot <= 0.0 {
            for other in 0..3 {
                (left[at][other], left[other][at], right[at][other], right[other][at]) = (0.0, 0.0, 0.0, 0.0);
            }
            continue;
        }
        for other in 0..3 {
            left[at][other] /= pivot;
            right[at][other] /= pivot;
        }
        for row in (0..3).filter(|row| *row != at) {
            let factor = left[row][at];
            for other in 0..3 {
                left[row][other] -= factor * left[at][other];
                right[row][other] -= factor * right[at][other];
            }
        }
    }
    right
}

fn r_squared(means: &[Energy], model: &[f64], noise: f64) -> f64 {
    let each =
        || means.iter().zip(model).map(|(mean, model)| (mean.joules, *model, 1.0 / mean.variance(*model, noise)));
    let whole: f64 = each().map(|(_, _, weight)| weight).sum();
    let middle = each().map(|(joules, _, weight)| joules * weight).sum::<f64>() / whole;
    let spread: f64 = each().map(|(joules, _, weight)| weight * (joules - middle).powi(2)).sum();
    let left: f64 = each().map(|(joules, model, weight)| weight * (joules - model).powi(2)).sum();
    if spread > 0.0 { (1.0 - left / spread).clamp(0.0, 1.0) } else { 0.0 }
}
