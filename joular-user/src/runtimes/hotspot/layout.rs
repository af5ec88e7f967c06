//! Finds where things stand in this JVM's structures: every field by name, checked.
//!
//! There is one look-up per field, with the names that it had in JDK 11 to 25. If a field that no
//! version can do without is missing, the error names the version and the field, and the process is
//! profiled by its perf map.

use joular_ebpf::abi::{BlobLayout, Field, MAX_BLOB_BYTES};

use super::{
    allocation::AllocationLayout,
    class_fields::ClassLayout,
    continuations::ContinuationClasses,
    fields::{LayoutError, Names},
    memory::RemoteMemory,
    perf_data::PerfDataLayout,
    regions::RegionLayout,
    thread_names::NameLayout,
    threads::ThreadLayout,
    vm_structs::VmStructs,
};
use crate::arch::Processor;

/// Static fields, by their addresses without the load bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statics {
    pub code_heaps: u64,
    pub interpreter_code: u64,
    pub call_stub_return: u64,
    pub vm_release: u64,
    pub flags: u64,
    pub flag_count: u64,
}

/// The code cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapLayout {
    pub array_length: Field,
    pub array_data: Field,
    pub memory: u16,
    pub segment_map: u16,
    pub log2_segment_size: Field,
    pub low_boundary: Field,
    pub high_boundary: Field,
    pub low: Field,
    pub high: Field,
    /// `sizeof(HeapBlock)`.
    pub block_header: u32,
    /// In segments.
    pub block_length: Field,
    pub block_used: Field,
}

/// The interpreter's code: a queue of codelets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpreterLayout {
    pub buffer: Field,
    pub buffer_limit: Field,
    pub queue_begin: Field,
    pub queue_end: Field,
    pub codelet_size: Field,
    pub codelet_description: Field,
}

/// Where a compiled method's parts are. A field of width 0 is one that the version does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NmethodLayout {
    pub method: Field,
    pub compile_level: Field,
    /// `sizeof(nmethod)`.
    pub size: u32,
    pub data_offset: Field,
    pub metadata_offset: Field,
    pub scopes_data_begin: Field,
    pub scopes_pcs_offset: Field,
    pub dependencies_offset: Field,
    /// From JDK 23 on.
    pub immutable_data: Field,
    pub immutable_data_size: Field,
    pub scopes_data_offset: Field,
    /// Optional.
    pub null_checks_offset: Field,
    /// From JDK 25 on.
    pub mutable_data: Field,
    pub mutable_data_size: Field,
    pub relocation_size: Field,
    /// `sizeof(PcDesc)` and its fields.
    pub pc_desc_size: u32,
    pub pc_offset: Field,
    pub scope_offset: Field,
    /// From JDK 20 on no byte of a number is 0.
    pub excludes_zero: bool,
}

/// Methods and their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodLayout {
    pub const_method: Field,
    pub constants: Field,
    pub const_method_size: u32,
    /// In words.
    pub const_method_words: Field,
    pub flags: Field,
    pub has_line_numbers: u64,
    pub code_size: Field,
    pub name_index: Field,
    pub signature_index: Field,
    /// `sizeof(ConstantPool)`: where the entries begin.
    pub pool_size: u32,
    pub pool_holder: Field,
    pub pool_length: Field,
    /// In the pool (JDK 15+), or in the holder.
    pub source_file_in_pool: Field,
    pub source_file_in_holder: Field,
    pub klass_name: Field,
    pub symbol_length: Field,
    pub symbol_body: u16,
}

/// Flags of the JVM, as an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlagLayout {
    pub size: u32,
    pub name: Field,
    pub address: Field,
    /// Who gave it its value, in the lowest bits.
    pub origin: Field,
}

