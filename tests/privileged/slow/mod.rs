//! Contains tests of emulated machines, of packages, of alerts, of many threads, containers and hosts, of long runs and of
//! what takes long to measure: `cargo xtask test --slow` runs them, one at a time, and `cargo xtask test` does not.

mod aarch64;
mod alerts;
mod allocation_cycles;
mod allocation_race;
mod churn;
mod closed_loop;
mod container_image;
mod daemon_set;
mod day;
mod debian_package;
mod fleet;
mod frameworks;
mod guests;
mod hosts;
mod hotplug;
mod hung_users;
mod inlined_split;
mod intrinsics;
mod io_kernels;
mod kernels;
mod leaf_descriptors;
mod leaf_truth;
mod light_jvms;
mod many_classes;
mod many_containers;
mod numa;
mod pods;
mod protocol;
mod selinux;
mod short_threads;
mod side_by_side;
mod soak;
mod spark;
mod virtual_threads;
mod walks;
