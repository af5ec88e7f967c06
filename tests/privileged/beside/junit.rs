//! Runs what docs/ci.md tells users to type for the energy of JUnit tests.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{DataSet, text},
    java, notes, paths,
    process::Running,
};

const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn each_test_of_junit_is_a_phase_as_it_is_documented() -> Result<()> {
    if !java::junit_jars().iter().all(|jar| jar.exists()) {
        notes::skipped("JUnit is missing (`cargo xtask setup` installs it on Debian)");
        return Ok(());
    }
    let document = fs::read_to_string(paths::root().join("docs/ci.md"))?;
    let script =
        document.split("```").find(|block| block.starts_with("sh\ncd docs/marks/junit")).context("a script")?;
    let built = tempfile::tempdir()?;
    let folder = built.path().to_str().context("a path of text")?;
    let program = paths::joular_bpf();
    let program = program.to_str().context("a path of text")?;
    let script = script
        .trim_start_matches("sh\n")
        .replace("/tmp/tests", folder)
        .replace("sudo joular-bpf run", &format!("{program} run --energy model"))
        .replace("joular-bpf report", &format!("{program} report"));
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &script]).current_dir(paths::root());
    let finished = Running::spawn("the commands of docs/ci.md", &mut command)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0) && !finished.stderr.contains("not understood"), "{finished:?}");
    for (name, expected) in
        [("energy", vec!["RandomTest.large 1", "RandomTest.small 2"]), ("energy-4", vec!["OldRandomTest.large 1"])]
    {
        let data = DataSet::at(built.path().join(name));
        let rows = data.rows(
            "SELECT phase || ' ' || count(*) AS test FROM marks WHERE kind = 'begin' GROUP BY phase ORDER BY phase",
        )?;
        let tests = rows.iter().map(|row| text(row, "test")).collect::<Result<Vec<_>>>()?;
        ensure!(tests == expected, "{tests:?}");
        let ended = data.number("SELECT count(*) FROM marks WHERE kind = 'end'")?;
        let begun = data.number("SELECT count(*) FROM marks WHERE kind = 'begin'")?;
        ensure!((ended - begun).abs() < 0.5, "{ended} of {begun} tests ended");
    }
    // The large test takes eight times as many steps as one of the small ones, and four times as many as both.
    let data = DataSet::at(built.path().join("energy"));
    let joules = |phase: &str| {
        data.number(&format!(
            "WITH spans AS (SELECT phase_number, max(window_start) FILTER (kind = 'begin') AS after, max(window_start) \
             FILTER (kind = 'end') AS last FROM marks WHERE phase = '{phase}' GROUP BY ALL) SELECT sum(energy_uj) / 1e6 \
             FROM threads JOIN spans ON window_start > after AND window_start <= last WHERE category = 'java'"
        ))
    };
    let (large, small) = (joules("RandomTest.large")?, joules("RandomTest.small")?);
    println!("measured: {large:.3} J for the large test, {small:.3} J for two small ones");
    ensure!((3.2..5.0).contains(&(large / small)), "{large} J and {small} J");
    Ok(())
}
