//! Finds the functions that report allocations in a libjvm whose symbols were stripped, by what its code does.
//!
//! HotSpot hands on what a thread has allocated in one function (`MemAllocator::Allocation::notify_allocation`). It asks
//! the flag `DTraceAllocProbes`, whose place is in the JVM's own table of flags. It calls one function with an object and
//! as fourth argument a thread (`AllocTracer::send_allocation_outside_tlab`), and another one with the same object and
//! the thread as fifth argument (`…_in_new_tlab`). It has both from the record that it is given: the thread stands in
//! there, and the object where a pointer in there leads. Whatever compiler wrote the code, these arguments must be
//! passed so. If not exactly one pair of functions is called like that, nothing is found.
//!
//! The end of a thread is seen at its destructor, which is in the table of virtual functions that each thread begins with.

use std::{collections::BTreeSet, marker::PhantomData, ops::Range};

use super::arguments::{self, Path};
use crate::{
    arch::Arch,
    elf::{Elf, ElfError},
    runtimes::AllocationFunctions,
};

/// libjvm has 14 MiB of code.
const MAX_CODE_BYTES: u64 = 64 << 20;
/// Larger functions do other things.
const MAX_FUNCTION_BYTES: usize = 16 << 10;
/// Functions that are looked at in one step, however many a file has.
const MAX_FUNCTIONS: usize = 4096;
/// First entries of a table of virtual functions. The destructors are the second and the third.
pub const VIRTUAL_FUNCTIONS: usize = 4;

/// Where a process has what the search begins at. All addresses are as the file counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchors {
    /// The value of the flag that is asked beside.
    pub flag: u64,
    /// A Java thread's table of virtual functions, and what stands in there.
    pub thread_table: u64,
    pub thread_functions: [u64; VIRTUAL_FUNCTIONS],
}

/// The functions in a file that was stripped. `None`: they cannot be told from others.
pub fn find<A: Arch>(elf: &Elf<'_>, anchors: Anchors) -> Result<Option<AllocationFunctions>, ElfError> {
    let Some(code) = Code::<A>::read(elf)? else { return Ok(None) };
    let Some((in_new_buffer, outside_buffer)) = code.allocation_functions(anchors.flag) else { return Ok(None) };
    let Some(thread_ended) = code.destructor(anchors.thread_table, anchors.thread_functions) else { return Ok(None) };
    let segment = elf.code().next().ok_or(ElfError::Malformed("it has no code"))?;
    Ok(Some(AllocationFunctions {
        in_new_buffer: segment.offset_of(in_new_buffer),
        outside_buffer: segment.offset_of(outside_buffer),
        thread_ended: segment.offset_of(thread_ended),
    }))
}

/// The code of a file, and where its functions begin.
struct Code<A> {
    bytes: Vec<u8>,
    start: u64,
    starts: Vec<u64>,
    arch: PhantomData<A>,
}

impl<A: Arch> Code<A> {
    /// `None`: the file does not say where its functions begin.
    fn read(elf: &Elf<'_>) -> Result<Option<Self>, ElfError> {
        let text = elf.section_range(".text")?;
        if text.end.saturating_sub(text.start) > MAX_CODE_BYTES {
            return Err(ElfError::TooLarge { part: ".text", limit: MAX_CODE_BYTES });
        }
        let mut starts = elf.function_starts()?;
        starts.retain(|start| text.contains(start));
        Ok((!starts.is_empty()).then_some(Self {
            bytes: elf.code_at(&text)?,
            start: text.start,
            starts,
            arch: PhantomData,
        }))
    }

    /// Functions that report an object in a new buffer and outside of one.
    fn allocation_functions(&self, flag: u64) -> Option<(u64, u64)> {
        let asking = self.functions_that_name(flag);
        // A compiler may leave what asks the flag a function of its own, and what reports the object, too.
        let near =
            |functions: &BTreeSet<u64>| self.told_in(functions).or_else(|| self.told_in(&self.callees(functions)));
        near(&asking).or_else(|| near(&self.callers(&asking)))
    }

