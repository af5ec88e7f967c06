//! Tests a machine with two nodes of memory, whose kernel takes the access to pages away all the time to see who uses
//! them: stacks are whole there, too.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use joular_tests::{
    kernels::{self, Kernel},
    notes, paths,
};

/// An emulated machine takes a minute or two, and longer on a machine that others keep busy. It bounds a hang.
const LIMIT: Duration = Duration::from_secs(1800);

/// Memory of two nodes, a CPU each. Five levels of page tables, unless the kernel is told not to use them.
const NODES: [&str; 8] = [
    "-object",
    "memory-backend-ram,id=m0,size=HALF",
    "-object",
    "memory-backend-ram,id=m1,size=HALF",
    "-numa",
    "node,cpus=0,memdev=m0",
    "-numa",
    "node,cpus=1,memdev=m1",
];

/// JVMs in compiled code and in the interpreter. The kernel goes through all of their memory several times a second;
/// by default it would do so once a minute at most, and it would take long until the JVM's own pages are hit. The second
/// recording is the control: without the kernel's symbols such pages cannot be read. An emulated profiler needs some
/// seconds to read a JVM.
const SCRIPT: &str = "\
    mount -t debugfs debugfs /sys/kernel/debug; cd /sys/kernel/debug/sched/numa_balancing\n\
    echo 20 > scan_period_min_ms; echo 100 > scan_period_max_ms; echo 0 > scan_delay_ms; cd /\n\
    joular-bpf doctor | grep NUMA\n\
    record() {\n\
        joular-bpf --pid $jvm --frequency 199 --duration 24s --energy model --model-watts 10:30 --output /tmp/out --quiet\n\
        echo exit code $?; joular-bpf export --format collapsed --since 10s /tmp/out; rm -r /tmp/out\n\
    }\n\
    start() {\n\
        /jdk/bin/java -Xmx64m $1 -cp /classes known.Main recurse-10 > /tmp/java 2>&1 &\n\
        jvm=$!; until grep -q ready /tmp/java || ! kill -0 $jvm; do sleep 0.2; done\n\
    }\n\
    start -XX:TieredStopAtLevel=1; record; echo now another one\n\
    echo 2 > /proc/sys/kernel/kptr_restrict; record; echo 1 > /proc/sys/kernel/kptr_restrict; kill $jvm\n\
    echo now another one\n\
    start -Xint; record\n\
    grep numa_ /proc/vmstat";

/// Said between the recordings.
const BETWEEN: &str = "now another one";

/// In stacks of a thread that has just touched a page, which the kernel moves to another node. Until it has, no table
/// says where the page is.
const MOVES_A_PAGE: &str = ";migrate_misplaced_";

/// What share of the Java threads' energy is in stacks that are cut, but for those of threads whose page is being moved.
fn cut(said: &str) -> Result<f64> {
    ensure!(said.contains("\nexit code 0\n"), "{said}");
    let (mut all, mut cut, mut moving) = (0, 0, 0);
    for (stack, weight) in said.lines().filter_map(|line| line.rsplit_once(' ')) {
        let Ok(energy_uj) = weight.parse::<u64>() else { continue };
        let is_cut = stack.starts_with("[broken stack]");
        if is_cut || stack.contains("known.Recursion.leaf") {
            all += energy_uj;
        }
        if is_cut {
            *(if stack.contains(MOVES_A_PAGE) { &mut moving } else { &mut cut }) += energy_uj;
        }
    }
    ensure!(all > 20_000_000, "{all} uJ: {said}");
    println!("{cut} of {all} uJ are in stacks that are cut, and {moving} in those of moving pages");
    ensure!(moving * 10 < all, "{moving} of {all} uJ in stacks of moving pages: {said}");
    Ok(cut as f64 / all as f64)
}

fn check(kernel: &Kernel, arguments: &[&str]) -> Result<()> {
    println!("Linux {} {arguments:?}", kernel.release);
    let mut root = kernels::root(SCRIPT)?;
    root.program("/bin/joular-bpf", &paths::joular_bpf())?;
    kernels::put_jvm(&mut root, 17)?;
    let arguments: Vec<&str> = NODES.iter().chain(arguments).copied().collect();
    let said = kernel.start(root, &arguments)?.finish(LIMIT)?.stdout.replace('\r', "");
    let [compiled, control, interpreted] = said.split(BETWEEN).collect::<Vec<_>>()[..] else {
        bail!("three recordings: {said}")
    };
    ensure!(compiled.contains("NUMA balancing       on, over 2 nodes\n"), "{compiled}");
    let updates = said.lines().find_map(|line| line.strip_prefix("numa_pte_updates "));
    let updates: u64 = updates.and_then(|count| count.trim().parse().ok()).context("how many pages were marked")?;
    ensure!(updates > 10_000, "{updates} pages were marked: {said}");
    let [compiled, control, interpreted] = [cut(compiled)?, cut(control)?, cut(interpreted)?];
    ensure!(control > 0.05, "{control} of the stacks are cut without the kernel's symbols: {said}");
    ensure!(compiled < 0.005 && interpreted < 0.005, "{compiled} and {interpreted} of the stacks are cut: {said}");
    Ok(())
}

#[test]
fn stacks_are_whole_on_a_machine_that_moves_memory_between_nodes() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    for kernel in kernels::all().iter().filter(|kernel| kernel.has("CONFIG_NUMA_BALANCING=y")) {
        check(kernel, &[])?;
    }
    Ok(())
}

#[test]
fn stacks_are_whole_there_with_four_levels_of_page_tables() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let kernels = kernels::all();
    let newest = kernels.iter().rfind(|kernel| kernel.has("CONFIG_NUMA_BALANCING=y")).context("no kernel balances")?;
    check(newest, &["-append", "console=ttyS0 quiet panic=-1 no5lvl"])
}
