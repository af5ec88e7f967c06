use super::*;

/// Points that follow a function but for a deviation that alternates.
fn points(values: &[f64], deviation: f64, joules: impl Fn(f64) -> f64) -> Vec<Point> {
    let around = |value: f64| {
        let each = [0.0, 1.0, -1.0].into_iter();
        each.map(move |side| (value, side))
    };
    values
        .iter()
        .flat_map(|value| around(*value))
        .enumerate()
        .map(|(at, (value, side))| {
            let wobble = [0.0, 0.2, -0.1, 0.15, -0.25][at % 5];
            Point { value, joules: joules(value) * (1.0 + deviation * (side + wobble)), variance: 0.0 }
        })
        .collect()
}

const VALUES: [f64; 8] = [1e3, 3e3, 1e4, 3e4, 1e5, 2e5, 5e5, 1e6];

fn growth(joules: impl Fn(f64) -> f64) -> Growth {
    Growth::of(&points(&VALUES, 0.01, joules)).unwrap()
}

#[test]
fn each_class_is_found_with_its_coefficients() {
    let found = growth(|n| 2.0 + 3e-5 * n);
    assert_eq!((found.class, found.is_certain), (Class::Linear, true), "{found:?}");
    let fit = found.fit().unwrap();
    assert!((fit.constant.value - 2.0).abs() < 0.03 && fit.constant.contains(2.0), "{fit:?}");
    assert!((fit.grown.value / 30.0 - 1.0).abs() < 0.01 && fit.grown.contains(30.0), "{fit:?}");
    assert!(fit.r_squared > 0.99 && (0.005..0.02).contains(&fit.noise), "{fit:?}");
    assert_eq!(fit.formula().split(" + ").count(), 2);
    assert!(found.weight > 0.95);
    for (class, of) in [
        (Class::Constant, (|_| 5.0) as fn(f64) -> f64),
        (Class::Logarithmic, |n| 1.0 + 0.5 * n.ln()),
        (Class::Linearithmic, |n| 0.5 + 1e-6 * n * n.ln()),
        (Class::Quadratic, |n| 0.5 + 1e-11 * n * n),
        (Class::Cubic, |n| 0.5 + 1e-16 * n.powi(3)),
        (Class::Power, |n| 0.5 + 1e-8 * n.powf(1.5)),
    ] {
        assert_eq!(growth(of).class, class);
    }
    let steps: Vec<f64> = (10..=24).step_by(2).map(f64::from).collect();
    let doubling = Growth::of(&points(&steps, 0.01, |n| 1.0 + 1e-5 * n.exp2())).unwrap();
    assert_eq!((doubling.class, doubling.is_certain), (Class::Exponential, true));
}

#[test]
fn what_falls_is_no_growth() {
    assert_eq!(growth(|n| 10.0 - n / 2e5).class, Class::Constant);
}

#[test]
fn nothing_is_a_constant_and_exact_energies_are_no_trouble() {
    let nothing = growth(|_| 0.0);
    assert_eq!((nothing.class, nothing.fit().unwrap().constant.value), (Class::Constant, 0.0));
    let exact: Vec<Point> = VALUES.iter().map(|n| Point { value: *n, joules: 1.0 + 2e-6 * n, variance: 0.0 }).collect();
    assert_eq!(Growth::of(&exact).unwrap().class, Class::Linear);
}

#[test]
fn an_error_says_what_is_missing() {
    let point = |value| Point { value, joules: 1.0, variance: 0.0 };
    let four = [1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 4.0].map(point);
    assert_eq!(Growth::of(&four), Err(GrowthError::TooFewValues { found: 4 }));
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(matches!(Growth::of(&[point(bad)]), Err(GrowthError::Value { .. })));
        let energy = Point { joules: bad, ..point(1.0) };
        assert!(matches!(Growth::of(&[energy]), Err(GrowthError::Energy { .. })));
    }
}

#[test]
fn values_that_a_class_cannot_have_leave_the_others() {
    let refused = |values: &[f64]| {
        let found = Growth::of(&points(values, 0.01, |n| 1.0 + n)).unwrap();
        assert_eq!(found.class, Class::Linear, "{found:?}");
        found.refused.iter().map(|refused| refused.class).collect::<Vec<_>>()
    };
    assert_eq!(refused(&[0.0, 10.0, 20.0, 30.0, 36.0, 42.0]), [Class::Logarithmic, Class::Linearithmic, Class::Power]);
    assert_eq!(refused(&[1.0, 50.0, 5000.0, 1e5, 3e5, 1e6]), [Class::Exponential]);
    assert_eq!(refused(&[5000.0, 5010.0, 5500.0, 6000.0, 9000.0, 20_000.0]), [Class::Exponential]);
}

#[test]
fn powers_of_two_beyond_what_a_float_holds_are_fitted() {
    let steps: Vec<f64> = (0..8).map(|step| 5000.0 + 2.0 * f64::from(step)).collect();
    let found = Growth::of(&points(&steps, 0.01, |n| 1.0 + 0.01 * (n - 5000.0).exp2())).unwrap();
    assert_eq!(found.class, Class::Exponential);
    let next = found.predict(5016.0).unwrap();
    assert!((next.joules.value / 656.0 - 1.0).abs() < 0.05 && next.is_extrapolated, "{next:?}");
    assert_eq!(found.predict(1e5), None);
    assert!(found.fit().unwrap().formula().contains(" / (2ⁿ at 5014)"), "{}", found.fit().unwrap().formula());
}

