//! Contains the programs, one file per topic: thin, and named as the loader knows them.

mod allocation;
mod boundary;
mod collection;
mod io;
mod io_tracepoints;
mod lifecycle;
mod sample;
mod sched;
