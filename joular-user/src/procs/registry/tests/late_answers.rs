//! An answer that comes late is of who was asked, not of who has the number since.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, mknodat},
    io::Errno,
};

use super::*;

const LIMIT: Duration = Duration::from_secs(30);

/// Makes whoever reads the command line of process 7 wait.
fn hold(tree: &Tree) -> PathBuf {
    let held = tree.0.path().join("7/cmdline");
    fs::remove_file(&held).unwrap();
    mknodat(CWD, &held, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    held
}

/// The other end, once somebody waits.
fn other_end(held: &Path) -> File {
    let deadline = Instant::now() + LIMIT;
    loop {
        match rustix::fs::open(held, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(end) => return end.into(),
            Err(error) => assert!(error == Errno::NXIO && Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// What was read of the process, once there is a command line.
fn read(reading: &mut Reading, files: &ProcFiles) -> ProcessInfo {
    let deadline = Instant::now() + LIMIT;
    loop {
        let info = reading.read(files, Pid(7)).unwrap();
        if !info.command_line.is_empty() {
            return info;
        }
        assert!(Instant::now() < deadline, "{info:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn one_of_an_earlier_process_is_not_told_of_the_next_one() {
    let tree = Tree::new();
    tree.process(7, "first", 1);
    let held = hold(&tree);
    let (files, mut reading) = (ProcFiles::new(tree.0.path()), Reading::default());
    let first = reading.read(&files, Pid(7)).unwrap();
    assert_eq!((first.comm.raw(), first.command_line.len()), ("first", 0), "the rest is late");
    let mut end = other_end(&held);
    tree.remove(7);
    tree.process(7, "second", 2);
    end.write_all(b"first").unwrap();
    drop(end);
    let second = read(&mut reading, &files);
    assert_eq!((second.comm.raw(), second.start_boottime_ns), ("second", 2 * TICK_NS));
    assert_eq!(second.command_line, ["second"]);
}

#[test]
fn one_of_an_earlier_program_is_not_told_of_the_next_one() {
    let tree = Tree::new();
    tree.process(7, "wanted", 1);
    let held = hold(&tree);
    let mut registry = tree.registry(wanted());
    registry.scan();
    let mut end = other_end(&held);
    fs::remove_file(&held).unwrap();
    fs::write(held, "wanted\0again").unwrap();
    end.write_all(b"wanted\0before").unwrap();
    drop(end);
    let changes = registry.lifecycle(&event(LifecycleKind::Exec, "wanted", 1));
    let Change::Executed(info) = &changes[0] else { panic!("{changes:?}") };
    assert_eq!(info.command_line, ["wanted", "again"]);
}
