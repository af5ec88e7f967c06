//! Handles procedure linkage tables: code that pushes a word on its way, which linkers describe for
//! all slots at once.

/// Length of a slot.
pub const SLOT_BYTES: u64 = 16;
/// From which byte of its slot on nearly all linkers' code has pushed the word.
pub const PUSHES_AT: u64 = 11;

/// Words between the stack pointer and the frame address at this place of a slot.
#[inline(always)]
pub const fn cfa_words(pc: u64) -> i16 {
    if pc & (SLOT_BYTES - 1) >= PUSHES_AT { 2 } else { 1 }
}

/// From which byte on the code has pushed, if a DWARF expression of the frame address is
/// `rsp + 8 + (((rip & 15) >= N) << 3)`.
pub const fn pushes_at(expression: &[u8]) -> Option<u64> {
    /// `DW_OP_lit0`; the other 31 follow.
    const LIT0: u8 = 0x30;
    match *expression {
        [0x77, 8, 0x80, 0, 0x3f, 0x1a, literal @ 0x30..=0x3f, 0x2a, 0x33, 0x24, 0x22] => Some((literal - LIT0) as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_pushed_from_its_eleventh_byte_on() {
        for (place, words) in [(0, 1), (10, 1), (11, 2), (15, 2)] {
            assert_eq!(cfa_words(0x55_5550 + place), words, "{place}");
        }
    }

    #[test]
    fn a_linkers_expression_says_where_it_pushes() {
        let expression = |literal| [0x77, 8, 0x80, 0, 0x3f, 0x1a, literal, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(pushes_at(&expression(0x3b)), Some(PUSHES_AT));
        assert_eq!(pushes_at(&expression(0x36)), Some(6));
        assert_eq!(pushes_at(&expression(0x50)), None, "a register");
        assert_eq!(pushes_at(&expression(0x3b)[..10]), None);
        assert_eq!(pushes_at(&[]), None);
    }
}
