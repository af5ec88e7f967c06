//! Tests other kernels than the one that runs here, started in virtual machines: the programs load
//! there, attach, and see what runs, by name and for how long, and what it allocates.

use std::{path::Path, sync::Arc, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, ensure};
use joular_tests::{
    dataset::DataSet,
    kernels::{self, Kernel},
    notes, paths,
    shared::Shared,
};
use serde_json::Value;

/// An emulated machine takes half a minute, and several on a machine that others keep busy. It bounds a hang.
const LIMIT: Duration = Duration::from_secs(900);

/// A process that is busy all the time, of which everything must be found out. An emulated machine may need minutes.
const NATIVE: &str = "\
    (sleep 1; echo burn 600000; sleep 600) | burner 100 &\n\
    joular-bpf doctor\n\
    grep IWI: /proc/interrupts\n\
    joular-bpf --all --frequency 199 --duration 4s --energy model --model-watts 10:30 --no-output --json\n\
    echo exit code $?\n\
    grep IWI: /proc/interrupts\n\
    kill $!";

/// A JVM without any flag that would help, in which stacks are known in advance. If it ends before
/// it is ready, the profiler finds nothing, and what it said tells why.
const JVM: &str = "\
    /jdk/bin/java -Xmx64m -XX:TieredStopAtLevel=1 -cp /classes known.Main recurse-10 > /tmp/java 2>&1 &\n\
    until grep -q ready /tmp/java || ! kill -0 $!; do sleep 0.2; done\n\
    cat /tmp/java\n\
    joular-bpf --comm java --frequency 199 --duration 10s --energy model --model-watts 10:30 --no-output --json\n\
    echo exit code $?";

/// A JVM whose threads allocate what is known, one after the other, and end. Says which links open probes in it.
const ALLOCATING: &str = "\
    kill $(pidof java); mkfifo /tmp/lines\n\
    /jdk/bin/java -Xmx64m -XX:TieredStopAtLevel=1 -cp /classes Allocations < /tmp/lines > /tmp/allocating 2>&1 &\n\
    jvm=$!; exec 3> /tmp/lines\n\
    until grep -q ready /tmp/allocating || ! kill -0 $jvm; do sleep 0.2; done\n\
    joular-bpf --pid $jvm --alloc --energy model --model-watts 10:30 --output /tmp/out --json > /tmp/windows &\n\
    profiler=$!\n\
    probes() { cat /proc/$profiler/fdinfo/* | grep -E 'link_type:.*(perf|uprobe_multi)'; }\n\
    more_windows() {\n\
        last=$(($(grep -c window /tmp/windows) + $1))\n\
        until test $(grep -c window /tmp/windows) -ge $last || ! kill -0 $profiler; do sleep 0.2; done\n\
    }\n\
    until test $(probes | wc -l) -ge 5 || ! kill -0 $profiler; do sleep 0.2; done\n\
    more_windows 1\n\
    probes; echo threads >&3\n\
    until grep all /tmp/allocating || ! kill -0 $jvm; do sleep 0.2; done\n\
    more_windows 2\n\
    kill -INT $profiler; wait $profiler; echo exit code $?";

/// Said between them.
const BETWEEN: &str = "now another one";

/// What was said on a kernel, which is started once for all.
struct Said {
    release: String,
    native: String,
    jvm: String,
    allocating: String,
}

/// What was said on each of them.
fn said() -> Result<Arc<Vec<Said>>> {
    static SAID: Shared<Vec<Said>> = Shared::new();
    let on = |kernel: &Kernel| record(kernel).with_context(|| format!("Linux {}", kernel.release));
    SAID.get(|| {
        let kernels = kernels::all();
        thread::scope(|scope| {
            let started: Vec<_> = kernels.iter().map(|kernel| scope.spawn(|| on(kernel))).collect();
            started.into_iter().map(|thread| thread.join().expect("a kernel's thread ends")).collect()
        })
    })
}

