//! The critic built into the program: its files fit the rendering, its rewards are PyTorch's, and they move for
//! visible reasons. The reference was made by `assets/critic-mini/train/reference.py` from the rendered texts.
#![cfg(feature = "embedded-critic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use trajscope::critic::{ActionScore, Cancel, Critic, Profile, Scores, compact_vocabulary, render};
use trajscope::engine::{CriticSpec, EngineOptions, open};
use trajscope::trajectory::SharedTrajectory;

/// What PyTorch computed for one text.
#[derive(Deserialize)]
struct Reference {
    tokens: usize,
    rewards: Vec<f64>,
}

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn load(path: &Path) -> Vec<SharedTrajectory> {
    trajscope::formats::load(&[path.to_path_buf()], &|_| {}).trajectories
}

/// A run of our own and the text stored for it.
fn fixture(name: &str) -> (SharedTrajectory, PathBuf) {
    let folder = package().join("tests/fixtures/critic_mini");
    let run = load(&folder.join(format!("{name}.traj"))).pop().expect("one run");
    (run, folder.join(format!("{name}.txt")))
}

fn embedded() -> Box<dyn Critic> {
    open(&CriticSpec::Embedded, &EngineOptions::default()).expect("the embedded critic opens")
}

fn score(critic: &mut dyn Critic, run: &SharedTrajectory) -> Scores {
    let mut partial: Vec<ActionScore> = Vec::new();
    let scores = critic.score(run, &Cancel::default(), &mut |s| partial.push(s)).expect("scores");
    assert_eq!(partial.len(), scores.actions.len());
    scores
}

fn rewards(scores: &Scores) -> Vec<f64> {
    scores.actions.iter().map(|a| a.reward.expect("every action is scored")).collect()
}

#[test]
fn the_text_is_the_one_stored() {
    let profile = Profile::by_id("mini").expect("built in");
    for name in ["fixed", "looping"] {
        let (run, golden) = fixture(name);
        let text = render(profile, &run).text();
        // TRAJSCOPE_BLESS=1 writes the text; then make reference.json again.
        if std::env::var_os("TRAJSCOPE_BLESS").is_some() {
            std::fs::write(&golden, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&golden).unwrap(), "{name}");
    }
}

#[test]
fn rewards_are_those_of_pytorch() {
    let path = package().join("tests/fixtures/critic_mini/reference.json");
    let reference: BTreeMap<String, Reference> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).expect("reference.json");
    let mut critic = embedded();
    assert_eq!(critic.info().profile, "mini");
    for (name, expected) in reference {
        let scores = score(critic.as_mut(), &fixture(&name).0);
        assert_eq!(scores.tokens, expected.tokens, "{name}");
        let got = rewards(&scores);
        assert_eq!(got.len(), expected.rewards.len(), "{name}");
        for (action, (got, wanted)) in got.iter().zip(&expected.rewards).enumerate() {
            assert!((got - wanted).abs() <= 1e-4, "{name} action {action}: {got} instead of {wanted}");
        }
        assert_eq!(scores.score, got.last().copied(), "{name}");
    }
}

#[test]
fn the_tokenizer_has_exactly_the_words_of_the_rendering() {
    let text = std::fs::read_to_string(package().join("assets/critic-mini/tokenizer.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).expect("tokenizer.json");
    let table: BTreeMap<String, usize> =
        serde_json::from_value(json["model"]["vocab"].clone()).expect("a word-level vocabulary");
    let mut words: Vec<(usize, String)> = table.into_iter().map(|(word, id)| (id, word)).collect();
    words.sort();
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    assert_eq!(words, compact_vocabulary());
}

#[test]
fn a_loop_of_failing_edits_scores_lower_than_a_tested_fix() {
    let mut critic = embedded();
    let fixed = score(critic.as_mut(), &fixture("fixed").0);
    let looping = score(critic.as_mut(), &fixture("looping").0);
    assert!(looping.score < fixed.score, "{:?} {:?}", looping.score, fixed.score);
    let rewards = rewards(&looping);
    let (first, last) = (rewards[1], rewards[rewards.len() - 1]);
    assert!(last < first, "an empty patch after a loop must cost reward: {rewards:?}");
}

#[test]
fn the_files_are_small_enough_to_embed() {
    let folder = package().join("assets/critic-mini");
    let size: u64 = ["config.json", "model.safetensors", "tokenizer.json", "profile.toml"]
        .iter()
        .map(|f| std::fs::metadata(folder.join(f)).expect("in the folder").len())
        .sum();
    assert!(size < 12 << 20, "{size} bytes");
}

#[test]
fn runs_of_a_format_not_trained_on_get_sane_values() {
    let Some(shared) = trajscope::testing::shared() else { return };
    let runs = load(&shared.join("corpus/sweagent-v0"));
    let mut critic = embedded();
    let mut seen = Vec::new();
    for run in runs.iter().filter(|r| r.n_actions() > 0).step_by(8).take(40) {
        let scores = score(critic.as_mut(), run);
        seen.extend(scores.actions.iter().filter_map(|a| a.reward));
    }
    assert!(seen.len() > 200, "{}", seen.len());
    let outside = seen.iter().filter(|r| !(-0.5..=1.5).contains(*r)).count();
    assert!(outside == 0, "{outside} of {} rewards lie far outside 0 to 1", seen.len());
    let (low, high) = seen.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
    assert!(high - low > 0.1, "the critic says the same of everything: {low} to {high}");
}
