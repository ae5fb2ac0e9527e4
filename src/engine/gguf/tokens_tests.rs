use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::engine::tokens::TextTokenizer;

/// The metadata that llama.cpp's converter writes for a tokenizer.json, with some unused rows at the end.
fn metadata(tokenizer: &[u8]) -> Metadata {
    let json: Json = serde_json::from_slice(tokenizer).unwrap();
    let mut rows: BTreeMap<i64, (String, i64)> = BTreeMap::new();
    for (token, id) in json["model"]["vocab"].as_object().unwrap() {
        rows.insert(id.as_i64().unwrap(), (token.clone(), NORMAL));
    }
    for added in json["added_tokens"].as_array().unwrap() {
        let kind = if added["special"] == true { CONTROL } else { USER_DEFINED };
        rows.insert(added["id"].as_i64().unwrap(), (added["content"].as_str().unwrap().into(), kind));
    }
    let last = *rows.keys().last().unwrap();
    for id in 0..last + 8 {
        rows.entry(id).or_insert_with(|| (format!("[PAD{id}]"), UNUSED));
    }
    let merge = |merge: &Json| match merge {
        Json::String(text) => text.clone(),
        pair => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
    };
    let merges = json["model"]["merges"].as_array().unwrap().iter().map(merge).collect();
    let (tokens, kinds) = rows.into_values().unzip();
    let values = [
        ("tokenizer.ggml.model", Value::Text("gpt2".into())),
        ("tokenizer.ggml.pre", Value::Text("qwen2".into())),
        ("tokenizer.ggml.tokens", Value::Texts(tokens)),
        ("tokenizer.ggml.token_type", Value::Wholes(kinds)),
        ("tokenizer.ggml.merges", Value::Texts(merges)),
    ];
    Metadata::new(values.map(|(key, value)| (key.into(), value)).into(), Path::new("m.gguf"))
}

/// Texts that tell apart what splits, normalises or merges in another way.
fn nasty() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "   \n\n \t x  ",
        "it's IT'S they'LL I'd we\u{2019}re 'ſ 'S",
        "<|im_start|>user\nhello<|im_end|>\n<|endoftext|><tool_call>{\"a\": 1}</tool_call>",
        "<|im_start|><|im_start| ><|im_end|> <|im_end|>x",
        "[PAD300] [PAD151665]",
        "e\u{301} é ﬁ Å \u{212b} \u{1100}\u{1161}",
        "naïve café \u{200b}\u{200d}\u{feff}",
        "👩‍👩‍👧‍👦🏳️‍🌈 🤷🏽\u{200d}♀️",
        "中文字符，日本語テキスト。한국어",
        "١٢٣ 12345 1,234.56 ²³ Ⅷ",
        "def f(x):\r\n\treturn x**2  # comment\r\n\r\n\r\n",
        "a\u{0}b\u{1}\u{7f}\u{85}\u{a0}\u{2028}x\u{3000}y",
        "================================\n--------",
        "\\n\\t\"quoted\" `code` $VAR ${X} ~/.config/*",
        "ßẞſKiIİı ΣΑΣ σας",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "\u{10ffff}\u{e000}\u{fffd}\u{1f600}",
        "العربية עברית हिन्दी ไทย",
    ]
    .map(String::from)
    .into();
    texts.push(texts.concat());
    texts.push(include_str!("tokens.rs").into());
    texts
}

fn compare(tokenizer: &[u8]) -> usize {
    let own = metadata(tokenizer).tokenizer_json().unwrap();
    let theirs = TextTokenizer::from_bytes(tokenizer, Path::new("tokenizer.json")).unwrap();
    let ours = TextTokenizer::from_bytes(&own, Path::new("m.gguf")).unwrap();
    let mut ids = 0;
    for text in nasty() {
        let expected = theirs.encode(&text).unwrap();
        assert_eq!(ours.encode(&text).unwrap(), expected, "{text:?}");
        ids += expected.ids.len();
    }
    ids
}

fn small() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/gguf/tokenizer.json");
    std::fs::read(file).unwrap()
}

#[test]
fn a_tokenizer_built_from_metadata_gives_the_ids_of_the_one_it_was_made_from() {
    assert!(compare(&small()) > 1000);
}

#[test]
fn so_do_those_of_the_public_models() {
    let Some(shared) = crate::testing::shared() else { return };
    for family in ["qwen2.5", "qwen3"] {
        let file = shared.join("tokenizers").join(family).join("tokenizer.json");
        assert!(compare(&std::fs::read(file).unwrap()) > 1000, "{family}");
    }
}

#[test]
fn what_is_not_understood_is_said_with_a_way_out() {
    let changed = |key: &str, value: Option<Value>| {
        let mut values: BTreeMap<String, Value> = BTreeMap::new();
        let whole = metadata(&small());
        for name in ["model", "pre", "tokens", "token_type", "merges"].map(|n| format!("tokenizer.ggml.{n}")) {
            values.insert(name.clone(), whole.get(&name).unwrap().clone());
        }
        match value {
            Some(value) => values.insert(key.into(), value),
            None => values.remove(key),
        };
        let said = Metadata::new(values, Path::new("m.gguf")).tokenizer_json().unwrap_err().to_string();
        assert!(said.starts_with("m.gguf: tokenizer: ") && said.ends_with("tokenizer.json beside the file"), "{said}");
        said
    };
    let text = |t: &str| Some(Value::Text(t.into()));
    assert!(changed("tokenizer.ggml.model", text("llama")).contains("is \"llama\", expected \"gpt2\""));
    assert!(changed("tokenizer.ggml.pre", text("llama-bpe")).contains("expected \"qwen2\""));
    assert!(changed("tokenizer.ggml.pre", None).contains("`tokenizer.ggml.pre` is \"missing\""));
    assert!(changed("tokenizer.ggml.tokens", None).contains("`tokenizer.ggml.tokens` is missing"));
    assert!(changed("tokenizer.ggml.token_type", Some(Value::Wholes(vec![1]))).contains("a number for every token"));
    let merges = Some(Value::Texts(vec!["a qqqq".into()]));
    assert!(changed("tokenizer.ggml.merges", merges).contains("merge \"a qqqq\" is not of two tokens"));
}
