//! Input → words and pages of an image that are something else: a byte for the kind,
//! four for the place, eight for the value.

use joular_user::runtimes::hotspot::memory::MemoryImage;

const PATCH_BYTES: usize = 13;
const MAX_PATCHES: usize = 64;

/// An image with its ranges at hand.
pub struct Patches {
    ranges: Vec<(u64, Vec<u8>)>,
    /// Where each range's words begin, counted over all ranges.
    words: Vec<(usize, usize)>,
}

impl Patches {
    pub fn of(image: &MemoryImage) -> Self {
        let ranges: Vec<(u64, Vec<u8>)> = image.ranges().map(|(start, bytes)| (start, bytes.to_vec())).collect();
        // Only words that are something: the rest of a page was not read.
        let used = |bytes: &[u8]| {
            let words = bytes.chunks_exact(8).enumerate().filter(|(_, word)| word.iter().any(|byte| *byte != 0));
            words.map(|(index, _)| index * 8).collect::<Vec<_>>()
        };
        let places = ranges
            .iter()
            .enumerate()
            .flat_map(|(range, (_, bytes))| used(bytes).into_iter().map(move |at| (range, at)));
        Self { words: places.collect(), ranges }
    }

    pub fn apply(&self, input: &[u8]) -> MemoryImage {
        let mut ranges = self.ranges.clone();
        for patch in input.chunks_exact(PATCH_BYTES).take(MAX_PATCHES) {
            let place = u32::from_le_bytes([patch[1], patch[2], patch[3], patch[4]]) as usize;
            let value = u64::from_le_bytes(patch[5..].try_into().unwrap_or_default());
            let (range, at) = self.words[place % self.words.len()];
            let word = match patch[0] % 4 {
                0 => value,
                // Somewhere there is something.
                1 => {
                    let (to, offset) = self.words[value as usize % self.words.len()];
                    self.ranges[to].0 + offset as u64 + (value >> 61)
                }
                2 => value % 512,
                _ => {
                    let bytes = &mut ranges[range].1;
                    bytes[at + (value % 8) as usize] = (value >> 8) as u8;
                    continue;
                }
            };
            ranges[range].1[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        MemoryImage::from_ranges(ranges)
    }
}