    /// The functions to which exactly one way of telling leads from some of these.
    fn told_in(&self, functions: &BTreeSet<u64>) -> Option<(u64, u64)> {
        let told: BTreeSet<_> = functions.iter().filter_map(|function| told(&self.calls(*function))).collect();
        let mut told = told.into_iter().filter(|(in_new, outside)| self.is_start(*in_new) && self.is_start(*outside));
        told.next().filter(|_| told.next().is_none())
    }

    /// The destructor of a class that runs when a thread is deleted. A class has two: one that destroys, and one that
    /// frees the memory as well. Both put the table of the class into the object, or the second calls the first.
    fn destructor(&self, table: u64, functions: [u64; VIRTUAL_FUNCTIONS]) -> Option<u64> {
        let named = self.functions_that_name(table);
        functions.windows(2).find_map(|pair| {
            let (destroys, frees) = (pair[0], pair[1]);
            let calls_it = || {
                let same_object =
                    |call: &arguments::Call| call.callee == destroys && call.arguments[0] == Some(Path::of_argument(0));
                self.calls(frees).iter().any(same_object)
            };
            if calls_it() {
                Some(destroys)
            } else if named.contains(&destroys) && named.contains(&frees) {
                Some(frees)
            } else {
                None
            }
        })
    }

    /// Functions in which an operand is at an address.
    fn functions_that_name(&self, address: u64) -> BTreeSet<u64> {
        let places = A::places_that_name(&self.bytes, self.start, address);
        bounded(places.filter_map(|place| self.function_at(place)))
    }

    /// Functions that call or jump to the beginning of one of these.
    fn callers(&self, functions: &BTreeSet<u64>) -> BTreeSet<u64> {
        let places = A::places_that_lead(&self.bytes, self.start, |address| functions.contains(&address));
        bounded(places.filter_map(|place| self.function_at(place)))
    }

    fn callees(&self, functions: &BTreeSet<u64>) -> BTreeSet<u64> {
        let called = functions.iter().flat_map(|function| self.calls(*function)).map(|call| call.callee);
        bounded(called.filter(|callee| self.is_start(*callee)))
    }

    /// What a function calls; nothing if it is too large.
    fn calls(&self, function: u64) -> Vec<arguments::Call> {
        let Some(range) = self.range_of(function) else { return Vec::new() };
        match self.bytes.get(range) {
            Some(bytes) if bytes.len() <= MAX_FUNCTION_BYTES => arguments::calls::<A>(bytes, function),
            _ => Vec::new(),
        }
    }

    /// Where a function's bytes are, up to the next one.
    fn range_of(&self, function: u64) -> Option<Range<usize>> {
        let index = self.starts.binary_search(&function).ok()?;
        let end = self.starts.get(index + 1).map_or(self.bytes.len(), |next| self.offset(*next));
        Some(self.offset(function)..end)
    }

    fn function_at(&self, address: u64) -> Option<u64> {
        let behind = self.starts.partition_point(|start| *start <= address);
        self.starts.get(behind.checked_sub(1)?).copied()
    }

    fn is_start(&self, address: u64) -> bool {
        self.starts.binary_search(&address).is_ok()
    }

    fn offset(&self, address: u64) -> usize {
        usize::try_from(address.wrapping_sub(self.start)).unwrap_or(usize::MAX)
    }
}

fn bounded(functions: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for function in functions {
        if found.len() >= MAX_FUNCTIONS {
            break;
        }
        found.insert(function);
    }
    found
}

