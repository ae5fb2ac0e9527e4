//! Any text as a candidate patch.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    trajscope_fuzz::check_patch(&String::from_utf8_lossy(bytes));
});
