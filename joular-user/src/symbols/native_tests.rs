use std::time::Duration;

use joular_data::model::units::Address;

use super::*;

fn own_offset(function: u64) -> (File, u64) {
    let maps = Maps::read(Path::new("/proc"), Pid(std::process::id())).unwrap();
    let offset = maps.find(Address(function)).unwrap().file_offset(Address(function));
    (File::open("/proc/self/exe").unwrap(), offset)
}

fn acquire(symbols: &mut NativeSymbols, file: File, module: &str) -> FileUse {
    symbols.acquire(NewFile::of(file).unwrap(), module).unwrap()
}

#[test]
fn a_function_of_ours_is_named() {
    let (file, offset) = own_offset(own_offset as *const () as u64);
    let mut symbols = NativeSymbols::default();
    let key = acquire(&mut symbols, file, "tests").key;
    symbols.prepare(key, &[offset, offset, 0]);
    let frame = symbols.frame(key, offset).unwrap();
    assert!(frame.name.raw().contains("own_offset"), "{frame:?}");
    assert_eq!((frame.kind, frame.module), (FrameKind::Native, Some("tests".into())));
    assert!(symbols.frame(key, 0).unwrap().is_unresolved());
    assert_eq!(symbols.frame(key, 1), None);
    assert_eq!(symbols.unreadable_files, 0);
}

/// Names are kept when the file was closed; a process that uses it later finds them.
#[test]
fn names_outlive_the_last_process() {
    let (file, offset) = own_offset(own_offset as *const () as u64);
    let mut symbols = NativeSymbols::default();
    let used = acquire(&mut symbols, file, "tests");
    symbols.prepare(used.key, &[offset]);
    symbols.release(used, Instant::now());
    symbols.pass_window(Instant::now() + Duration::from_secs(60));
    assert!(symbols.open(used.key).is_none());
    symbols.prepare(used.key, &[offset, 0]);
    assert!(symbols.frame(used.key, offset).unwrap().name.raw().contains("own_offset"));
    assert_eq!((symbols.frame(used.key, 0), symbols.unreadable_files), (None, 0), "nobody was asked");
}

#[test]
fn a_file_that_is_no_elf_has_no_names() {
    use std::io::Write as _;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"\x7fELF and then nothing of the kind").unwrap();
    let mut symbols = NativeSymbols::default();
    let key = acquire(&mut symbols, file, "libjvm.so").key;
    for offset in [16, 32] {
        symbols.prepare(key, &[offset]);
        let frame = symbols.frame(key, offset).unwrap();
        assert_eq!((frame.kind, frame.name.raw()), (FrameKind::Vm, "[libjvm.so]"));
        assert_eq!(symbols.unreadable_files, 1, "it is tried once");
    }
}

#[test]
fn few_parsed_files_are_kept() {
    use std::io::{Read as _, Write as _};
    let mut vdso = Vec::new();
    own_vdso(Path::new("/proc")).unwrap().read_to_end(&mut vdso).unwrap();
    let mut symbols = NativeSymbols::default();
    let keys: Vec<FileKey> = (0..MAX_PARSED + 2)
        .map(|number| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vdso).unwrap();
            let key = acquire(&mut symbols, file, &number.to_string()).key;
            symbols.prepare(key, &[0x800]);
            key
        })
        .collect();
    let kept: Vec<bool> = keys.iter().map(|key| symbols.files[key].parsed.is_some()).collect();
    assert_eq!(kept, [false, false, true, true, true, true]);
}

#[test]
fn the_vdso_has_names() {
    let mut symbols = NativeSymbols::default();
    let key = acquire(&mut symbols, own_vdso(Path::new("/proc")).unwrap(), "[vdso]").key;
    let offsets: Vec<u64> = (0..0x2000).step_by(16).collect();
    symbols.prepare(key, &offsets);
    let named = offsets.iter().filter_map(|&at| symbols.frame(key, at)).any(|f| f.name.raw().contains("clock_gettime"));
    assert!(named);
}

#[test]
fn a_native_image_without_symbols_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("image.c");
    std::fs::write(&source, "__attribute__((section(\".svm_heap\"))) long heap = 1; int main(void) { return 0; }")
        .unwrap();
    let compile = |name: &str, flags: &[&str]| {
        let path = folder.path().join(name);
        let compiled = std::process::Command::new("cc").args(flags).arg("-o").arg(&path).arg(&source).status().unwrap();
        assert!(compiled.success());
        File::open(path).unwrap()
    };
    let mut symbols = NativeSymbols::default();
    for (name, flags, expected) in [("named", &[][..], 0), ("stripped", &["-s"][..], 1)] {
        let key = acquire(&mut symbols, compile(name, flags), name).key;
        for offset in [64, 65] {
            symbols.prepare(key, &[offset]);
        }
        let notices = std::mem::take(&mut symbols.notices);
        assert_eq!(notices.len(), expected, "{name}: {notices:?}");
        let starts = format!("{name} is a GraalVM native image without symbols: its Java methods are [{name}].");
        assert!(notices.iter().all(|notice| notice.text.starts_with(&starts)), "{notices:?}");
    }
}