/// The two functions to which a function reports an object, in a new buffer and outside of one, if it does.
fn told(calls: &[arguments::Call]) -> Option<(u64, u64)> {
    let thread = |path: Option<Path>| path.filter(|path| path.argument == 0 && path.loads() == 1);
    let (mut in_new, mut outside) = (BTreeSet::new(), BTreeSet::new());
    let mut told = BTreeSet::new();
    for call in calls {
        let Some(object) = call.arguments[1].filter(|path| path.argument == 0 && path.loads() == 2) else { continue };
        if let Some(thread) = thread(call.arguments[3]) {
            outside.insert(call.callee);
            told.insert((object, thread));
        } else if let Some(thread) = thread(call.arguments[4]) {
            in_new.insert(call.callee);
            told.insert((object, thread));
        }
    }
    match (in_new.len(), outside.len(), told.len()) {
        (1, 1, 1) => in_new.first().copied().zip(outside.first().copied()).filter(|(a, b)| a != b),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Aarch64, X86_64};

    const FLAG: u64 = 0x9000;
    const TABLE: u64 = 0xa000;
    const IN_NEW: u64 = 0x2000;
    const OUTSIDE: u64 = 0x3000;
    const RETURN: &[u8] = &[0xc3];

    /// An instruction that ends with where an operand is, relative to its own end.
    fn relative(at: u64, instruction: &[u8], target: u64) -> Vec<u8> {
        let end = at + instruction.len() as u64 + 4;
        let displacement = i32::try_from(target.cast_signed() - end.cast_signed()).unwrap();
        [instruction, &displacement.to_le_bytes()].concat()
    }

    /// Puts instructions one after the other: what they begin with, and what they name.
    fn function(start: u64, instructions: &[(&[u8], Option<u64>)]) -> (u64, Vec<u8>) {
        let mut bytes = Vec::new();
        for (instruction, target) in instructions {
            let at = start + bytes.len() as u64;
            bytes.extend(target.map_or_else(|| instruction.to_vec(), |target| relative(at, instruction, target)));
        }
        (start, bytes)
    }

    /// `lea rax, [rip+FLAG]`.
    const ASK: (&[u8], Option<u64>) = (&[0x48, 0x8d, 0x05], Some(FLAG));
    const CALL: &[u8] = &[0xe8];
    const JUMP: &[u8] = &[0xe9];

    /// Takes thread and object from the record, and reports them.
    fn telling(in_new: u64, outside: u64) -> Vec<(&'static [u8], Option<u64>)> {
        vec![
            // mov rbx, rdi; mov rax, [rdi+0x10]; mov rsi, [rax]; mov r8, [rdi+8]
            (&[0x48, 0x89, 0xfb, 0x48, 0x8b, 0x47, 0x10, 0x48, 0x8b, 0x30, 0x4c, 0x8b, 0x47, 0x08], None),
            (CALL, Some(in_new)),
            // mov rax, [rbx+0x10]; mov rsi, [rax]; mov rcx, [rbx+8]
            (&[0x48, 0x8b, 0x43, 0x10, 0x48, 0x8b, 0x30, 0x48, 0x8b, 0x4b, 0x08], None),
            (JUMP, Some(outside)),
        ]
    }

    fn code(functions: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Code<X86_64> {
        let mut code = Code { bytes: vec![0x90; 0x7000], start: 0x1000, starts: Vec::new(), arch: PhantomData };
        let told = [IN_NEW, OUTSIDE].map(|start| (start, RETURN.to_vec()));
        for (start, bytes) in functions.into_iter().chain(told) {
            let at = code.offset(start);
            code.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
            code.starts.push(start);
        }
        code.starts.sort_unstable();
        code
    }

    #[test]
    fn functions_are_found_wherever_a_compiler_put_what_calls_them() {
        let found = Some((IN_NEW, OUTSIDE));
        let telling = telling(IN_NEW, OUTSIDE);
        let after = |first: (&'static [u8], Option<u64>)| [&[first], &telling[..]].concat();
        for (functions, expected, of) in [
            (vec![function(0x1000, &after(ASK))], found, "all in one"),
            (vec![function(0x1000, &[ASK, (JUMP, Some(0x4000))]), function(0x4000, &telling)], found, "it is called"),
            (
                vec![
                    function(0x1000, &[ASK, (RETURN, None)]),
                    function(0x5000, &[(CALL, Some(0x4000)), (JUMP, Some(0x1000))]),
                    function(0x4000, &telling),
                ],
                found,
                "both are called",
            ),
            (
                vec![function(0x1000, &[ASK, (RETURN, None)]), function(0x5000, &after((CALL, Some(0x1000))))],
                None,
                "the call before has left something else in the register",
            ),
        ] {
            assert_eq!(code(functions).allocation_functions(FLAG), expected, "{of}");
        }
    }

    /// A function of aarch64, with the address of its first instruction.
    fn words(start: u64, words: &[u32]) -> (u64, Vec<u8>) {
        (start, words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    #[test]
    fn functions_of_aarch64_are_found_too() {
        // adrp x0, 0x9000; ldrb w0, [x0]; b 0x4000; and what takes thread and object from the record
        let asks = words(0x1000, &[0x9000_0040, 0x3940_0000, 0x1400_0bfe]);
        let tells = [
            0xaa00_03f3, // mov x19, x0
            0xf940_0808, // ldr x8, [x0, #16]
            0xf940_0101, // ldr x1, [x8]
            0xf940_0404, // ldr x4, [x0, #8]
            0x97ff_f7fc, // bl 0x2000
            0xf940_0a68, // ldr x8, [x19, #16]
            0xf940_0101, // ldr x1, [x8]
            0xf940_0663, // ldr x3, [x19, #8]
            0x17ff_fbf8, // b 0x3000
        ];
        // adrp x8, 0xa000; add x8, x8, #0; ret, and one that calls that
        let (destroys, frees) = (0x5000, 0x5100);
        let destroy = words(destroys, &[0xb000_0028, 0x9100_0108, 0xd65f_03c0]);
        let free = words(frees, &[0xaa00_03f3, 0x97ff_ffbf, 0xd65f_03c0]);
        let told = [IN_NEW, OUTSIDE].map(|start| words(start, &[0xd65f_03c0]));
        let mut code = Code::<Aarch64> { bytes: vec![0; 0x7000], start: 0x1000, starts: Vec::new(), arch: PhantomData };
        for (start, bytes) in [asks, words(0x4000, &tells), destroy, free].into_iter().chain(told) {
            let at = code.offset(start);
            code.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
            code.starts.push(start);
        }
        code.starts.sort_unstable();
        assert_eq!(code.allocation_functions(FLAG), Some((IN_NEW, OUTSIDE)));
        assert_eq!(code.allocation_functions(FLAG + 8), None);
        assert_eq!(code.destructor(TABLE, [0x1000, destroys, frees, IN_NEW]), Some(destroys));
    }

    #[test]
    fn nothing_is_found_where_two_could_be_meant_or_none_is() {
        let whole = |start, in_new, outside| function(start, &[&[ASK], &telling(in_new, outside)[..]].concat());
        for (functions, of) in [
            (vec![whole(0x1000, IN_NEW, OUTSIDE), whole(0x4000, OUTSIDE, IN_NEW)], "two"),
            (vec![whole(0x1000, IN_NEW, IN_NEW)], "one function"),
            (vec![whole(0x1000, IN_NEW, OUTSIDE + 1)], "a function that does not begin there"),
            (vec![function(0x1000, &telling(IN_NEW, OUTSIDE))], "no flag"),
            (vec![], "no code"),
        ] {
            assert_eq!(code(functions).allocation_functions(FLAG), None, "{of}");
        }
        let twice = [whole(0x1000, IN_NEW, OUTSIDE), whole(0x4000, IN_NEW, OUTSIDE)];
        assert_eq!(code(twice).allocation_functions(FLAG), Some((IN_NEW, OUTSIDE)), "it was copied");
    }

    #[test]
    fn the_destructor_that_frees_calls_the_other_one_or_destroys_itself() {
        let [first, destroys, frees, last] = [0x4000, 0x4100, 0x4200, 0x4300];
        let table = (&[0x48, 0x8d, 0x05][..], Some(TABLE));
        // mov rdi, [rdi]: another object's.
        let other = (&[0x48, 0x8b, 0x3f][..], None);
        for (of_destroys, of_frees, expected) in [
            (vec![table], vec![(CALL, Some(destroys))], Some(destroys)),
            (vec![], vec![(JUMP, Some(destroys))], Some(destroys)),
            (vec![table], vec![table], Some(frees)),
            (vec![table], vec![other, (CALL, Some(destroys))], None),
            (vec![], vec![table], None),
        ] {
            let code = code([
                function(first, &[(RETURN, None)]),
                function(destroys, &[&of_destroys[..], &[(RETURN, None)]].concat()),
                function(frees, &[&of_frees[..], &[(RETURN, None)]].concat()),
                function(last, &[(RETURN, None)]),
            ]);
            let found = code.destructor(TABLE, [first, destroys, frees, last]);
            assert_eq!(found, expected, "{of_destroys:x?} {of_frees:x?}");
        }
    }
}
