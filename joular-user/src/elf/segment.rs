//! Describes a file's code, and where a mapping of the file puts it.

use crate::page;

/// Code as the program headers place it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where in the file.
    pub offset: u64,
    pub bytes: u64,
    /// Where in memory, before the file is moved as a whole.
    pub address: u64,
}

impl Segment {
    /// Where in the file an address of its code stands.
    pub const fn offset_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.offset)
    }

    /// What a mapping at `start`, which shows the file from `offset` on, adds to all addresses;
    /// `None` if it shows something else.
    fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // Mappings are of whole pages, whose size kernels of aarch64 choose.
        let page_bytes = page::bytes();
        let first = self.offset - self.offset % page_bytes;
        let end = self.offset.saturating_add(self.bytes);
        (first..end)
            .contains(&offset)
            .then(|| start.wrapping_sub(self.address.wrapping_add(offset).wrapping_sub(self.offset)))
    }
}

/// The bias of a mapping of a file with these segments.
pub fn bias(segments: &[Segment], start: u64, offset: u64) -> Option<u64> {
    segments.iter().find_map(|segment| segment.bias(start, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_whole_pages_has_the_bias_of_its_segment() {
        let segments = [
            Segment { offset: 0x1234, bytes: 0x2000, address: 0x40_1234 },
            Segment { offset: 0x5010, bytes: 0x1000, address: 0x6010 },
        ];
        for (start, offset, expected) in [
            (0x40_1000, 0x1000, Some(0)),
            // Its second page, mapped apart since its protection was changed.
            (0x7f00_0000_3000, 0x3000, Some(0x7eff_ffc0_0000)),
            (0x7f00_0000_6000, 0x5000, Some(0x7f00_0000_0000)),
            (0x7f00_0000_0000, 0x4000, None),
        ] {
            assert_eq!(bias(&segments, start, offset), expected, "{start:#x} {offset:#x}");
        }
    }
}
