//! Reads from `/proc/PID/maps` which file, at which offset, an address of code belongs to.
//!
//! Only mappings of code are kept: nothing else is sampled, and a process may have mapped tens of thousands of
//! files. Where the kernel can be asked for them, [`query`] does so, else [`text`] is filtered as it streams. What is
//! read has no bound, and what is kept has: [`LeftOut`] says what did not fit.
//!
//! Names come from the process and may hold anything. So a line that makes no sense is counted and left out, never an
//! error.

mod query;
mod text;

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use joular_data::model::units::{Address, Pid};
use rustix::io::Errno;

use crate::bounds::Bound;

/// Mappings of files kept of one process, and as many others. The kernel's own default limit for all is 65 530.
const MAX_MAPPINGS: usize = 32_768;
/// Text kept of the names of one process's files; a big JVM has some 10 KiB.
const MAX_NAMES_BYTES: usize = 8 << 20;

pub static MAPPINGS: Bound = Bound::new(
    "mappings_not_kept",
    MAX_MAPPINGS as u64,
    "mappings of code of files in a process, and as many of other code",
    "code in the rest is `[mapping not kept]`",
);
pub static NAMES: Bound = Bound::new(
    "mapping_names_not_kept",
    MAX_NAMES_BYTES as u64,
    "bytes of names of the files with code that a process has mapped, and 4095 of one name",
    "code of the rest is `[unresolved]`, and walked by frame pointers",
);
pub static LINES: Bound =
    Bound::new("mapping_lines_not_understood", 0, "lines of `/proc/PID/maps` that make no sense", "they are left out");

/// What backs a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    /// A file that still had its name when the text was read.
    File,
    /// A file that was unlinked or replaced since it was mapped.
    Deleted,
    /// Memory without a file: where just-in-time compilers put their code.
    Anonymous,
    Heap,
    Stack,
    Vdso,
    /// `[vvar]`, `[vsyscall]`, `[uprobes]`, …
    Special,
}

/// A mapping of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: Address,
    /// First address behind it.
    pub end: Address,
    /// Where in the file it starts.
    pub offset: u64,
    /// Major and minor number.
    pub device: (u32, u32),
    pub inode: u64,
    /// As the process sees it, without ` (deleted)`; neighbours share it.
    pub path: Option<Arc<str>>,
    pub kind: MappingKind,
}

impl Mapping {
    /// Last component of the path.
    pub fn file_name(&self) -> Option<&str> {
        self.path.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path))
    }

    /// Offset in the file of an address within the mapping.
    pub const fn file_offset(&self, address: Address) -> u64 {
        self.offset.saturating_add(address.0.saturating_sub(self.start.0))
    }

    /// Memory in which code is made at run time.
    pub fn is_generated_code(&self) -> bool {
        // Some runtimes back it with unnamed shared memory.
        const SHARED: [&str; 4] = ["/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage"];
        let is_shared = || self.path.as_deref().is_some_and(|path| SHARED.iter().any(|name| path.starts_with(name)));
        match self.kind {
            MappingKind::Anonymous => true,
            MappingKind::Deleted => is_shared(),
            _ => false,
        }
    }
}

/// What a reading did not keep.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Mappings of code beyond those that are kept.
    pub mappings: u64,
    /// Names of files, whose mappings are kept without.
    pub names: u64,
    /// Lines that made no sense.
    pub lines: u64,
}

/// The mappings of code of a process, sorted by address.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    mappings: Vec<Mapping>,
    pub left_out: LeftOut,
}

impl Maps {
    /// Reads `proc_root/PID/maps`.
    pub fn read(proc_root: &Path, pid: Pid) -> io::Result<Self> {
        let maps = File::open(proc_root.join(pid.to_string()).join("maps"))?;
        let mut kept = Kept::default();
        let maps = match query::read(&maps, &mut kept) {
            Err(error) if is_unknown(&error) => Self::of_text(maps),
            read => read.map(|()| kept.finish()),
        }?;
        let LeftOut { mappings, names, lines } = maps.left_out;
        for (bound, count) in [(&MAPPINGS, mappings), (&NAMES, names), (&LINES, lines)] {
            bound.cut_of(pid, count);
        }
        Ok(maps)
    }

    /// Reads the text of such a file.
    pub fn of_text(text: impl Read) -> io::Result<Self> {
        let mut kept = Kept::default();
        text::read(text, &mut kept)?;
        Ok(kept.finish())
    }

