//! Makes tables for the kernel's programs that walk stacks: how to get from a frame to its caller,
//! for every file of code in every process that is sampled.
//!
//! Compilers leave such a table in each file for exceptions (`.eh_frame`). Interpreting it is far
//! too much work for a sample. So it is run here, once per file ([`eh_frame`]), into rows of 8
//! bytes that the kernel side finds by a binary search. Where there is no table, the code itself is
//! followed ([`code_rows`], [`gaps`], [`native_image`]). Rows belong to files, are shared by all
//! processes ([`files`]), and are read on a thread of their own ([`reader`]). Mappings belong to a
//! process ([`publisher`]). Both have ranges of two arrays in the kernel ([`tables`]).

pub mod changes;
pub mod code;
pub mod code_rows;
pub mod eh_frame;
pub mod files;
pub mod gaps;
pub mod interfaces;
pub mod native_image;
pub mod publisher;
pub mod reader;
pub mod rows;
pub mod tables;

pub use publisher::Publisher;
