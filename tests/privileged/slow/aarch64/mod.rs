//! Tests the program for aarch64 on Debian's kernels for that processor, in emulated machines: the programs load, all of the
//! CPUs' time and energy is counted, samples come at random moments, stacks are whole, and what is recorded of programs is
//! what they say themselves. One machine is recorded for minutes.

mod guest;
mod soak;
mod stacks;
mod sums;
mod truths;

use std::{fs, thread};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{dataset::DataSet, kernels::Kernel, machine::AARCH64, notes, paths};

use self::{
    guest::Said,
    stacks::{FIRST_WITH_VIRTUAL, SCENARIOS, VIRTUAL},
};
use crate::readings;

/// The JVMs whose stacks are looked at, on the older kernel and on the newer one.
const OLDER: &[u32] = &[17, 21];
const NEWER: &[u32] = &[25];
/// All that is run on the newer one.
const ALL: &[u32] = &[17, 21, 25];

/// A process that computes, and one that reads and writes a byte at a time, on the same CPU.
const BUSY: &str = "\
    printf '#!/bin/sh\\nwhile :; do :; done\\n' > /tmp/spin; chmod +x /tmp/spin\n\
    taskset 1 /tmp/behind /tmp/spin & spin=$!\n\
    taskset 1 /tmp/behind dd if=/dev/zero of=/dev/null bs=1 2> /dev/null & dd=$!\n";

/// Starts JVMs in which it is known what runs, without any flag that would help.
fn start_known(releases: &[u32]) -> String {
    let start = |release: &u32| {
        let more = if *release >= FIRST_WITH_VIRTUAL { VIRTUAL } else { "" };
        // One carrier, whose name is known.
        let carrier = ["parallelism", "maxPoolSize"].map(|name| format!("-Djdk.virtualThreadScheduler.{name}=1"));
        format!("start known{release} {release} {} known.Main {SCENARIOS} {more}\n", carrier.join(" "))
    };
    let names: Vec<String> = releases.iter().map(|release| format!("known{release}")).collect();
    releases.iter().map(start).collect::<String>() + &format!("ready {}\n", names.join(" "))
}

/// What the profiler says of the machine.
const DOCTOR: &str = "joular-bpf doctor; echo doctor $?; joular-bpf sources > /tmp/sources; echo sources $?\n";
const DOCTOR_SAYS: [&str; 5] = [
    "they load and pass the verifier",
    "timers at random moments",
    // The emulator's CPUs count little.
    "not on this machine: instructions",
    "doctor 0\n",
    "sources 0\n",
];
/// Functions of the kernel at which programs can be on arm64 since Linux 6.4.
const WITHOUT_SOCKETS: &str = "without those of sock_send_length, sock_recv_length";
const WITH_SOCKETS: &str = "of sockets, files and devices";

/// Five minutes in which programs come and go, and what they allocate is recorded too.
fn soak_script() -> String {
    format!(
        "{DOCTOR}{}{BUSY}record soak --all --alloc --flush 30s\nsettled soak\nwatch 300\nrecorded soak\nkill $spin $dd\npack soak /tmp/soak",
        start_known(OLDER)
    )
}

/// Flags by which each of these methods is compiled by itself.
fn alone<'a>(methods: impl IntoIterator<Item = &'a str>) -> String {
    methods.into_iter().map(|method| format!("-XX:CompileCommand=dontinline,{method} ")).collect()
}

fn truths_script() -> String {
    use joular_tests::truths::{allocations, collections, io};
    let allocating = alone(allocations::METHODS.iter().map(|(_, method, _)| *method));
    let collecting = alone(collections::METHODS);
    let moving: Vec<String> = io::METHODS.iter().map(|(method, _)| format!("Io.{method}")).collect();
    let moving = alone(moving.iter().map(String::as_str));
    let splitting = alone(["Split::heavy", "Split::light"]);
    format!(
        "{DOCTOR}ifconfig lo 127.0.0.1 up\n\
         {}{BUSY}record known --all\nsettled known\nwindows known 20\nrecorded known\nkill $spin $dd\n\
         stop known25\npack known /tmp/known\n\
         start allocations 21 {allocating}Allocations\n\
         start collections 25 {collecting}Collections\n\
         start io 17 {moving}Io /tmp/bytes\n\
         start split 21 {splitting}Split seconds=600\n\
         ready allocations collections io split\n\
         tell io write; tell io read\n\
         record truths --all --alloc --io\nsettled truths\n\
         tell allocations go\ntell collections ratio\ntell io write\ntell io read\nwindows truths 2\nrecorded truths\n\
         for name in allocations collections io split; do print $name /tmp/$name.out; done\n\
         pack truths /tmp/truths\n\
         stop allocations collections io\n\
         {AGENT}\n\
         pack agent /tmp/agent\npack shipped /tmp/shipped",
        start_known(NEWER)
    )
}

