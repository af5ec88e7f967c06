use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    ptr,
};

use proptest::prelude::*;
use rustix::fs::{Mode, OFlags};

use super::*;

const REAL: &str = "\
55560166c000-55560166d000 r-xp 00001000 fe:00 10036586                   /opt/jdk/bin/java
7ff7f4e00000-7ff7f5070000 rwxp 00000000 00:00 0 
7ff80e000000-7ff80fce2000 r--p 00000000 fe:00 10036855                   /opt/jdk/lib/server/libjvm.so
7ff80fce2000-7ff810ce2000 r-xp 002e2000 fe:00 10036855                   /opt/jdk/lib/server/libjvm.so
7ff8114f6000-7ff8114f8000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

fn maps(text: &str) -> Maps {
    Maps::of_text(text.as_bytes()).unwrap()
}

fn check(line: &str, expected: Option<(Option<&str>, MappingKind)>, lines: u64) {
    let maps = maps(&format!("{line}\n"));
    let got = maps.mappings.first().map(|mapping| (mapping.path.as_deref(), mapping.kind));
    assert_eq!(got, expected, "{line:?}");
    assert_eq!(maps.left_out, LeftOut { lines, ..LeftOut::default() }, "{line:?}");
}

#[test]
fn kinds_and_names() {
    use MappingKind::*;
    let check = |line, expected| check(line, Some(expected), 0);
    check("1000-2000 r-xp 0 fe:00 7   /a/b c (deleted)", (Some("/a/b c"), Deleted));
    check("1000-2000 r-xp 0 fe:00 7   /a  two spaces", (Some("/a  two spaces"), File));
    check("1000-2000 r-xp 0 fe:00 7   /a\\012b", (Some("/a\nb"), File));
    check("1000-2000 rwxp 0 00:00 0", (None, Anonymous));
    check("1000-2000 rwxp 0 00:00 0   [anon:v8]", (Some("[anon:v8]"), Anonymous));
    check("1000-2000 rwxp 0 00:00 0   [heap]", (Some("[heap]"), Heap));
    check("1000-2000 rwxp 0 00:00 0   [stack]", (Some("[stack]"), Stack));
    check("1000-2000 r-xp 0 00:01 9   /memfd:jit (deleted)", (Some("/memfd:jit"), Deleted));
}

#[test]
fn what_is_no_code_is_skipped() {
    for line in ["1000-2000 r--p 0 fe:00 7   /a", "1000-2000 rw-p 0 00:00 0   [heap]", "1000-2000 ---p 0 00:00 0", ""] {
        check(line, None, 0);
    }
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
        check(line, None, 1);
    }
}

#[test]
fn a_libjvm_beside_openj9_is_not_hotspots() {
    let libjvm = "1000-2000 r-xp 0 0:0 1 /jdk/lib/server/libjvm.so\n";
    let openj9 = "3000-4000 r-xp 0 0:0 2 /jdk/lib/default/libj9vm29.so\n";
    let both = format!("{libjvm}{openj9}");
    let has_hotspot = |text: &str| maps(text).has_hotspot();
    assert!(has_hotspot(libjvm) && has_hotspot(&both.replace("4000 r-xp", "4000 r--p")));
    assert!(!has_hotspot(&both) && !has_hotspot(openj9));
    assert!(maps(&both).has_libjvm() && !maps(openj9).has_libjvm());
}

