//! Does what the programs of the protocol do, on as many threads as were asked for, until standard input closes.
//!
//! Threads work in slices, so that a program can be busy in a part of the time: so many milliseconds of each
//! [`PERIOD`], and they sleep for the rest.

use std::{
    env,
    ffi::CString,
    fs::File,
    hint, io,
    os::unix::fs::FileExt as _,
    thread,
    time::{Duration, Instant},
};

use joular_data::report::validate::protocol::Program;
use rustix::{
    fs::{Advice, fadvise},
    thread::set_name,
};

use super::Job;

const PERIOD: Duration = Duration::from_millis(20);
/// What the threads of the memory program have together, more than caches hold, and the least that each has.
const MEMORY_BYTES: usize = 512 << 20;
const LEAST_BYTES: usize = 8 << 20;
/// Of the file that is read, and of each read.
const FILE_BYTES: usize = 64 << 20;
const READ_BYTES: usize = 256 << 10;
/// Numbers that a first-level cache holds.
const VECTOR: usize = 1024;
const WORD: usize = size_of::<u64>();

/// Returns when standard input closes; the threads end with the process.
pub(super) fn until_input_closes(job: Job) -> io::Result<()> {
    let Job { program, percent, threads } = job;
    // The name under which the report finds it.
    set_name(&CString::new(program.name())?)?;
    let busy = PERIOD * percent.into() / 100;
    let file = if program == Program::Io { Some(file()?) } else { None };
    for number in 0..threads {
        let mut worker = worker(program, threads, file.as_ref())?;
        let work = move || loop {
            let begun = Instant::now();
            while begun.elapsed() < busy {
                worker();
            }
            thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
        };
        thread::Builder::new().name(format!("{}-{number}", program.name())).spawn(work)?;
    }
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

/// Does a few dozen microseconds of work at each call.
type Worker = Box<dyn FnMut() + Send>;

fn worker(program: Program, threads: usize, file: Option<&File>) -> io::Result<Worker> {
    Ok(match (program, file) {
        (Program::Memory, _) => {
            let mut words = vec![1_u64; (MEMORY_BYTES / threads).max(LEAST_BYTES) / WORD];
            let mut at = 0;
            Box::new(move || at = through_memory(&mut words, at))
        }
        (Program::Vector, _) => {
            let (mut sums, factors) = (vec![0.5_f32; VECTOR], vec![0.999_f32; VECTOR]);
            Box::new(move || multiply_and_add(&mut sums, &factors))
        }
        (Program::Io, Some(file)) => {
            let (file, mut bytes, mut at) = (file.try_clone()?, vec![0; READ_BYTES], 0);
            Box::new(move || at = read(&file, &mut bytes, at))
        }
        (Program::Compute | Program::Io, _) => {
            let mut state = 1_u64;
            Box::new(move || state = compute(state))
        }
    })
}

fn compute(mut state: u64) -> u64 {
    for _ in 0..10_000 {
        // Each step waits for the one before it: xorshift (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    hint::black_box(state)
}

fn multiply_and_add(sums: &mut [f32], factors: &[f32]) {
    for _ in 0..64 {
        for (sum, factor) in sums.iter_mut().zip(factors) {
            *sum = *sum * factor + 0.001;
        }
        hint::black_box(&mut *sums);
    }
}

/// Adds one to each word of the next part, and returns where the one after it begins.
fn through_memory(words: &mut [u64], at: usize) -> usize {
    const WORDS: usize = (256 << 10) / WORD;
    let part = words.iter_mut().skip(at).take(WORDS);
    part.for_each(|word| *word = word.wrapping_add(1));
    hint::black_box(&mut *words);
    if at + WORDS < words.len() { at + WORDS } else { 0 }
}

/// A file that no folder has any more: it goes with the processes that have it open.
fn file() -> io::Result<File> {
    let folder = env::temp_dir();
    let file = tempfile::tempfile_in(&folder)
        .and_then(|file| {
            let part = vec![0x5a; READ_BYTES];
            (0..FILE_BYTES / READ_BYTES).try_for_each(|at| file.write_all_at(&part, (at * READ_BYTES) as u64))?;
            // What is not on the disk stays in the cache.
            file.sync_data()?;
            Ok(file)
        })
        .map_err(|error| io::Error::new(error.kind(), format!("making a file in {}: {error}", folder.display())))?;
    Ok(file)
}

/// Reads a part, has the cache forget it, and returns where the next one begins.
fn read(file: &File, bytes: &mut [u8], at: u64) -> u64 {
    let length = file.read_at(bytes, at).unwrap_or(0);
    // Where the file system has no other place than memory, reading is copying.
    let _ = fadvise(file, at, std::num::NonZeroU64::new(length as u64), Advice::DontNeed);
    if length < bytes.len() { 0 } else { at + length as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_works() {
        let file = file().unwrap();
        for program in Program::ALL {
            let mut worker = worker(program, 1024, Some(&file)).unwrap();
            (0..10).for_each(|_| worker());
        }
        let mut bytes = vec![0; READ_BYTES];
        let end = (FILE_BYTES - READ_BYTES) as u64;
        assert_eq!((read(&file, &mut bytes, 0), bytes[0]), (READ_BYTES as u64, 0x5a));
        assert_eq!(read(&file, &mut bytes, end), FILE_BYTES as u64);
        assert_eq!(read(&file, &mut bytes, FILE_BYTES as u64), 0, "it begins again");
    }

    #[test]
    fn memory_is_gone_through_to_its_end() {
        let mut words = vec![0_u64; 100_000];
        let mut at = 0;
        loop {
            at = through_memory(&mut words, at);
            if at == 0 {
                break;
            }
        }
        assert!(words.iter().all(|word| *word == 1));
    }
}