/// Everything of one libjvm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// That its code is for.
    pub processor: Processor,
    /// 11, 17, …
    pub feature: u32,
    pub statics: Statics,
    pub heap: HeapLayout,
    pub blob: BlobLayout,
    pub interpreter: InterpreterLayout,
    pub nmethod: NmethodLayout,
    pub method: MethodLayout,
    pub flag: FlagLayout,
    /// Nothing else depends on it.
    pub threads: Option<ThreadLayout>,
    /// Nor on this.
    pub allocation: Option<AllocationLayout>,
    /// Address of the pointer to what the JVM runs, with its arguments. Nor does anything depend on this.
    pub java_command: Option<u64>,
    /// Nor on this.
    pub perf_data: Option<PerfDataLayout>,
    /// Nor on this.
    pub regions: Option<RegionLayout>,
    /// Nor on this.
    pub classes: Option<ClassLayout>,
    /// Nor on this.
    pub continuations: Option<ContinuationClasses>,
    /// Nor on this.
    pub thread_names: Option<NameLayout>,
}

impl Layout {
    pub fn new(
        processor: Processor,
        structs: &VmStructs,
        memory: &dyn RemoteMemory,
        bias: u64,
    ) -> Result<Self, LayoutError> {
        let version = Names { structs, feature: 0 }.fixed("Abstract_VM_Version", "_vm_major_version")?;
        let feature = memory.u32(bias.wrapping_add(version))?;
        if feature < 11 {
            return Err(LayoutError::TooOld { feature });
        }
        let names = Names { structs, feature };
        // Its JVM gives itself the number 25: one heap of code shows that it is JDK 8.
        if structs.field("CodeCache", "_heaps").is_none() && structs.field("CodeCache", "_heap").is_some() {
            return Err(LayoutError::TooOld { feature: 8 });
        }
        Ok(Self {
            processor,
            feature,
            statics: names.statics()?,
            heap: names.heap()?,
            blob: names.blob()?,
            interpreter: names.interpreter()?,
            nmethod: names.nmethod()?,
            method: names.method()?,
            flag: names.flag()?,
            threads: ThreadLayout::new(&names).ok(),
            allocation: AllocationLayout::new(&names).ok(),
            java_command: names.fixed("Arguments", "_java_command").ok(),
            perf_data: PerfDataLayout::new(&names).ok(),
            regions: RegionLayout::new(&names).ok(),
            classes: ClassLayout::new(&names).ok(),
            continuations: ContinuationClasses::new(&names).ok(),
            thread_names: NameLayout::new(&names).ok(),
        })
    }
}

