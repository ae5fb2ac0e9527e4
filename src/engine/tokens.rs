//! Text to token ids, and from byte offsets to the token that ends there.

use std::path::{Path, PathBuf};

use tokenizers::Tokenizer;

use super::error::EngineError;

/// A model's tokenizer.
#[derive(Debug)]
pub(super) struct TextTokenizer {
    inner: Tokenizer,
    file: PathBuf,
}

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Encoded {
    /// Token ids.
    pub(super) ids: Vec<u32>,
    /// Bytes of the text each token stands for. Tokens that share one character share its bytes.
    pub(super) spans: Vec<(usize, usize)>,
}

impl TextTokenizer {
    /// Reads a tokenizer.json; `file` is for messages.
    pub(super) fn from_bytes(bytes: &[u8], file: &Path) -> Result<Self, EngineError> {
        let wrong = |what: String| EngineError::Tokenizer {
            file: file.to_path_buf(),
            what,
            help: "expected the tokenizer.json of the model (transformers: `tokenizer.save_pretrained(DIR)`)".into(),
        };
        let mut inner =
            Tokenizer::from_bytes(bytes).map_err(|e| wrong(format!("not a tokenizer.json ({})", one_line(&e))))?;
        // A tokenizer saved with truncation or padding on would silently cut what the critic reads.
        inner.with_truncation(None).map_err(|e| wrong(one_line(&e)))?;
        inner.with_padding(None);
        Ok(Self { inner, file: file.to_path_buf() })
    }

    /// Checks that every id the tokenizer can give has a row in the model's embedding.
    pub(super) fn check_fits(&self, vocab_size: usize) -> Result<(), EngineError> {
        let highest = self.inner.get_vocab(true).into_iter().max_by_key(|(_, id)| *id);
        match highest {
            Some((token, id)) if id as usize >= vocab_size => Err(EngineError::Tokenizer {
                file: self.file.clone(),
                what: format!("does not fit the model: token {token:?} has id {id}, the embedding {vocab_size} rows"),
                help: "put the tokenizer.json of this very model into the folder".into(),
            }),
            Some(_) => Ok(()),
            None => Err(EngineError::Tokenizer {
                file: self.file.clone(),
                what: "has no tokens".into(),
                help: "put the tokenizer.json of this very model into the folder".into(),
            }),
        }
    }

    /// The id of a text that must be one token (`<|im_end|>`).
    pub(super) fn single_token(&self, text: &str) -> Result<u32, EngineError> {
        let encoded = self.encode(text).map_err(|what| EngineError::Tokenizer {
            file: self.file.clone(),
            what,
            help: "the critic cannot be used with this tokenizer".into(),
        })?;
        match encoded.ids.as_slice() {
            [id] => Ok(*id),
            ids => Err(EngineError::Tokenizer {
                file: self.file.clone(),
                what: format!("{text:?}, where the profile reads values, is {} tokens, expected one", ids.len()),
                help: "use the model's own tokenizer.json, or a profile that fits it (--profile FILE)".into(),
            }),
        }
    }

    /// Tokenises without adding anything; special tokens written in the text become special tokens.
    pub(super) fn encode(&self, text: &str) -> Result<Encoded, String> {
        let encoding = self
            .inner
            .encode(text, false)
            .map_err(|e| format!("{}: the text cannot be tokenised: {}", self.file.display(), one_line(&e)))?;
        Ok(Encoded { ids: encoding.get_ids().to_vec(), spans: encoding.get_offsets().to_vec() })
    }

    /// The text of ids, without special tokens. Bytes that are no UTF-8 become U+FFFD.
    pub(super) fn decode(&self, ids: &[u32]) -> Result<String, String> {
        let text = self.inner.decode(ids, true);
        text.map_err(|e| format!("{}: ids cannot be made text: {}", self.file.display(), one_line(&e)))
    }
}

impl Encoded {
    /// The last token that ends at or before byte `end`, and whether it ends exactly there.
    pub(super) fn token_ending_at(&self, end: usize) -> Option<(usize, bool)> {
        let count = self.spans.partition_point(|span| span.1 <= end);
        let index = count.checked_sub(1)?;
        Some((index, self.spans[index].1 == end))
    }

