//! llama.cpp's names of tensors in Hugging Face's words.
//!
//! Its converter permutes the rows of queries and keys for Llama only: those of Qwen2 and Qwen3, which are rotated in
//! halves, are in the checkpoint's order (held to by tests/engine_gguf.rs).

/// Tensors outside the layers. The head of a classifier is `cls.output`; of a language model `output`, absent when the
/// embedding serves as it.
const WHOLE: [(&str, &str); 5] = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.weight", "model.norm.weight"),
    ("output.weight", "lm_head.weight"),
    ("cls.output.weight", "score.weight"),
    ("cls.output.bias", "score.bias"),
];

/// Tensors of a layer, without `.weight` and `.bias`.
const OF_LAYER: [(&str, &str); 11] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// Hugging Face's name of a tensor; `None` = one that no model here has.
pub(super) fn hugging_face(name: &str) -> Option<String> {
    if let Some((_, theirs)) = WHOLE.iter().find(|(ours, _)| *ours == name) {
        return Some((*theirs).into());
    }
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let number: usize = number.parse().ok()?;
    let (part, kind) = rest.rsplit_once('.')?;
    let (_, theirs) = OF_LAYER.iter().find(|(ours, _)| *ours == part)?;
    matches!(kind, "weight" | "bias").then(|| format!("model.layers.{number}.{theirs}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_translated_and_unknown_ones_are_not() {
        let cases = [
            ("token_embd.weight", Some("model.embed_tokens.weight")),
            ("blk.12.attn_q.bias", Some("model.layers.12.self_attn.q_proj.bias")),
            ("blk.0.attn_k_norm.weight", Some("model.layers.0.self_attn.k_norm.weight")),
            ("blk.3.ffn_down.weight", Some("model.layers.3.mlp.down_proj.weight")),
            ("cls.output.bias", Some("score.bias")),
            ("blk.x.ffn_down.weight", None),
            ("blk.1.ffn_gate_exps.weight", None),
            ("rope_freqs.weight", None),
        ];
        for (ours, theirs) in cases {
            assert_eq!(hugging_face(ours).as_deref(), theirs, "{ours}");
        }
    }
}
