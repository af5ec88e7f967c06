//! Tests stacks of a GraalVM native image: a compiler of JavaScript, of whose methods no table and no symbol
//! says where they begin, in a program without any library.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs::{self, File},
    io::BufReader,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_data::events::{Event, recording::RecordingReader};
use joular_tests::{
    chance::repeat_once,
    node, notes,
    process::Running,
    profiler::{END, Output, Run},
    statistics::RARE_SIGMAS,
};
use joular_user::elf::Elf;

const RECORDED: Duration = Duration::from_secs(8);
const WHOLE: f64 = 0.995;
/// Windows until the file has been read, on a machine that has other work.
const READING_WINDOWS: u32 = 2;
/// More than the compiler is done with in that time.
const FUNCTIONS: usize = 30_000;

/// JavaScript to compile: functions that differ, so that none is done for another.
fn source(path: &Path, functions: usize) -> Result<()> {
    let mut text = String::new();
    for n in 0..functions {
        writeln!(
            text,
            "function f{n}(a, b) {{ var s = 0, t = [a, b, {n}]; for (var i = 0; i < t.length; i++) {{ \
             if (t[i] > {n}) {{ s += t[i] * 2; }} else {{ s -= (function (x) {{ return x ? x + {n} : 'k{n}'.length; \
             }})(t[i]); }} }} return s; }} console.log(f{n}({n}, {n} + 1));"
        )?;
    }
    fs::write(path, text).context("writing JavaScript")
}

/// Code of a program that is not moved.
struct Program<'f>(Elf<'f>);

/// What a return address says of the call before it.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    /// Of this function.
    To(u64),
    /// Of whatever a register or a word in memory says.
    Indirect,
    None,
}

impl Program<'_> {
    fn has(&self, address: u64) -> bool {
        self.0.code().any(|code| (code.address..code.address + code.bytes).contains(&address))
    }

    fn call_before(&self, address: u64) -> Call {
        let Ok(code) = self.0.code_at(&(address - 8..address)) else { return Call::None };
        // FF /2, with what names the place.
        let is_indirect = |bytes: usize| {
            let [.., 0xff, form] = code[..=code.len() - bytes + 1] else { return false };
            form & 0x38 == 0x10
        };
        match code[..] {
            [.., 0xe8, a, b, c, d] => Call::To(address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into())),
            _ if [2, 3, 4, 6, 7].into_iter().any(is_indirect) => Call::Indirect,
            _ => Call::None,
        }
    }
}

/// User stacks of the recording, leaf first, in which all frames are of the program.
fn stacks(recording: &Path, program: &Program<'_>) -> Result<Vec<Vec<u64>>> {
    let mut stacks = Vec::new();
    for event in RecordingReader::new(BufReader::new(File::open(recording)?))? {
        if let Event::Stack(stack) = event? {
            let frames: Vec<u64> = stack.frames.iter().map(|frame| frame.0).collect();
            if !stack.is_kernel && frames.iter().all(|frame| program.has(*frame)) {
                stacks.push(frames);
            }
        }
    }
    Ok(stacks)
}

/// Checks each frame against the call in its caller: where that names a function, it is the frame's.
fn expect_right_callers(recording: &Path, path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let program = Program(Elf::read(&file)?);
    let stacks = stacks(recording, &program)?;
    let calls: Vec<(u64, Call)> = stacks
        .iter()
        .flat_map(|stack| stack.array_windows())
        .map(|[callee, caller]| (*callee, program.call_before(*caller)))
        .collect();
    let functions: BTreeSet<u64> = calls
        .iter()
        .filter_map(|(_, call)| if let Call::To(function) = call { Some(*function) } else { None })
        .collect();
    let (mut direct, mut others) = (0_u32, Vec::new());
    for (callee, call) in &calls {
        match call {
            Call::To(function) if functions.range(..=callee).next_back() == Some(function) => direct += 1,
            Call::Indirect => {}
            _ => others.push((callee, call)),
        }
    }
    let text = format!("{} frames, {direct} called directly, {} wrong", calls.len(), others.len());
    notes::figure(&text);
    ensure!(direct > 1000, "{text}");
    // A function that ends with a jump to another one leaves its own call behind.
    ensure!(others.len() * 1000 < calls.len(), "{text}: {:x?}", others.iter().take(20).collect::<Vec<_>>());
    Ok(())
}

fn compiler() -> Result<Option<PathBuf>> {
    if !cfg!(target_arch = "x86_64") {
        notes::skipped("the walk by tables needs x86-64");
        return Ok(None);
    }
    if !node::exists() {
        notes::skipped("there is no Node.js to install a native image with (Debian and Ubuntu: nodejs, npm)");
        return Ok(None);
    }
    Ok(Some(node::packages()?.join("node_modules/google-closure-compiler-linux/compiler")))
}

#[test]
fn stacks_of_a_native_image_without_symbols_are_whole() -> Result<()> {
    let Some(program) = compiler()? else { return Ok(()) };
    repeat_once(|measures| expect_whole(&program, measures))
}

fn expect_whole(program: &Path, measures: u32) -> Result<()> {
    let (length, output) = (measures * RECORDED, Output::new()?);
    let [script, compiled, recording] = ["script.js", "compiled.js", "recording"].map(|name| output.beside(name));
    source(&script, measures as usize * FUNCTIONS)?;
    let mut command = Command::new(program);
    command.arg("--js").arg(&script).arg("--js_output_file").arg(&compiled);
    let image = Running::spawn("a native image", &mut command)?;
    let run = Run::modelled().pid(image.pid()).with("--duration", format!("{}s", length.as_secs()));
    let run = run.with("--frequency", "999").with("--record", &recording).output(output.dir());
    let finished = run.finish(length + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let notice = "compiler is a GraalVM native image without symbols: its Java methods are [compiler].";
    ensure!(finished.stderr.matches(notice).count() == 1, "{}", finished.stderr);
    drop(image);
    let count = |what: &str| {
        output.data.number(&format!(
            "SELECT coalesce(sum(samples) FILTER ({what}), 0)::DOUBLE
             FROM branches b JOIN (SELECT DISTINCT ON (stack_id) * FROM stacks) USING (stack_id)
             WHERE b.window_start >= (SELECT min(window_start) FROM windows) + INTERVAL {READING_WINDOWS} SECOND"
        ))
    };
    let (all, whole) = (count("true")?, count("walk_end = 'root'")?);
    let text = format!("{all} samples, {:.4} of the stacks are whole", whole / all);
    notes::figure(&text);
    let most = all * (1.0 - WHOLE);
    ensure!(all > 500.0 && all - whole <= most + RARE_SIGMAS * most.sqrt(), "{text}");
    expect_right_callers(&recording, program)
}
