//! config.json of a Hugging Face model folder, both generations of transformers.
//!
//! Read by hand instead of through candle's structs, which refuse `sliding_window: null` and the newer
//! `rope_parameters`, and which cannot say in words what is not supported.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::EngineError;

/// Model families the forward pass knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// Qwen2 and Qwen2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: no biases, RMS norm of every query and key head.
    Qwen3,
}

impl Arch {
    /// Name as in `model_type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// What the forward pass must know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Family.
    pub arch: Arch,
    /// The class named in `architectures` (`"Qwen2ForTokenClassification"`).
    pub class: String,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Number of layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Epsilon of every RMS norm.
    pub rms_eps: f32,
    /// Base of the rotary embedding.
    pub rope_theta: f64,
    /// Positions the model was made for.
    pub max_positions: usize,
    /// Outputs of the head by `id2label` or `num_labels`; `None` = the config does not say, the tensor decides.
    pub num_labels: Option<usize>,
    /// Names of the outputs, in order (empty if the config has no `id2label`).
    pub labels: Vec<String>,
}

/// Largest number any size in a config may have: keeps arithmetic on hostile files from overflowing.
const MAX_SIZE: usize = 1 << 24;

impl ModelConfig {
    /// Reads the text of a config.json; `file` is only for messages.
    pub fn parse(text: &[u8], file: &Path) -> Result<Self, EngineError> {
        let value: Value = serde_json::from_slice(text).map_err(|e| EngineError::File {
            file: file.to_path_buf(),
            what: format!("not JSON ({e})"),
            help: "expected the config.json of a Hugging Face model folder".into(),
        })?;
        let Value::Object(map) = value else {
            return Err(EngineError::File {
                file: file.to_path_buf(),
                what: "expected a JSON object at the top".into(),
                help: "give the config.json of a Hugging Face model folder".into(),
            });
        };
        let reader = Reader { map: &map, file };
        let config = reader.model()?;
        reader.check(&config)?;
        Ok(config)
    }

    /// Width of the fused query, key and value projection.
    pub fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// Have the query, key and value projections biases?
    pub fn has_qkv_bias(&self) -> bool {
        self.arch == Arch::Qwen2
    }

    /// Is every query and key head normalised?
    pub fn has_head_norms(&self) -> bool {
        self.arch == Arch::Qwen3
    }
}

struct Reader<'a> {
    map: &'a Map<String, Value>,
    file: &'a Path,
}

