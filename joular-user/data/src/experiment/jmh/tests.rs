//! Joules per operation of forks whose power and rate are known.

use super::{forks::made_up as fork, result::made_up as benchmark, *};

const MS: u64 = 1_000_000;

/// Ten windows of 200 ms: the benchmark warms up in the second one, and ends within the ninth.
fn windows(warm_uj: u64, measured_uj: u64) -> Vec<(u64, u64, bool)> {
    (0..10)
        .map(|at| match at {
            0 => (200 * MS, 7_777_777, false),
            1 => (200 * MS, warm_uj, true),
            2..=8 => (200 * MS, measured_uj, true),
            _ => (200 * MS, 5_555_555, false),
        })
        .collect()
}

fn stub(name: &str) -> String {
    benchmark(name, "thrpt", "ops/s", &[]).stub()
}

#[test]
fn an_operation_has_the_power_of_its_iterations_divided_by_their_rate() {
    // Two forks with 5 W and 6 W, 1000 and 1200 operations per second.
    let benchmarks = [benchmark("a.B.c", "thrpt", "ops/s", &[&[990.0, 1_010.0], &[1_200.0]])];
    let forks = vec![
        fork(&stub("a.B.c"), 0, &windows(9_000_000, 1_000_000)),
        fork(&stub("a.B.c"), 9_000_000, &windows(9_000_000, 1_200_000)),
    ];
    let rows = rows(&benchmarks, forks);
    let operation = rows[0].operation.as_ref().unwrap();
    assert!((operation.joules.mean - 5e-3).abs() < 1e-12, "{operation:?}");
    assert_eq!(operation.joules.n, 2);
    assert!((operation.watts.mean - 5.5).abs() < 1e-9);
    assert!((operation.rate.mean - 1_100.0).abs() < 1e-9);
    assert!((operation.vm_share - 0.1).abs() < 1e-9);
    // Of 1.5 s, the windows that are within wherever it ended in the last one.
    assert!((operation.measured_s - 2.0 * 1.2).abs() < 1e-9, "{}", operation.measured_s);
}

#[test]
fn benchmarks_of_one_method_have_their_forks_in_turn() {
    let of = |scores: &[&[f64]]| benchmark("a.B.c", "thrpt", "ops/s", scores);
    let benchmarks = [of(&[&[100.0], &[100.0]]), benchmark("a.B.d", "thrpt", "ops/s", &[&[10.0]]), of(&[&[50.0]])];
    let forks = [(1_000_000, "a.B.c"), (1_000_000, "a.B.c"), (400_000, "a.B.d"), (2_000_000, "a.B.c")];
    let made = (0..).zip(forks).map(|(at, (uj, name))| fork(&stub(name), at * 9_000_000, &windows(1, uj)));
    let rows = rows(&benchmarks, made.collect());
    let joules: Vec<f64> = rows.iter().map(|row| row.operation.as_ref().unwrap().joules.mean).collect();
    for (found, expected) in joules.iter().zip([0.05, 0.2, 0.2]) {
        assert!((found - expected).abs() < 1e-12, "{joules:?}");
    }
}

#[test]
fn forks_that_do_not_fit_the_result_are_told() {
    let benchmarks = [
        benchmark("a.B.c", "thrpt", "ops/s", &[&[1.0], &[1.0]]),
        benchmark("a.B.d", "thrpt", "ops/s", &[&[1.0]]),
        benchmark("a.B.e", "thrpt", "ops/s", &[&[1.0]]),
        benchmark("a.B.f", "thrpt", "ops/s", &[&[1.0]]),
    ];
    let short = [(200 * MS, 1, true)];
    let forks = vec![
        fork(&stub("a.B.c"), 0, &windows(1, 1)),
        fork(&stub("a.B.d"), 1, &windows(1, 1)),
        fork(&stub("a.B.d"), 2, &windows(1, 1)),
        fork(&stub("a.B.e"), 3, &short),
        fork(&stub("a.B.f"), 4, &windows(1, 1)),
    ];
    let rows = rows(&benchmarks, forks);
    let why: Vec<&str> = rows.iter().map(|row| row.why_not.as_deref().unwrap_or("-")).collect();
    assert!(why[0].contains("JMH measured 2 forks") && why[1].contains("JMH measured 1 forks"), "{why:?}");
    assert!(why[2].contains("shorter --interval"), "{why:?}");
    assert_eq!(why[3], "-");
}

#[test]
fn a_table_has_every_benchmark_and_says_what_is_missing() {
    let benchmarks =
        [benchmark("a.B.c", "thrpt", "ops/s", &[&[1_000.0], &[1_000.0]]), benchmark("a.B.d", "ss", "ms/op", &[&[1.0]])];
    let forks = vec![
        fork(&stub("a.B.c"), 0, &windows(1, 1_000_000)),
        fork(&stub("a.B.c"), 1, &windows(1, 1_100_000)),
        fork(&benchmark("a.B.d", "ss", "ms/op", &[]).stub(), 2, &windows(1, 1)),
    ];
    let found = Benchmarks { rows: rows(&benchmarks, forks), energy_label: Some("modelled".into()) };
    let text = |format| {
        let mut out = Vec::new();
        found.write(format, None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let said = text(crate::report::Format::Text);
    assert!(said.contains("5.25 m"), "{said}");
    assert!(said.contains("a.B.d: it runs once") && said.contains("energy is modelled"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&text(crate::report::Format::Json)).unwrap();
    assert_eq!(json["rows"][0]["operation"]["joules"]["n"], 2);
    assert!(json["rows"][1]["why_not"].is_string());
    let csv = text(crate::report::Format::Csv);
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let columns = csv.lines().map(|line| line.matches(',').count()).collect::<Vec<_>>();
    assert_eq!(columns[0], columns[1], "{csv}");
    assert!(text(crate::report::Format::Markdown).contains("| `a.B.c` |"));
}
