//! Finds processes: which exist, which are wanted, what they are.
//!
//! [`registry`] keeps track; [`proc_files`] reads /proc, [`containers`] and [`java`] interpret what
//! it says, [`service`] names the service that a process belongs to, [`selection`] decides who is a
//! target by name and by [`places`], [`kubernetes`] knows its pod, [`tree`] follows a command's processes, [`own_processes`] knows our
//! own. [`maps`] and [`namespaces`] reach into a target's memory map
//! and files, [`attach`] sends a command to a JVM. [`deadline`] keeps a target from holding us up, and [`quota`] one
//! owner's targets from holding up what is done for others.
//! [`limits`] are our own.

pub mod attach;
pub mod containers;
pub mod deadline;
mod in_root;
pub mod java;
pub mod kubernetes;
pub mod limits;
pub mod maps;
pub mod namespaces;
pub mod own_processes;
pub mod patterns;
mod places;
pub mod proc_files;
pub mod quota;
pub mod registry;
pub mod selection;
pub mod service;
pub mod shared_roots;
pub mod tree;
