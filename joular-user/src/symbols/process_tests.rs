use std::fs;

use super::*;
use crate::runtimes::SYSTEMS;

const LINE: &str = "1000-2000 r-xp 00000000 fe:00 1   /bin/x\n";

fn process(directory: &Path, now: Instant) -> Process {
    fs::create_dir_all(directory.join("7")).unwrap();
    fs::write(directory.join("7/maps"), LINE).unwrap();
    Process::open(&ProcessInfo { pid: Pid(7), ..ProcessInfo::default() }, directory, SYSTEMS, now)
}

#[test]
fn garbage_is_looked_for_more_and_more_seldom() {
    let directory = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let mut process = process(directory.path(), start);
    let garbage = [Address(0x10)];
    let mut readings = 0;
    // Asked every 50 ms, from when it is no longer young.
    let at = |step: u32| start + YOUNG + Duration::from_millis(50) * step;
    for step in 0..1200 {
        process.freshen(&garbage, at(step));
        readings += u32::from(process.maps_read == Some(at(step)));
    }
    // 0.1, 0.2, 0.4, … 25.6 s within a minute.
    assert!((9..=11).contains(&readings), "{readings}");
    // One that helps makes the next one come soon again.
    fs::write(directory.path().join("7/maps"), LINE.replace("1000-", "0010-")).unwrap();
    process.freshen(&garbage, at(1200 + 600));
    assert_eq!((process.pause, process.maps.find(Address(0x10)).is_some()), (MIN_PAUSE, true));
}

/// Its library is loaded by the libjvm.so that it brings, which is mapped first.
#[test]
fn openj9_is_taken_for_hotspot_only_until_its_own_library_is_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let mut process = process(directory.path(), start);
    let libjvm = LINE.replace("/bin/x", "/jdk/lib/default/libjvm.so");
    let openj9 = libjvm.replace("1000-2000", "3000-4000").replace("libjvm", "libj9vm29");
    for (looks, maps, expected) in
        [(1, libjvm.clone(), ("hotspot", Source::Attach)), (2, libjvm + &openj9, ("openj9", Source::File))]
    {
        fs::write(directory.path().join("7/maps"), maps).unwrap();
        process.freshen(&[], start + MIN_PAUSE_YOUNG * looks);
        assert_eq!((process.system().unwrap().name(), process.code.as_ref().unwrap().source), expected);
    }
    assert_eq!(process.mapped_system(0).unwrap().1.start, Address(0x3000));
}

#[test]
fn the_number_of_files_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = process(directory.path(), Instant::now());
    process.files = (0..MAX_FILES as u64).map(|inode| (((9, 9), inode), Err(NoFile::Changed))).collect();
    let place = process.place(Address(0x1000), &mut NativeSymbols::default());
    assert_eq!((place, process.files.len()), (Location::Module("x".into()), MAX_FILES));
}

#[test]
fn a_file_that_is_not_open_says_why_neither_its_name_nor_the_mapping_led_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let why = |process: &mut Process| {
        let mapping = process.maps.find(Address(0x1000)).unwrap().clone();
        process.file_use(&mapping, &mut NativeSymbols::default()).unwrap_err().to_string()
    };
    let without_root = why(&mut process(directory.path(), Instant::now()));
    assert!(without_root.starts_with("the root of the process is not open; opening "), "{without_root}");
    fs::create_dir_all(directory.path().join("7/root/bin")).unwrap();
    let absent = why(&mut process(directory.path(), Instant::now()));
    assert!(absent.starts_with("opening /bin/x in the root of the process: No such file"), "{absent}");
    for why in [without_root, absent] {
        assert!(why.contains("map_files/1000-2000 in the root of the process: No such file"), "{why}");
    }
}
