//! Reads data sets again, attributes them again, merges them, and tampers with them.

mod allocations;
mod audit;
mod compact;
mod context;
mod counters;
mod io;
mod lasting;
mod marks;
mod reattribute;
mod ring;
mod stores;
mod versions;
