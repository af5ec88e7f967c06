//! Finds what a `Method*` is called: class, name, signature, file, lines.
//!
//! A `Method` points at its `ConstMethod`, that at its class's constant pool, and the pool has the
//! names. Memory of a class that was unloaded may become another one's, so the pointers that led to
//! a name are kept as its identity.

use std::sync::Arc;

use joular_data::model::target_text::TargetText;

use super::{
    layout::{Layout, MethodLayout},
    line_table::{LINES, LineTable},
    memory::{RemoteMemory, Unreadable, field_in},
};
use crate::{
    bounds::Bound,
    runtimes::hotspot::{
        java_name::{java_class, stable_internal_class, stable_signature},
        java_text::java_text,
    },
};

/// Names that are longer are cut.
const MAX_NAME_BYTES: u64 = 1024;
pub static NAMES: Bound = Bound::new(
    "java_name_cut",
    MAX_NAME_BYTES,
    "bytes of a class's name, a method's name or a signature",
    "it is cut: methods that differ only behind them are one",
);
/// Bytes of a `ConstMethod` behind its bytecodes: a line takes one to three bytes.
const MAX_LINE_TABLE_BYTES: u64 = 1 << 16;
const MAX_POOL_LENGTH: u64 = 1 << 16;

/// What a method is called; shared by all places in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub class: Option<TargetText>,
    pub name: TargetText,
    pub signature: Option<TargetText>,
    pub file: Option<TargetText>,
}

/// The pointers that led to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    const_method: u64,
    pool: u64,
    holder: u64,
    class_name: u64,
    name_index: u64,
    signature_index: u64,
    /// Symbols.
    name: u64,
    signature: u64,
}

#[derive(Clone, Debug)]
pub struct Method {
    pub identity: Identity,
    pub names: Arc<Names>,
    pub lines: LineTable,
}

impl Identity {
    /// Reads the identity of what is there now; all 0 where there is no method.
    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, method: u64) -> Result<Self, Unreadable> {
        let layout = &layout.method;
        let const_method = memory.field(method, layout.const_method)?;
        let head = memory.bytes(const_method, usize::try_from(layout.const_method_size).unwrap_or(0))?;
        let pool = field_in(&head, layout.constants);
        let holder = memory.field(pool, layout.pool_holder)?;
        let (name_index, signature_index) =
            (field_in(&head, layout.name_index), field_in(&head, layout.signature_index));
        let entry = |index: u64| memory.u64(pool.wrapping_add(u64::from(layout.pool_size)).wrapping_add(index * 8));
        Ok(Self {
            const_method,
            pool,
            holder,
            class_name: memory.field(holder, layout.klass_name)?,
            name_index,
            signature_index,
            name: entry(name_index)?,
            signature: entry(signature_index)?,
        })
    }
}

impl Method {
    #[cfg(test)]
    pub fn of_test() -> Self {
        let identity = Identity {
            const_method: 0,
            pool: 0,
            holder: 0,
            class_name: 0,
            name_index: 0,
            signature_index: 0,
            name: 0,
            signature: 0,
        };
        Self { identity, names: Arc::default(), lines: LineTable::default() }
    }

    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, identity: Identity) -> Result<Self, Unreadable> {
        let fields = &layout.method;
        let pool_length = memory.field(identity.pool, fields.pool_length)?.min(MAX_POOL_LENGTH);
        let entry = |index: u64| pool_symbol(memory, fields, identity.pool, pool_length, index);
        let class = symbol(memory, fields, identity.class_name)?;
        let (name, signature) = (entry(identity.name_index)?, entry(identity.signature_index)?);
        if !is_method(&class, &name, &signature) {
            return Err(Unreadable { address: identity.const_method, length: 0 });
        }
        let names = Names {
            class: Some(stable_internal_class(&class).into()),
            name: name.into(),
            signature: Some(stable_signature(&signature).into()),
            file: match source_file_index(memory, fields, &identity)? {
                0 => None,
                index if index >= pool_length => None,
                index => Some(entry(index)?.into()),
            },
        };
        let lines = line_table(memory, layout, &identity)?;
        Ok(Self { identity, names: Arc::new(names), lines })
    }
}

