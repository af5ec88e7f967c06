//! Keeps the heap of a recording small.
//!
//! glibc gives threads that allocate at the same time heaps of their own, up to eight per CPU, and
//! none of them gives back what another one could use. A recording's threads seldom allocate at the
//! same time: most read a target and wait. It also keeps what was freed, up to twice the largest
//! block so far, which for a table of many stacks is tens of megabytes.

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
