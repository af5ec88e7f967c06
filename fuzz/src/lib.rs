//! What fuzz targets do with an input. Each target is a module here, which is compiled with the rest of the workspace; only
//! the programs in `fuzz_targets` need a fuzzer.

pub mod eh_frame;
pub mod events;
pub mod patches;
pub mod scopes;
pub mod vm_structs;
pub mod walk;
