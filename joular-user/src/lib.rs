//! joular-bpf as a library: the folders are the data path. See ARCHITECTURE.md.

pub mod attribution;
pub mod calibration;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod doctor;
pub mod energy;
pub mod events;
pub mod kernel;
pub mod output;
pub mod pipeline;
pub mod privileges;
pub mod procs;
pub mod report;
pub mod shutdown;
pub mod sources;
pub mod stacks;
pub mod symbols;
pub mod units;
pub mod unwind;
