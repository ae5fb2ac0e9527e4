use std::path::{Path, PathBuf};

use super::super::{CriticSpec, EngineError, EngineOptions, open};
use super::*;
use crate::critic::{Activation, Answer, Profile};
use crate::trajectory::{Role, Step};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1")
}

fn options() -> EngineOptions {
    EngineOptions { threads: Some(1), ..EngineOptions::default() }
}

fn critic(options: &EngineOptions) -> Box<dyn Critic> {
    open(&CriticSpec::Folder(fixture()), options).unwrap()
}

/// A run of `n` actions, each answered by an observation of `width` bytes.
fn run(n: usize, width: usize) -> Trajectory {
    let mut steps = vec![Step::new(Role::System, "You fix bugs."), Step::new(Role::User, "Fix é\u{1F600} issue 17")];
    for i in 0..n {
        steps.push(Step::new(Role::Assistant, format!("step {i}: look at file {}", i * 7 % 5)));
        steps.push(Step::new(Role::User, format!("{i}-").repeat(width)[..width].to_string()));
    }
    Trajectory { steps, ..Trajectory::default() }
}

fn score(critic: &mut dyn Critic, trajectory: &Trajectory) -> (Scores, Vec<ActionScore>) {
    let mut seen = Vec::new();
    let scores = critic.score(trajectory, &Cancel::default(), &mut |s| seen.push(s)).unwrap();
    (scores, seen)
}

#[test]
fn every_action_is_rewarded_where_its_turn_closes() {
    let mut critic = critic(&options());
    let trajectory = run(5, 40);
    let (scores, seen) = score(&mut *critic, &trajectory);
    assert_eq!(scores.actions, seen, "partial results are the result");
    assert_eq!(scores.cut, None);
    assert_eq!(scores.score, scores.actions[4].reward);
    let input = critic.inspect(&trajectory).unwrap();
    assert_eq!((input.tokens, input.cut, input.positions.len()), (scores.tokens, None, 5));
    for ((action, token, end), scored) in input.positions.iter().zip(&scores.actions) {
        assert_eq!((*action, Some(*token)), (scored.action, scored.token_index));
        assert!(input.text[..*end].ends_with(&format!("file {}<|im_end|>", action * 7 % 5)));
    }
    // The value is the model's own at that token.
    let tokenizer = std::fs::read(fixture().join("tokenizer.json")).unwrap();
    let tokenizer = TextTokenizer::from_bytes(&tokenizer, Path::new("t")).unwrap();
    let ids = tokenizer.encode(&input.text).unwrap().ids;
    let values = Model::open(&fixture(), &options()).unwrap().values(&ids, super::super::Chunks::Whole).unwrap();
    for scored in &scores.actions {
        let expected = f64::from(values[scored.token_index.unwrap()]);
        assert!((scored.reward.unwrap() - expected).abs() < 1e-5);
        assert!(!scored.after_cut);
    }
}

#[test]
fn a_long_run_keeps_exact_values_where_it_can_and_says_what_it_cut() {
    let trajectory = run(30, 150);
    let (whole, _) = score(&mut *critic(&options()), &trajectory);
    let first = critic(&options()).inspect(&trajectory).unwrap().positions[0].1;
    let max_tokens = Some(first + 1200);
    let mut narrow = critic(&EngineOptions { max_tokens, ..options() });
    assert_eq!(narrow.info().max_tokens, first + 1200);
    let (scores, seen) = score(&mut *narrow, &trajectory);
    let cut = scores.cut.clone().unwrap();
    assert!(cut.exact_until >= 4 && cut.exact_until < 30, "{cut:?}");
    assert!(cut.unscored.is_empty() && cut.note.contains(&format!("actions 1 to {}", cut.exact_until)), "{cut:?}");
    assert_eq!((whole.tokens, scores.actions.len()), (scores.tokens, 30));
    for (a, b) in scores.actions.iter().zip(&whole.actions) {
        let (exact, after) = (a.action < cut.exact_until, a.after_cut);
        assert_eq!(exact, !after);
        let difference = (a.reward.unwrap() - b.reward.unwrap()).abs();
        assert!(!exact || difference < 1e-5, "action {} moved by {difference}", a.action);
        assert!(a.token_index.unwrap() < first + 1200);
    }
    assert!(scores.actions.iter().zip(&whole.actions).any(|(a, b)| a.reward != b.reward));
    let order: Vec<usize> = seen.iter().map(|s| s.action).collect();
    assert_eq!(order, (0..30).collect::<Vec<_>>(), "filled from the left");
    let input = narrow.inspect(&trajectory).unwrap();
    assert_eq!(input.positions.len(), cut.exact_until);
    assert!(input.tokens <= first + 1200 && input.text.ends_with("<|im_end|>"));
    assert_eq!(input.cut, scores.cut);
}

