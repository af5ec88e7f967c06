//! Looks up fields, sizes and static fields by name, and checks them: a width from the C++ type, an
//! offset within the structure. An error names what is missing, and the version that it is missing
//! from.

use joular_data::model::target_text::TargetText;
use joular_ebpf::abi::Field;
use thiserror::Error;

use super::{
    memory::Unreadable,
    vm_structs::{FieldPlace, VmStructs},
};

/// No structure that is read here is larger: `JavaThread` has 2 KiB and more.
const MAX_STRUCT_BYTES: u64 = 16 << 10;

#[derive(Debug, Error)]
pub enum LayoutError {
    #[error("JDK {feature}: {what} {name} not found")]
    Missing { feature: u32, what: &'static str, name: String },
    #[error("JDK {feature}: field {name} is implausible: offset {offset}, type '{type_name}'")]
    Implausible { feature: u32, name: String, offset: u64, type_name: TargetText },
    #[error("JDK {feature}: not supported")]
    TooOld { feature: u32 },
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Looks names up for one version.
pub struct Names<'a> {
    pub structs: &'a VmStructs,
    pub feature: u32,
}

const NO_FIELD: Field = Field { offset: 0, width: 0 };

impl Names<'_> {
    pub fn missing(&self, what: &'static str, name: String) -> LayoutError {
        LayoutError::Missing { feature: self.feature, what, name }
    }

    /// A static field's address.
    pub fn fixed(&self, owner: &str, name: &str) -> Result<u64, LayoutError> {
        match self.structs.field(owner, name).map(|field| field.place) {
            Some(FieldPlace::Static(address)) => Ok(address),
            _ => Err(self.missing("static field", format!("{owner}::{name}"))),
        }
    }

    pub fn size(&self, name: &str) -> Result<u32, LayoutError> {
        let size = self.structs.size(name).filter(|&size| size > 0 && size <= MAX_STRUCT_BYTES);
        size.and_then(|size| u32::try_from(size).ok())
            .ok_or_else(|| self.missing("plausible size of type", name.to_owned()))
    }

    /// A field that has one of these names, or none.
    pub fn any(&self, places: &[(&str, &str)]) -> Result<Field, LayoutError> {
        let found = places.iter().find_map(|&(owner, name)| Some((owner, name, self.structs.field(owner, name)?)));
        let Some((owner, name, field)) = found else { return Ok(NO_FIELD) };
        let FieldPlace::Offset(offset) = field.place else {
            return Err(self.missing("field", format!("{owner}::{name}")));
        };
        let limit = self.structs.size(owner).unwrap_or(MAX_STRUCT_BYTES).min(MAX_STRUCT_BYTES);
        let width = width_of(&field.type_name).filter(|&width| offset.saturating_add(u64::from(width)) <= limit);
        match (u16::try_from(offset), width) {
            (Ok(offset), Some(width)) => Ok(Field { offset, width }),
            _ => Err(LayoutError::Implausible {
                feature: self.feature,
                name: format!("{owner}::{name}"),
                offset,
                type_name: field.type_name.as_str().into(),
            }),
        }
    }

    pub fn one(&self, places: &[(&str, &str)]) -> Result<Field, LayoutError> {
        let field = self.any(places)?;
        if field.width == 0 {
            let name: Vec<String> = places.iter().map(|(owner, name)| format!("{owner}::{name}")).collect();
            return Err(self.missing("field", name.join(" or ")));
        }
        Ok(field)
    }

    /// The start of a part without a width of its own.
    pub fn start(&self, owner: &str, name: &str) -> Result<u16, LayoutError> {
        let place = self.structs.field(owner, name).map(|field| field.place);
        match place {
            Some(FieldPlace::Offset(offset)) if offset < MAX_STRUCT_BYTES => Ok(u16::try_from(offset).unwrap_or(0)),
            _ => Err(self.missing("field", format!("{owner}::{name}"))),
        }
    }
}

/// How many bytes a value of a C++ type has.
fn width_of(type_name: &str) -> Option<u16> {
    let name = type_name.trim_start_matches("volatile ").trim_start_matches("const ");
    if name.ends_with('*') || name.contains("*const") {
        return Some(8);
    }
    match name {
        "bool" | "u1" | "jbyte" | "jboolean" | "signed char" | "char" | "uint8_t" | "int8_t" => Some(1),
        // An enumeration of four bytes up to JDK 19 and one byte since; its values are small.
        "CompLevel" => Some(1),
        "u2" | "jshort" | "jushort" | "short" | "unsigned short" | "int16_t" | "uint16_t" => Some(2),
        "u4" | "int" | "uint" | "jint" | "juint" | "unsigned int" | "int32_t" | "uint32_t" => Some(4),
        "u8" | "jlong" | "julong" | "long" | "size_t" | "address" | "intptr_t" | "uintptr_t" | "int64_t"
        | "uint64_t" => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_of_types() {
        for (name, width) in [
            ("int", Some(4)),
            ("volatile signed char", Some(1)),
            ("ConstMethod*", Some(8)),
            ("JavaThread *const *const", Some(8)),
            ("const uint", Some(4)),
            ("int16_t", Some(2)),
            ("VirtualSpace", None),
            ("", None),
        ] {
            assert_eq!(width_of(name), width, "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let names = Names { structs: &VmStructs::default(), feature: 27 };
        let error = names.start("HeapBlock", "_header").unwrap_err();
        assert_eq!(error.to_string(), "JDK 27: field HeapBlock::_header not found");
        let error = names.one(&[("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len")]).unwrap_err();
        assert_eq!(error.to_string(), "JDK 27: field GrowableArrayBase::_len or GenericGrowableArray::_len not found");
    }
}
