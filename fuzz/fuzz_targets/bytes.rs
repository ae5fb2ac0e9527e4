//! Any bytes as a file: recognised or refused in words, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trajscope_fuzz::read("x/o__r-1/run.json", bytes);
});
