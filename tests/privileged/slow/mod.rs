//! Contains tests of emulated machines, of packages, of long runs and of what takes minutes to measure: `cargo xtask test
//! --slow` runs them, one at a time, and `cargo xtask test` does not.
//! Contains tests of emulated machines, of packages, of many virtual threads and of a long run: `cargo xtask test --slow` runs them, one at a time,
//! and `cargo xtask test` does not.

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
