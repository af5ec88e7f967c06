//! Reads references of generational ZGC.

/// How far an address stands above all colours (`ZPointerLoadShift`), whatever they are.
const LOAD_SHIFT: u32 = 16;

/// The address in a reference that may have colours.
#[inline(always)]
pub const fn uncoloured(reference: u64) -> u64 {
    reference >> LOAD_SHIFT
}

#[cfg(test)]
mod tests {
    use super::uncoloured;

    #[test]
    fn an_address_stands_above_its_colour() {
        let address = 0x4000_0012_3458;
        for bit in 12..16 {
            assert_eq!(uncoloured(address << 16 | 1 << bit | 0xab0), address, "bit {bit}");
        }
        assert_eq!([uncoloured(0), uncoloured(0xff0)], [0, 0]);
    }
}
