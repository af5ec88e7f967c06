//! Contains tests whose truth does not depend on who else runs: what their own target did, by its
//! own account or the kernel's, or what the profiler says of something.

mod agent;
mod churn;
mod conservation;
mod container_image;
mod containers;
mod debian_package;
mod endings;
mod engines;
mod errors;
mod faults;
mod guests;
mod hostile;
mod image_files;
mod inlined_split;
mod jvm_images;
mod jvms;
mod kernels;
mod labels;
mod leaf_descriptors;
mod leaf_truth;
mod metrics;
mod native_images;
mod native_stacks;
mod other_jvms;
mod otlp;
mod out_of_reach;
mod output_dir;
mod perf_map;
mod pods;
mod privileges;
mod prometheus;
mod rare_code;
mod servers;
mod virtual_threads;
mod vm_work;
