#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dormouse::fuzz::run("declarations", input));
