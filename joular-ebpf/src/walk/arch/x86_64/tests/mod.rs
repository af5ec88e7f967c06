//! Tests what only x86-64 has.
