//! The quick reader of JSON against `serde_json`, and the text of it on a screen.
#![no_main]

use serde_json::Value;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let line = [b"{\"messages\":[{\"role\":\"assistant\",\"content\":", bytes, b"}]}"].concat();
    let strict = serde_json::from_slice::<Value>(&line).is_ok();
    let file = trajscope_fuzz::formats::load_bytes(std::path::Path::new("x.json"), line);
    if strict {
        assert!(file.trajectories.len() <= 1);
    }
    let text = String::from_utf8_lossy(bytes);
    let shown = trajscope_fuzz::text::sanitize(&text);
    assert!(!shown.contains('\u{1b}'));
    drop(trajscope_fuzz::text::indent_json(&text));
    drop(trajscope_fuzz::text::wrap(&shown, 1 + bytes.len() % 90));
});
