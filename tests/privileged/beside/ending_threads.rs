//! Tests samples of threads that end: the kernel has taken their memory already, so that nobody can read a stack there.

use anyhow::{Result, ensure};
use joular_tests::{
    dataset::integer,
    java::{Jvm, Workload},
    profiler::{Output, Run},
};

const JVMS: usize = 6;
/// Taking memory back takes so long that some samples hit it.
const HEAP: [&str; 3] = ["-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch"];
/// Functions of the kernel that run when a thread's memory has been taken.
const TAKES_MEMORY: &str = "exit_mmap";

#[test]
fn stacks_of_threads_whose_memory_the_kernel_takes_back_are_whole_and_say_so() -> Result<()> {
    let output = Output::new()?;
    let start = || HEAP.iter().fold(Workload::new("Busy"), |workload, flag| workload.flag(flag)).start();
    let jvms = (0..JVMS).map(|_| start()).collect::<Result<Vec<Jvm>>>()?;
    let pids = jvms.iter().map(|jvm| jvm.pid().to_string()).collect::<Vec<_>>().join(",");
    let run = Run::modelled().with("--pid", &pids).with("--frequency", "997");
    let mut profiler = run.argument("--json").output(output.dir()).start()?;
    profiler.wait_window()?;
    drop(jvms);
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.stop()?;
    let rows = output.data.rows(&format!(
        "WITH s AS (SELECT DISTINCT run_id, stack_id, folded, walk_end, is_complete FROM stacks)
         SELECT split_part(folded, ';', 1) AS root, walk_end, coalesce(is_complete, false) AS whole,
           sum(samples)::BIGINT AS samples
         FROM branches JOIN s USING (run_id, stack_id) WHERE folded LIKE '%;{TAKES_MEMORY};%' GROUP BY ALL"
    ))?;
    ensure!(!rows.is_empty(), "no sample hit a thread whose memory was taken");
    for row in &rows {
        let is_ended = row["root"] == "[ending thread]" && row["walk_end"] == "ended" && row["whole"] == true;
        ensure!(is_ended && integer(row, "samples")? > 0, "{rows:?}");
    }
    Ok(())
}
