use std::path::PathBuf;

use super::*;
use crate::engine::generate::Ended;
use crate::engine::tokens::tests::byte_tokenizer;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name)
}

/// The language model of the fixtures with a tokenizer for its 96 ids: the first 95 bytes, and `<|im_end|>`.
fn folder(eos: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture("small-causal")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let mut json: Value = serde_json::from_str(&byte_tokenizer()).unwrap();
    let vocab = json["model"]["vocab"].as_object_mut().unwrap();
    vocab.retain(|_, id| id.as_u64().unwrap() < 95);
    let mut end = json["added_tokens"][2].clone();
    end["id"] = 95.into();
    json["added_tokens"] = vec![end].into();
    std::fs::write(copy.path().join("tokenizer.json"), json.to_string()).unwrap();
    std::fs::write(copy.path().join("generation_config.json"), format!("{{\"eos_token_id\": {eos}}}")).unwrap();
    copy
}

fn open(folder: &tempfile::TempDir) -> Writer {
    Writer::open(folder.path(), &EngineOptions { threads: Some(1), ..EngineOptions::default() }).unwrap()
}

#[test]
fn characters_come_whole_whatever_ids_their_bytes_are_in() {
    let tokenizer = TextTokenizer::from_bytes(byte_tokenizer().as_bytes(), Path::new("t.json")).unwrap();
    let text = "hé\u{1F600}!<|im_end|>€";
    let mut pieces = Pieces::new(&tokenizer);
    let mut seen = Vec::new();
    for id in tokenizer.encode(text).unwrap().ids {
        seen.extend(pieces.push(id).unwrap());
    }
    assert_eq!(seen, ["h", "é", "\u{1F600}", "!", "€"], "special tokens are no text");
    assert_eq!(pieces.rest().unwrap(), "");
    assert_eq!(pieces.text, "hé\u{1F600}!€");
    // The first two bytes of a euro sign, then the end.
    let mut pieces = Pieces::new(&tokenizer);
    assert_eq!((pieces.push(0xe2).unwrap(), pieces.push(0x82).unwrap()), (None, None));
    assert_eq!(pieces.rest().unwrap(), "\u{fffd}");
    // Broken bytes in the middle do not hold the rest up.
    let mut pieces = Pieces::new(&tokenizer);
    assert_eq!(pieces.push(0xe2).unwrap(), None);
    assert_eq!(pieces.push(u32::from(b'a')).unwrap().as_deref(), Some("\u{fffd}a"));
}

#[test]
fn an_answer_is_streamed_and_the_same_twice() {
    let folder = folder("[95]");
    let mut writer = open(&folder);
    assert_eq!((writer.stop_ids(), writer.model().config().class.as_str()), (&[95][..], "Qwen2ForCausalLM"));
    let sampling = Sampling { max_tokens: 40, temperature: 0.8, seed: 3, ..Sampling::default() };
    let mut streamed = String::new();
    let first = writer.complete("THE BUG", &sampling, &|| false, &mut |piece| streamed.push_str(piece)).unwrap();
    assert!(first.text == streamed && !streamed.is_empty());
    assert_eq!(first.prompt_tokens, 7);
    assert!(first.generation.ids.len() <= 40 && !first.generation.ids.contains(&95));
    let again = writer.complete("THE BUG", &sampling, &|| false, &mut |_| {}).unwrap();
    assert_eq!(again, first, "what the cache holds changes nothing");
    assert_eq!(open(&folder).complete("THE BUG", &sampling, &|| false, &mut |_| {}).unwrap(), first);
    let other = writer.complete("THE BUG", &Sampling { seed: 4, ..sampling }, &|| false, &mut |_| {}).unwrap();
    assert_ne!(other.generation.ids, first.generation.ids);
}

#[test]
fn an_answer_ends_at_a_stop_id_at_its_length_or_when_told() {
    let folder = folder("95");
    let mut writer = open(&folder);
    let long = Sampling { max_tokens: 12, ..Sampling::default() };
    let whole = writer.complete("A", &long, &|| false, &mut |_| {}).unwrap().generation;
    assert_eq!((whole.ids.len(), whole.ended), (12, Ended::Length));
    let id = whole.ids[5];
    let at = whole.ids.iter().position(|i| *i == id).unwrap();
    let stopped = Sampling { stop_ids: vec![id], ..long.clone() };
    let stopped = writer.complete("A", &stopped, &|| false, &mut |_| {}).unwrap().generation;
    assert_eq!((stopped.ids, stopped.ended), (whole.ids[..at].to_vec(), Ended::Stop(id)));
    let cancelled = writer.complete("B", &long, &|| true, &mut |_| {}).unwrap().generation;
    assert_eq!((cancelled.ids, cancelled.ended), (vec![], Ended::Cancelled));
    let none = writer.complete("A", &Sampling { max_tokens: 0, ..long }, &|| false, &mut |_| {}).unwrap().generation;
    assert_eq!((none.ids, none.ended), (vec![], Ended::Length));
}

#[test]
fn what_cannot_be_written_with_is_refused_in_one_line() {
    let options = EngineOptions::default();
    let said = Writer::open(&fixture("small-seq-1"), &options).unwrap_err().to_string();
    assert!(said.contains("writing with a Qwen3ForSequenceClassification; give a language model"), "{said}");
    assert!(Writer::open(&fixture("small-causal"), &options).unwrap_err().to_string().contains("tokenizer.json"));
    let said = Writer::open(folder("\"end\"").path(), &options).unwrap_err().to_string();
    assert!(said.contains("generation_config.json: `eos_token_id`: expected a token id or a list"), "{said}");
    let folder = folder("null");
    assert!(open(&folder).stop_ids().is_empty());
    let mut writer = open(&folder);
    let mut ask =
        |prompt: &str, sampling: &Sampling| writer.complete(prompt, sampling, &|| false, &mut |_| {}).unwrap_err();
    assert!(ask("", &Sampling::default()).contains("nothing to continue"));
    assert!(ask("A", &Sampling { top_p: 2.0, ..Sampling::default() }).starts_with("top_p 2"));
    assert!(ask(&"A".repeat(32_768), &Sampling::default()).contains("32768 tokens, the model takes 32768"));
}
