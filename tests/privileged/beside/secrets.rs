//! Tests that secrets in command lines stay where they are: nothing that a run writes, and nothing that is made of it, has one.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_data::events::{Event, recording::RecordingReader};
use joular_tests::{
    clock::wait_for,
    dataset::DataSet,
    java::{Jvm, Workload},
    process::{Finished, Running},
    profiler::{END, Output, Run},
    prometheus::{answer, free_port},
};

const LIMIT: Duration = Duration::from_secs(60);
const WINDOWS: usize = 8;

/// Where a secret stands in a command line, as `@`. Words that belong together have a `␣` between them.
const SHAPES: [&str; 40] = [
    "-Dpassword=@",
    "-Ddb.PASSWD=a;@,b",
    "-Djavax.net.ssl.keyStorePassword=@",
    "-Dapi_token=a @ b",
    "-Daws.secretKey=@",
    "-Dspring.datasource.url=jdbc:mysql://u:@@h/db?useSSL=true",
    "-Durl=jdbc:postgresql://h/db?user=u&password=@&ssl=true",
    "-Dora=jdbc:oracle:thin:scott/@@//h:1521/s",
    "-Dms=jdbc:sqlserver://h;user=sa;password=@;encrypt=true",
    "-Dredis=redis://:@@h:6379/0",
    "-Dmongo=mongodb+srv://u:@@h1,h2/db",
    "-Damqp=amqp://u:a%40@@h/v",
    "-Dcredentials={user: u, pw: @}",
    "-Dsession.id=@",
    "--password=@",
    "--password␣@",
    "--db-password␣a @ b",
    "-storepass␣@",
    "--token␣-@",
    "--token␣--api-key␣@",
    "--env=API_KEY=@",
    "-e␣MYSQL_PWD=@",
    "PGPASSWORD=@",
    "AWS_SECRET_ACCESS_KEY=@",
    "-H␣Authorization: Bearer @",
    "-H␣Cookie: a=b; c=@",
    "--header=X-Auth:@",
    "-HX-Api-Key:@",
    "https://u:@@example.invalid/p",
    "ftp://u:@@example.invalid/,http://v:w@i/",
    "https://example.invalid/?a=b&access_token=@&c=d",
    "https://example.invalid/#auth=@",
    "{\"user\":\"u\",\"password\":\"@\"}",
    "{\\\"secret\\\":\\\"@\\\"}",
    "{\"tokens\":[\"a\",\"@\"]}",
    "agent.jar=host=h,token=@,port=1",
    "bash -c 'java --password @ Main'",
    "host=h user=u password='@' dbname=d",
    "user=u;PASSWORD = @",
    "sign␣--key=@@@␣x=@@@",
];

fn secret(number: usize) -> String {
    format!("Plant{number:02}xQ")
}

