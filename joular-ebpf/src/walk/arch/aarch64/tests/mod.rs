//! Tests what only aarch64 has.

extern crate std;

mod half_frames;
mod interpreted;
mod native;
mod stub;
