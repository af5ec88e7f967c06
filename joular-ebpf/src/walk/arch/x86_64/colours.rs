//! Reads references of generational ZGC.

/// Where the bits stand of which one says in which phase a reference was last made good (`ZPointerRemapped`).
const REMAPPED_SHIFT: u32 = 12;

/// The address in a reference that may have colours. It stands above the bit that is set, so how far it is shifted
/// depends on that bit (`ZPointerLoadShiftTable`). Where none is set there is no address.
#[inline(always)]
pub const fn uncoloured(reference: u64) -> u64 {
    let bits = reference >> REMAPPED_SHIFT;
    let above = bits >> 1;
    if bits & 1 != 0 {
        above
    } else if bits & 2 != 0 {
        above >> 1
    } else if bits & 4 != 0 {
        above >> 2
    } else if bits & 8 != 0 {
        above >> 3
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::uncoloured;

    #[test]
    fn an_address_stands_above_its_colour() {
        let address = 0x4000_0012_3458;
        for bit in 12..16 {
            // Below are bits for other phases.
            let reference = address << (bit + 1) | 1 << bit | 0xab0;
            assert_eq!(uncoloured(reference), address, "bit {bit}");
        }
        assert_eq!([uncoloured(0), uncoloured(0xff0)], [0, 0]);
    }
}
