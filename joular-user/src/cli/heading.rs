//! Headings of the help of a recording, in order of importance.

pub const TARGETS: &str = "Targets (one of these)";
pub const RECORDING: &str = "Recording";
pub const ENERGY: &str = "Energy";
pub const OUTPUT: &str = "Output";
