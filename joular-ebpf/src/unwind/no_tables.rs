//! Stands for `tables` where no stack is walked by tables yet.

use joular_ebpf::abi::StackId;

use super::From;
use crate::task::Task;

/// `None`: the process cannot be walked by tables.
#[inline(always)]
pub fn walk(_: Task, _: u32) -> Option<StackId> {
    None
}

#[inline(always)]
pub fn walk_from(_: u32, _: From) -> StackId {
    StackId::NONE
}
