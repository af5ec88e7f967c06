//! Live tests: the real kernel, real JVMs, data sets read by real engines. They
//! need root; `cargo xtask test` builds them as the developer, runs them as root
//! and one at a time, since they measure the machine that they run on.

#![allow(clippy::print_stdout, reason = "tables of a failed test")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic with a trace is how tests fail")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "figures of runs of seconds")]

mod burner;
mod calibrate;
mod churn;
mod closed_loop;
mod conservation;
mod endings;
mod engines;
mod errors;
mod faults;
mod hotspot_oracle;
mod hotspot_stacks;
mod inlined_split;
mod jvm_images;
mod jvms;
mod kernels;
mod labels;
mod leaf_descriptors;
mod native_stacks;
mod output_dir;
mod perf_map;
mod perf_pmu;
mod powercap;
mod privileges;
mod readings;
mod split_70_30;
mod time;
mod topology;
mod vm_work;
