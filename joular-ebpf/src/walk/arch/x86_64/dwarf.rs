//! Numbers of registers in DWARF's tables (System V ABI, AMD64 supplement, 3.6.2).

pub const FP: u16 = 6;
pub const SP: u16 = 7;
/// The column of the return address.
pub const RETURN_ADDRESS: u16 = 16;
