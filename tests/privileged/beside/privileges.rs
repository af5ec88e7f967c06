//! Tests what the profiler may do while it records.

use std::fs;

use joular_tests::profiler::{Output, Run};

use crate::burner::Burner;

/// Numbers of include/uapi/linux/capability.h.
const CAP_SYS_MODULE: u32 = 16;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;
const CAP_CHECKPOINT_RESTORE: u32 = 40;

#[test]
fn what_a_recording_does_not_need_is_given_up() {
    let burner = Burner::start(&[100]).unwrap();
    let output = Output::new().unwrap();
    let profiler = Run::new().pid(burner.pid()).output(output.dir()).start().unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", profiler.pid())).unwrap();
    // Debian's kernels: above 2 it is needed for perf events.
    let level: i32 = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap().trim().parse().unwrap();
    for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
        let line = status.lines().find_map(|line| line.strip_prefix(set)).unwrap();
        let held = u64::from_str_radix(line.trim(), 16).unwrap();
        assert_eq!(held >> CAP_SYS_ADMIN & 1, u64::from(level > 2), "{set} {line}");
        assert_eq!(held >> CAP_SYS_MODULE & 1, 0, "{set} {line}");
        assert_eq!(held >> CAP_BPF & 1, 1, "{set} {line}");
        assert_eq!(held >> CAP_CHECKPOINT_RESTORE & 1, 1, "{set} {line}");
    }
    let finished = profiler.stop().unwrap();
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
}
