//! Tests `--io` with threads that move bytes while they end: the kernel keeps nothing of them. Only Linux 6.16 and later
//! tell of the end before that, and only where programs can be put on `filemap_fault` does anybody look at such a thread.

use std::{collections::BTreeSet, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{HashMap, Map, MapData, loaded_maps};
use joular_ebpf::abi::ThreadKey;
use joular_tests::{
    bpf_objects, native, paths,
    process::Running,
    profiler::{Profiler, Run},
};

const LIMIT: Duration = Duration::from_secs(20);
const THREADS: usize = 200;

/// Threads of which a program keeps what they moved from and to devices.
fn kept(profiler: &Profiler) -> Result<BTreeSet<u32>> {
    let held = bpf_objects::of(profiler.pid())?;
    let map = loaded_maps().flatten().find(|map| {
        map.name_as_str().is_some_and(|name| name.starts_with("DEVICE_BYTES")) && held.contains(&("map", map.id()))
    });
    let data = MapData::from_id(map.context("no map")?.id())?;
    let map: HashMap<MapData, u64, [u64; 2]> = HashMap::try_from(Map::HashMap(data))?;
    Ok(map.keys().flatten().map(|key| ThreadKey(key).tid()).collect())
}

#[test]
fn a_thread_that_has_ended_leaves_nothing_in_the_kernel() -> Result<()> {
    // Pages of a file on a disk: other file systems have no such pages.
    let directory = tempfile::tempdir_in(paths::target())?;
    native::compile("leaver.c", &directory.path().join("leaver"))?;
    let mut command = Command::new(directory.path().join("leaver"));
    command.arg(directory.path().join("pages")).arg(THREADS.to_string());
    let mut leaver = Running::spawn("leaver", &mut command)?;
    leaver.wait_stdout("ready", LIMIT)?;
    let profiler = Run::modelled().pid(leaver.pid()).argument("--io").argument("--no-output").start()?;
    leaver.say("go")?;
    let line = leaver.wait_stdout("ended", LIMIT)?;
    let ended: BTreeSet<u32> = line.split_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>()?;
    ensure!(ended.len() > THREADS / 2, "{line}");
    let kept = kept(&profiler)?;
    ensure!(kept.contains(&leaver.pid()) || !kept.is_empty(), "nothing is kept of anybody");
    let left = ended.intersection(&kept).count();
    ensure!(left == 0, "{left} of {} threads that have ended are kept", ended.len());
    drop(leaver);
    profiler.stop()?;
    Ok(())
}
