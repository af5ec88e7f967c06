//! Defines registers, and what is kept in them.

/// What is known of the registers of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub pc: u64,
    pub sp: u64,
    /// x29.
    pub fp: u64,
    /// x30, the address to return to until a function saves it.
    pub lr: u64,
    /// The rest only of code that was interrupted: no callee says where it saved them.
    pub x12: u64,
    pub x13: u64,
    pub x19: u64,
    pub x22: u64,
}