fn record(kernel: &Kernel) -> Result<Said> {
    let print = kernels::print_table("allocations");
    let scripts = [NATIVE, JVM, &format!("{ALLOCATING}\n{print}")].join(&format!("\necho {BETWEEN}\n"));
    let mut root = kernels::root(&scripts)?;
    root.program("/bin/joular-bpf", &paths::joular_bpf())?;
    root.program("/bin/burner", Path::new(env!("CARGO_BIN_EXE_burner")))?;
    kernels::put_jvm(&mut root, 17)?;
    let finished = kernel.boot(root, LIMIT)?;
    // A serial console ends its lines as teletypes do.
    let said = finished.stdout.replace('\r', "");
    let said: Vec<&str> = said.split(BETWEEN).collect();
    let [native, jvm, allocating] =
        <[&str; 3]>::try_from(said).map_err(|_| anyhow!("{finished:?}"))?.map(str::to_owned);
    Ok(Said { release: kernel.release.clone(), native, jvm, allocating })
}

fn windows(said: &str) -> Vec<Value> {
    let records = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["type"] == "window").collect()
}

/// How often CPUs interrupted themselves while the recording ran: since Linux 7.0 programs set timers so.
fn self_interrupts(said: &str) -> Option<u64> {
    let counts = said.lines().filter_map(|line| line.trim().strip_prefix("IWI:"));
    let sums: Vec<u64> =
        counts.map(|counts| counts.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum()).collect();
    sums.last()?.checked_sub(*sums.first()?)
}

fn check_native(release: &str, said: &str) -> Result<()> {
    assert!(said.contains("\nexit code 0\n"), "{said}");
    assert!(said.contains("they load and pass the verifier"), "{said}");
    let windows = windows(said);
    let (mut length_ns, mut cpu_ns, mut samples, mut lost) = (0, 0, 0, Vec::new());
    let mut methods = Vec::new();
    for window in &windows {
        let processes = window["processes"].as_array().context("no processes")?;
        let burner = processes.iter().find(|process| process["comm"] == "burner").context("no burner")?;
        length_ns += window["length_ns"].as_u64().unwrap_or(0);
        cpu_ns += burner["cpu_ns"].as_u64().unwrap_or(0);
        samples += burner["samples"].as_u64().unwrap_or(0);
        let own = window["methods"].as_array().into_iter().flatten().filter(|method| method["pid"] == burner["pid"]);
        methods.extend(own.filter_map(|method| method["method"].as_str().map(str::to_owned)));
        lost.extend(window["audit"]["lost"].as_object().into_iter().flatten().map(|(cause, _)| cause.clone()));
    }
    let interrupts = self_interrupts(said).context("no count of interrupts")?;
    let all = sum_of(&windows, "samples");
    notes::figure(&format!("Linux {release}: {interrupts} interrupts by CPUs of themselves for {all} samples"));
    let seconds = length_ns as f64 / 1e9;
    assert!(seconds > 3.0, "{seconds} s: {said}");
    assert!(cpu_ns as f64 > 0.5e9 * seconds, "the burner ran for {cpu_ns} ns in {seconds} s");
    assert!(samples as f64 > 40.0 * seconds, "{samples} samples of the burner in {seconds} s");
    assert!(methods.iter().any(|method| method.contains("burner::burn")), "its methods: {methods:?}");
    // An emulated machine may be late, but it loses no stack.
    lost.retain(|cause| cause.contains("stack") || cause.contains("full"));
    assert_eq!(lost, Vec::<String>::new(), "{said}");
    Ok(())
}

#[test]
fn debians_kernels_load_the_programs_and_see_what_runs() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    for kernel in said()?.iter() {
        println!("Linux {}", kernel.release);
        check_native(&kernel.release, &kernel.native)?;
    }
    Ok(())
}

/// Time in methods of a name, on whatever path, of all windows.
fn total_ns(windows: &[Value], name: &str) -> u64 {
    let methods = windows.iter().filter_map(|window| window["methods"].as_array()).flatten();
    methods.filter(|method| method["method"] == name).filter_map(|method| method["total_cpu_ns"].as_u64()).sum()
}

