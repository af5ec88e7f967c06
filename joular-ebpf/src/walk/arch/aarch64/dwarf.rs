//! Numbers of registers in DWARF's tables (DWARF for the Arm 64-bit Architecture, 4.1).

pub const FP: u16 = 29;
/// The link register, whose column is that of the return address.
pub const RETURN_ADDRESS: u16 = 30;
pub const SP: u16 = 31;
/// Not a register: whether the return address is signed (`RA_SIGN_STATE`).
pub const SIGN_STATE: u16 = 34;
