//! Names of threads that are longer than what the kernel keeps.

use joular_ebpf::abi::{COMM_LEN, Comm};
use serde::{Deserialize, Serialize};

use crate::model::{
    target_text::TargetText,
    units::{Pid, Tid},
};

/// Bytes of a name that the kernel keeps; a zero is behind them.
const KERNEL_BYTES: usize = COMM_LEN - 1;

/// The whole name of a thread, as its process says. It holds as long as the kernel has the beginning of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongName {
    pub pid: Pid,
    pub tid: Tid,
    pub start_boottime_ns: u64,
    pub name: TargetText,
}

/// Whether a name may be longer than the kernel has it.
pub fn may_be_cut(comm: &Comm) -> bool {
    !comm.get(..KERNEL_BYTES).unwrap_or_default().contains(&0)
}

/// Whether the kernel has the beginning of this name.
pub fn is_cut_of(comm: &Comm, name: &str) -> bool {
    may_be_cut(comm) && name.len() > KERNEL_BYTES && name.as_bytes().get(..KERNEL_BYTES) == comm.get(..KERNEL_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::decode::comm_bytes;

    #[test]
    fn a_name_holds_while_the_kernel_has_its_beginning() {
        for (comm, name, expected) in [
            ("http-nio-8080-e", "http-nio-8080-exec-1", true),
            ("http-nio-8080-e", "http-nio-8080-enterprise-1", true),
            ("http-nio-8080-e", "http-nio-8080-f", false),
            ("http-nio-8080-e", "http-nio-8080-e", false),
            ("main", "main-and-more-of-it", false),
        ] {
            assert_eq!(is_cut_of(&comm_bytes(comm), name), expected, "{comm} {name}");
        }
        assert!(may_be_cut(&comm_bytes("http-nio-8080-exec-1")) && !may_be_cut(&comm_bytes("http-nio-8080-")));
    }
}