#[test]
fn a_turn_too_long_for_any_window_stays_unscored_with_a_reason() {
    let mut trajectory = run(6, 20);
    let place = trajectory.action_steps()[3];
    trajectory.steps[place].text = "x".repeat(5000);
    let first = critic(&options()).inspect(&trajectory).unwrap().positions[0].1;
    let mut narrow = critic(&EngineOptions { max_tokens: Some(first + 1000), ..options() });
    let (scores, _) = score(&mut *narrow, &trajectory);
    let cut = scores.cut.unwrap();
    assert_eq!(cut.unscored, [3]);
    assert!(cut.note.contains("action 4 unscored"), "{}", cut.note);
    let rewarded: Vec<bool> = scores.actions.iter().map(|a| a.reward.is_some()).collect();
    assert_eq!(rewarded, [true, true, true, false, true, true]);
    assert!(scores.score.is_some());
}

#[test]
fn the_prefix_policy_and_an_unscored_end_leave_no_score() {
    let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
    profile.cut = CutPolicy::Prefix;
    let trajectory = run(30, 150);
    let first = critic(&options()).inspect(&trajectory).unwrap().positions[0].1;
    let options = EngineOptions { profile: Some(profile), max_tokens: Some(first + 1200), ..options() };
    let (scores, _) = score(&mut *critic(&options), &trajectory);
    let cut = scores.cut.unwrap();
    assert_eq!((scores.score, cut.unscored.len()), (None, 30 - cut.exact_until));
    assert!(cut.note.contains("only the beginning is read"), "{}", cut.note);
}

#[test]
fn cancelling_stops_and_no_actions_is_said() {
    let mut critic = critic(&options());
    let cancel = Cancel::default();
    cancel.cancel();
    let mut none = 0;
    assert_eq!(critic.score(&run(3, 10), &cancel, &mut |_| none += 1), Err(ScoreError::Cancelled));
    assert_eq!(none, 0);
    assert_eq!(critic.score(&run(0, 0), &Cancel::default(), &mut |_| {}), Err(ScoreError::NoActions));
    assert_eq!(critic.inspect(&run(0, 0)), Err(ScoreError::NoActions));
}

#[test]
fn scores_do_not_depend_on_what_was_scored_before() {
    let (a, b) = (run(12, 60), run(9, 80));
    let mut one = critic(&options());
    score(&mut *one, &a);
    let after = score(&mut *one, &b).0;
    assert_eq!(after, score(&mut *critic(&options()), &b).0);
    assert_eq!(score(&mut *one, &a).0, score(&mut *critic(&options()), &a).0);
}

/// A copy of the fixture with its files in one place, changed by the test.
fn copy() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture()).unwrap().flatten() {
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    dir
}

fn refusal(dir: &Path, options: &EngineOptions) -> String {
    let said = match open(&CriticSpec::Folder(dir.to_path_buf()), options) {
        Ok(critic) => panic!("opened {:?}", critic.info()),
        Err(error) => error.to_string(),
    };
    assert!(!said.contains('\n'), "one line: {said}");
    said
}

/// Overwrites the first bytes of a tensor in whichever shard has it.
fn poke(dir: &Path, tensor: &str, bytes: &[u8]) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.path().extension().is_none_or(|e| e != "safetensors") {
            continue;
        }
        let mut file = std::fs::read(entry.path()).unwrap();
        let header = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let json: serde_json::Value = serde_json::from_slice(&file[8..header]).unwrap();
        if let Some(start) = json[tensor]["data_offsets"][0].as_u64() {
            let at = header + start as usize;
            file[at..at + bytes.len()].copy_from_slice(bytes);
            std::fs::write(entry.path(), file).unwrap();
            return;
        }
    }
    panic!("no {tensor}");
}

#[test]
fn values_that_are_not_numbers_are_unscored_with_a_warning() {
    let dir = copy();
    poke(dir.path(), "score.bias", &f32::NAN.to_le_bytes());
    let mut critic = open(&CriticSpec::Folder(dir.path().to_path_buf()), &options()).unwrap();
    let (scores, _) = score(&mut *critic, &run(3, 10));
    assert!(scores.actions.iter().all(|a| a.reward.is_none() && a.token_index.is_some()));
    assert_eq!(scores.score, None);
    assert!(scores.warnings.iter().any(|w| w.contains("3 values were not a finite number")), "{:?}", scores.warnings);
}