impl Names<'_> {
    fn statics(&self) -> Result<Statics, LayoutError> {
        Ok(Statics {
            code_heaps: self.fixed("CodeCache", "_heaps")?,
            interpreter_code: self.fixed("AbstractInterpreter", "_code")?,
            call_stub_return: self.fixed("StubRoutines", "_call_stub_return_address")?,
            vm_release: self.fixed("Abstract_VM_Version", "_s_vm_release")?,
            flags: self.fixed("JVMFlag", "flags")?,
            flag_count: self.fixed("JVMFlag", "numFlags")?,
        })
    }

    fn heap(&self) -> Result<HeapLayout, LayoutError> {
        let header = u64::from(self.start("HeapBlock", "_header")?);
        let in_header = |name| {
            let field = self.one(&[("HeapBlock::Header", name)])?;
            Ok::<_, LayoutError>(Field {
                offset: field.offset.saturating_add(u16::try_from(header).unwrap_or(0)),
                ..field
            })
        };
        Ok(HeapLayout {
            // The name of the base class has changed twice.
            array_length: self.one(&[("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len")])?,
            array_data: self.one(&[("GrowableArray<int>", "_data")])?,
            memory: self.start("CodeHeap", "_memory")?,
            segment_map: self.start("CodeHeap", "_segmap")?,
            log2_segment_size: self.one(&[("CodeHeap", "_log2_segment_size")])?,
            low_boundary: self.one(&[("VirtualSpace", "_low_boundary")])?,
            high_boundary: self.one(&[("VirtualSpace", "_high_boundary")])?,
            low: self.one(&[("VirtualSpace", "_low")])?,
            high: self.one(&[("VirtualSpace", "_high")])?,
            block_header: self.size("HeapBlock")?,
            block_length: in_header("_length")?,
            block_used: in_header("_used")?,
        })
    }

    /// `frame_complete` and all later ones as [`BlobLayout`] says.
    fn blob(&self) -> Result<BlobLayout, LayoutError> {
        let code_offset = self.any(&[("CodeBlob", "_code_offset")])?;
        let has_offsets = code_offset.width != 0;
        let either = |offsets: &[(&str, &str)], addresses: &[(&str, &str)]| {
            self.one(if has_offsets { offsets } else { addresses })
        };
        let layout = BlobLayout {
            name: self.one(&[("CodeBlob", "_name")])?,
            frame_size: self.one(&[("CodeBlob", "_frame_size")])?,
            frame_complete: self.one(&[("CodeBlob", "_frame_complete_offset")])?,
            code_begin: if has_offsets { code_offset } else { self.one(&[("CodeBlob", "_code_begin")])? },
            size: self.one(&[("CodeBlob", "_size")])?,
            compile_id: self.one(&[("nmethod", "_compile_id")])?,
            deopt_handler: either(
                // JDK 26 has one entry for both kinds of call.
                &[("nmethod", "_deopt_handler_offset"), ("nmethod", "_deopt_handler_entry_offset")],
                &[("CompiledMethod", "_deopt_handler_begin"), ("nmethod", "_deopt_handler_begin")],
            )?,
            deopt_mh_handler: self.any(if has_offsets {
                &[("nmethod", "_deopt_mh_handler_offset")]
            } else {
                &[("CompiledMethod", "_deopt_mh_handler_begin"), ("nmethod", "_deopt_mh_handler_begin")]
            })?,
            orig_pc: self.one(&[("nmethod", "_orig_pc_offset")])?,
            verified_entry: either(&[("nmethod", "_verified_entry_offset")], &[("nmethod", "_verified_entry_point")])?,
            bytes: 0,
            has_offsets: u32::from(has_offsets),
        };
        let fields = [
            layout.name,
            layout.frame_size,
            layout.frame_complete,
            layout.code_begin,
            layout.size,
            layout.compile_id,
            layout.deopt_handler,
            layout.deopt_mh_handler,
            layout.orig_pc,
            layout.verified_entry,
        ];
        let bytes = fields.iter().map(|field| usize::from(field.offset) + usize::from(field.width)).max().unwrap_or(0);
        let bytes = u32::try_from(bytes.next_multiple_of(8)).unwrap_or(u32::MAX);
        if bytes as usize > MAX_BLOB_BYTES {
            let name = format!("nmethod (of at most {MAX_BLOB_BYTES} bytes)");
            return Err(self.missing("plausible size of type", name));
        }
        Ok(BlobLayout { bytes, ..layout })
    }

    fn interpreter(&self) -> Result<InterpreterLayout, LayoutError> {
        Ok(InterpreterLayout {
            buffer: self.one(&[("StubQueue", "_stub_buffer")])?,
            buffer_limit: self.one(&[("StubQueue", "_buffer_limit")])?,
            queue_begin: self.one(&[("StubQueue", "_queue_begin")])?,
            queue_end: self.one(&[("StubQueue", "_queue_end")])?,
            codelet_size: self.one(&[("InterpreterCodelet", "_size")])?,
            codelet_description: self.one(&[("InterpreterCodelet", "_description")])?,
        })
    }

    fn nmethod(&self) -> Result<NmethodLayout, LayoutError> {
        let of = |name| self.any(&[("nmethod", name), ("CompiledMethod", name), ("CodeBlob", name)]);
        let layout = NmethodLayout {
            method: self.one(&[("nmethod", "_method"), ("CompiledMethod", "_method")])?,
            compile_level: self.one(&[("nmethod", "_comp_level")])?,
            size: self.size("nmethod")?,
            data_offset: of("_data_offset")?,
            metadata_offset: of("_metadata_offset")?,
            scopes_data_begin: of("_scopes_data_begin")?,
            scopes_pcs_offset: self.one(&[("nmethod", "_scopes_pcs_offset")])?,
            dependencies_offset: of("_dependencies_offset")?,
            immutable_data: of("_immutable_data")?,
            immutable_data_size: of("_immutable_data_size")?,
            scopes_data_offset: of("_scopes_data_offset")?,
            null_checks_offset: of("_nul_chk_table_offset").unwrap_or_default(),
            mutable_data: of("_mutable_data")?,
            mutable_data_size: of("_mutable_data_size")?,
            relocation_size: of("_relocation_size")?,
            pc_desc_size: self.size("PcDesc")?,
            pc_offset: self.one(&[("PcDesc", "_pc_offset")])?,
            scope_offset: self.one(&[("PcDesc", "_scope_decode_offset")])?,
            excludes_zero: self.feature >= 20,
        };
        let present = |fields: &[Field]| fields.iter().all(|field| field.width != 0);
        let inside = present(&[layout.metadata_offset, layout.scopes_data_begin, layout.dependencies_offset]);
        let apart = present(&[layout.immutable_data, layout.immutable_data_size, layout.scopes_data_offset]);
        let metadata = present(&[layout.mutable_data, layout.mutable_data_size, layout.relocation_size])
            || present(&[layout.metadata_offset]);
        if !(inside || apart && metadata) {
            return Err(self.missing("known place of", "an nmethod's scopes and metadata".to_owned()));
        }
        Ok(layout)
    }

    fn method(&self) -> Result<MethodLayout, LayoutError> {
        let of = |name| self.one(&[("ConstMethod", name)]);
        let line_numbers = ["ConstMethodFlags::_misc_has_linenumber_table", "ConstMethod::_has_linenumber_table"];
        Ok(MethodLayout {
            const_method: self.one(&[("Method", "_constMethod")])?,
            constants: of("_constants")?,
            const_method_size: self.size("ConstMethod")?,
            const_method_words: of("_constMethod_size")?,
            flags: self.one(&[("ConstMethod", "_flags._flags"), ("ConstMethod", "_flags")])?,
            has_line_numbers: line_numbers.iter().find_map(|name| self.structs.constant(name)).unwrap_or(1),
            code_size: of("_code_size")?,
            name_index: of("_name_index")?,
            signature_index: of("_signature_index")?,
            pool_size: self.size("ConstantPool")?,
            pool_holder: self.one(&[("ConstantPool", "_pool_holder")])?,
            pool_length: self.one(&[("ConstantPool", "_length")])?,
            source_file_in_pool: self.any(&[("ConstantPool", "_source_file_name_index")])?,
            source_file_in_holder: self.any(&[("InstanceKlass", "_source_file_name_index")])?,
            klass_name: self.one(&[("Klass", "_name")])?,
            symbol_length: self.one(&[("Symbol", "_length")])?,
            symbol_body: self.start("Symbol", "_body")?,
        })
    }

    fn flag(&self) -> Result<FlagLayout, LayoutError> {
        let address = self.start("JVMFlag", "_addr")?;
        Ok(FlagLayout {
            size: self.size("JVMFlag")?,
            name: self.one(&[("JVMFlag", "_name")])?,
            origin: self.start("JVMFlag", "_flags").map_or(Field::default(), |offset| Field { offset, width: 4 }),
            // Its type is not given, but it is a pointer.
            address: Field { offset: address, width: 8 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::hotspot::{JvmError, memory::MemoryImage};

    #[test]
    fn jdk_8_is_told_by_its_one_heap_and_what_to_do_is_said() {
        let memory = MemoryImage::from_ranges(vec![(0x1000, 25u64.to_le_bytes().to_vec())]);
        let version = ("Abstract_VM_Version", "_vm_major_version", 0x1000);
        for (field, expected) in
            [("_heap", "JDK 8: not supported: run "), ("_heaps", "JDK 25: static field AbstractInterpreter::_code")]
        {
            let structs = VmStructs::of_static_fields(&[version, ("CodeCache", field, 0x2000)]);
            let error =
                JvmError::from(Layout::new(Processor::default(), &structs, &memory, 0).unwrap_err()).to_string();
            assert!(error.starts_with(expected) && error.contains("-XX:+PreserveFramePointer"), "{error}");
        }
    }
}
