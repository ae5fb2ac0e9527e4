//! The keys of config.json, one by one, each refused with its name when it makes no sense.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Arch, MAX_SIZE, ModelConfig, RopeScaling, Task, Yarn};
use crate::engine::error::EngineError;

pub(super) struct Reader<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) file: &'a Path,
}

impl Reader<'_> {
    /// Everything but [`Self::check`].
    pub(super) fn model(&self) -> Result<ModelConfig, EngineError> {
        let (arch, task, class) = self.architecture()?;
        self.refuse_unsupported()?;
        let hidden = self.size("hidden_size")?;
        let heads = self.size("num_attention_heads")?;
        let labels = self.labels()?;
        let layers = self.size("num_hidden_layers")?;
        let max_positions = self.optional_size("max_position_embeddings")?.unwrap_or(32_768);
        let (rope_theta, rope_scaling) = self.rope(max_positions)?;
        Ok(ModelConfig {
            arch,
            class,
            task,
            vocab_size: self.size("vocab_size")?,
            hidden,
            intermediate: self.size("intermediate_size")?,
            layers,
            heads,
            kv_heads: self.optional_size("num_key_value_heads")?.unwrap_or(heads),
            head_dim: match (self.optional_size("head_dim")?, arch) {
                (Some(dim), _) => dim,
                (None, Arch::Qwen2) => hidden / heads,
                (None, Arch::Qwen3) => 128,
            },
            rms_eps: self.optional_number("rms_norm_eps")?.unwrap_or(1e-6) as f32,
            rope_theta,
            rope_scaling,
            max_positions: stretched(max_positions, rope_scaling),
            window: self.window(layers)?,
            // Qwen2 has its biases whatever the key says.
            attention_bias: arch == Arch::Qwen2 || self.flag("attention_bias")?.unwrap_or(false),
            tied: self.flag("tie_word_embeddings")?.unwrap_or(false),
            num_labels: if labels.is_empty() { self.optional_size("num_labels")? } else { Some(labels.len()) },
            labels,
        })
    }

    /// Sizes that must fit together, whatever the family.
    pub(super) fn check(&self, c: &ModelConfig) -> Result<(), EngineError> {
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

    fn architecture(&self) -> Result<(Arch, Task, String), EngineError> {
        let class = match self.map.get("architectures") {
            Some(Value::Array(list)) => match list.first() {
                Some(Value::String(class)) => class.clone(),
                other => return Err(self.wrong("architectures", "a list with one class name", &brief(other))),
            },
            other => return Err(self.wrong("architectures", "a list with one class name", &brief(other))),
        };
        let Some((arch, task)) = known(&class) else {
            return Err(self.unsupported(
                &format!("architecture `{class}`"),
                "this version runs Qwen2 and Qwen3 as ForTokenClassification, ForSequenceClassification, \
                 ForRewardModel, ForProcessRewardModel and ForCausalLM",
            ));
        };
        if let Some(kind) = self.map.get("model_type").and_then(Value::as_str)
            && kind != arch.name()
        {
            return Err(self.wrong("model_type", &format!("`{}` (by `architectures`)", arch.name()), kind));
        }
        Ok((arch, task, class))
    }

    fn refuse_unsupported(&self) -> Result<(), EngineError> {
        if self.present("quantization_config") {
            return Err(
                self.unsupported("a quantised checkpoint (`quantization_config`)", "use the f32, f16 or bf16 original")
            );
        }
        match self.map.get("hidden_act") {
            None => Ok(()),
            Some(Value::String(act)) if act == "silu" => Ok(()),
            other => Err(self.unsupported(&format!("hidden_act {}", brief(other)), "only `silu` is implemented")),
        }
    }

    /// The window of the layers with sliding attention, if there are such layers.
    ///
    /// As transformers reads it: `layer_types` says which layers slide; without it those from `max_window_layers` on
    /// do if `use_sliding_window` is true. A window as long as the longest text is full attention.
    fn window(&self, layers: usize) -> Result<Option<usize>, EngineError> {
        let used = self.flag("use_sliding_window")?.unwrap_or(false);
        let slides = match self.map.get("layer_types") {
            None | Some(Value::Null) => used && self.optional_count("max_window_layers")?.unwrap_or(28) < layers,
            Some(Value::Array(kinds)) => {
                if kinds.len() != layers {
                    return Err(self.wrong("layer_types", &format!("{layers} names"), &kinds.len().to_string()));
                }
                for kind in kinds {
                    if !matches!(kind.as_str(), Some("full_attention" | "sliding_attention")) {
                        return Err(self.unsupported(
                            &format!("layer type {}", brief(Some(kind))),
                            "only full_attention and sliding_attention are known",
                        ));
                    }
                }
                kinds.iter().any(|kind| kind.as_str() == Some("sliding_attention"))
            }
            other => return Err(self.wrong("layer_types", "a list of names", &brief(other))),
        };
        if !slides {
            return Ok(None);
        }
        if !used {
            let found = "layers named sliding_attention";
            return Err(self.wrong("use_sliding_window", "true, or only full_attention in `layer_types`", found));
        }
        Ok(Some(self.size("sliding_window")?))
    }

    /// Base and scaling: `rope_theta` and `rope_scaling` at the top (transformers 4), or both inside
    /// `rope_parameters` (transformers 5).
    fn rope(&self, max_positions: usize) -> Result<(f64, RopeScaling), EngineError> {
        let given = ["rope_scaling", "rope_parameters"].into_iter().find(|key| match self.map.get(*key) {
            Some(Value::Object(map)) => !map.is_empty(),
            other => other.is_some_and(|v| !v.is_null()),
        });
        let top = self.optional_number("rope_theta")?;
        let missing = || self.wrong("rope_theta", "a number here or in `rope_parameters`", "nothing");
        let Some(key) = given else { return Ok((top.ok_or_else(missing)?, RopeScaling::Default)) };
        let Some(Value::Object(map)) = self.map.get(key) else {
            return Err(self.wrong(key, "an object or null", &brief(self.map.get(key))));
        };
        let nested = Reader { map, file: self.file };
        let number = |name: &str| nested.optional_number(name).map_err(|e| inside(key, e));
        if let Some((name, _)) = map.iter().find(|(_, value)| value.is_object()) {
            return Err(
                self.unsupported(&format!("`{key}.{name}`: rotations by layer type"), "only one for all layers is")
            );
        }
        if number("partial_rotary_factor")?.or(self.optional_number("partial_rotary_factor")?).unwrap_or(1.0) < 1.0 {
            return Err(self.unsupported("partial_rotary_factor below 1", "only heads that turn as a whole are"));
        }
        let theta = number("rope_theta")?.or(top).ok_or_else(missing)?;
        let kind = map.get("rope_type").or_else(|| map.get("type"));
        let factor = || -> Result<f64, EngineError> {
            match number("factor")? {
                Some(factor) if factor > 0.0 && factor.is_finite() => Ok(factor),
                _ => Err(self.wrong(&format!("{key}.factor"), "a number above 0", &brief(map.get("factor")))),
            }
        };
        let scaling = match kind.map_or(Some("default"), Value::as_str) {
            Some("default") => RopeScaling::Default,
            Some("linear") => RopeScaling::Linear(factor()?),
            Some("yarn") => RopeScaling::Yarn(self.yarn(key, &nested, max_positions)?),
            _ => {
                return Err(self.unsupported(
                    &format!("rope scaling {} in `{key}`", brief(kind)),
                    "default, linear and yarn are; remove the scaling to run within the model's original window",
                ));
            }
        };
        Ok((theta, scaling))
    }

    fn yarn(&self, key: &str, rope: &Reader<'_>, max_positions: usize) -> Result<Yarn, EngineError> {
        let number = |name: &str| -> Result<Option<f64>, EngineError> {
            match rope.optional_number(name).map_err(|e| inside(key, e))? {
                Some(n) if !n.is_finite() || n < 0.0 => {
                    Err(self.wrong(&format!("{key}.{name}"), "a positive number", &n.to_string()))
                }
                n => Ok(n),
            }
        };
        let positive = |name: &str, otherwise: f64| number(name).map(|n| n.filter(|n| *n > 0.0).unwrap_or(otherwise));
        let top = self.optional_number("original_max_position_embeddings")?.filter(|n| *n > 0.0);
        let original = match top {
            Some(n) => n,
            None => positive("original_max_position_embeddings", max_positions as f64)?,
        };
        // `factor: null` is what DeepSeek's configs have; a missing one is a mistake.
        if !rope.map.contains_key("factor") {
            return Err(self.wrong(&format!("{key}.factor"), "a number above 0", "nothing"));
        }
        let factor = positive("factor", max_positions as f64 / original)?;
        let attention_factor = match number("attention_factor")? {
            Some(given) => given,
            None => Yarn::attention_factor(factor, number("mscale")?, number("mscale_all_dim")?),
        };
        Ok(Yarn {
            factor,
            original,
            beta_fast: positive("beta_fast", 32.0)?,
            beta_slow: positive("beta_slow", 1.0)?,
            truncate: rope.flag("truncate").map_err(|e| inside(key, e))?.unwrap_or(true),
            attention_factor,
        })
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

    /// As [`Self::optional_size`], but 0 is a number too.
    fn optional_count(&self, key: &str) -> Result<Option<usize>, EngineError> {
        match self.map.get(key) {
            Some(value) if value.as_u64() == Some(0) => Ok(Some(0)),
            _ => self.optional_size(key),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, EngineError> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            other => Err(self.wrong(key, "true or false", &brief(other))),
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

/// The classes the engine runs.
fn known(class: &str) -> Option<(Arch, Task)> {
    let (family, kind) = class.split_at_checked(5)?;
    let arch = match family {
        "Qwen2" => Arch::Qwen2,
        "Qwen3" => Arch::Qwen3,
        _ => return None,
    };
    let task = match kind {
        "ForTokenClassification" | "ForProcessRewardModel" => Task::TokenValues,
        "ForSequenceClassification" | "ForRewardModel" => Task::SequenceValues,
        "ForCausalLM" => Task::Language,
        _ => return None,
    };
    Some((arch, task))
}

/// Positions a model is good for: a stretched one may say only what it had before.
fn stretched(max_positions: usize, scaling: RopeScaling) -> usize {
    match scaling {
        RopeScaling::Yarn(yarn) => max_positions.max(((yarn.factor * yarn.original) as usize).min(MAX_SIZE)),
        _ => max_positions,
    }
}

/// The same error with the key's whole path.
fn inside(outer: &str, error: EngineError) -> EngineError {
    match error {
        EngineError::Config { file, key, expected, found } => {
            EngineError::Config { file, key: format!("{outer}.{key}"), expected, found }
        }
        other => other,
    }
}
