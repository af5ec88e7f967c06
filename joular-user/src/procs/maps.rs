//! Parses `/proc/PID/maps`: which file, at which offset, an address belongs to.
//!
//! The text comes from the kernel, but the names in it come from the process and may hold anything.
//! So a line that makes no sense is counted and left out, never an error, and the amount read is
//! bounded.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use joular_data::model::units::{Address, Pid};

/// Mappings kept of one process; the kernel's own default limit is 65 530.
const MAX_MAPPINGS: usize = 65_536;
/// Text read of one process: a big JVM has some 100 KiB.
const MAX_TEXT_BYTES: u64 = 8 << 20;

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

/// One line of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: Address,
    /// First address behind it.
    pub end: Address,
    /// Where in the file it starts.
    pub offset: u64,
    pub executable: bool,
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
        self.executable
            && match self.kind {
                MappingKind::Anonymous => true,
                MappingKind::Deleted => is_shared(),
                _ => false,
            }
    }
}

/// The mappings of a process, sorted by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    mappings: Vec<Mapping>,
    /// Lines that made no sense, or overlapped an earlier one.
    pub skipped_lines: u64,
}

impl Maps {
    /// Reads `proc_root/PID/maps`.
    pub fn read(proc_root: &Path, pid: Pid) -> io::Result<Self> {
        let mut text = Vec::new();
        File::open(proc_root.join(pid.to_string()).join("maps"))?.take(MAX_TEXT_BYTES).read_to_end(&mut text)?;
        Ok(Self::parse(&text))
    }

    pub fn parse(text: &[u8]) -> Self {
        let mut maps = Self::default();
        let mut last_path: Option<Arc<str>> = None;
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match parse_line(line, &mut last_path) {
                Some(mapping) if maps.mappings.len() < MAX_MAPPINGS => maps.mappings.push(mapping),
                _ => maps.skipped_lines += 1,
            }
        }
        maps.mappings.sort_by_key(|mapping| mapping.start);
        let mut end = Address(0);
        let before = maps.mappings.len();
        maps.mappings.retain(|mapping| {
            let keep = mapping.start >= end;
            if keep {
                end = mapping.end;
            }
            keep
        });
        maps.skipped_lines += (before - maps.mappings.len()) as u64;
        maps
    }

    /// Drops mappings that no sample can hit.
    pub fn keep_executable(mut self) -> Self {
        self.mappings.retain(|mapping| mapping.executable);
        self.mappings.shrink_to_fit();
        self
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
        let has_code = |is_library: fn(&str) -> bool| {
            self.mappings.iter().any(|mapping| mapping.executable && mapping.file_name().is_some_and(is_library))
        };
        has_code(|name| name == "libjvm.so") && !has_code(is_openj9)
    }
}

/// Whether a file of this name is OpenJ9's own library, such as libj9vm29.so.
pub fn is_openj9(file_name: &str) -> bool {
    file_name.starts_with("libj9vm") && file_name.ends_with(".so")
}

/// `start-end perms offset major:minor inode   path`
fn parse_line(line: &[u8], last_path: &mut Option<Arc<str>>) -> Option<Mapping> {
    let mut rest = line;
    let range = next_field(&mut rest)?;
    let permissions = next_field(&mut rest)?;
    let offset = hex(next_field(&mut rest)?)?;
    let device = next_field(&mut rest)?;
    let inode = std::str::from_utf8(next_field(&mut rest)?).ok()?.parse().ok()?;
    let (start, end) = split_hex(range, b'-')?;
    if start >= end || permissions.len() != 4 {
        return None;
    }
    let (major, minor) = split_hex(device, b':')?;
    let (path, kind) = classify(rest.trim_ascii_start());
    let path = path.map(|path| match last_path {
        Some(last) if **last == *path => Arc::clone(last),
        _ => Arc::clone(last_path.insert(Arc::from(path))),
    });
    Some(Mapping {
        start: Address(start),
        end: Address(end),
        offset,
        executable: permissions[2] == b'x',
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        inode,
        path,
        kind,
    })
}

fn next_field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    let (field, tail) = text.split_at(end);
    *rest = tail;
    (!field.is_empty()).then_some(field)
}

fn split_hex(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((hex(&text[..at])?, hex(&text[at + 1..])?))
}

fn hex(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    // `from_str_radix` takes a sign; the kernel never writes one.
    if text.starts_with('+') { None } else { u64::from_str_radix(text, 16).ok() }
}

fn classify(name: &[u8]) -> (Option<String>, MappingKind) {
    const DELETED: &[u8] = b" (deleted)";
    match name {
        b"" => (None, MappingKind::Anonymous),
        b"[heap]" => (Some("[heap]".into()), MappingKind::Heap),
        b"[vdso]" => (Some("[vdso]".into()), MappingKind::Vdso),
        _ if name.starts_with(b"[stack") => (Some(lossy(name)), MappingKind::Stack),
        _ if name.starts_with(b"[anon") => (Some(lossy(name)), MappingKind::Anonymous),
        _ if name.starts_with(b"[") => (Some(lossy(name)), MappingKind::Special),
        _ => match name.strip_suffix(DELETED) {
            Some(path) => (Some(lossy(path)), MappingKind::Deleted),
            None => (Some(lossy(name)), MappingKind::File),
        },
    }
}

