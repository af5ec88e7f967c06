//! Contains tests of emulated machines, of packages, of many threads, containers and hosts, of long runs and of what takes
//! minutes to measure: `cargo xtask test --slow` runs them, one at a time, and `cargo xtask test` does not.

mod container_image;
mod debian_package;
mod fleet;
mod guests;
mod hosts;
mod hung_users;
mod io_kernels;
mod kernels;
mod many_containers;
mod numa;
mod short_threads;
mod side_by_side;
mod soak;
mod virtual_threads;
