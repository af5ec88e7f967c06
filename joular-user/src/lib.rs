//! Records runs: joular-bpf's recorder as a library, whose folders follow the data path.
//! `joular_data` has what is recorded and what can be said of it. See ARCHITECTURE.md.

pub mod agent;
pub mod bounds;
pub mod calibration;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod context;
pub mod doctor;
pub mod elf;
pub mod energy;
pub mod experiment;
pub mod failing;
pub mod fetch;
pub mod heap;
pub mod kernel;
pub mod load;
pub mod mcp;
pub mod messages;
pub mod output;
pub mod page;
pub mod pipeline;
pub mod privileges;
pub mod procs;
pub mod progress;
pub mod query;
pub mod requests;
pub mod runtimes;
pub mod serve;
pub mod shutdown;
pub mod sources;
pub mod support;
pub mod symbols;
pub mod top;
pub mod unwind;
