//! Lists what can go wrong with the kernel, and what would help.

use std::{io, path::PathBuf};

use aya::{maps::MapError, programs::ProgramError};
use thiserror::Error;

use super::btf::BtfError;

#[derive(Debug, Error)]
pub enum KernelError {
    #[error(
        "reading kernel types from {path}: {source}: joular-bpf needs a kernel of 5.15 or later built with CONFIG_DEBUG_INFO_BTF"
    )]
    ReadBtf { path: PathBuf, source: io::Error },
    #[error("{0}: this kernel is not supported")]
    Btf(#[from] BtfError),
    #[error(
        "this is not the host's PID namespace, so process ids differ from the kernel's: \
         run on the host, or in a container with its PID namespace (`--pid=host`)"
    )]
    PidNamespace,
    #[error(
        "loading the eBPF programs: {}: {}",
        causes(.0),
        shortage(.0).unwrap_or("run as root or grant CAP_BPF and CAP_PERFMON; `joular-bpf doctor` checks")
    )]
    Load(Box<aya::EbpfError>),
    #[error(
        "{operation} eBPF program `{program}`: {}: {}",
        causes(.source),
        shortage(.source).unwrap_or("`joular-bpf doctor` checks this machine")
    )]
    Program { operation: &'static str, program: &'static str, source: Box<ProgramError> },
    #[error("the eBPF object has no {kind} `{name}`: this binary was built without its eBPF programs")]
    Missing { kind: &'static str, name: &'static str },
    #[error("{operation} eBPF map `{map}`: {}: {}", causes(.source), shortage(.source).unwrap_or(OUT_OF_MEMORY))]
    Map { operation: &'static str, map: &'static str, source: Box<MapError> },
    #[error(
        "counting cycles: this machine has no hardware counters, as is usual in virtual machines: \
         use --weights time, or auto"
    )]
    NoCycles,
    #[error("counting cycles on CPU {cpu}: {source}: {}", shortage(.source).unwrap_or("use --weights time"))]
    CycleCounter { cpu: u32, source: io::Error },
    #[error(
        "--counters: {counter}: this machine's CPUs do not count it, as is usual in virtual machines: leave it out, or \
         use page-faults, minor-faults, major-faults, context-switches or cpu-migrations, which the kernel counts"
    )]
    NoCounter { counter: &'static str },
    #[error(
        "--counters: {counter}: CPU {cpu} has no room for it beside the counters in use: name fewer, or use \
         --weights time"
    )]
    CounterRoom { counter: &'static str, cpu: u32 },
    #[error(
        "--counters: {counter}: counting it on CPU {cpu}: {source}: {}",
        shortage(.source).unwrap_or("leave it out")
    )]
    Counter { counter: &'static str, cpu: u32, source: io::Error },
    #[error("sampling by timers: {reason}: use --sampler cpu-clock, or auto")]
    NoTimer { reason: String },
    #[error("writing entries {first}.. of eBPF map `{map}`: {source}: is the host out of memory?")]
    WriteArray { map: &'static str, first: u32, source: io::Error },
    #[error("draining eBPF map `{map}`: {source}: is the host out of memory?")]
    Drain { map: &'static str, source: io::Error },
}

const OUT_OF_MEMORY: &str = "is the host out of memory?";

/// What would help if the system has too little of something.
fn shortage(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    match code(error)? {
        libc::EMFILE => Some(
            "too few files may be open: raise the limit with `ulimit -n 65536`, or LimitNOFILE=65536 of a systemd unit",
        ),
        libc::ENFILE => Some("the host has too many open files: raise the sysctl fs.file-max"),
        libc::ENOMEM => {
            Some("there is too little memory: free some on the host, or raise the limit of this process's cgroup")
        }
        libc::EAGAIN => Some("the kernel was interrupted or is short of memory for a moment: start again"),
        _ => None,
    }
}

/// What the system said, if that is among the causes.
fn code(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return io.raw_os_error();
        }
        next = error.source();
    }
    None
}

/// What would help against a [`KernelError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    Privileges,
    AnotherKernel,
    /// More files, or memory.
    Resources,
    /// Nothing helps: it worked before, and something broke during the run.
    None,
}