impl Reader<'_> {
    fn model(&self) -> Result<ModelConfig, EngineError> {
        let (arch, class) = self.architecture()?;
        self.refuse_unsupported()?;
        let hidden = self.size("hidden_size")?;
        let heads = self.size("num_attention_heads")?;
        let labels = self.labels()?;
        Ok(ModelConfig {
            arch,
            class,
            vocab_size: self.size("vocab_size")?,
            hidden,
            intermediate: self.size("intermediate_size")?,
            layers: self.size("num_hidden_layers")?,
            heads,
            kv_heads: self.optional_size("num_key_value_heads")?.unwrap_or(heads),
            head_dim: match (self.optional_size("head_dim")?, arch) {
                (Some(dim), _) => dim,
                (None, Arch::Qwen2) => hidden / heads,
                (None, Arch::Qwen3) => 128,
            },
            rms_eps: self.optional_number("rms_norm_eps")?.unwrap_or(1e-6) as f32,
            rope_theta: self.rope_theta()?,
            max_positions: self.optional_size("max_position_embeddings")?.unwrap_or(32_768),
            num_labels: if labels.is_empty() { self.optional_size("num_labels")? } else { Some(labels.len()) },
            labels,
        })
    }

    /// Sizes that must fit together, whatever the family.
    fn check(&self, c: &ModelConfig) -> Result<(), EngineError> {
        if !c.heads.is_multiple_of(c.kv_heads) {
            return Err(self.wrong(
                "num_key_value_heads",
                &format!("a divisor of num_attention_heads ({})", c.heads),
                &c.kv_heads.to_string(),
            ));
        }
        if c.head_dim == 0 || !c.head_dim.is_multiple_of(2) {
            return Err(self.wrong("head_dim", "an even number", &c.head_dim.to_string()));
        }
        if !(c.rms_eps > 0.0 && c.rms_eps < 1.0) {
            return Err(self.wrong("rms_norm_eps", "a small positive number", &c.rms_eps.to_string()));
        }
        if !(c.rope_theta > 1.0 && c.rope_theta.is_finite()) {
            return Err(self.wrong("rope_theta", "a number above 1", &c.rope_theta.to_string()));
        }
        Ok(())
    }

    fn architecture(&self) -> Result<(Arch, String), EngineError> {
        let class = match self.map.get("architectures") {
            Some(Value::Array(list)) => match list.first() {
                Some(Value::String(class)) => class.clone(),
                other => return Err(self.wrong("architectures", "a list with one class name", &brief(other))),
            },
            other => return Err(self.wrong("architectures", "a list with one class name", &brief(other))),
        };
        let arch = match class.as_str() {
            "Qwen2ForTokenClassification" => Arch::Qwen2,
            "Qwen3ForTokenClassification" => Arch::Qwen3,
            _ => {
                return Err(self.unsupported(
                    &format!("architecture `{class}`"),
                    "this version runs Qwen2ForTokenClassification and Qwen3ForTokenClassification",
                ));
            }
        };
        if let Some(kind) = self.map.get("model_type").and_then(Value::as_str)
            && kind != arch.name()
        {
            return Err(self.wrong("model_type", &format!("`{}` (by `architectures`)", arch.name()), kind));
        }
        Ok((arch, class))
    }

    fn refuse_unsupported(&self) -> Result<(), EngineError> {
        if self.map.get("use_sliding_window").and_then(Value::as_bool) == Some(true) {
            return Err(self.unsupported(
                "`use_sliding_window: true`",
                "use a checkpoint with full attention (sliding_window null)",
            ));
        }
        if let Some(Value::Array(kinds)) = self.map.get("layer_types")
            && let Some(kind) = kinds.iter().filter_map(Value::as_str).find(|k| *k != "full_attention")
        {
            return Err(self.unsupported(
                &format!("layer type `{kind}`"),
                "use a checkpoint whose layer_types are all full_attention",
            ));
        }
        if self.present("quantization_config") {
            return Err(
                self.unsupported("a quantised checkpoint (`quantization_config`)", "use the f32, f16 or bf16 original")
            );
        }
        if self.map.get("attention_bias").and_then(Value::as_bool) == Some(true)
            && self.map.get("model_type").and_then(Value::as_str) == Some("qwen3")
        {
            return Err(
                self.unsupported("`attention_bias: true` in Qwen3", "use a checkpoint without attention biases")
            );
        }
        match self.map.get("hidden_act") {
            None => Ok(()),
            Some(Value::String(act)) if act == "silu" => Ok(()),
            other => Err(self.unsupported(&format!("hidden_act {}", brief(other)), "only `silu` is implemented")),
        }
    }

    /// `rope_theta` at the top (transformers 4) or inside `rope_parameters` (transformers 5); scaling is refused.
    fn rope_theta(&self) -> Result<f64, EngineError> {
        for key in ["rope_scaling", "rope_parameters"] {
            let Some(value) = self.map.get(key).filter(|v| !v.is_null()) else { continue };
            let Value::Object(rope) = value else {
                return Err(self.wrong(key, "an object or null", &brief(Some(value))));
            };
            let kind = rope.get("rope_type").or_else(|| rope.get("type"));
            if let Some(kind) = kind
                && kind.as_str() != Some("default")
            {
                return Err(self.unsupported(
                    &format!("rope scaling {} in `{key}`", brief(Some(kind))),
                    "remove the scaling to run within the model's original window",
                ));
            }
            if let Some(theta) = rope.get("rope_theta") {
                let path = format!("{key}.rope_theta");
                return theta.as_f64().ok_or_else(|| self.wrong(&path, "a number", &brief(Some(theta))));
            }
        }
        match self.optional_number("rope_theta")? {
            Some(theta) => Ok(theta),
            None => Err(self.wrong("rope_theta", "a number here or in `rope_parameters`", "nothing")),
        }
    }

    /// The names of `id2label`, ordered by their number.
    fn labels(&self) -> Result<Vec<String>, EngineError> {
        let map = match self.map.get("id2label") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(map)) => map,
            other => return Err(self.wrong("id2label", "an object", &brief(other))),
        };
        let mut named = vec![None; map.len()];
        for (id, name) in map {
            let slot = id.parse::<usize>().ok().and_then(|i| named.get_mut(i));
            let (Some(slot), Some(name)) = (slot, name.as_str()) else {
                let expected = format!("names for the numbers 0 to {}", map.len().saturating_sub(1));
                return Err(self.wrong("id2label", &expected, &format!("`{id}`: {name}")));
            };
            *slot = Some(name.to_string());
        }
        Ok(named.into_iter().flatten().collect())
    }

    fn size(&self, key: &str) -> Result<usize, EngineError> {
        self.optional_size(key)?.ok_or_else(|| self.wrong(key, "a positive whole number", "nothing"))
    }

    fn optional_size(&self, key: &str) -> Result<Option<usize>, EngineError> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|n| usize::try_from(n).ok()) {
                Some(n) if (1..=MAX_SIZE).contains(&n) => Ok(Some(n)),
                _ => Err(self.wrong(key, "a positive whole number", &brief(Some(value)))),
            },
        }
    }

    fn optional_number(&self, key: &str) -> Result<Option<f64>, EngineError> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(key, "a number", &brief(Some(value)))),
            },
        }
    }

    fn present(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|v| !v.is_null())
    }

    fn wrong(&self, key: &str, expected: &str, found: &str) -> EngineError {
        EngineError::Config {
            file: self.file.to_path_buf(),
            key: key.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn unsupported(&self, what: &str, help: &str) -> EngineError {
        EngineError::Unsupported { file: PathBuf::from(self.file), what: what.into(), help: help.into() }
    }
}

/// A JSON value for a message: at most 60 characters.
fn brief(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".into() };
    let text = value.to_string();
    if text.chars().count() > 60 { text.chars().take(60).chain(['…']).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Value {
        serde_json::json!({
            "architectures": ["Qwen2ForTokenClassification"], "model_type": "qwen2", "hidden_act": "silu",
            "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
            "max_position_embeddings": 4096, "sliding_window": null, "use_sliding_window": false,
            "id2label": {"0": "LABEL_0"}, "torch_dtype": "float32", "tie_word_embeddings": false
        })
    }

    fn parse(value: &Value) -> Result<ModelConfig, EngineError> {
        ModelConfig::parse(value.to_string().as_bytes(), Path::new("m/config.json"))
    }

    fn with(key: &str, value: Value) -> Value {
        let mut config = base();
        config[key] = value;
        config
    }

    fn message(value: &Value) -> String {
        parse(value).unwrap_err().to_string()
    }

    #[test]
    fn both_generations_of_rope_keys_give_the_same_model() {
        let old = parse(&base()).unwrap();
        let mut new = base();
        new.as_object_mut().unwrap().remove("rope_theta");
        new["rope_parameters"] = serde_json::json!({"rope_theta": 1e6, "rope_type": "default"});
        new["dtype"] = "float32".into();
        new["layer_types"] = serde_json::json!(["full_attention", "full_attention"]);
        assert_eq!(parse(&new).unwrap(), old);
        assert_eq!((old.head_dim, old.num_labels, old.rope_theta), (8, Some(1), 1e6));
        assert_eq!(old.labels, ["LABEL_0"]);
        assert_eq!(old.qkv_width(), 64);
    }

    #[test]
    fn a_missing_id2label_leaves_the_number_of_outputs_to_the_tensor() {
        let mut config = base();
        config.as_object_mut().unwrap().remove("id2label");
        assert_eq!(parse(&config).unwrap().num_labels, None);
        config["num_labels"] = 3.into();
        assert_eq!(parse(&config).unwrap().num_labels, Some(3));
    }

    #[test]
    fn qwen3_has_its_own_head_width() {
        let mut config = base();
        config["architectures"] = serde_json::json!(["Qwen3ForTokenClassification"]);
        config["model_type"] = "qwen3".into();
        assert_eq!(parse(&config).unwrap().head_dim, 128);
        config["head_dim"] = 48.into();
        let read = parse(&config).unwrap();
        assert_eq!((read.arch, read.head_dim), (Arch::Qwen3, 48));
        config["attention_bias"] = true.into();
        assert!(message(&config).contains("attention_bias"));
    }

    #[test]
    fn messages_name_file_key_expected_and_found() {
        let mut config = base();
        config.as_object_mut().unwrap().remove("hidden_size");
        assert_eq!(
            message(&config),
            "m/config.json: key `hidden_size`: expected a positive whole number, found nothing"
        );
        assert_eq!(
            message(&with("num_key_value_heads", 3.into())),
            "m/config.json: key `num_key_value_heads`: expected a divisor of num_attention_heads (4), found 3"
        );
        assert!(message(&with("vocab_size", (-3).into())).contains("found -3"));
        assert!(message(&with("vocab_size", 1e30.into())).contains("vocab_size"));
        assert!(message(&with("num_attention_heads", 0.into())).contains("found 0"));
        assert!(message(&with("rms_norm_eps", "small".into())).contains("expected a number, found \"small\""));
        assert!(message(&with("id2label", serde_json::json!({"1": "x"}))).contains("numbers 0 to 0"));
        assert!(message(&with("head_dim", 7.into())).contains("even"));
        assert!(message(&with("model_type", "llama".into())).contains("found llama"));
        assert!(message(&with("architectures", Value::Null)).contains("a list with one class name"));
    }

    #[test]
    fn what_is_not_supported_is_refused_in_words() {
        let cases = [
            ("architectures", serde_json::json!(["LlamaForCausalLM"]), "architecture `LlamaForCausalLM`"),
            ("use_sliding_window", true.into(), "use_sliding_window"),
            ("layer_types", serde_json::json!(["full_attention", "sliding_attention"]), "sliding_attention"),
            ("rope_scaling", serde_json::json!({"type": "yarn", "factor": 4.0}), "rope scaling \"yarn\""),
            (
                "rope_parameters",
                serde_json::json!({"rope_type": "yarn", "rope_theta": 1e6}),
                "rope scaling \"yarn\" in `rope_parameters`",
            ),
            ("hidden_act", "gelu".into(), "hidden_act \"gelu\""),
            ("quantization_config", serde_json::json!({"bits": 4}), "quantised"),
        ];
        for (key, value, part) in cases {
            let said = message(&with(key, value));
            assert!(said.starts_with("m/config.json: not supported: ") && said.contains(part), "{said}");
        }
    }

    #[test]
    fn broken_json_is_one_line() {
        for text in ["", "[1]", "{\"a\":", "\u{feff}{}"] {
            let said = ModelConfig::parse(text.as_bytes(), Path::new("c.json")).unwrap_err().to_string();
            assert!(said.starts_with("c.json: ") && !said.contains('\n'), "{said}");
        }
    }
}