    pub fn find(&self, address: Address) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| address < mapping.end)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// Whether it is HotSpot whose code is mapped. OpenJ9 brings a libjvm.so as well, which leads to its own
    /// library.
    pub fn has_hotspot(&self) -> bool {
        self.has_libjvm() && !self.has_file(is_openj9)
    }

    /// Whether any JVM's code is mapped, even of a file that was replaced.
    pub fn has_libjvm(&self) -> bool {
        self.has_file(|name| name == "libjvm.so")
    }

    fn has_file(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.mappings.iter().any(|mapping| mapping.file_name().is_some_and(&is_it))
    }
}

/// Whether the kernel, or what stands in for it, does not know the question.
fn is_unknown(error: &io::Error) -> bool {
    [Errno::NOTTY, Errno::INVAL, Errno::OPNOTSUPP]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}

/// Whether a file of this name is OpenJ9's own library, such as libj9vm29.so.
pub fn is_openj9(file_name: &str) -> bool {
    file_name.starts_with("libj9vm") && file_name.ends_with(".so")
}

/// Addresses of a mapping, and where in the file it starts.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: Address,
    end: Address,
    offset: u64,
}

/// What a mapping is called.
#[derive(Clone, Copy, Debug)]
enum Name<'a> {
    /// As it is.
    Raw(&'a [u8]),
    /// As the text has it, where `\\012` stands for a newline and nothing else is escaped.
    Escaped(&'a [u8]),
    TooLong,
}

/// Mappings as they are read.
#[derive(Debug, Default)]
struct Kept {
    mappings: Vec<Mapping>,
    /// Of files.
    files: usize,
    last_path: Option<Arc<str>>,
    names_bytes: usize,
    left_out: LeftOut,
}

impl Kept {
    fn add(&mut self, range: Range, device: (u32, u32), inode: u64, name: Name<'_>) {
        let (path, kind) = match name {
            Name::Raw(name) => classify(name, lossy),
            Name::Escaped(name) => classify(name, |name| lossy(name).replace("\\012", "\n")),
            Name::TooLong => {
                self.left_out.names += 1;
                (None, if inode == 0 { MappingKind::Anonymous } else { MappingKind::File })
            }
        };
        let path = path.and_then(|path| self.share(path));
        // Generated code grows in pieces, by thousands in some runtimes.
        if kind == MappingKind::Anonymous
            && let Some(last) = self.mappings.last_mut()
            && (last.kind, last.end, &last.path) == (kind, range.start, &path)
        {
            last.end = range.end;
            return;
        }
        // Neither may crowd out the other.
        let is_of_a_file = inode != 0;
        let others = if is_of_a_file { self.files } else { self.mappings.len() - self.files };
        if others >= MAX_MAPPINGS {
            self.left_out.mappings += 1;
            return;
        }
        self.files += usize::from(is_of_a_file);
        let Range { start, end, offset } = range;
        self.mappings.push(Mapping { start, end, offset, device, inode, path, kind });
    }

    /// A name, which neighbours share.
    fn share(&mut self, path: String) -> Option<Arc<str>> {
        if let Some(last) = self.last_path.as_ref().filter(|last| ***last == *path) {
            return Some(Arc::clone(last));
        }
        if self.names_bytes + path.len() > MAX_NAMES_BYTES {
            self.left_out.names += 1;
            return None;
        }
        self.names_bytes += path.len();
        Some(Arc::clone(self.last_path.insert(path.into())))
    }

    /// The kernel tells one mapping twice, or parts of it, if the process changes it meanwhile: what was told
    /// before stands, and of the later one what it did not have.
    fn finish(self) -> Maps {
        let Self { mut mappings, left_out, .. } = self;
        mappings.sort_by_key(|mapping| mapping.start);
        let mut end = Address(0);
        mappings.retain_mut(|mapping| {
            let told = end.0.saturating_sub(mapping.start.0);
            mapping.offset = mapping.offset.saturating_add(told);
            mapping.start.0 += told;
            end = end.max(mapping.end);
            mapping.start < mapping.end
        });
        mappings.shrink_to_fit();
        Maps { mappings, left_out }
    }
}

fn classify(name: &[u8], decoded: impl Fn(&[u8]) -> String) -> (Option<String>, MappingKind) {
    const DELETED: &[u8] = b" (deleted)";
    let kind = match name {
        b"" => return (None, MappingKind::Anonymous),
        b"[heap]" => MappingKind::Heap,
        b"[vdso]" => MappingKind::Vdso,
        _ if name.starts_with(b"[stack") => MappingKind::Stack,
        _ if name.starts_with(b"[anon") => MappingKind::Anonymous,
        _ if name.starts_with(b"[") => MappingKind::Special,
        _ => match name.strip_suffix(DELETED) {
            Some(path) => return (Some(decoded(path)), MappingKind::Deleted),
            None => MappingKind::File,
        },
    };
    (Some(decoded(name)), kind)
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests;
