//! Checks what the programs need of the kernel's stack without a kernel: before Linux 6.13 all functions that call each
//! other together have 512 bytes, and only old kernels would refuse a build that needs more.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use aya_obj::{Function, Object, generated::bpf_insn};

use super::programs::OBJECT;

/// `MAX_BPF_STACK` (include/linux/filter.h).
const MAX_STACK_BYTES: u32 = 512;
/// A function's stack is counted in steps of this (`check_max_stack_depth_subprog` in kernel/bpf/verifier.c).
const STEP_BYTES: u32 = 32;

/// Operations of instructions (include/uapi/linux/bpf.h, Documentation/bpf/standardization/instruction-set.rst).
const CALL: u8 = 0x85;
const LOAD_ADDRESS: u8 = 0x18;
const MOVE: u8 = 0xbf;
const ADD_CONSTANT: u8 = 0x07;
const CLASS: u8 = 0x07;
const CLASSES_OF_STORES: [u8; 2] = [0x02, 0x03];
const CLASS_OF_LOADS: u8 = 0x01;
/// Whom a call calls, and what an address is of: a function of the program.
const OF_FUNCTION: u8 = 1;
const OF_CALLBACK: u8 = 4;
const FRAME_POINTER: u8 = 10;

/// How far below the frame pointer a function reaches, and where the functions begin that it calls.
#[derive(Debug, Default)]
struct Needs {
    bytes: u32,
    callees: BTreeSet<usize>,
}

/// Where an instruction goes on in another function.
fn callee(at: usize, instruction: &bpf_insn) -> Option<usize> {
    let is_call = instruction.code == CALL && instruction.src_reg() == OF_FUNCTION;
    let is_callback = instruction.code == LOAD_ADDRESS && instruction.src_reg() == OF_CALLBACK;
    (is_call || is_callback).then(|| at.wrapping_add_signed(instruction.imm as isize + 1))
}

fn reach(previous: Option<&bpf_insn>, instruction: &bpf_insn) -> u32 {
    let class = instruction.code & CLASS;
    let is_access = CLASSES_OF_STORES.contains(&class) && instruction.dst_reg() == FRAME_POINTER
        || class == CLASS_OF_LOADS && instruction.src_reg() == FRAME_POINTER;
    if is_access {
        return instruction.off.min(0).unsigned_abs().into();
    }
    let is_address = instruction.code == ADD_CONSTANT
        && previous.is_some_and(|previous| {
            previous.code == MOVE && previous.src_reg() == FRAME_POINTER && previous.dst_reg() == instruction.dst_reg()
        });
    if is_address { instruction.imm.min(0).unsigned_abs() } else { 0 }
}

/// By where each function begins in a whole program.
fn needs(program: &Function) -> BTreeMap<usize, Needs> {
    let code = &program.instructions;
    let callees = code.iter().enumerate().filter_map(|(at, instruction)| callee(at, instruction));
    let mut needs: BTreeMap<usize, Needs> = callees.chain([0]).map(|start| (start, Needs::default())).collect();
    for (at, instruction) in code.iter().enumerate() {
        let Some((_, needs)) = needs.range_mut(..=at).next_back() else { continue };
        needs.bytes = needs.bytes.max(reach(at.checked_sub(1).map(|before| &code[before]), instruction));
        needs.callees.extend(callee(at, instruction));
    }
    needs
}

fn deepest(needs: &BTreeMap<usize, Needs>, start: usize) -> u32 {
    let Needs { bytes, callees } = &needs[&start];
    let below = callees.iter().map(|callee| deepest(needs, *callee)).max().unwrap_or(0);
    (*bytes).max(1).next_multiple_of(STEP_BYTES) + below
}

#[test]
fn no_program_needs_more_stack_than_older_kernels_allow() {
    let mut object = Object::parse(OBJECT).unwrap();
    let sections: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_calls(&sections).unwrap();
    let depth = |name: &str| {
        let program = &object.functions[&object.programs[name].function_key()];
        deepest(&needs(program), 0)
    };
    for name in object.programs.keys() {
        let depth = depth(name);
        assert!(depth <= MAX_STACK_BYTES, "{name} needs {depth} bytes");
    }
    // It saw the calls: a walk alone has three functions below a program.
    assert!(depth("sample_at_timer") > 300 && depth("sched_switch") > 256);
}
