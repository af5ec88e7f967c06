//! What the static program has in place of musl's own: the allocator, and copies of memory.
//!
//! musl's allocator has one lock for all threads. On x86-64 musl copies a word at a time by an instruction that takes long
//! to start, and most copies are of a few bytes. docs/measured/operating.md says what they cost.

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Options of mimalloc by their places in `mi_option_t` of `mimalloc.h`, version 2: `eager_commit`,
/// `arena_eager_commit` and `purge_delay`.
#[cfg(target_env = "musl")]
const LAZY: [libmimalloc_sys::mi_option_t; 3] = [3, 4, 15];

/// Has the allocator give memory back as soon as it is free, and take it page by page. Without that, it holds half as
/// much again. To be called before there are threads.
#[cfg(target_env = "musl")]
pub fn hold_little_memory() {
    for option in LAZY {
        // SAFETY: it sets a number in a table of the allocator, which is there from the start. There are no other
        // threads yet, which it would mind.
        unsafe { libmimalloc_sys::mi_option_set(option, 0) };
    }
}

// Up to 128 bytes are all loaded before one is stored, so it does not matter how the two overlap. Of more, the end that
// is stored last is loaded first: the tail if copied upwards, the head if copied downwards, as what overlaps asks for.
// Only registers that a call may change are changed, and nothing is put on the stack.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".p2align 4",
    ".globl copy_of_static_program",
    ".type copy_of_static_program, @function",
    "copy_of_static_program:",
    ".cfi_startproc",
    "mov rax, rdi",
    "cmp rdx, 16",
    "jae 3f",
    "cmp edx, 8",
    "jae 2f",
    "cmp edx, 4",
    "jae 24f",
    "cmp edx, 2",
    "jae 9f",
    "test edx, edx",
    "jz 8f",
    "mov cl, [rsi]",
    "mov [rdi], cl",
    "8:",
    "ret",
    // 2 or 3 bytes.
    "9:",
    "mov cx, [rsi]",
    "mov si, [rsi + rdx - 2]",
    "mov [rdi], cx",
    "mov [rdi + rdx - 2], si",
    "ret",
    // 4 to 7.
    "24:",
    "mov ecx, [rsi]",
    "mov esi, [rsi + rdx - 4]",
    "mov [rdi], ecx",
    "mov [rdi + rdx - 4], esi",
    "ret",
    // 8 to 15.
    "2:",
    "mov rcx, [rsi]",
    "mov rsi, [rsi + rdx - 8]",
    "mov [rdi], rcx",
    "mov [rdi + rdx - 8], rsi",
    "ret",
    // 16 to 32.
    "3:",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + rdx - 16]",
    "cmp rdx, 32",
    "ja 4f",
    "movups [rdi], xmm0",
    "movups [rdi + rdx - 16], xmm1",
    "ret",
    // 33 to 64.
    "4:",
    "cmp rdx, 128",
    "ja 6f",
    "movups xmm2, [rsi + 16]",
    "movups xmm3, [rsi + rdx - 32]",
    "cmp rdx, 64",
    "jbe 5f",
    // 65 to 128.
    "movups xmm4, [rsi + 32]",
    "movups xmm5, [rsi + 48]",
    "movups xmm6, [rsi + rdx - 64]",
    "movups xmm7, [rsi + rdx - 48]",
    "movups [rdi + 32], xmm4",
    "movups [rdi + 48], xmm5",
    "movups [rdi + rdx - 64], xmm6",
    "movups [rdi + rdx - 48], xmm7",
    "5:",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm2",
    "movups [rdi + rdx - 32], xmm3",
    "movups [rdi + rdx - 16], xmm1",
    "ret",
    // More. Downwards if the target begins within the source.
    "6:",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jb 30f",
    "movups xmm4, [rsi + rdx - 64]",
    "movups xmm5, [rsi + rdx - 48]",
    "movups xmm6, [rsi + rdx - 32]",
    "movups xmm7, [rsi + rdx - 16]",
    "lea r8, [rdi + rdx - 64]",
    ".p2align 4",
    "7:",
    "movups xmm0, [rsi]",
    "movups xmm1, [rsi + 16]",
    "movups xmm2, [rsi + 32]",
    "movups xmm3, [rsi + 48]",
    "add rsi, 64",
    "movups [rdi], xmm0",
    "movups [rdi + 16], xmm1",
    "movups [rdi + 32], xmm2",
    "movups [rdi + 48], xmm3",
    "add rdi, 64",
    "cmp rdi, r8",
    "jb 7b",
    "movups [r8], xmm4",
    "movups [r8 + 16], xmm5",
    "movups [r8 + 32], xmm6",
    "movups [r8 + 48], xmm7",
    "ret",
    "30:",
    "movups xmm4, [rsi]",
    "movups xmm5, [rsi + 16]",
    "movups xmm6, [rsi + 32]",
    "movups xmm7, [rsi + 48]",
    "lea r8, [rdi + 64]",
    "lea rcx, [rdi + rdx]",
    "add rsi, rdx",
    ".p2align 4",
    "31:",
    "movups xmm0, [rsi - 16]",
    "movups xmm1, [rsi - 32]",
    "movups xmm2, [rsi - 48]",
    "movups xmm3, [rsi - 64]",
    "sub rsi, 64",
    "movups [rcx - 16], xmm0",
    "movups [rcx - 32], xmm1",
    "movups [rcx - 48], xmm2",
    "movups [rcx - 64], xmm3",
    "sub rcx, 64",
    "cmp rcx, r8",
    "ja 31b",
    "movups [rdi], xmm4",
    "movups [rdi + 16], xmm5",
    "movups [rdi + 32], xmm6",
    "movups [rdi + 48], xmm7",
    "ret",
    ".cfi_endproc",
    ".size copy_of_static_program, . - copy_of_static_program",
);

// Both functions of the C library are the one that minds what overlaps: it takes no longer.
#[cfg(all(target_env = "musl", target_arch = "x86_64"))]
std::arch::global_asm!(
    ".globl memcpy",
    ".set memcpy, copy_of_static_program",
    ".globl memmove",
    ".set memmove, copy_of_static_program",
);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::ffi::c_void;

    unsafe extern "C" {
        fn copy_of_static_program(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void;
    }

    /// Copies within bytes that are all different from their neighbours, and compares with what Rust does.
    fn check(from: usize, to: usize, length: usize) {
        let mut bytes: Vec<u8> = (0..251).cycle().take(from.max(to) + length + 1).collect();
        let mut expected = bytes.clone();
        expected.copy_within(from..from + length, to);
        let start = bytes.as_mut_ptr();
        let (target, source) = (start.wrapping_add(to).cast(), start.wrapping_add(from).cast());
        // SAFETY: both ranges lie in `bytes`, which nothing else refers to.
        let given = unsafe { copy_of_static_program(target, source, length) };
        assert_eq!(given.addr(), start.addr() + to);
        assert!(bytes == expected, "{length} bytes from {from} to {to}");
    }

    #[test]
    fn copies_of_each_length_are_right_however_they_overlap() {
        for length in 0..300 {
            for apart in 0..150 {
                check(150, apart, length);
                check(apart, 150, length);
            }
        }
    }

    #[test]
    fn long_copies_are_right() {
        for length in [1_000, 4_096, 65_536 + 7] {
            for (from, to) in [(0, 1), (1, 0), (63, 0), (64, 0), (0, 64), (0, 65), (0, length), (length + 3, 0), (5, 5)]
            {
                check(from, to, length);
            }
        }
    }
}
