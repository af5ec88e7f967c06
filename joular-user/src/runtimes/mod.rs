//! Run-time systems that make code while they run: what is known of each.

pub mod hotspot;
