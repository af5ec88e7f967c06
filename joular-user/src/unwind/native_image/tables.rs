//! Recognises jump tables, which stand between or behind the instructions of a function.

use iced_x86::{Instruction, Mnemonic};

use super::frame::number;

/// Of one table.
const MAX_ENTRIES: usize = 1 << 14;

/// How a table says where to go, counted from its own beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In 32 bits.
    Short,
    /// In 64 bits.
    Long,
    /// In 32 bits, behind the value that it is for, which has as many.
    Hashed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    pub start: usize,
    form: Form,
    /// Where that is plain.
    entries: Option<usize>,
}

impl Table {
    /// Where it ends, if that is plain.
    pub fn end(&self) -> Option<usize> {
        self.start.checked_add(self.entries?.checked_mul(self.form.bytes())?)
    }

    /// Where its entries lead, as far as that is plain; `None` if it is not a table. `work` is what may be read yet.
    pub fn targets(&self, code: &[u8], work: &mut usize) -> Option<Vec<usize>> {
        let Some(end) = self.end() else { return Some(Vec::new()) };
        let bytes = code.get(self.start..end).filter(|_| self.entries <= Some(MAX_ENTRIES))?;
        *work = work.checked_sub(bytes.len())?;
        bytes.chunks_exact(self.form.bytes()).map(|entry| self.target(entry).filter(|at| *at < code.len())).collect()
    }

    fn target(&self, entry: &[u8]) -> Option<usize> {
        let offset = match self.form {
            Form::Short | Form::Hashed => i32::from_le_bytes(*entry.last_chunk()?).into(),
            Form::Long => i64::from_le_bytes(*entry.last_chunk()?),
        };
        self.start.checked_add_signed(isize::try_from(offset).ok()?)
    }
}

impl Form {
    const fn bytes(self) -> usize {
        match self {
            Self::Short => 4,
            Self::Long | Self::Hashed => 8,
        }
    }
}

/// What the instructions before a branch say of its table.
#[derive(Debug, Default)]
pub struct Watch {
    compared: Option<usize>,
    /// Values that the last check lets through, or that a mask leaves.
    checked: Option<usize>,
    masked: Option<usize>,
    /// The place whose address was taken last.
    taken: Option<usize>,
    table: Option<Table>,
}

impl Watch {
    pub fn pass(&mut self, instruction: &Instruction) {
        let count = || usize::try_from(number(instruction)?).ok()?.checked_add(1);
        match instruction.mnemonic() {
            Mnemonic::Cmp => self.compared = count(),
            Mnemonic::Ja => self.checked = self.compared.take(),
            Mnemonic::And => self.masked = count(),
            Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
                self.taken = usize::try_from(instruction.ip_rel_memory_address().cast_signed()).ok();
            }
            Mnemonic::Mov if instruction.memory_index_scale() == 8 => self.read(Form::Hashed),
            Mnemonic::Add if instruction.memory_index_scale() == 8 => self.read(Form::Long),
            Mnemonic::Movsxd if instruction.memory_index_scale() == 4 => self.read(Form::Short),
            _ => {}
        }
    }

    fn read(&mut self, form: Form) {
        let entries = if form == Form::Hashed { self.masked.take() } else { self.checked.take() };
        self.table = self.taken.take().map(|start| Table { start, form, entries });
    }

    /// The table by which a branch goes whose next instruction is `behind`.
    pub fn take(&mut self, behind: usize) -> Option<Table> {
        self.table.take().filter(|table| table.start >= behind)
    }
}
