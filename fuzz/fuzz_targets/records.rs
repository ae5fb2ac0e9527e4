//! Lines of records put together from pieces of the samples: what lies between the records is the fuzzer's.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The first byte says how often the text is repeated, as resumed and spliced files repeat their records.
    let Some((times, text)) = bytes.split_first() else { return };
    let text = text.repeat(1 + usize::from(times % 3));
    trajscope_fuzz::read("sessions/o__r-1.jsonl", &text);
});
