//! Reads UNSIGNED5, in which HotSpot writes numbers of debug information: one to five bytes, low
//! digits first. A byte from 192 on says that another one follows.

/// A byte from this value on is followed by another.
const FIRST_HIGH: u8 = 192;
/// Each byte after the first counts 64 times what the one before does.
const LOG2_DIGIT: u32 = 6;
const MAX_BYTES: usize = 5;

/// Numbers one after another.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned5<'a> {
    bytes: &'a [u8],
    /// From JDK 20 on bytes are stored one higher, so that none is 0.
    excludes_zero: bool,
}

impl<'a> Unsigned5<'a> {
    pub const fn new(bytes: &'a [u8], excludes_zero: bool) -> Self {
        Self { bytes, excludes_zero }
    }

    /// The next byte as it is.
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    /// The next number; `None` at the end, or if the bytes are not a number.
    pub fn unsigned(&mut self) -> Option<u32> {
        let mut value: u32 = 0;
        for index in 0..MAX_BYTES {
            let byte = self.byte()?;
            let digit = byte.checked_sub(u8::from(self.excludes_zero))?;
            let shift = LOG2_DIGIT * u32::try_from(index).ok()?;
            value = value.wrapping_add(u32::from(digit) << shift);
            if byte < FIRST_HIGH {
                break;
            }
        }
        Some(value)
    }

    /// The sign is in the lowest bit.
    pub fn signed(&mut self) -> Option<i32> {
        let value = self.unsigned()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What HotSpot's writer does.
    fn encode(mut value: u32, excludes_zero: bool) -> Vec<u8> {
        let shift = u32::from(excludes_zero);
        let low = u32::from(FIRST_HIGH) - shift;
        let mut bytes = Vec::new();
        while value >= low && bytes.len() < MAX_BYTES - 1 {
            value -= low;
            bytes.push(u8::try_from(low + (value & 63) + shift).unwrap());
            value >>= LOG2_DIGIT;
        }
        bytes.push(u8::try_from(value + shift).unwrap());
        bytes
    }

    #[test]
    fn known_numbers() {
        for (bytes, excludes_zero, value) in [
            (&[0][..], false, Some(0)),
            (&[1], true, Some(0)),
            (&[191], false, Some(191)),
            (&[192, 0], false, Some(192)),
            (&[192, 1], true, Some(191)),
            (&[0], true, None),
            (&[192], false, None),
            (&[], false, None),
        ] {
            assert_eq!(Unsigned5::new(bytes, excludes_zero).unsigned(), value, "{bytes:?}");
        }
    }

    #[test]
    fn signed_numbers() {
        for (stored, value) in [(0, 0), (1, -1), (2, 1), (3, -2), (190, 95)] {
            assert_eq!(Unsigned5::new(&[stored], false).signed(), Some(value));
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(value: u32, excludes_zero: bool) {
            let bytes = encode(value, excludes_zero);
            let mut reader = Unsigned5::new(&bytes, excludes_zero);
            prop_assert_eq!(reader.unsigned(), Some(value));
            prop_assert_eq!(reader.byte(), None);
        }

        #[test]
        fn never_panics(bytes: Vec<u8>, excludes_zero: bool) {
            let mut reader = Unsigned5::new(&bytes, excludes_zero);
            while reader.signed().is_some() {}
        }
    }
}