/// Decodes a name: the kernel writes a newline in it as `\012` and escapes nothing else.
fn lossy(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if name.contains("\\012") { name.replace("\\012", "\n") } else { name.into_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REAL: &str = "\
55560166c000-55560166d000 r-xp 00001000 fe:00 10036586                   /opt/jdk/bin/java
7ff7f4e00000-7ff7f5070000 rwxp 00000000 00:00 0 
7ff80fce2000-7ff810ce2000 r-xp 002e2000 fe:00 10036855                   /opt/jdk/lib/server/libjvm.so
7ff8114f6000-7ff8114f8000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    fn check(line: &str, expected: Option<(Option<&str>, MappingKind, bool)>) {
        let maps = Maps::parse(line.as_bytes());
        let got = maps.mappings.first().map(|m| (m.path.as_deref(), m.kind, m.executable));
        assert_eq!(got, expected, "{line:?}");
        assert_eq!(maps.skipped_lines, u64::from(expected.is_none() && !line.is_empty()), "{line:?}");
    }

    #[test]
    fn kinds_and_names() {
        use MappingKind::*;
        check("1000-2000 r-xp 0 fe:00 7   /a/b c (deleted)", Some((Some("/a/b c"), Deleted, true)));
        check("1000-2000 r--p 0 fe:00 7   /a  two spaces", Some((Some("/a  two spaces"), File, false)));
        check("1000-2000 r-xp 0 fe:00 7   /a\\012b", Some((Some("/a\nb"), File, true)));
        check("1000-2000 rwxp 0 00:00 0", Some((None, Anonymous, true)));
        check("1000-2000 rwxp 0 00:00 0   [anon:v8]", Some((Some("[anon:v8]"), Anonymous, true)));
        check("1000-2000 rw-p 0 00:00 0   [heap]", Some((Some("[heap]"), Heap, false)));
        check("1000-2000 rw-p 0 00:00 0   [stack]", Some((Some("[stack]"), Stack, false)));
        check("1000-2000 r-xp 0 00:01 9   /memfd:jit (deleted)", Some((Some("/memfd:jit"), Deleted, true)));
    }

    #[test]
    fn hostile_lines_are_counted_and_left_out() {
        for line in [
            "garbage",
            "-",
            "2000-1000 r-xp 0 0:0 0",
            "1000-1000 r-xp 0 0:0 0",
            "+1000-2000 r-xp 0 0:0 0",
            "10000000000000000-20000000000000000 r-xp 0 0:0 0",
            "1000-2000 r-x 0 0:0 0",
            "1000-2000 r-xp 0 0:0 -1",
            "1000-2000 r-xp 0 100000000:0 1",
            "1000-2000 r-xp 0 00 1",
            "1000-2000 r-xp",
        ] {
            check(line, None);
        }
        check("", None);
    }

    #[test]
    fn a_libjvm_beside_openj9_is_not_hotspots() {
        let libjvm = "1000-2000 r-xp 0 0:0 1 /jdk/lib/server/libjvm.so\n";
        let openj9 = "3000-4000 r-xp 0 0:0 2 /jdk/lib/default/libj9vm29.so\n";
        let has_hotspot = |text: &str| Maps::parse(text.as_bytes()).has_hotspot();
        assert!(has_hotspot(libjvm) && has_hotspot(&format!("{libjvm}{}", openj9.replace("r-xp", "r--p"))));
        assert!(!has_hotspot(&format!("{libjvm}{openj9}")) && !has_hotspot(openj9));
    }

    #[test]
    fn an_address_is_found_in_its_mapping_only() {
        let maps = Maps::parse(REAL.as_bytes());
        assert_eq!(maps.iter().count(), 5);
        assert!(maps.has_hotspot());
        let jvm = maps.find(Address(0x7ff8_0fce_2010)).unwrap();
        assert_eq!(jvm.file_name(), Some("libjvm.so"));
        assert_eq!(jvm.file_offset(Address(0x7ff8_0fce_2010)), 0x2e_2010);
        assert!(maps.find(Address(0x7ff7_f500_0000)).unwrap().is_generated_code());
        assert_eq!(maps.find(Address(0x7ff8_10ce_2000)), None);
        assert_eq!(maps.find(Address(0)), None);
        assert_eq!(maps.find(Address(0xffff_ffff_ff60_0000)).unwrap().kind, MappingKind::Special);
    }

    #[test]
    fn overlapping_lines_do_not_confuse_the_search() {
        let maps = Maps::parse(b"1000-3000 r-xp 0 0:0 0\n2000-4000 r-xp 0 0:0 0\n");
        assert_eq!((maps.iter().count(), maps.skipped_lines), (1, 1));
    }

    #[test]
    fn our_own_maps_are_read() {
        let maps = Maps::read(Path::new("/proc"), Pid(std::process::id())).unwrap().keep_executable();
        assert!(maps.iter().any(|mapping| mapping.kind == MappingKind::Vdso));
        assert_eq!(maps.skipped_lines, 0);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..600), address: u64) {
            let maps = Maps::parse(&text);
            let _ = maps.find(Address(address));
        }

        #[test]
        fn never_panics_on_nearly_right_lines(text in "([0-9a-f]{0,17}-[0-9a-f]{0,17} [r-][w-]x?p [0-9a-f]{0,3} 0:0 [0-9]{0,2} .{0,9}\n){0,9}", address: u64) {
            let maps = Maps::parse(text.as_bytes());
            if let Some(found) = maps.find(Address(address)) {
                prop_assert!(found.start.0 <= address && address < found.end.0);
            }
        }
    }
}