#[test]
fn a_prediction_is_wider_where_nothing_was_measured() {
    let found = growth(|n| 2.0 + 3e-5 * n);
    let width = |n| {
        let prediction = found.predict(n).unwrap();
        (prediction.joules.high - prediction.joules.low) / prediction.joules.value
    };
    assert!(width(1e7) > width(3e5) && width(1e5) > 0.02, "{} {}", width(1e7), width(3e5));
    assert!(!found.predict(1e6).unwrap().is_extrapolated && found.predict(1.1e6).unwrap().is_extrapolated);
    assert_eq!(found.predict(f64::NAN), None);
}

#[test]
fn classes_that_few_noisy_points_do_not_tell_apart_are_not_certain() {
    let near: Vec<f64> = (10..=15).map(f64::from).collect();
    let found = Growth::of(&points(&near, 0.1, |n| 1.0 + n * n)).unwrap();
    assert!(!found.is_certain && !found.alternatives.is_empty(), "{found:?}");
    assert!(found.described().contains("not certain"), "{}", found.described());
}

#[test]
fn a_class_that_changed_is_a_verdict() {
    let (flat, line, square) = (growth(|_| 3.0), growth(|n| 1.0 + 1e-5 * n), growth(|n| 1.0 + 1e-11 * n * n));
    let verdict = |a: &Growth, b: &Growth| {
        let found = compare(a, b);
        (found.verdict, found.is_faster)
    };
    assert_eq!(verdict(&line, &line), (ClassVerdict::Same, false));
    assert_eq!(verdict(&line, &square), (ClassVerdict::Changed, true));
    assert_eq!(verdict(&square, &line), (ClassVerdict::Changed, false));
    assert_eq!(verdict(&flat, &line), (ClassVerdict::Changed, true));
    let near: Vec<f64> = (10..=15).map(f64::from).collect();
    let unclear = Growth::of(&points(&near, 0.1, |n| 1.0 + n * n)).unwrap();
    assert_eq!(verdict(&unclear, &square), (ClassVerdict::NotCertain, false));
    let (half, steep) = (growth(|n| 1.0 + 1e-8 * n.powf(1.5)), growth(|n| 1.0 + 1e-13 * n.powf(2.5)));
    assert_eq!(verdict(&half, &half), (ClassVerdict::Same, false));
    assert_eq!(verdict(&half, &steep), (ClassVerdict::Changed, true));
}

#[test]
fn a_class_that_is_further_off_than_runs_vary_does_not_fit_and_is_never_certain() {
    let warming = growth(|n| 2.0 + 5e-5 * n + if n < 2e4 { 1.0 } else { 0.0 });
    assert!(!warming.has_class && !warming.is_certain, "{}", warming.described());
    let local = warming.local.unwrap();
    assert!((local.exponent.value - 1.0).abs() < 0.05 && local.exponent.contains(1.0), "{local}");
    let said = warming.described();
    assert!(said.starts_with("no class fits within the runs' noise; about n^1.0"), "{said}");
    assert!(said.ends_with("from n = 30000 on"), "{said}");
    assert!(warming.predict(1e5).is_some() && warming.predict(2e6).is_none());
    let line = growth(|n| 2.0 + 5e-5 * n);
    let found = compare(&line, &warming);
    assert_eq!((found.verdict, found.doubt), (ClassVerdict::NotCertain, Some(Doubt::NoClass)));
}

#[test]
fn what_was_not_repeated_is_not_tested_and_not_certain() {
    let once: Vec<Point> = points(&VALUES, 0.01, |n| n * n).into_iter().step_by(3).collect();
    let found = Growth::of(&once).unwrap();
    assert_eq!((found.class, found.is_certain, found.is_tested()), (Class::Quadratic, false, false));
    assert_eq!(found.described(), "n² (not certain: too few repeated runs)");
    assert_eq!(compare(&found, &growth(|n| n * n)).doubt, Some(Doubt::NotRepeated));
}

#[test]
fn sweeps_of_other_ranges_are_not_compared() {
    let wide = growth(|n| 1.0 + 1e-5 * n);
    let narrow = Growth::of(&points(&VALUES[2..], 0.01, |n| 1.0 + 1e-11 * n * n)).unwrap();
    let found = compare(&wide, &narrow);
    assert_eq!((found.verdict, found.doubt), (ClassVerdict::NotCertain, Some(Doubt::Ranges)));
}

#[test]
fn a_faster_growth_that_needs_little_more_is_not_worse() {
    let line = growth(|n| 1.0 + 1e-5 * n);
    let slight = compare(&line, &growth(|n| 1.0 + 1.05e-11 * n * n));
    assert_eq!((slight.verdict, slight.is_faster, slight.is_worse()), (ClassVerdict::Changed, true, false));
    assert!(compare(&line, &growth(|n| 1.0 + 1.3e-11 * n * n)).is_worse());
}

/// A method that few samples hit where n is small, in five values of two runs, as it was recorded.
#[test]
fn a_method_that_grows_is_not_constant_although_there_are_five_values() {
    let runs = [
        (2e3, [0.0, 0.0], 1.0),
        (4e3, [0.135, 0.0], 21.5),
        (8e3, [0.331, 0.3], 100.0),
        (16e3, [0.631, 0.506], 180.0),
        (32e3, [1.106, 1.147], 357.0),
    ];
    let points = runs.into_iter().flat_map(|(value, joules, samples)| {
        joules.map(|joules| Point { value, joules, variance: samples * 0.003_15_f64.powi(2) })
    });
    let growth = Growth::of(&points.collect::<Vec<_>>()).unwrap();
    assert!(growth.has_class && growth.class != Class::Constant, "{}", growth.described());
    let mut classes = std::iter::once(growth.class).chain(growth.alternatives.iter().copied());
    assert!(classes.any(|class| class == Class::Linear), "{}", growth.described());
}