/// The words of a command line with these shapes.
fn words(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers
        .flat_map(|number| {
            // Of several, the last one before a host ends the user information.
            let text = match SHAPES[number].split_once("@@@") {
                Some(_) => SHAPES[number].replace("@@@", &secret(number)),
                None => SHAPES[number].replacen('@', &secret(number), 1),
            };
            text.split('␣').map(ToOwned::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Which secrets are in what was written.
fn found_in(bytes: &[u8]) -> Vec<usize> {
    let has = |number: &usize| {
        let secret = secret(*number);
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    };
    (0..SHAPES.len()).filter(has).collect()
}

fn expect_none(what: &str, bytes: impl AsRef<[u8]>) {
    let found = found_in(bytes.as_ref());
    let shapes: Vec<&str> = found.iter().map(|number| SHAPES[*number]).collect();
    assert!(found.is_empty(), "{what} has secrets, of {shapes:?}");
}

const SPIN: &str = "while :; do :; done";

/// A JVM and a shell that have all the secrets in their command lines, and run.
fn targets() -> Result<(Jvm, Running)> {
    let is_property = |number: &usize| SHAPES[*number].starts_with("-D");
    let flags = words((0..SHAPES.len()).filter(is_property));
    let jvm = flags.iter().fold(Workload::new("Busy"), |jvm, flag| jvm.flag(flag)).start()?;
    let others = words((0..SHAPES.len()).filter(|number| !is_property(number)));
    let shell = Running::spawn("sh", Command::new("sh").args(["-c", SPIN, "sh"]).args(others))?;
    Ok((jvm, shell))
}

fn scraped(port: u16) -> Result<String> {
    let answer = answer(port, "/metrics", "Accept: application/openmetrics-text\r\n")?.context("it serves metrics")?;
    ensure!(answer.contains("joular_process_joules_total"), "{answer}");
    Ok(answer)
}

/// All that a recording holds.
fn recording(path: &Path) -> Result<String> {
    let events = RecordingReader::new(File::open(path)?)?;
    events.map(|event| Ok(format!("{:?}\n", event?))).collect()
}

/// All that a data set holds: as files, and as rows.
fn data_set(dir: &Path) -> Result<Vec<u8>> {
    let data = DataSet::at(dir);
    let mut all: Vec<u8> = data.files()?.into_values().flatten().collect();
    let mut tables = 0;
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            all.extend(serde_json::to_vec(&data.rows(&format!("SELECT * FROM {name}"))?)?);
            tables += 1;
        }
    }
    ensure!(tables > 5, "{tables} tables in {}", dir.display());
    Ok(all)
}

/// `joular-bpf run` with an energy source that every machine has.
fn run() -> Run {
    Run::new().argument("run").with("--energy", "model").with("--model-watts", "10:30")
}

fn succeeded(run: Run) -> Result<Finished> {
    let finished = run.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    Ok(finished)
}

/// A recording of both targets, and what it wrote.
struct Recorded {
    output: Output,
    said: String,
    scrape: String,
    targets: [u32; 2],
}

impl Recorded {
    fn with(options: &[&str]) -> Result<Self> {
        let (output, port) = (Output::new()?, free_port()?);
        let (jvm, shell) = targets()?;
        let run = Run::modelled().pid(jvm.pid()).pid(shell.pid()).argument("--json").with("--interval", "200ms");
        let run = run.with("--record", output.beside("run.jrec")).with("--metrics", format!("127.0.0.1:{port}"));
        let run = options.iter().fold(run, |run, option| run.argument(*option));
        let mut profiler = run.output(output.dir()).start()?;
        (0..WINDOWS).try_for_each(|_| profiler.wait_window().map(drop))?;
        let scrape = wait_for("a scrape", LIMIT, || Ok(scraped(port).ok()))?;
        let finished = profiler.stop()?;
        let said = finished.stdout + &finished.stderr;
        Ok(Self { output, said, scrape, targets: [jvm.pid(), shell.pid()] })
    }

    /// Words of the targets' command lines that the data set has.
    fn words(&self) -> Result<f64> {
        let [jvm, shell] = self.targets;
        self.output.data.number(&format!(
            "SELECT coalesce(sum(len(command_line)), 0)::DOUBLE FROM processes WHERE pid IN ({jvm}, {shell})"
        ))
    }
}

#[test]
fn nothing_that_a_run_writes_and_nothing_made_of_it_has_a_secret() -> Result<()> {
    let recorded = Recorded::with(&[])?;
    let (output, dir) = (&recorded.output, recorded.output.dir());
    let path = |name: &str| output.beside(name);
    expect_none("what it prints", &recorded.said);
    expect_none("a scrape", &recorded.scrape);
    expect_none("the recording", recording(&path("run.jrec"))?);
    expect_none("the data set", data_set(dir)?);
    assert!(recorded.words()? > SHAPES.len() as f64, "command lines are there");

    succeeded(Run::new().argument("html").argument(dir).output(&path("page.html")))?;
    expect_none("the page", fs::read(path("page.html"))?);
    for options in [&["--by", "service,process"][..], &["--json"], &["--csv"], &["--markdown"]] {
        let run = options.iter().fold(Run::new().argument("report").argument(dir), |run, option| run.argument(*option));
        expect_none("a report", succeeded(run)?.stdout);
    }
    for format in ["pprof", "speedscope", "collapsed", "firefox", "perfetto", "otlp", "jfr"] {
        let file = path(format);
        succeeded(Run::new().argument("export").argument(dir).with("--format", format).output(&file))?;
        expect_none(format, fs::read(&file)?);
        let unzipped = Command::new("gzip").arg("-dcf").arg(&file).output()?;
        ensure!(unzipped.status.success() && !unzipped.stdout.is_empty(), "{format}: {unzipped:?}");
        expect_none(format, unzipped.stdout);
    }
    succeeded(Run::new().argument("rollup").argument(dir).with("--window", "1s").output(&path("rollup")))?;
    expect_none("the rollup", data_set(&path("rollup"))?);
    succeeded(Run::new().with("--replay", path("run.jrec")).argument("--quiet").output(&path("replayed")))?;
    expect_none("the replay", data_set(&path("replayed"))?);
    for checked in [dir, &path("rollup"), &path("run.jrec")] {
        succeeded(Run::new().argument("audit").argument("--secrets").argument(checked))?;
    }
    Ok(())
}

#[test]
fn runs_and_experiments_keep_no_secret_of_their_own_command_lines() -> Result<()> {
    let output = Output::new()?;
    let path = |name: &str| output.beside(name);
    let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let of = |run: Run| {
        let all = words(0..SHAPES.len());
        all.iter().fold(run.argument("--").argument("sh").argument("-c").argument(spin).argument("sh"), |run, word| {
            run.argument(word)
        })
    };
    let finished = succeeded(of(run().output(output.dir())))?;
    expect_none("what run prints", finished.stdout + &finished.stderr);
    expect_none("the data set of run", data_set(output.dir())?);
    let finished = succeeded(of(run().output(&path("experiment")).with("--repeat", "2")))?;
    expect_none("what an experiment prints", finished.stdout + &finished.stderr);
    expect_none("its log", fs::read(path("experiment/experiment.json"))?);
    expect_none("its data set", data_set(&path("experiment/base"))?);
    let checked = Run::new().argument("audit").argument("--secrets").argument(path(""));
    let text = succeeded(checked)?.stdout;
    assert!(text.contains("no secret in "), "{text}");
    // What clap quotes of it.
    let wrong = Run::new().argument(format!("password={}", secret(0))).finish(END)?;
    assert_eq!(wrong.code(), Some(2), "{wrong:?}");
    expect_none("an error", wrong.stderr);
    Ok(())
}

#[test]
fn command_lines_are_shown_in_full_or_not_at_all_if_that_is_asked_for() -> Result<()> {
    let recorded = Recorded::with(&["--command-line", "full"])?;
    let all: Vec<usize> = (0..SHAPES.len()).collect();
    assert_eq!(found_in(recording(&recorded.output.beside("run.jrec"))?.as_bytes()), all);
    let found = serde_json::to_vec(&recorded.output.data.rows("SELECT command_line FROM processes")?)?;
    assert_eq!(found_in(&found).len(), all.len());
    let audited = Run::new().argument("audit").argument("--secrets").argument(recorded.output.dir()).finish(LIMIT)?;
    assert_eq!(audited.code(), Some(7), "{audited:?}");
    expect_none("an audit", audited.stdout);

    let recorded = Recorded::with(&["--command-line", "none"])?;
    assert_eq!(recorded.words()?, 0.0);
    let of_run = recorded.output.data.number("SELECT coalesce(sum(len(command_line)), 0)::DOUBLE FROM runs")?;
    assert_eq!(of_run, 0.0);
    let events = RecordingReader::new(File::open(recorded.output.beside("run.jrec"))?)?;
    for event in events {
        if let Event::Process(process) = event.context("an event")? {
            assert!(process.command_line.is_empty(), "{process:?}");
        }
    }
    expect_none("the data set", data_set(recorded.output.dir())?);
    Ok(())
}
