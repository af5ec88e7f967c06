//! Keeps the heap of a recording small.
//!
//! glibc gives threads that allocate at the same time heaps of their own, up to eight per CPU, and
//! none of them gives back what another one could use. A recording's threads seldom allocate at the
//! same time: most read a target and wait. It also keeps what was freed, up to twice the largest
//! block so far, which for a table of many stacks is tens of megabytes. [`GiveBack`] returns what lies free between blocks.

use std::{
    fs,
    time::{Duration, Instant},
};

/// Larger blocks come from the kernel, and go back to it when they are freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 256 << 10;
/// Most free memory kept at the heap's end.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 1 << 20;

/// Makes the threads that are started from now on share one heap, which gives back what is not used. Other
/// C libraries do so anyway.
pub fn keep_small() {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in
        [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, LARGE_BYTES), (libc::M_TRIM_THRESHOLD, KEPT_BYTES)]
    {
        // SAFETY: mallopt(3) takes two integers and may be called at any time. It fails for values that
        // are out of range, which these are not.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}

/// How often free memory between blocks is given back if windows are written nowhere. A data set has them in memory until
/// they are written, and what they needed is given back then.
const EVERY: Duration = Duration::from_secs(60);
/// It is given back earlier if the process has grown by this part since the last time: a window of thousands of new
/// threads needs megabytes that no other one needs, and the few blocks of it that stay are scattered over all of them.
const GROWTH: u64 = 8;

/// Gives back what is free between blocks that are used. The heap gives back its end by itself, but after a large target
/// has gone, blocks that stay are scattered over all that it needed.
#[derive(Debug)]
pub struct GiveBack {
    last: Instant,
    /// What the process had after that.
    pages: u64,
}

impl Default for GiveBack {
    fn default() -> Self {
        Self { last: Instant::now(), pages: 0 }
    }
}

impl GiveBack {
    /// Does it if windows have been written, or it is time to. Must be called when what a window needed is free.
    pub fn after_window(&mut self, are_written: bool) {
        if are_written || self.last.elapsed() >= EVERY || is_grown(anonymous_pages(), self.pages) {
            give_back();
            *self = Self { last: Instant::now(), pages: anonymous_pages() };
        }
    }
}

const fn is_grown(now: u64, after_last: u64) -> bool {
    now > after_last.saturating_add(after_last / GROWTH)
}

/// Pages of the process that no file backs; 0 if the kernel does not say.
fn anonymous_pages() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    // proc_pid_statm(5): the second number is resident pages, the third those of files among them.
    let mut pages = statm.split_ascii_whitespace().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (resident, of_files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(of_files)
}

/// Returns free memory to the system. Other C libraries have nothing like it.
pub fn give_back() {
    // SAFETY: malloc_trim(3) may be called at any time, and takes how many bytes to keep at the heap's end.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use std::{env, fs, process::Command};

    use super::*;

    fn resident_kib() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn a_process_has_grown_that_has_an_eighth_more() {
        assert!(is_grown(901, 800) && !is_grown(900, 800));
        assert!(!is_grown(0, 0), "the kernel does not say");
        assert!(anonymous_pages() > 0);
    }

    /// Other tests of the process would be measured, too.
    const ALONE: &str = "HEAP_TEST_ALONE";

    #[test]
    fn what_is_free_between_blocks_that_are_used_is_given_back() {
        if env::var_os(ALONE).is_some() {
            return give_back_what_is_scattered();
        }
        let name = "heap::tests::what_is_free_between_blocks_that_are_used_is_given_back";
        let mut alone = Command::new(env::current_exe().unwrap());
        let output = alone.args(["--exact", name, "--test-threads=1"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    fn give_back_what_is_scattered() {
        const BLOCKS: usize = 400_000;
        let before = resident_kib();
        let mut blocks: Vec<Box<[u8]>> = (0..BLOCKS).map(|_| vec![1; 512].into_boxed_slice()).collect();
        let most = resident_kib();
        // One block of each 64 KiB stays.
        let mut at = 0;
        blocks.retain(|_| {
            at += 1;
            at % 128 == 0
        });
        give_back();
        let after = resident_kib();
        assert!(most > before + 150_000, "{before} KiB before, {most} KiB with all blocks");
        assert!(after < before + (most - before) / 3, "{before} KiB before, {most} KiB at most, {after} KiB after");
        drop(blocks);
    }
}