    /// The number of tokens that begin before byte `at`.
    pub(super) fn tokens_before(&self, at: usize) -> usize {
        self.spans.partition_point(|span| span.0 < at)
    }
}

fn one_line(error: &dyn std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A byte-level tokenizer without merges: one token a byte, and the three special tokens of Qwen.
    pub(in crate::engine) fn byte_tokenizer() -> String {
        // GPT-2's printable stand-ins for bytes.
        let printable = |b: u32| (33..=126).contains(&b) || (161..=172).contains(&b) || (174..=255).contains(&b);
        let mut vocab = serde_json::Map::new();
        let mut moved = 0;
        for byte in 0..256 {
            let code = if printable(byte) {
                byte
            } else {
                255 + {
                    moved += 1;
                    moved
                }
            };
            vocab.insert(char::from_u32(code).unwrap().to_string(), byte.into());
        }
        let added: Vec<_> = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
            .iter()
            .enumerate()
            .map(|(i, token)| {
                serde_json::json!({"id": 256 + i, "content": token, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": true})
            })
            .collect();
        serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
            "post_processor": null,
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
                "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []}
        })
        .to_string()
    }

    fn tokenizer() -> TextTokenizer {
        TextTokenizer::from_bytes(byte_tokenizer().as_bytes(), Path::new("t/tokenizer.json")).unwrap()
    }

    #[test]
    fn special_tokens_in_text_are_one_token_and_offsets_find_them() {
        let text = "<|im_start|>user\nhé\u{1F600}<|im_end|>\n";
        let encoded = tokenizer().encode(text).unwrap();
        assert_eq!(encoded.ids[0], 257);
        let end = text.find("<|im_end|>").unwrap() + "<|im_end|>".len();
        let (index, exact) = encoded.token_ending_at(end).unwrap();
        assert_eq!((encoded.ids[index], exact), (258, true));
        assert_eq!(encoded.ids.len(), 1 + 5 + 1 + 2 + 4 + 1 + 1);
        assert!(!encoded.token_ending_at(end - 1).unwrap().1);
        assert_eq!(encoded.token_ending_at(0), None);
        assert_eq!(encoded.tokens_before(end), index + 1);
        assert_eq!(encoded.tokens_before(0), 0);
    }

    #[test]
    fn truncation_and_padding_of_the_file_are_switched_off() {
        let mut json: serde_json::Value = serde_json::from_str(&byte_tokenizer()).unwrap();
        json["truncation"] =
            serde_json::json!({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0});
        let tokenizer = TextTokenizer::from_bytes(json.to_string().as_bytes(), Path::new("t.json")).unwrap();
        assert_eq!(tokenizer.encode("123456").unwrap().ids.len(), 6);
    }

    #[test]
    fn a_tokenizer_of_another_model_is_refused() {
        assert!(tokenizer().check_fits(259).is_ok());
        let said = tokenizer().check_fits(258).unwrap_err().to_string();
        assert!(said.contains("t/tokenizer.json: does not fit the model: token \"<|im_end|>\" has id 258"), "{said}");
        assert_eq!(tokenizer().single_token("<|im_end|>").unwrap(), 258);
        let said = tokenizer().single_token("<|eot|>").unwrap_err().to_string();
        assert!(said.contains("is 7 tokens, expected one"), "{said}");
    }

    #[test]
    fn broken_files_are_one_line() {
        for bytes in [&b""[..], b"{}", b"\xff\xfe", b"[1,2]"] {
            let said = TextTokenizer::from_bytes(bytes, Path::new("t.json")).unwrap_err().to_string();
            assert!(said.starts_with("t.json: not a tokenizer.json") && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn the_public_tokenizers_give_the_known_ids() {
        let Some(shared) = crate::testing::shared() else { return };
        for family in ["qwen2.5", "qwen3"] {
            let file = shared.join("tokenizers").join(family).join("tokenizer.json");
            let tokenizer = TextTokenizer::from_bytes(&std::fs::read(&file).unwrap(), &file).unwrap();
            let encoded = tokenizer.encode("<|im_start|>assistant\nok<|im_end|>\n").unwrap();
            assert_eq!(encoded.ids, [151_644, 77_091, 198, 562, 151_645, 198], "{family}");
            assert!(tokenizer.check_fits(151_936).is_ok());
        }
    }
}
