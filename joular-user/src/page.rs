//! Tells how large the kernel's pages are: 4 KiB on x86-64, and on aarch64 4, 16 or 64 KiB, as the kernel was built.

/// Bytes of a page.
pub fn bytes() -> u64 {
    /// Where the C library does not know.
    const SMALLEST: u64 = 4096;
    // SAFETY: a question without pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(SMALLEST)
}
