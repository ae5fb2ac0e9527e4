use super::*;
use crate::engine::config::ModelConfig;

fn metadata(arch: &str) -> BTreeMap<String, Value> {
    let whole = |n: i128| Value::Whole(n);
    let values = [
        ("block_count", whole(2)),
        ("embedding_length", whole(64)),
        ("feed_forward_length", whole(96)),
        ("attention.head_count", whole(4)),
        ("attention.head_count_kv", whole(2)),
        ("attention.layer_norm_rms_epsilon", Value::Float(f64::from(1e-6f32))),
        ("rope.freq_base", Value::Float(1e6)),
        ("context_length", whole(32_768)),
    ];
    let mut all: BTreeMap<String, Value> =
        values.into_iter().map(|(key, value)| (format!("{arch}.{key}"), value)).collect();
    all.insert("general.architecture".into(), Value::Text(arch.into()));
    all
}

const FOUND: Found = Found { vocab: 300, head: true, untied: false, biases: false };

fn config(values: BTreeMap<String, Value>, found: Found) -> Result<ModelConfig, EngineError> {
    let file = Path::new("m.gguf");
    let json = Metadata::new(values, file).config_json(found)?;
    ModelConfig::parse(json.to_string().as_bytes(), file)
}

fn with(key: &str, value: Value) -> BTreeMap<String, Value> {
    let mut values = metadata("qwen2");
    values.insert(format!("qwen2.{key}"), value);
    values
}

fn message(key: &str, value: Value) -> String {
    let said = config(with(key, value), FOUND).unwrap_err().to_string();
    assert!(said.starts_with("m.gguf: ") && !said.contains('\n'), "{said}");
    said
}

#[test]
fn metadata_is_the_config_it_was_made_from() {
    let read = config(metadata("qwen2"), FOUND).unwrap();
    assert_eq!((read.class.as_str(), read.vocab_size, read.hidden), ("Qwen2ForTokenClassification", 300, 64));
    assert_eq!((read.layers, read.heads, read.kv_heads, read.head_dim, read.intermediate), (2, 4, 2, 16, 96));
    assert_eq!((read.rms_eps, read.rope_theta, read.max_positions), (1e-6, 1e6, 32_768));
    assert_eq!(read.num_labels, None, "the tensor decides");
    let mut wider = metadata("qwen3");
    wider.insert("qwen3.attention.key_length".into(), Value::Whole(128));
    let read = config(wider, FOUND).unwrap();
    assert_eq!((read.class.as_str(), read.head_dim), ("Qwen3ForTokenClassification", 128));
}

#[test]
fn labels_are_taken_from_the_classifier() {
    let labels = Value::Texts(vec!["yes".into(), "no".into()]);
    let read = config(with("classifier.output_labels", labels), FOUND).unwrap();
    assert_eq!((read.num_labels, read.labels), (Some(2), vec!["yes".to_string(), "no".into()]));
}

#[test]
fn the_class_follows_head_and_pooling() {
    let class = |values: BTreeMap<String, Value>, found| {
        let json = Metadata::new(values, Path::new("m.gguf")).config_json(found).unwrap();
        json["architectures"][0].as_str().unwrap().to_string()
    };
    let rank = || with("pooling_type", Value::Whole(4));
    assert_eq!(class(rank(), FOUND), "Qwen2ForSequenceClassification");
    let none = Found { head: false, ..FOUND };
    assert_eq!(class(metadata("qwen3"), none), "Qwen3ForCausalLM");
    assert_eq!(class(rank(), none), "Qwen2ForCausalLM");
}

#[test]
fn stretched_positions_are_described_as_transformers_does() {
    let scaling = |extra: &[(&str, Value)]| {
        let mut values = metadata("qwen2");
        values.insert("qwen2.rope.scaling.type".into(), Value::Text("yarn".into()));
        for (key, value) in extra {
            values.insert(format!("qwen2.rope.scaling.{key}"), value.clone());
        }
        Metadata::new(values, Path::new("m.gguf")).config_json(FOUND)
    };
    let factor = ("factor", Value::Float(4.0));
    let original = ("original_context_length", Value::Whole(32_768));
    let json = scaling(&[factor.clone(), original]).unwrap();
    let expected = json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768});
    assert_eq!(json["rope_scaling"], expected);
    let said = scaling(&[]).unwrap_err().to_string();
    assert!(said.contains("key `qwen2.rope.scaling.factor`: expected a number, found nothing"), "{said}");
    let odd = scaling(&[factor, ("attn_factor", Value::Float(1.5))]).unwrap_err().to_string();
    assert!(odd.contains("not supported: `qwen2.rope.scaling.attn_factor` = 1.5"), "{odd}");
    let none = config(with("rope.scaling.type", Value::Text("none".into())), FOUND).unwrap();
    assert_eq!(none, config(metadata("qwen2"), FOUND).unwrap());
    assert!(message("rope.scaling.type", Value::Text("longrope".into())).contains("rope scaling `longrope`"));
}

#[test]
fn keys_that_make_no_sense_are_named() {
    assert!(
        message("block_count", Value::Whole(0))
            .contains("key `qwen2.block_count`: expected a positive whole number, found 0")
    );
    assert!(
        message("context_length", Value::Text("x".into()))
            .contains("key `qwen2.context_length`: expected a whole number")
    );
    assert!(message("embedding_length", Value::Whole(-3)).contains("found -3"));
    assert!(message("rope.dimension_count", Value::Whole(8)).contains("the width of a head, 16, found 8"));
    assert!(message("attention.sliding_window", Value::Whole(512)).contains("sliding attention over 512 tokens"));
    assert!(message("rope.freq_base", Value::Flag(true)).contains("key `qwen2.rope.freq_base`: expected a number"));
    let said = config(BTreeMap::new(), FOUND).unwrap_err().to_string();
    assert!(said.contains("key `general.architecture`: expected qwen2 or qwen3, found nothing"), "{said}");
    let said = config(metadata("gemma3"), FOUND).unwrap_err().to_string();
    assert!(said.contains("not supported: architecture `gemma3`"), "{said}");
}
