//! Lists where functions begin, also in files without symbols: the search table of unwind information says so
//! (`.eh_frame_hdr`, described in the Linux Standard Base).

use gimli::{BaseAddresses, EhFrameHdr, EndianSlice, LittleEndian, Pointer};

use super::{Elf, ElfError};

const TABLE: &str = ".eh_frame_hdr";
/// libjvm has 60 000 functions with 8 bytes each.
const MAX_TABLE_BYTES: u64 = 8 << 20;
const ADDRESS_BYTES: u8 = 8;

impl Elf<'_> {
    /// Addresses of functions, and of parts of functions that a compiler moved elsewhere, in order. Empty without a
    /// table that can be searched.
    pub fn function_starts(&self) -> Result<Vec<u64>, ElfError> {
        let Some(section) = self.section(TABLE, MAX_TABLE_BYTES)? else { return Ok(Vec::new()) };
        let malformed = |_| ElfError::Malformed("its table of functions cannot be read");
        let bases = BaseAddresses::default().set_eh_frame_hdr(section.address);
        let header = EhFrameHdr::from(EndianSlice::new(&section.bytes, LittleEndian));
        let header = header.parse(&bases, ADDRESS_BYTES).map_err(malformed)?;
        let Some(table) = header.table() else { return Ok(Vec::new()) };
        let mut rows = table.iter(&bases);
        let mut starts = Vec::new();
        while let Some((Pointer::Direct(start), _)) = rows.next().map_err(malformed)? {
            starts.push(start);
        }
        starts.sort_unstable();
        starts.dedup();
        Ok(starts)
    }
}
