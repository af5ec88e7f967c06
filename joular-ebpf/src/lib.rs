//! Defines the contract between joular-bpf's eBPF programs and its user space.
//!
//! Everything in [`abi`] is compiled twice: for `bpfel-unknown-none` into the programs of this
//! package's binary, and for the host into the loader. Pure logic that both sides rely on (how a
//! slice of time splits at a window boundary, how a stack is hashed) lives there too, so that
//! ordinary tests cover what runs in the kernel. So do [`walk`], the stepping through user
//! stacks, and [`paging`], the way to pages that cannot be read at their address.
#![no_std]

pub mod abi;
pub mod paging;
pub mod walk;
