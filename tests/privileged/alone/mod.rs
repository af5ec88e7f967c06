//! Contains tests that measure the machine, or have all of it busy: its CPU time, its idle time,
//! what the profiler costs. Another test beside them would change what they measure.

pub mod allocation_cycles;
mod allocations;
mod calibrate;
mod collections;
mod crowd;
mod hotspot_oracle;
mod hotspot_stacks;
mod io;
mod memory_by;
mod perf_pmu;
mod phases;
mod pinned_objects;
mod powercap;
mod random_samples;
mod split_70_30;
mod time;
mod topology;
mod watts;
