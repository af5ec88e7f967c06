//! Contains tests of emulated machines, of packages, of many threads, of long runs and of what takes minutes to measure:
//! `cargo xtask test --slow` runs them, one at a time, and `cargo xtask test` does not.

mod container_image;
mod debian_package;
mod guests;
mod hosts;
mod hung_users;
mod io_kernels;
mod kernels;
mod numa;
mod short_threads;
mod side_by_side;
mod soak;
mod virtual_threads;
