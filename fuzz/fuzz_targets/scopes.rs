#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| joular_fuzz::scopes::run(input));
