//! Tests what experiments write for papers.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    paths,
    process::{Finished, Running},
    profiler::Output,
};

const LIMIT: Duration = Duration::from_secs(120);

fn run(options: &[&str]) -> Result<Finished> {
    let mut line = Command::new(paths::joular_bpf());
    line.args(["run", "--energy", "model"]).args(options);
    Running::spawn("joular-bpf run", &mut line)?.finish(LIMIT)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of text")
}

/// The lines of a table of runs, cut at its separators.
fn lines(path: &Path) -> Result<Vec<Vec<String>>> {
    let cells = |line: &str| line.split(',').map(ToOwned::to_owned).collect();
    Ok(fs::read_to_string(path)?.lines().map(cells).collect())
}

#[test]
fn an_experiment_that_failed_and_went_on_lists_all_its_runs_and_says_how_it_was_made() -> Result<()> {
    let output = Output::new()?;
    let (runs, table, methods) = (output.beside("runs.csv"), output.beside("table.tex"), output.beside("methods.tex"));
    let [svg, pdf] = ["runs.svg", "runs.pdf"].map(|name| output.beside(name));
    let failed = output.beside("failed");
    // The second run fails once: the first one is a warm-up.
    let script = format!(
        "test -e '{0}.1' || {{ touch '{0}.1'; exit 0; }}; test -e '{0}.2' || {{ touch '{0}.2'; exit 3; }}",
        failed.display()
    );
    let options = [
        ["--repeat", "2", "--warmup", "1", "--output", text(output.dir())?],
        ["--export-runs-csv", text(&runs)?, "--export-latex", text(&table)?, "--export-methods", text(&methods)?],
    ]
    .concat();
    let with = |plot: &Path| -> Result<Finished> {
        run(&[&options[..], &["--export-plot", text(plot)?, "--prepare", "true", "--", "sh", "-c", &script]].concat())
    };
    let first = with(&svg)?;
    ensure!(first.code() == Some(3) && !runs.exists(), "{first:?}");
    let second = with(&svg)?;
    ensure!(second.code() == Some(0), "{second:?}");
    let drawn = fs::read_to_string(&svg)?;
    ensure!(drawn.contains("Energy over 2 runs") && drawn.contains(">base<"), "{drawn}");
    // Of the same runs, without measuring again.
    let third = with(&pdf)?;
    ensure!(third.code() == Some(0) && third.stderr.contains("nothing is run"), "{third:?}");
    let drawn = fs::read(&pdf)?;
    ensure!(drawn.starts_with(b"%PDF-") && drawn.ends_with(b"%%EOF"), "the file is whole");
    let lines = lines(&runs)?;
    let column = |name: &str| lines[0].iter().position(|cell| cell == name).context("a column");
    let (kept, why, started) = (column("is_kept")?, column("why")?, column("started")?);
    let found: Vec<(&str, &str)> = lines[1..].iter().map(|line| (line[kept].as_str(), line[why].as_str())).collect();
    let expected =
        [("false", "warm-up"), ("false", "ended with exit code 3"), ("false", "warm-up"), ("true", ""), ("true", "")];
    ensure!(found == expected, "{found:?}");
    ensure!(lines[1..].is_sorted_by(|a, b| a[started] <= b[started]), "{lines:?}");
    let (table, methods) = (fs::read_to_string(&table)?, fs::read_to_string(&methods)?);
    ensure!(table.contains("\\toprule") && table.contains("\\texttt{base}") && table.contains("2 runs"), "{table}");
    for expected in
        ["is modelled: ", "\\texttt{true}", "1 for: ended with exit code 3; 2 for: warm-up", "from the source"]
    {
        ensure!(methods.contains(expected), "{expected}: {methods}");
    }
    ensure!(!methods.contains("kept no data set"), "{methods}");
    Ok(())
}

#[test]
fn an_experiment_ends_when_its_intervals_are_narrow_and_says_when_they_are_not() -> Result<()> {
    let output = Output::new()?;
    let dir = text(output.dir())?;
    let work = ["--", "sh", "-c", "for i in $(seq 20000); do :; done"];
    let until = ["--until-interval", "99%", "--min-runs", "2", "--repeat", "40", "--output", dir];
    let narrow = run(&[&until[..], &work].concat())?;
    ensure!(narrow.code() == Some(0) && narrow.stderr.contains("at most 40 runs"), "{narrow:?}");
    let log: serde_json::Value = serde_json::from_str(&fs::read_to_string(output.dir().join("experiment.json"))?)?;
    let runs = log["runs"].as_array().context("runs")?.len();
    ensure!((2..40).contains(&runs) && log["rounds"]["until"]["percent"] == 99.0, "{log}");
    let wide = run(&[&["--until-interval", "0.000001", "--repeat", "2"][..], &work].concat())?;
    ensure!(wide.code() == Some(0) && wide.stderr.contains("were wanted: allow more runs with --repeat"), "{wide:?}");
    Ok(())
}