/// The service records, is ended as service managers do it, and ships what it has recorded.
const AGENT: &str = "\
    mkdir /tmp/shipped; touch /tmp/shipped/.joular-bpf-share\n\
    cat > /tmp/agent.toml <<END_OF_FILE\n\
jvms = true\n\
output = '/tmp/agent'\n\
flush = '10s'\n\
energy = 'model'\n\
model-watts = '10:30'\n\
ship = '/tmp/shipped'\n\
ship-window = '5s'\n\
ship-layout = 'tables'\n\
ship-at-end = '10m'\n\
END_OF_FILE\n\
    joular-bpf agent --check --config /tmp/agent.toml; echo checked $?\n\
    joular-bpf agent --config /tmp/agent.toml > /tmp/agent.said 2>&1 & agent=$!\n\
    until test $(ls /tmp/agent/windows/*/* 2> /dev/null | wc -l) -ge 3 || ! kill -0 $agent; do sleep 0.5; done\n\
    moment agent records\n\
    kill -TERM $agent; wait $agent; echo agent $?\n\
    cat /tmp/agent.said";

fn check_known(said: &Said, name: &str, releases: &[u32]) -> Result<DataSet> {
    let data = said.data(name)?;
    let settled = said.numbers(&format!("settled {name} ")).concat();
    let settled = *settled.first().with_context(|| format!("{name} did not settle"))?;
    for release in releases {
        stacks::check(&data, said.pid(&format!("known{release}"))?, settled, &said.of(*release))?;
    }
    Ok(data)
}

fn check_soak(said: &Said) -> Result<()> {
    said.expect(&DOCTOR_SAYS)?;
    said.expect(&[WITHOUT_SOCKETS, "recorded soak 0\n"])?;
    let data = check_known(said, "soak", OLDER)?;
    sums::check(&said.kernel, &data)?;
    readings::expect_audited(&data)?;
    soak::check(said)
}

fn check_truths(said: &Said) -> Result<()> {
    said.expect(&DOCTOR_SAYS)?;
    said.expect(&[WITH_SOCKETS, "recorded known 0\n", "recorded truths 0\n", "checked 0\n", "agent 0\n"])?;
    let data = check_known(said, "known", NEWER)?;
    sums::check(&said.kernel, &data)?;
    readings::expect_audited(&data)?;
    let data = said.data("truths")?;
    readings::expect_audited(&data)?;
    truths::check_allocations(said, &data, "allocations", 21)?;
    truths::check_collections(said, &data, "collections", 25)?;
    truths::check_io(said, &data, "io", 17)?;
    truths::check_split(said, &data, "split", 21)?;
    let (agent, shipped) = (said.data("agent")?, said.data("shipped")?);
    for data in [&agent, &shipped] {
        readings::expect_audited(data)?;
    }
    let sum = "SELECT sum(measured_uj)::DOUBLE FROM windows";
    ensure!(agent.number(sum)? == shipped.number(sum)?, "what was shipped is not what was recorded");
    Ok(())
}

#[test]
fn the_program_for_aarch64_records_what_programs_say_of_themselves() -> Result<()> {
    if let Some(reason) = AARCH64.missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let Some(program) = paths::joular_bpf_for_aarch64() else {
        notes::skipped("no program for aarch64 was built (`cargo xtask test --slow` does that)");
        return Ok(());
    };
    let program = fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
    let kernels = AARCH64.kernels();
    let (oldest, newest) = (kernels.first().context("a kernel")?, kernels.last().context("a kernel")?);
    thread::scope(|scope| {
        let program = program.as_slice();
        let on = |kernel: &Kernel, releases: &'static [u32], script: String| {
            let kernel = kernel.clone();
            scope.spawn(move || guest::run(&kernel, program, releases, &script))
        };
        let (soak, truths) = (on(oldest, OLDER, soak_script()), on(newest, ALL, truths_script()));
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Said>>| thread.join().expect("a kernel's thread ends");
        let (soak, truths) = (join(soak), join(truths));
        let found = [
            soak.and_then(|said| check_soak(&said)).context("the older kernel, for minutes"),
            truths.and_then(|said| check_truths(&said)).context("the newer kernel"),
        ];
        let complaints: Vec<_> = found.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
        ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
        Ok(())
    })
}