impl KernelError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Map { .. } | Self::Drain { .. } | Self::WriteArray { .. } => Remedy::None,
            _ if self.is_permission() => Remedy::Privileges,
            _ if self.system().and_then(shortage).is_some() => Remedy::Resources,
            _ => Remedy::AnotherKernel,
        }
    }

    /// Whether it failed because the process that it was for has ended.
    pub fn is_of_ended_process(&self) -> bool {
        self.code() == Some(libc::ESRCH)
    }

    /// Whether the kernel refused a program for setting timers. It says so with `EOPNOTSUPP`, older kernels with
    /// `EACCES`, which means much (`process_timer_func` and its caller in kernel/bpf/verifier.c).
    pub(super) fn refuses_timers(&self) -> bool {
        let Self::Program { operation: "loading", source, .. } = self else { return false };
        match source.as_ref() {
            ProgramError::LoadError { io_error, verifier_log } => {
                io_error.raw_os_error() == Some(libc::EOPNOTSUPP)
                    || verifier_log.to_string().contains("bpf_timer cannot be used")
            }
            _ => false,
        }
    }

    /// `EPERM`, or `EACCES` from anything but the verifier, which rejects
    /// programs with it.
    fn is_permission(&self) -> bool {
        let loads = matches!(self, Self::Program { operation: "loading", .. });
        let code = self.code();
        code == Some(libc::EPERM) || (code == Some(libc::EACCES) && !loads)
    }

    /// What the system said, if it said anything.
    fn code(&self) -> Option<i32> {
        code(self.system()?)
    }

    /// The error below it, of the system or of the library that asked it.
    fn system(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ReadBtf { source, .. } => Some(source),
            Self::Load(source) => Some(source.as_ref()),
            Self::Program { source, .. } => Some(source.as_ref()),
            Self::CycleCounter { source, .. } | Self::Counter { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What a verifier's log ends with, after the reason.
const STATISTICS: [&str; 3] = ["verification time ", "stack depth ", "processed "];

/// The chain of causes in one line. A verifier's log has thousands of lines, and only the last few before its statistics
/// say why.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    const LAST_LINES: usize = 3;
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let says_why = |line: &&str| !line.is_empty() && !STATISTICS.iter().any(|start| line.starts_with(start));
        let lines: Vec<&str> = text.lines().map(str::trim).filter(says_why).collect();
        let part = match lines.as_slice() {
            [first, middle @ .., _] if middle.len() >= LAST_LINES => {
                let first: String = first.chars().take(160).collect();
                format!("{first} … {}", lines[lines.len() - LAST_LINES..].join("; "))
            }
            lines => lines.join("; "),
        };
        if !parts.iter().any(|known| known.contains(&part)) {
            parts.push(part);
        }
        next = error.source();
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use aya::sys::SyscallError;
    use aya_obj::VerifierLog;

    use super::*;

    #[test]
    fn a_long_log_is_cut_to_its_end() {
        let log: String = (0..1000).map(|line| format!("{line}: (bf) r1 = r2\n")).collect();
        let text = causes(&io::Error::other(format!("BPF_PROG_LOAD failed. {log}BPF program is too large")));
        assert!(text.starts_with("BPF_PROG_LOAD failed.") && text.ends_with("BPF program is too large"), "{text}");
        assert!(text.len() < 300, "{text}");
        let statistics = "verification time 4729 usec\nstack depth 160+0\nprocessed 218 insns (limit 1000000)";
        let text = causes(&io::Error::other(format!("BPF_PROG_LOAD failed. {log}R1 is not a pointer\n{statistics}")));
        assert!(text.ends_with("R1 is not a pointer"), "{text}");
    }

    #[test]
    fn a_program_is_refused_for_its_timers_by_code_or_by_word() {
        let error = |operation, code, log: &str| KernelError::Program {
            operation,
            program: "sched_switch",
            source: Box::new(ProgramError::LoadError {
                io_error: io::Error::from_raw_os_error(code),
                verifier_log: VerifierLog::new(format!("0: R1=ctx()\n{log}\nprocessed 177 insns")),
            }),
        };
        let said = "call bpf_timer_start#171\nbpf_timer cannot be used for PREEMPT_RT.";
        assert!(error("loading", libc::EOPNOTSUPP, "").refuses_timers());
        assert!(error("loading", libc::EACCES, said).refuses_timers());
        assert!(!error("loading", libc::EACCES, "call bpf_timer_start#171").refuses_timers());
        assert!(!error("attaching", libc::EOPNOTSUPP, said).refuses_timers());
    }

    #[test]
    fn a_rejected_program_is_no_missing_privilege() {
        let error = |operation, code| KernelError::Program {
            operation,
            program: "sample_at_event",
            source: Box::new(ProgramError::SyscallError(SyscallError {
                call: "bpf",
                io_error: io::Error::from_raw_os_error(code),
            })),
        };
        assert_eq!(error("loading", libc::EACCES).remedy(), Remedy::AnotherKernel);
        assert_eq!(error("loading", libc::EPERM).remedy(), Remedy::Privileges);
        assert_eq!(error("attaching", libc::EACCES).remedy(), Remedy::Privileges);
        assert_eq!(error("loading", libc::EMFILE).remedy(), Remedy::Resources);
        let ended = [libc::ESRCH, libc::EPERM].map(|code| error("attaching", code).is_of_ended_process());
        assert_eq!(ended, [true, false]);
    }

    #[test]
    fn a_shortage_is_not_called_a_missing_privilege() {
        let load = |code| {
            let error = SyscallError { call: "bpf_map_create", io_error: io::Error::from_raw_os_error(code) };
            let error = MapError::SyscallError(error);
            KernelError::Load(Box::new(aya::EbpfError::MapError(error))).to_string()
        };
        assert!(load(libc::EMFILE).contains("ulimit -n"), "{}", load(libc::EMFILE));
        assert!(load(libc::ENOMEM).contains("too little memory"), "{}", load(libc::ENOMEM));
        assert!(load(libc::EAGAIN).ends_with("start again"), "{}", load(libc::EAGAIN));
        assert!(load(libc::EPERM).contains("CAP_BPF"), "{}", load(libc::EPERM));
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN] {
            assert!(!load(code).contains("CAP_BPF"), "{}", load(code));
        }
    }
}
