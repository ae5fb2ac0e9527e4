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
    assert!(!read.has_qkv_bias() && !read.has_output_bias());
    config["attention_bias"] = true.into();
    let read = parse(&config).unwrap();
    assert!(read.has_qkv_bias() && read.has_output_bias());
}

#[test]
fn qwen2_has_biases_on_queries_keys_and_values_whatever_the_key_says() {
    let read = parse(&with("attention_bias", false.into())).unwrap();
    assert!(read.has_qkv_bias() && !read.has_output_bias());
}

#[test]
fn the_class_says_what_the_model_is_for() {
    let cases = [
        ("Qwen2ForTokenClassification", Task::TokenValues),
        ("Qwen2ForProcessRewardModel", Task::TokenValues),
        ("Qwen2ForSequenceClassification", Task::SequenceValues),
        ("Qwen2ForRewardModel", Task::SequenceValues),
        ("Qwen2ForCausalLM", Task::Language),
    ];
    for (class, task) in cases {
        assert_eq!(parse(&with("architectures", serde_json::json!([class]))).unwrap().task, task, "{class}");
    }
    for class in ["Qwen2Model", "Qwen", "Qwen2MoeForCausalLM", "Qwén", "Qwen4ForCausalLM", ""] {
        assert!(message(&with("architectures", serde_json::json!([class]))).contains("Qwen2 and Qwen3 as"), "{class}");
    }
}

#[test]
fn sliding_layers_are_those_transformers_makes_slide() {
    let sliding = |layers: i32, types: Value| {
        let mut config = with("use_sliding_window", true.into());
        config["sliding_window"] = 512.into();
        config["max_window_layers"] = layers.into();
        config["layer_types"] = types;
        parse(&config).unwrap()
    };
    assert_eq!(sliding(2, Value::Null).window, None, "both layers are below max_window_layers");
    assert_eq!(sliding(1, Value::Null).window, Some(512));
    assert_eq!((sliding(0, Value::Null).window, sliding(0, Value::Null).longest_text()), (Some(512), 512));
    assert_eq!(sliding(1, serde_json::json!(["full_attention", "full_attention"])).window, None);
    assert_eq!(sliding(2, serde_json::json!(["full_attention", "sliding_attention"])).window, Some(512));
    assert_eq!(sliding(2, Value::Null).longest_text(), 4096);
    let mut without = with("use_sliding_window", true.into());
    without["max_window_layers"] = 1.into();
    assert!(message(&without).contains("key `sliding_window`: expected a positive whole number, found nothing"));
}

#[test]
fn both_spellings_of_scaling_are_read_alike() {
    let old = with("rope_scaling", serde_json::json!({"type": "yarn", "factor": 4.0}));
    let mut new = base();
    new.as_object_mut().unwrap().remove("rope_theta");
    new["rope_parameters"] = serde_json::json!({"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6,
        "beta_fast": null, "beta_slow": 0, "mscale": 0.0, "mscale_all_dim": 2.0});
    let yarn = Yarn {
        factor: 4.0,
        original: 4096.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: true,
        attention_factor: 0.1 * 4f64.ln() + 1.0,
    };
    for config in [&old, &new] {
        let read = parse(config).unwrap();
        assert_eq!((read.rope_scaling, read.max_positions), (RopeScaling::Yarn(yarn), 4 * 4096));
    }
    let mut all = old.clone();
    all["rope_scaling"] = serde_json::json!({"type": "yarn", "factor": null, "original_max_position_embeddings": 1024,
        "attention_factor": 1.5, "truncate": false});
    let expected = Yarn { original: 1024.0, truncate: false, attention_factor: 1.5, ..yarn };
    assert_eq!(parse(&all).unwrap().rope_scaling, RopeScaling::Yarn(expected), "4096 / 1024 = 4");
    all["original_max_position_embeddings"] = 2048.into();
    let expected = Yarn { original: 2048.0, factor: 2.0, ..expected };
    assert_eq!(parse(&all).unwrap().rope_scaling, RopeScaling::Yarn(expected), "the key outside goes first");
    let linear = with("rope_scaling", serde_json::json!({"rope_type": "linear", "factor": 2}));
    assert_eq!(parse(&linear).unwrap().rope_scaling, RopeScaling::Linear(2.0));
    assert_eq!(parse(&with("rope_scaling", serde_json::json!({}))).unwrap().rope_scaling, RopeScaling::Default);
}

#[test]
fn scaling_without_a_usable_factor_is_refused_with_its_path() {
    let said = |rope: Value| message(&with("rope_scaling", rope));
    for kind in ["linear", "yarn"] {
        let missing = said(serde_json::json!({"type": kind}));
        assert_eq!(missing, "m/config.json: key `rope_scaling.factor`: expected a number above 0, found nothing");
        assert!(said(serde_json::json!({"type": kind, "factor": "4"})).contains("rope_scaling.factor"), "{kind}");
        assert!(said(serde_json::json!({"type": kind, "factor": -1})).contains("found -1"), "{kind}");
    }
    assert!(said("x".into()).contains("key `rope_scaling`: expected an object or null"));
    assert!(said(serde_json::json!({"type": "yarn", "factor": 2, "truncate": 3})).contains("rope_scaling.truncate"));
}

#[test]
fn messages_name_file_key_expected_and_found() {
    let mut config = base();
    config.as_object_mut().unwrap().remove("hidden_size");
    assert_eq!(message(&config), "m/config.json: key `hidden_size`: expected a positive whole number, found nothing");
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
    assert!(message(&with("tie_word_embeddings", "yes".into())).contains("expected true or false, found \"yes\""));
    assert!(message(&with("layer_types", serde_json::json!(["full_attention"]))).contains("expected 2 names, found 1"));
    let slides = with("layer_types", serde_json::json!(["full_attention", "sliding_attention"]));
    assert!(message(&slides).contains("key `use_sliding_window`: expected true, or only full_attention"));
    assert!(message(&with("architectures", Value::Null)).contains("a list with one class name"));
}

#[test]
fn what_is_not_supported_is_refused_in_words() {
    let cases = [
        ("architectures", serde_json::json!(["LlamaForCausalLM"]), "architecture `LlamaForCausalLM`"),
        ("layer_types", serde_json::json!(["full_attention", "linear_attention"]), "linear_attention"),
        ("rope_scaling", serde_json::json!({"type": "dynamic", "factor": 4.0}), "rope scaling \"dynamic\""),
        ("rope_scaling", serde_json::json!({"type": "longrope"}), "rope scaling \"longrope\""),
        (
            "rope_parameters",
            serde_json::json!({"rope_type": "llama3", "rope_theta": 1e6}),
            "rope scaling \"llama3\" in `rope_parameters`",
        ),
        (
            "rope_parameters",
            serde_json::json!({"full_attention": {"rope_type": "default"}, "rope_theta": 1e6}),
            "`rope_parameters.full_attention`: rotations by layer type",
        ),
        ("rope_parameters", serde_json::json!({"partial_rotary_factor": 0.5, "rope_theta": 1e6}), "partial_rotary"),
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
