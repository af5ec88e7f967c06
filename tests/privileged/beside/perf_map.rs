//! Tests perf maps, files that a process controls: whatever one is, the run goes on, in bounded
//! time and memory, and no terminal is taken over.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use joular_tests::{
    process::{Finished, status_kib},
    profiler::{Output, Run},
    schedstat,
};

use crate::burner::Burner;

const LIMIT: Duration = Duration::from_secs(40);

/// Far above what a run needs, far below what reading a whole giant would take.
const MEMORY_LIMIT_KIB: u64 = 300 * 1024;

/// A process busy outside of any file, and the place of its perf map.
struct Target {
    burner: Burner,
    map: PathBuf,
}

impl Target {
    fn start() -> Result<Self> {
        let mut burner = Burner::start(&[])?;
        let map = PathBuf::from(format!("/tmp/perf-{}.map", burner.pid()));
        remove(&map);
        burner.begin_jit(Duration::from_secs(60))?;
        Ok(Self { burner, map })
    }

    /// A line that names the code which it runs.
    fn line(&self, name: &str) -> String {
        format!("{:x} {:x} {name}\n", self.burner.code.0, self.burner.code.1)
    }

    /// Profiles it for three seconds.
    fn profile(&self) -> Result<Profiled> {
        self.profile_with(&[])
    }

    fn profile_with(&self, options: &[&str]) -> Result<Profiled> {
        let output = Output::new()?;
        let before = schedstat::process(self.burner.pid())?;
        let run = Run::modelled().pid(self.burner.pid()).with("--frequency", "199").with("--duration", "3s");
        let run = options.iter().fold(run, |run, option| run.argument(option));
        let profiler = run.output(output.dir()).start()?;
        let peak = joular_tests::clock::wait_for("the end of the run", LIMIT, {
            let pid = profiler.pid();
            let mut peak = 0;
            // A process that ended has no more memory to show.
            move || {
                Ok(status_kib(pid, "VmHWM:").ok().map_or(Some(peak), |now| {
                    peak = now;
                    None
                }))
            }
        })?;
        assert!(peak < MEMORY_LIMIT_KIB, "{peak} KiB of memory");
        let finished = profiler.finish(LIMIT)?;
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
        let used = (schedstat::process(self.burner.pid())? - before) as f64 / 1e9;
        Ok(Profiled { finished, output, used })
    }

    /// Profiles it and expects its time in the data set, under whatever name.
    fn expect_survived(&self) -> Result<Profiled> {
        let profiled = self.profile()?;
        let seconds = profiled.output.data.number("SELECT coalesce(sum(cpu_ns), 0)::DOUBLE / 1e9 FROM threads")?;
        profiled.expect_most(seconds, "the process");
        Ok(profiled)
    }
}

/// What is left of a run over a process that was busy all the time.
struct Profiled {
    finished: Finished,
    output: Output,
    /// CPU seconds of the process while the profiler started, recorded and ended.
    used: f64,
}

impl Profiled {
    /// CPU seconds in methods whose name contains this.
    fn seconds_in(&self, name: &str) -> Result<f64> {
        let sum = "SELECT coalesce(sum(self_cpu_ns), 0)::DOUBLE / 1e9 FROM methods";
        self.output.data.number(&format!("{sum} WHERE contains(method, '{name}')"))
    }

    /// Recording takes most of a run of three seconds.
    fn expect_most(&self, seconds: f64, what: &str) {
        assert!(seconds > 0.3 * self.used, "{what} has {seconds:.2} s of {:.2} s", self.used);
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        remove(&self.map);
    }
}

/// Removes a file of whatever kind, if it is there.
fn remove(path: &Path) {
    let _missing = fs::remove_file(path);
}

#[test]
fn a_good_map_names_code_outside_of_files() -> Result<()> {
    let target = Target::start()?;
    fs::write(&target.map, target.line("generated_loop"))?;
    let profiled = target.expect_survived()?;
    profiled.expect_most(profiled.seconds_in("generated_loop")?, "generated_loop");
    Ok(())
}

#[test]
fn a_link_is_not_followed() -> Result<()> {
    let target = Target::start()?;
    let elsewhere = tempfile::NamedTempFile::new()?;
    fs::write(elsewhere.path(), target.line("behind_a_link"))?;
    std::os::unix::fs::symlink(elsewhere.path(), &target.map)?;
    let profiled = target.expect_survived()?;
    assert_eq!(profiled.seconds_in("behind_a_link")?, 0.0, "the link was followed");
    Ok(())
}

#[test]
fn a_fifo_does_not_block_the_run() -> Result<()> {
    let target = Target::start()?;
    let status = std::process::Command::new("mkfifo").arg(&target.map).status()?;
    assert!(status.success());
    target.expect_survived().map(drop)
}

#[test]
fn a_map_of_one_gibibyte_is_read_within_bounds() -> Result<()> {
    let target = Target::start()?;
    fs::write(&target.map, target.line("before_the_hole"))?;
    // A hole: no disk space, and a line that never ends.
    fs::OpenOptions::new().append(true).open(&target.map)?.set_len(1 << 30)?;
    target.expect_survived().map(drop)
}

#[test]
fn garbage_lines_hide_no_good_ones() -> Result<()> {
    let target = Target::start()?;
    let mut text =
        b"\xff\xfe\x00 not a line\nzz 10 name\n10\n\n ffffffffffffffff ffffffffffffffff over the top\n".to_vec();
    text.extend(vec![b'x'; 1 << 20]);
    text.extend(format!("\n{}", target.line("after_the_garbage")).bytes());
    fs::write(&target.map, text)?;
    let profiled = target.expect_survived()?;
    profiled.expect_most(profiled.seconds_in("after_the_garbage")?, "after_the_garbage");
    Ok(())
}

#[test]
fn names_with_escape_sequences_do_not_reach_the_terminal() -> Result<()> {
    let target = Target::start()?;
    fs::write(&target.map, target.line("evil\x1b]0;owned\x07\x1b[2Jname\u{202e}\u{9b}31m"))?;
    for options in [&[][..], &["--json"]] {
        let profiled = target.profile_with(options)?;
        let finished = &profiled.finished;
        for text in [&finished.stdout, &finished.stderr] {
            let control = text.chars().find(|c| (c.is_control() && *c != '\n' && *c != '\t') || *c == '\u{202e}');
            assert_eq!(control, None, "a control character was printed: {text:?}");
        }
        profiled.expect_most(profiled.seconds_in("evil")?, "the name, however written,");
        assert!(finished.stdout.contains("evil") || finished.stderr.contains("evil"), "the top method is shown");
    }
    Ok(())
}

#[test]
fn a_map_of_another_user_is_not_believed() -> Result<()> {
    let target = Target::start()?;
    fs::write(&target.map, target.line("not_my_map"))?;
    std::os::unix::fs::chown(&target.map, Some(65534), Some(65534)).context("giving the map away")?;
    let profiled = target.expect_survived()?;
    assert_eq!(profiled.seconds_in("not_my_map")?, 0.0, "a map that its process does not own was believed");
    Ok(())
}
