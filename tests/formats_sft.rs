//! Training sets, search trees and what else SWE-agent and mini-swe-agent left in the corpus.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::collections::BTreeMap;

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Outcome, Role, Trajectory, join};

fn corpus(folder: &str) -> Option<Dataset> {
    let root = shared()?.join("corpus").join(folder);
    Some(load(&[root], &|_| {}))
}

fn of<'a>(data: &'a Dataset, end: &str) -> Vec<&'a Trajectory> {
    data.trajectories.iter().filter(|t| t.source.path.ends_with(end)).map(std::convert::AsRef::as_ref).collect()
}

fn format(data: &Dataset, end: &str) -> Option<&'static str> {
    data.files.iter().find(|f| f.path.ends_with(end)).unwrap().format
}

/// Messages of all rows: what the manifest counts for most of these files.
fn messages(rows: &[&Trajectory]) -> usize {
    rows.iter().map(|t| t.steps.len()).sum()
}

#[test]
fn rows_of_training_sets_are_attempts_with_labels_and_patches() {
    let Some(data) = corpus("sft-chat/adp") else { return };
    let labels = |rows: &[&Trajectory]| {
        let mut counts: BTreeMap<Option<bool>, usize> = BTreeMap::new();
        for row in rows {
            *counts.entry(row.outcome.as_bool()).or_default() += 1;
        }
        counts
    };
    let nebius = of(&data, "nebius_SWE-agent-trajectories/sample_raw.json");
    assert_eq!((nebius.len(), messages(&nebius)), (5, 103));
    assert!(nebius.iter().all(|t| t.patch.is_some() && t.model.is_some() && t.outcome != Outcome::Unknown));
    assert!(nebius.iter().flat_map(|t| &t.steps).filter(|s| s.is_action()).all(|s| s.action.is_some()));
    let gym = of(&data, "swe-gym_openhands_sampled_trajectories/sample_raw.json");
    assert_eq!((gym.len(), messages(&gym)), (5, 188));
    assert!(gym.iter().all(|t| t.outcome != Outcome::Unknown && !t.tools.is_empty()));
    // The same five runs in the standard form: parts instead of messages, the same labels.
    let standard = of(&data, "swe-gym_openhands_sampled_trajectories/sample_std.json");
    assert_eq!((standard.len(), messages(&standard)), (5, 192));
    assert_eq!(labels(&standard), labels(&gym));
    assert_eq!(standard[0].instance_id.as_deref(), Some("python__mypy-15976"));
    assert_eq!(standard[0].instance_id, gym[0].instance_id);
    assert_eq!(standard[0].patch, gym[0].patch);
    let smith = of(&data, "swe-smith/sample_raw.json");
    assert_eq!((smith.len(), messages(&smith)), (5, 237));
    assert!(smith.iter().all(|t| t.attempt.is_some() && t.instance_id.is_some()));
    let coder = of(&data, "mini-coder/sample_raw.json");
    assert_eq!((coder.len(), messages(&coder), coder[0].outcome), (1, 17, Outcome::Resolved));
    let act = of(&data, "codeactinstruct/sample_raw.json");
    assert_eq!((act.len(), messages(&act)), (5, 41));
    let sft = of(&data, "sample_sft_openhands.json");
    // 108 turns; the system prompt stands beside them.
    assert_eq!((sft.len(), messages(&sft)), (5, 113));
    assert_eq!(format(&data, "sample_sft_sweagent.json"), None, "an empty file");
    let issues = join(&data);
    let twice = issues.iter().find(|i| i.name() == "python__mypy-15976").unwrap();
    assert_eq!(twice.attempts.len(), 2, "a run of the raw set and its standard form");
}

#[test]
fn conversations_and_traces_are_read() {
    let Some(data) = corpus("sft-chat") else { return };
    let euphony = of(&data, "euphony-convo-100.jsonl");
    assert_eq!(euphony.len(), 8, "the manifest counts rows");
    let xml = of(&data, "ft_xml_example.jsonl");
    assert_eq!(xml.len(), 3, "the manifest counts rows");
    assert!(xml.iter().flat_map(|t| &t.steps).filter(|s| s.is_action()).all(|s| s.action.is_some()));
    assert!(xml.iter().all(|t| t.steps.iter().any(|s| s.role == Role::Tool)), "OBSERVATION: is no user");
    // The manifest counts the messages of every episode; here each is shown once.
    let expected = [
        ("hello-world-no_function_calling.traces.json", 1, 2),
        ("hello-world.traces.json", 1, 2),
        ("hello-world-context-summarization.traces.json", 1, 8),
        ("hello-world-invalid-json.traces.json", 1, 4),
    ];
    for (file, trials, actions) in expected {
        let found = of(&data, file);
        let seen: Vec<usize> = found.iter().map(|t| t.n_actions()).collect();
        assert_eq!((found.len(), seen.iter().sum::<usize>()), (trials, actions), "{file}: {seen:?}");
        assert_eq!(format(&data, file), Some("harbor-traces"));
    }
    let invalid = of(&data, "hello-world-invalid-json.traces.json")[0];
    let actions: Vec<&str> = invalid.steps.iter().filter_map(|s| s.action.as_deref()).collect();
    assert_eq!(actions[0], r"printf 'Hello, world!\n' > hello.txt");
    assert_eq!(actions[2], "task_complete");
}

#[test]
fn a_search_tree_is_an_attempt_a_leaf() {
    let Some(data) = corpus("other/dars") else { return };
    let large = of(&data, "astropy__astropy-6938.prev.root");
    let (patches, open): (Vec<&Trajectory>, Vec<&Trajectory>) = large.iter().copied().partition(|t| t.patch.is_some());
    assert_eq!((patches.len(), open.len()), (12, 1), "twelve submissions, one way still open");
    assert!(large.iter().all(|t| t.instance_id.as_deref() == Some("astropy__astropy-6938")));
    // The deepest way has 103 nodes; what the search asked and was told stands between them.
    let told = open[0].steps.iter().filter(|s| s.role != Role::Meta).count();
    assert_eq!(told, 103);
    assert!(open[0].steps.iter().any(|s| s.is_demo));
    assert_eq!(of(&data, "submit.prev.root").len(), 2);
    assert_eq!(format(&data, "overall_evaluation_results.json"), Some("dars-evaluation"));
}

#[test]
fn every_action_of_text_agents_has_its_command() {
    for folder in ["mini-swe-agent-v1", "mini-swe-agent-v2", "sweagent-v0", "sweagent-v1"] {
        let Some(data) = corpus(folder) else { return };
        let actions = data.trajectories.iter().flat_map(|t| &t.steps).filter(|s| s.is_action());
        let (all, bare) = actions.fold((0, 0), |(all, bare), s| (all + 1, bare + usize::from(s.action.is_none())));
        // What is left has none: answers in a wrong form, and last words.
        assert!(all > 100 && bare * 20 < all, "{folder}: {bare} of {all} actions show no command");
        assert!(data.trajectories.iter().flat_map(|t| &t.steps).all(|s| !s.raw.pointer.is_empty()), "{folder}");
    }
}
