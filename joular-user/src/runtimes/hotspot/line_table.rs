//! Reads line numbers by bytecode index, as a `ConstMethod` has them behind its bytecodes.

use super::unsigned5::Unsigned5;

use crate::bounds::Bound;

/// Limit of places kept. A method of 64 KiB of bytecodes, the largest possible, has about one in
/// eight of them. A hostile JVM must not fill our memory.
const MAX_LINES: usize = 1 << 13;
pub static LINES: Bound = Bound::new(
    "lines_not_read",
    MAX_LINES as u64,
    "entries of a method's line table, and 65536 bytes",
    "code behind them has the last line that was read",
);
/// First byte of a pair whose steps do not fit into one byte.
const WIDE: u8 = 0xff;

/// Maps bytecodes to lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineTable {
    /// Bytecode index and line, by bytecode index.
    lines: Vec<(u16, u16)>,
}

impl LineTable {
    pub fn decode(bytes: &[u8], excludes_zero: bool) -> Self {
        let mut reader = Unsigned5::new(bytes, excludes_zero);
        let (mut bci, mut line) = (0i32, 0i32);
        let mut lines = Vec::new();
        while lines.len() < MAX_LINES {
            match reader.byte() {
                None | Some(0) => break,
                Some(WIDE) => {
                    let (Some(bytecodes), Some(more)) = (reader.signed(), reader.signed()) else { break };
                    bci = bci.wrapping_add(bytecodes);
                    line = line.wrapping_add(more);
                }
                Some(byte) => {
                    bci = bci.wrapping_add(i32::from(byte >> 3));
                    line = line.wrapping_add(i32::from(byte & 7));
                }
            }
            if let (Ok(bci), Ok(line)) = (u16::try_from(bci), u16::try_from(line)) {
                lines.push((bci, line));
            }
        }
        LINES.cut(u64::from(lines.len() >= MAX_LINES));
        // Compilers may write them in any order.
        lines.sort_by_key(|&(bci, _)| bci);
        lines.shrink_to_fit();
        Self { lines }
    }

    pub fn line(&self, bci: u16) -> Option<u32> {
        let after = self.lines.partition_point(|&(start, _)| start <= bci);
        let (_, line) = self.lines.get(after.checked_sub(1)?)?;
        Some(u32::from(*line)).filter(|&line| line != 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_bytecodes() {
        // Wide: +0 bytecodes, +40 lines; 3 bytecodes and a line on; 31 and 2; the end.
        let table = LineTable::decode(&[WIDE, 0, 80, 3 << 3 | 1, 31 << 3 | 2, 0, 99], false);
        for (bci, line) in [(0, 40), (2, 40), (3, 41), (33, 41), (34, 43), (u16::MAX, 43)] {
            assert_eq!(table.line(bci), Some(line), "{bci}");
        }
        assert_eq!(LineTable::default().line(0), None);
    }

    #[test]
    fn a_step_back_is_kept_in_order() {
        // Line 10 from 4 on, then line 9 from 0 on.
        let table = LineTable::decode(&[WIDE, 8, 20, WIDE, 7, 1], false);
        assert_eq!((table.line(0), table.line(4)), (Some(9), Some(10)));
    }

    #[test]
    fn a_table_without_end_is_cut() {
        assert_eq!(LineTable::decode(&[1 << 3; 1 << 16], false).lines.len(), MAX_LINES);
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, excludes_zero: bool, bci: u16) {
            let _ = LineTable::decode(&bytes, excludes_zero).line(bci);
        }
    }
}
