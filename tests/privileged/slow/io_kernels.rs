//! Tests `--io` on other kernels than the one that runs here, started in virtual machines: the programs load there and are
//! put on the kernel's functions, and bytes of files and sockets are exact. The programs of `--alloc` are loaded beside them.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::DataSet,
    kernels::{self, Kernel},
    notes, paths,
};
use serde_json::{Value, json};

/// An emulated machine takes half a minute, and several on a machine that others keep busy. It bounds a hang.
const LIMIT: Duration = Duration::from_secs(900);

/// A file is made, copied, and sent through a socket to a third one. Then the table is printed as text.
const SCRIPT: &str = "\
    joular-bpf doctor\n\
    ifconfig lo 127.0.0.1 up\n\
    joular-bpf --all --io --alloc --energy model --model-watts 10:30 --output /tmp/out --quiet > /tmp/said 2>&1 &\n\
    profiler=$!\n\
    until grep -q ': recording' /tmp/said || ! kill -0 $profiler; do sleep 0.2; done\n\
    dd if=/dev/zero of=/tmp/made bs=1000 count=5000\n\
    dd if=/tmp/made of=/tmp/copied bs=777\n\
    httpd -f -p 127.0.0.1:7777 -h /tmp &\n\
    server=$!\n\
    until wget -q -O /tmp/received http://127.0.0.1:7777/made || ! kill -0 $profiler; do sleep 0.2; done\n\
    wc -c < /tmp/received; kill $server\n\
    kill -INT $profiler; wait $profiler; echo exit code $?\n\
    cat /tmp/said";

fn record(kernel: &Kernel) -> Result<String> {
    let mut root = kernels::root(&format!("{SCRIPT}\n{}", kernels::print_table("io")))?;
    root.program("/bin/joular-bpf", &paths::joular_bpf())?;
    // A serial console ends its lines as teletypes do.
    Ok(kernel.boot(root, LIMIT)?.stdout.replace('\r', ""))
}

fn check(said: &str) -> Result<()> {
    ensure!(said.contains("exit code 0"), "{said}");
    let at_functions =
        said.lines().any(|line| line.starts_with("ok ") && line.ends_with("of sockets, files and devices"));
    ensure!(at_functions, "doctor does not say that all is seen: {said}");
    let directory = tempfile::tempdir()?;
    kernels::unpack_table(said, "io", directory.path())?;
    let rows = DataSet::at(directory.path()).rows(
        "SELECT comm, sum(local_sent_bytes)::BIGINT AS sent, sum(local_received_bytes)::BIGINT AS received,
           sum(read_bytes)::BIGINT AS read, sum(written_bytes)::BIGINT AS written
         FROM io WHERE comm = 'dd' GROUP BY pid, comm ORDER BY ALL",
    )?;
    let row = |comm: &str, [sent, received, read, written]: [u64; 4]| -> Value {
        json!({"comm": comm, "sent": sent, "received": received, "read": read, "written": written})
    };
    const ALL: u64 = 5_000_000;
    let expected = [row("dd", [0, 0, 0, ALL]), row("dd", [0, 0, ALL, ALL])];
    ensure!(rows == expected, "{rows:?}");
    let web = DataSet::at(directory.path()).rows(
        "SELECT sum(local_sent_bytes)::BIGINT AS sent, sum(local_received_bytes)::BIGINT AS received,
           sum(sent_bytes + received_bytes)::BIGINT AS wire, sum(written_bytes)::BIGINT AS written
         FROM io WHERE comm IN ('httpd', 'wget')",
    )?;
    let figure = |name: &str| web.first().and_then(|row| row[name].as_u64()).with_context(|| format!("{web:?}"));
    // What one sent the other received; beside the file there are a request and a header.
    let (sent, received) = (figure("sent")?, figure("received")?);
    ensure!(sent == received && (ALL..ALL + 2_000).contains(&sent), "{web:?}");
    ensure!(figure("wire")? == 0 && figure("written")? == ALL, "{web:?}");
    Ok(())
}

#[test]
fn bytes_are_counted_at_the_functions_of_debians_kernels() -> Result<()> {
    if let Some(reason) = kernels::missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let kernels = kernels::all();
    thread::scope(|scope| {
        let started: Vec<_> = kernels.iter().map(|kernel| (kernel, scope.spawn(|| record(kernel)))).collect();
        started.into_iter().try_for_each(|(kernel, thread)| {
            println!("Linux {}", kernel.release);
            check(&thread.join().expect("a kernel's thread ends")?).with_context(|| kernel.release.clone())
        })
    })
}
