//! Measures a large data set: an hour of ten JVMs at 99 Hz, made by joular-data's example
//! `record_hour` and replayed. The figures are its size on disk before and after `compact`, time
//! and memory of the commands that read it, and DuckDB's time.

use std::{fs, path::Path, process::Command, time::Instant};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    browser::{self, Browser},
    dataset::DataSet,
    paths, python,
};

use super::figure::Figure;
use crate::shell;

const RUNS: usize = 7;

/// A command that reads a data set: its name, arguments behind the data set, and what to reach.
struct Reader {
    name: &'static str,
    output: Option<&'static str>,
    seconds: &'static str,
    memory: &'static str,
}

/// The hour as it lies on disk, and what is expected of it.
struct Hour<'a> {
    name: &'static str,
    dir: &'a Path,
    mib: &'static str,
    report: Reader,
}

const fn report(seconds: &'static str) -> Reader {
    Reader { name: "report", output: None, seconds, memory: "≤ 200 MiB" }
}

const PICTURES: &[Reader] = &[
    Reader { name: "flamegraph", output: Some("graph.svg"), seconds: "none", memory: "none" },
    Reader { name: "html", output: Some("page.html"), seconds: "none", memory: "none" },
];

/// What an hour with more than 100 000 branches is read by.
const READERS_OF_MANY: &[Reader] = &[
    Reader { name: "flamegraph", output: Some("graph.svg"), seconds: "≤ 1 s", memory: "none" },
    Reader { name: "html", output: Some("page.html"), seconds: "none", memory: "none" },
];

/// Arguments of record_hour: seconds, and stacks, of which 103 000 are seen.
const MANY: [&str; 2] = ["3600", "180000"];

pub fn measure(program: &Path) -> Result<Vec<Figure>> {
    shell::step("reports: an hour of ten JVMs at 99 Hz");
    let parent = tempfile::tempdir()?;
    let (recorded, compacted) = (parent.path().join("recorded"), parent.path().join("compacted"));
    record(program, &[], &recorded)?;
    let seconds = compact(program, &recorded, &compacted)?;
    let mut figures = vec![figure("compact", "s", "none", 1, vec![seconds], "time of compacting the hour, once")];
    for hour in [
        Hour { name: "as recorded", dir: &recorded, mib: "≤ 28 MiB", report: report("≤ 0.3 s") },
        Hour { name: "compacted", dir: &compacted, mib: "≤ 20 MiB", report: report("≤ 0.2 s") },
    ] {
        figures.extend(of_data_set(program, &hour, parent.path())?);
    }
    let (recorded, compacted) = (parent.path().join("many-recorded"), parent.path().join("many-compacted"));
    record(program, &MANY, &recorded)?;
    compact(program, &recorded, &compacted)?;
    for reader in READERS_OF_MANY {
        figures.extend(of_reader(program, reader, "100 000 branches", &compacted, parent.path())?);
    }
    figures.extend(of_page("100 000 branches", parent.path())?);
    Ok(figures)
}

/// The page that [`of_reader`] made last: its size, and how soon it can be used. Nothing
/// without a browser, which is said.
fn of_page(name: &str, scratch: &Path) -> Result<Vec<Figure>> {
    let page = scratch.join("0-page.html");
    let mib = fs::metadata(&page)?.len() as f64 / f64::from(1 << 20);
    let mut figures = vec![figure(&format!("page, {name}"), "MiB", "≤ 5 MiB", 1, vec![mib], "size of the file")];
    let Some(program) = browser::program() else {
        println!("no Chromium to open the page in");
        return Ok(figures);
    };
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        seconds.push(Browser::start(program)?.open(&page)?.as_secs_f64());
    }
    let method = "from the request to headless Chromium until the page is drawn and answers";
    figures.push(figure(&format!("page in use, {name}"), "s", "≤ 1 s", 3, seconds, method));
    Ok(figures)
}

/// Makes a data set of an hour; `size` is of record_hour's arguments.
fn record(program: &Path, size: &[&str], to: &Path) -> Result<()> {
    let recording = to.with_extension("jrec");
    shell::run(example("record_hour").arg(&recording).args(size))?;
    let replay =
        Command::new(program).arg("--replay").arg(&recording).arg("--output").arg(to).arg("--quiet").status()?;
    ensure!(replay.success(), "replaying the hour: {replay}");
    Ok(())
}