/// Sum of a number that each process of each window has.
fn sum_of(windows: &[Value], field: &str) -> u64 {
    let processes = windows.iter().filter_map(|window| window["processes"].as_array()).flatten();
    processes.filter_map(|process| process[field].as_u64()).sum()
}

/// Whether stacks of Java threads were walked along frame pointers, whose end is not known for a root.
fn walks_without_tables(window: &Value) -> bool {
    let quality = window["quality"].as_array().into_iter().flatten();
    quality.filter(|row| row["category"] == "java").any(|row| row["walk_end"] == "chain")
}

fn check_jvm(said: &str) -> Result<()> {
    assert!(said.contains("\nexit code 0\n"), "{said}");
    // An emulated profiler needs a second or two to read the JVM. Until then its stacks are walked without tables, and
    // it says so.
    let mut windows = windows(said);
    windows.retain(|window| !walks_without_tables(window));
    let samples = sum_of(&windows, "samples");
    assert!(samples >= 100, "{samples} samples of the JVM when it was known: {said}");
    // The leaf is compiled code; the others are on its stack up to the root, of
    // which the first two may be interpreted. How much time it has depends on
    // what else this machine does, its share does not.
    let (leaf, jvm) = (total_ns(&windows, "known.Recursion.leaf"), sum_of(&windows, "cpu_ns"));
    assert!(leaf as f64 >= 0.7 * jvm as f64, "{leaf} ns of the JVM's {jvm} are in the leaf: {said}");
    for method in ["known.Recursion.descend", "known.Recursion.round", "known.Scenario.run", "java.lang.Thread.run"] {
        let total = total_ns(&windows, method);
        assert!(total as f64 >= 0.97 * leaf as f64, "{method} has {total} ns of {leaf}: {said}");
    }
    Ok(())
}

#[test]
fn debians_kernels_walk_the_stacks_of_a_jvm() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    for kernel in said()?.iter() {
        println!("Linux {}", kernel.release);
        check_jvm(&kernel.jvm)?;
    }
    Ok(())
}

/// Kinds of the links that open probes.
fn probes(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("link_type:")).map(str::trim).collect()
}

fn check_allocating(release: &str, said: &str) -> Result<()> {
    ensure!(said.contains("exit code 0"), "{said}");
    // Linux 6.1 has no links of the other kind.
    let kind = if release.starts_with("6.1.") { "perf" } else { "uprobe_multi" };
    ensure!(probes(said) == [kind; 5], "{said}");
    let told = said.lines().find_map(|line| serde_json::from_str::<Value>(line).ok()?["all"].as_f64());
    let expected = told.with_context(|| format!("the program gives no account: {said}"))?;
    let directory = tempfile::tempdir()?;
    kernels::unpack_table(said, "allocations", directory.path())?;
    let data = DataSet::at(directory.path());
    let of = |what: &str| {
        data.number(&format!("SELECT coalesce(sum({what}), 0)::DOUBLE FROM allocations WHERE thread_name = 'short'"))
    };
    let (found, samples) = (of("allocated_bytes")?, of("samples")?);
    ensure!((expected..expected * 1.01).contains(&found), "{found} of {expected} bytes of threads that ended: {said}");
    ensure!(samples > 10.0, "{samples} samples: {said}");
    let elsewhere = data.number(
        "SELECT coalesce(sum(allocated_bytes), 0)::DOUBLE FROM allocations WHERE thread_name = 'short' AND class <> 'byte[]'",
    )?;
    ensure!(elsewhere < 0.2 * found, "{elsewhere} of {found} bytes are of other classes");
    Ok(())
}

#[test]
fn debians_kernels_tell_what_a_jvm_allocates() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    for kernel in said()?.iter() {
        println!("Linux {}", kernel.release);
        check_allocating(&kernel.release, &kernel.allocating)?;
    }
    Ok(())
}