#[test]
fn an_address_is_found_in_its_mapping_only() {
    let maps = maps(REAL);
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

/// As the kernel tells it if the process maps more meanwhile.
#[test]
fn of_what_is_told_twice_the_rest_counts() {
    let maps = maps("1000-3000 r-xp 500 0:0 1 /a\n2000-4000 r-xp 1500 0:0 1 /a\n2000-3000 r-xp 0 0:0 2 /b\n");
    let ranges: Vec<_> = maps.iter().map(|mapping| (mapping.start.0, mapping.end.0, mapping.offset)).collect();
    assert_eq!(ranges, [(0x1000, 0x3000, 0x500), (0x3000, 0x4000, 0x2500)]);
    assert_eq!(maps.left_out, LeftOut::default());
}

#[test]
fn files_below_a_library_do_not_hide_it() {
    let file = |at: usize| format!("{:x}000-{:x}000 r--s 00000000 fe:00 7    /data/{}\n", at, at + 1, "x".repeat(90));
    let text: String = (1..=100_000).map(file).collect();
    let maps = maps(&(text + REAL));
    assert!(maps.has_hotspot() && maps.left_out == LeftOut::default());
}

#[test]
fn neither_files_nor_other_code_crowd_out_the_rest() {
    let of = |at: usize, what: &str| format!("{:x}000-{:x}000 rwxp 0 {what}\n", at * 2, at * 2 + 1);
    let more = MAX_MAPPINGS + 7;
    let anonymous: String = (1..=more).map(|at| of(at, "0:0 0")).collect();
    let files: String = (1..=more).map(|at| of(at, &format!("fe:0 {at} /lib/{at}"))).collect();
    for (many, few) in [(&anonymous, "1-2 r-xp 0 fe:0 1 /lib/x\n"), (&files, "1-2 r-xp 0 0:0 0\n")] {
        for text in [format!("{many}{few}"), format!("{few}{many}")] {
            let maps = maps(&text);
            assert_eq!((maps.iter().count(), maps.left_out.mappings), (MAX_MAPPINGS + 1, 7));
            assert!(maps.find(Address(1)).is_some());
        }
    }
}

#[test]
fn generated_code_that_grows_in_pieces_is_one_mapping() {
    let pieces: String = (1..1000).map(|at| format!("{at:x}000-{:x}000 rwxp 0 0:0 0\n", at + 1)).collect();
    let maps = maps(&pieces);
    assert_eq!(maps.iter().map(|mapping| (mapping.start.0, mapping.end.0)).collect::<Vec<_>>(), [(0x1000, 1000 << 12)]);
}

#[test]
fn long_names_cost_their_own_mapping_the_name() {
    let line = |at: u32, name: &str| format!("{at}000-{at}800 r-xp 0 fe:0 {at} {name}\n");
    let longest = format!("/{}", "\\012".repeat(4095));
    let too_long = format!("/{}\n", "x".repeat(1 << 20));
    let of_long = maps(&(line(1, &longest) + &line(2, &too_long) + &line(3, "/c")));
    let names: Vec<_> =
        of_long.iter().map(|mapping| (mapping.path.as_ref().map(|path| path.len()), mapping.kind)).collect();
    assert_eq!(names, [(Some(4096), MappingKind::File), (None, MappingKind::File), (Some(2), MappingKind::File)]);
    assert_eq!(of_long.left_out, LeftOut { names: 1, ..LeftOut::default() });

    let each = "x".repeat(1 << 14);
    let many: String = (100..1000).map(|at| line(at, &format!("/{at}{each}"))).collect();
    let of_many = maps(&many);
    assert_eq!((of_many.iter().count(), of_many.left_out.mappings), (900, 0));
    assert_eq!(of_many.left_out.names, 900 - (MAX_NAMES_BYTES / (each.len() + 4)) as u64);
}

#[test]
fn a_process_that_is_gone_is_an_error() {
    struct Gone(&'static [u8]);
    impl Read for Gone {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(Errno::SRCH.into()),
                read => Ok(read),
            }
        }
    }
    assert!(Maps::of_text(Gone(REAL.as_bytes())).is_err());
    assert!(Maps::read(Path::new("/proc"), Pid(u32::MAX)).is_err());
}

#[test]
fn our_own_maps_are_read() {
    let maps = Maps::read(Path::new("/proc"), Pid(std::process::id())).unwrap();
    assert!(maps.iter().any(|mapping| mapping.kind == MappingKind::Vdso));
    assert_eq!(maps.left_out, LeftOut::default());
}

/// Code of a file in this process, for as long as the test runs.
struct Mapped(*mut libc::c_void);

impl Mapped {
    fn new(file: &impl AsRawFd) -> Self {
        // SAFETY: a new mapping, wherever there is room; nobody runs or writes it.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                4096,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        Self(at)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.0, 4096) };
    }
}

/// A file whose path has more bytes than the kernel gives of a name.
fn far_down(directory: &Path) -> OwnedFd {
    let (name, flags) = ("d".repeat(250), OFlags::DIRECTORY | OFlags::CLOEXEC);
    let mut at: OwnedFd = File::open(directory).unwrap().into();
    for _ in 0..20 {
        rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, &name, flags, Mode::empty()).unwrap();
    }
    rustix::fs::openat(&at, "libfar.so", OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RWXU).unwrap()
}