#[test]
fn a_critic_says_who_it_is_and_its_fingerprint_follows_its_parts() {
    let info = critic(&options()).info().clone();
    assert_eq!((info.id.as_str(), info.profile.as_str()), ("qwen2-token-1", "openhands-32b"));
    assert_eq!((info.device.as_str(), info.dtype.as_str()), ("cpu", "f32"));
    assert!(info.note.contains("taken by the architecture"), "{}", info.note);
    assert_eq!(info.fingerprint.len(), 16);
    let print =
        |dir: &Path, o: &EngineOptions| open(&CriticSpec::Folder(dir.into()), o).unwrap().info().fingerprint.clone();
    let dir = copy();
    assert_eq!(print(dir.path(), &options()), info.fingerprint, "same files, same fingerprint");
    poke(dir.path(), "score.bias", &0.25f32.to_le_bytes());
    assert_ne!(print(dir.path(), &options()), info.fingerprint);
    let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
    profile.drop_threshold = 0.2;
    assert_ne!(print(&fixture(), &EngineOptions { profile: Some(profile), ..options() }), info.fingerprint);
}

#[test]
fn a_window_is_never_longer_than_the_model_was_made_for() {
    let dir = copy();
    let path = dir.path().join("config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("32768", "2000")).unwrap();
    let opened = open(&CriticSpec::Folder(dir.path().into()), &options()).unwrap();
    assert_eq!(opened.info().max_tokens, 2000);
    assert!(opened.info().note.contains("at most 2000 tokens, as the model says"), "{}", opened.info().note);
    assert_eq!(critic(&options()).info().max_tokens, 32_768);
    assert_eq!(critic(&EngineOptions { max_tokens: Some(50_000), ..options() }).info().max_tokens, 32_768);
}

#[test]
fn a_folder_may_carry_its_own_profile_and_the_user_may_overrule_it() {
    let dir = copy();
    let own = include_str!("../../assets/critics/openhands-32b.toml").replace("id = \"openhands-32b\"", "id = \"own\"");
    std::fs::write(dir.path().join("profile.toml"), own).unwrap();
    let opened = open(&CriticSpec::Folder(dir.path().into()), &options()).unwrap();
    assert_eq!((opened.info().profile.as_str(), opened.info().max_tokens), ("own", 32_768));
    let asked = EngineOptions { profile: Profile::by_id("openhands-32b").cloned(), ..options() };
    assert_eq!(open(&CriticSpec::Folder(dir.path().into()), &asked).unwrap().info().profile, "openhands-32b");
    std::fs::write(dir.path().join("profile.toml"), "id = 3").unwrap();
    assert!(refusal(dir.path(), &options()).contains("profile.toml"));
}

#[test]
fn parts_that_do_not_fit_are_refused_in_words() {
    let missing = refusal(Path::new("/nowhere/at/all"), &options());
    assert!(missing.contains("no such folder") && missing.contains("config.json"), "{missing}");
    let dir = copy();
    assert!(refusal(&dir.path().join("config.json"), &options()).contains("is a file, not a folder"));
    std::fs::remove_file(dir.path().join("model-00002-of-00004.safetensors")).unwrap();
    assert!(refusal(dir.path(), &options()).contains("model-00002-of-00004.safetensors"));
    let dir = copy();
    std::fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    assert!(refusal(dir.path(), &options()).contains("tokenizer.json"));
    std::fs::write(dir.path().join("tokenizer.json"), "{}").unwrap();
    assert!(refusal(dir.path(), &options()).contains("not a tokenizer.json"));
    let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
    profile.head.index = 1;
    let asked = EngineOptions { profile: Some(profile), ..options() };
    assert!(refusal(&fixture(), &asked).contains("head.index is 1, the model's head has 1 output"));
}

/// The fixture as a language model: its embedding is its head.
fn language_model() -> tempfile::TempDir {
    let dir = copy();
    let path = dir.path().join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["architectures"] = serde_json::json!(["Qwen2ForCausalLM"]);
    config["tie_word_embeddings"] = true.into();
    std::fs::write(&path, config.to_string()).unwrap();
    dir
}

#[test]
fn a_language_model_answers_with_the_share_of_one_answer_among_all() {
    let dir = language_model();
    let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
    profile.head.tokens = vec![Answer::Spellings(vec!["Y".into(), "y".into()]), Answer::One("N".into())];
    profile.activation = Activation::Softmax;
    let asked = EngineOptions { profile: Some(profile), ..options() };
    let mut critic = open(&CriticSpec::Folder(dir.path().into()), &asked).unwrap();
    let trajectory = run(3, 40);
    let (scores, _) = score(&mut *critic, &trajectory);
    let text = critic.inspect(&trajectory).unwrap().text;
    let tokenizer = std::fs::read(fixture().join("tokenizer.json")).unwrap();
    let ids = TextTokenizer::from_bytes(&tokenizer, Path::new("t")).unwrap().encode(&text).unwrap().ids;
    let at: Vec<usize> = scores.actions.iter().map(|a| a.token_index.unwrap()).collect();
    let mut model = Model::open(dir.path(), &options()).unwrap();
    let logits = model.logits(&ids, &at, super::super::Chunks::Whole).unwrap();
    for (row, scored) in logits.chunks_exact(320).zip(&scores.actions) {
        let weight = |byte: u8| f64::from(row[usize::from(byte)]).exp();
        let share = (weight(b'Y') + weight(b'y')) / (weight(b'Y') + weight(b'y') + weight(b'N'));
        assert!((scored.reward.unwrap() - share).abs() < 1e-5, "{:?} for {share}", scored.reward);
    }
}

#[test]
fn answers_that_do_not_fit_the_model_are_refused_in_words() {
    let with = |dir: &Path, tokens: &[&str]| {
        let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
        profile.head.tokens = tokens.iter().map(|t| Answer::One((*t).into())).collect();
        refusal(dir, &EngineOptions { profile: Some(profile), ..options() })
    };
    let dir = language_model();
    let said = with(dir.path(), &["Y", "NO"]);
    assert!(said.contains("head.tokens: \"NO\" is 2 tokens of this model, expected one"), "{said}");
    let said = with(dir.path(), &[]);
    assert!(said.contains("Qwen2ForCausalLM is a language model") && said.contains("[head] tokens = ["), "{said}");
    let said = with(&fixture(), &["Y", "N"]);
    assert!(said.contains("[head] tokens is for language models, this is a Qwen2ForTokenClassification"), "{said}");
}

#[test]
fn a_config_that_contradicts_the_weights_names_the_tensor() {
    let edit = |key: &str, value: serde_json::Value| {
        let dir = copy();
        let path = dir.path().join("config.json");
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config[key] = value;
        std::fs::write(&path, config.to_string()).unwrap();
        refusal(dir.path(), &options())
    };
    let head = edit("id2label", serde_json::json!({"0": "a", "1": "b"}));
    assert!(head.contains("`score.weight`: expected shape [2, 64], found shape [1, 64]"), "{head}");
    let layers = edit("num_hidden_layers", 5.into());
    assert!(layers.contains("model.layers.3.") && layers.contains("no such tensor"), "{layers}");
    let vocab = edit("vocab_size", 400.into());
    assert!(vocab.contains("`model.embed_tokens.weight`: expected shape [400, 64]"), "{vocab}");
    let wide = edit("intermediate_size", 200.into());
    assert!(wide.contains("gate_proj"), "{wide}");
}

#[test]
fn the_embedded_critic_opens_and_scores_or_says_that_it_is_not_there() {
    match open(&CriticSpec::Embedded, &options()) {
        Ok(mut critic) => {
            let (scores, _) = score(&mut *critic, &run(4, 30));
            assert!(scores.actions.iter().all(|a| a.reward.is_some_and(f64::is_finite)));
            assert_eq!(critic.info().path, None);
        }
        Err(error) => assert!(!cfg!(feature = "embedded-critic") && error == EngineError::NoEmbedded, "{error}"),
    }
}

#[test]
fn numbers_of_actions_are_counted_from_one() {
    assert_eq!(numbers(&[0]), "action 1");
    assert_eq!(numbers(&[0, 4]), "actions 1 and 5");
    assert_eq!(numbers(&[0, 4, 5]), "actions 1, 5 and 6");
    assert_eq!(numbers(&[0, 4, 5, 8, 9]), "actions 1, 5, 6 and 2 more");
    assert_eq!(numbers(&[]), "no action");
}

#[test]
fn real_runs_with_the_public_tokenizer_have_every_position_exact() {
    let Some(shared) = crate::testing::shared() else { return };
    let dir = copy();
    // Qwen2.5's own tokenizer needs more rows than the fixture has, so only positions are looked at here.
    let file = shared.join("tokenizers/qwen2.5/tokenizer.json");
    let tokenizer = TextTokenizer::from_bytes(&std::fs::read(&file).unwrap(), &file).unwrap();
    let said = {
        std::fs::copy(&file, dir.path().join("tokenizer.json")).unwrap();
        refusal(dir.path(), &options())
    };
    assert!(said.contains("does not fit the model"), "{said}");
    let profile = Profile::by_id("openhands-32b").unwrap();
    let rendered = render(profile, &run(20, 300));
    let encoded = tokenizer.encode(&rendered.text()).unwrap();
    let mut at = 0;
    for segment in &rendered.segments {
        if let Some(value) = segment.value {
            let (token, exact) = encoded.token_ending_at(at + value.end).unwrap();
            assert_eq!((encoded.ids[token], exact), (151_645, true));
        }
        at += segment.text.len();
    }
    assert!(!crosses(&rendered, &encoded), "turns end at tokens, so windows can be put together from them");
}
