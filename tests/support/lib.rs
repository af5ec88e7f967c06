//! Provides what live tests, demo and benchmark have in common: real JVMs, the real profiler, real
//! Python engines, and an energy counter that tests control.
//!
//! Everything that is started or created here ends with its handle: processes are killed,
//! directories removed, mounts undone when the handle is dropped. Every wait has a limit and says
//! what it waited for.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "figures of test runs of minutes: far from any limit"
)]

pub mod bpf_objects;
pub mod bpf_stats;
pub mod browser;
pub mod chance;
pub mod clickhouse;
pub mod clock;
pub mod containers;
pub mod dataset;
pub mod debian;
pub mod fakes;
pub mod fleet;
pub mod freeze;
pub mod fuse;
pub mod helm;
pub mod initramfs;
pub mod java;
pub mod jdk;
pub mod kernels;
pub mod known;
pub mod kubelet;
pub mod machine;
pub mod mount;
pub mod native;
pub mod network;
pub mod node;
pub mod notes;
pub mod packages;
pub mod paths;
pub mod powercap;
pub mod process;
pub mod profiler;
pub mod prometheus;
pub mod python;
pub mod registers;
pub mod s3;
pub mod schedstat;
pub mod servers;
pub mod service;
pub mod shared;
pub mod slowed;
pub mod statistics;
pub mod stolen;
pub mod strangers;
pub mod switches;
pub mod tmux;
pub mod topology;
pub mod truths;
pub mod wall_clock;