#[test]
fn the_kernels_answers_say_what_its_text_says() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["lib.so", "a\n1000-2000 r-xp 0 0:0 1 b.so", "half (deleted)", "gone"];
    let files = names.map(|name| File::create_new(directory.path().join(name)).unwrap());
    std::fs::remove_file(directory.path().join("gone")).unwrap();
    let far = far_down(directory.path());
    let mapped: Vec<Mapped> = files.iter().map(Mapped::new).chain([Mapped::new(&far)]).collect();
    let own = || File::open("/proc/self/maps").unwrap();
    let mut asked = Kept::default();
    match query::read(&own(), &mut asked) {
        Err(error) if is_unknown(&error) => return eprintln!("this kernel cannot be asked: {error}"),
        read => read.unwrap(),
    }
    let (asked, text) = (asked.finish(), Maps::of_text(own()).unwrap());
    let found: Vec<_> =
        mapped.iter().map(|of| [&asked, &text].map(|maps| maps.find(Address(of.0 as u64)).cloned().unwrap())).collect();
    for ([asked, text], name) in found.iter().zip(names) {
        assert_eq!(asked, text);
        let path = directory.path().join(name.trim_end_matches(" (deleted)"));
        assert_eq!(asked.path.as_deref(), path.to_str());
    }
    // Of the longest name only the text has room.
    let [far_asked, far_text] = &found[4];
    assert_eq!((far_asked.path.as_deref(), asked.left_out.names), (None, 1));
    assert_eq!(*far_asked, Mapping { path: None, ..far_text.clone() });
    assert!(asked.iter().any(|mapping| mapping.kind == MappingKind::Vdso));
}

/// Gives few bytes at a time.
struct InPieces<'a>(&'a [u8], usize);

impl Read for InPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

proptest! {
    #[test]
    fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..600), address: u64) {
        let maps = Maps::of_text(&text[..]).unwrap();
        let _ = maps.find(Address(address));
    }

    #[test]
    fn never_panics_on_nearly_right_lines(text in "([0-9a-f]{0,17}-[0-9a-f]{0,17} [r-][w-]x?p [0-9a-f]{0,3} 0:0 [0-9]{0,2} .{0,9}\n){0,9}", address: u64) {
        let maps = maps(&text);
        if let Some(found) = maps.find(Address(address)) {
            prop_assert!(found.start.0 <= address && address < found.end.0);
        }
    }

    #[test]
    fn text_that_is_cut_anywhere_gives_what_was_whole(at in 0..REAL.len(), piece in 1_usize..90) {
        let whole = maps(REAL);
        let cut = Maps::of_text(InPieces(&REAL.as_bytes()[..at], piece)).unwrap();
        prop_assert_eq!(&cut.mappings[..], &whole.mappings[..cut.mappings.len()]);
        prop_assert!(cut.left_out.lines <= 1);
        let lines = REAL[..at].lines().filter(|line| line.contains("xp ")).count() as u64;
        let last_is_code_or_unknown = cut.mappings.len() as u64 + cut.left_out.lines;
        prop_assert!((lines..=lines + 1).contains(&last_is_code_or_unknown));
        prop_assert_eq!(Maps::of_text(InPieces(REAL.as_bytes(), piece)).unwrap(), whole);
    }

    #[test]
    fn names_cannot_pass_for_lines(name in "[ -~]{0,40}") {
        // As the kernel writes a newline.
        let text = format!("1000-2000 r-xp 0 fe:0 1   /{}\n", name.replace('\n', "\\012"));
        prop_assert_eq!(maps(&text).iter().count(), 1);
    }

    #[test]
    fn mappings_that_change_while_they_are_read_never_overlap(
        told in proptest::collection::vec((1_u64..40, 1_u64..9, 0_u64..3), 0..30)
    ) {
        let line = |&(start, pages, inode): &(u64, u64, u64)| {
            format!("{start:x}000-{:x}000 r-xp {start:x}000 fe:0 {inode}\n", start + pages)
        };
        let maps = maps(&told.iter().map(line).collect::<String>());
        prop_assert!(maps.mappings.windows(2).all(|pair| pair[0].end <= pair[1].start));
        for (start, pages, _) in told {
            for page in start..start + pages {
                let at = Address(page << 12);
                let found = maps.find(at);
                prop_assert!(found.is_some_and(|found| found.inode == 0 || found.file_offset(at) == at.0));
            }
        }
    }
}