/// Compacts a data set and returns the seconds that it took.
fn compact(program: &Path, from: &Path, to: &Path) -> Result<f64> {
    let start = Instant::now();
    let compact = Command::new(program).arg("compact").arg(from).arg("--output").arg(to).output()?;
    ensure!(compact.status.success(), "compacting the hour: {compact:?}");
    Ok(start.elapsed().as_secs_f64())
}

fn of_data_set(program: &Path, hour: &Hour<'_>, scratch: &Path) -> Result<Vec<Figure>> {
    let Hour { name, dir, .. } = *hour;
    let data = DataSet::at(dir);
    let mib = data.parquet_bytes()? as f64 / f64::from(1 << 20);
    let files = format!("all of its {} files", data.parquet_files()?);
    let mut figures = vec![figure(&format!("hour on disk, {name}"), "MiB", hour.mib, 1, vec![mib], &files)];
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let line = shell::capture(example("read_profile").arg(dir))?;
        let mut words = line.split_whitespace().map(str::parse::<f64>);
        seconds.push(words.next().context("read_profile said nothing")??);
        memory.push(words.next().context("read_profile did not say its memory")?? / 1024.0);
    }
    figures.push(figure(
        &format!("reading the hour, {name}"),
        "s",
        "none",
        3,
        seconds,
        "reading the profile that every report is made from",
    ));
    figures.push(figure(&format!("memory of it, {name}"), "MiB", "none", 0, memory, "VmHWM of the same process"));
    for reader in std::iter::once(&hour.report).chain(PICTURES) {
        figures.extend(of_reader(program, reader, name, dir, scratch)?);
    }
    figures.extend(of_page(name, scratch)?);
    let printed = python::script("top_methods.py", dir, &[&RUNS.to_string()])?;
    let seconds = printed.lines().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    let method = "joules per method, the ten largest; one DuckDB process, which reads the files each time";
    figures.push(figure(&format!("DuckDB's top methods, {name}"), "s", "≤ 0.05 s", 3, seconds, method));
    Ok(figures)
}

/// Nothing for a command that there is not, which is said.
fn of_reader(program: &Path, reader: &Reader, name: &str, dir: &Path, scratch: &Path) -> Result<Vec<Figure>> {
    let help = Command::new(program).args([reader.name, "--help"]).output()?;
    if !help.status.success() {
        println!("{}: joular-bpf has no such command", reader.name);
        return Ok(Vec::new());
    }
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let mut command = Command::new(program);
        command.arg(reader.name).arg(dir);
        if let Some(output) = reader.output {
            command.arg("--output").arg(scratch.join(format!("{run}-{output}")));
        }
        let start = Instant::now();
        let mut child = command.stdout(fs::File::create(scratch.join("stdout"))?).spawn()?;
        memory.push(peak_of(&mut child)? / 1024.0);
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(vec![
        figure(&format!("{}, {name}", reader.name), "s", reader.seconds, 3, seconds, "the whole command"),
        figure(
            &format!("memory of {}, {name}", reader.name),
            "MiB",
            reader.memory,
            0,
            memory,
            "largest VmHWM that was seen",
        ),
    ])
}

/// Waits for its end; the most memory that it was seen to have, in KiB.
fn peak_of(child: &mut std::process::Child) -> Result<f64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let value = value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(value.unwrap_or(0.0));
        if let Some(exit) = child.try_wait()? {
            ensure!(exit.success(), "it ended with {exit}");
            return Ok(peak);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Examples of joular-user, built like the program.
pub fn build() -> Result<()> {
    let mut cargo = shell::cargo();
    cargo.args([
        "build",
        "--release",
        "--package",
        "joular-data",
        "--example",
        "record_hour",
        "--example",
        "read_profile",
    ]);
    shell::run(&mut cargo)
}

fn example(name: &str) -> Command {
    Command::new(paths::target().join("release/examples").join(name))
}

fn figure(
    name: &str,
    unit: &'static str,
    target: &'static str,
    digits: usize,
    values: Vec<f64>,
    method: &str,
) -> Figure {
    Figure { name: name.to_owned(), unit, target, digits, values, method: method.to_owned() }
}