/// Whether this can be a method, by the rules of JVM Specification 4.2 and 4.3.3, and not the
/// remains of freed memory.
fn is_method(class: &str, name: &str, signature: &str) -> bool {
    let is_text =
        |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    let is_name = |text: &str, separators: &[char]| is_text(text) && !text.contains(separators);
    is_name(class, &['.', ';', '['])
        && is_name(name, &['.', ';', '[', '/'])
        && is_text(signature)
        && signature.starts_with('(')
        && (signature.contains(')') || signature.len() as u64 >= MAX_NAME_BYTES)
}

fn source_file_index(memory: &dyn RemoteMemory, fields: &MethodLayout, identity: &Identity) -> Result<u64, Unreadable> {
    match fields.source_file_in_pool.width {
        0 => memory.field(identity.holder, fields.source_file_in_holder),
        _ => memory.field(identity.pool, fields.source_file_in_pool),
    }
}

/// Text of the symbol with this index in a constant pool of so many entries.
pub fn pool_symbol(
    memory: &dyn RemoteMemory,
    fields: &MethodLayout,
    pool: u64,
    length: u64,
    index: u64,
) -> Result<String, Unreadable> {
    let address = pool.wrapping_add(u64::from(fields.pool_size)).wrapping_add(index.wrapping_mul(8));
    if index >= length {
        return Err(Unreadable { address, length: 8 });
    }
    // The lowest bit says that a class is not resolved.
    symbol(memory, fields, memory.u64(address)? & !1)
}

/// Text of a `Symbol`: Java's own kind of UTF-8.
pub fn symbol(memory: &dyn RemoteMemory, fields: &MethodLayout, address: u64) -> Result<String, Unreadable> {
    let length = NAMES.within(memory.field(address, fields.symbol_length)?);
    let body = address.wrapping_add(u64::from(fields.symbol_body));
    let bytes = memory.bytes(body, usize::try_from(length).unwrap_or(0))?;
    Ok(java_text(&bytes))
}

/// The name of a class, as Java writes it, by its symbol: `java.lang.String[]`, `int[]`. `None`: it is none.
pub fn class_name(memory: &dyn RemoteMemory, layout: &Layout, address: u64) -> Result<Option<String>, Unreadable> {
    let name = symbol(memory, &layout.method, address)?;
    let is_text = !name.is_empty() && !name.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    Ok(is_text.then(|| java_class(&name)).flatten())
}

fn line_table(memory: &dyn RemoteMemory, layout: &Layout, identity: &Identity) -> Result<LineTable, Unreadable> {
    let fields = &layout.method;
    let head_bytes = u64::from(fields.const_method_size);
    let head = memory.bytes(identity.const_method, usize::try_from(head_bytes).unwrap_or(0))?;
    if field_in(&head, fields.flags) & fields.has_line_numbers == 0 {
        return Ok(LineTable::default());
    }
    let bytes = field_in(&head, fields.const_method_words).saturating_mul(8);
    let start = head_bytes.saturating_add(field_in(&head, fields.code_size));
    let bytes = bytes.saturating_sub(start);
    LINES.cut(u64::from(bytes > MAX_LINE_TABLE_BYTES));
    let length = usize::try_from(bytes.min(MAX_LINE_TABLE_BYTES)).unwrap_or(0);
    let table = memory.bytes(identity.const_method.wrapping_add(start), length)?;
    Ok(LineTable::decode(&table, layout.nmethod.excludes_zero))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_no_method() {
        for (class, name, signature, expected) in [
            ("java/lang/Thread", "run", "()V", true),
            ("A", "<init>", "(I[Ljava/lang/String;)V", true),
            ("Größe", "π", "()D", true),
            ("A+0x00007f00", "x", "()V", true),
            ("", "run", "()V", false),
            ("A\u{1}", "run", "()V", false),
            ("A", "r/n", "()V", false),
            ("A", "run", "V", false),
            ("A\u{fffd}", "run", "()V", false),
        ] {
            assert_eq!(is_method(class, name, signature), expected, "{class} {name} {signature}");
        }
    }
}
