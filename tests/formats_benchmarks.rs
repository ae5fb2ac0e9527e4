//! ATIF, Harbor, Terminal-Bench and Inspect: the real files, where they lie beside the project.

use std::path::PathBuf;

use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Role, Trajectory};

fn corpus(name: &str) -> Option<(PathBuf, Dataset)> {
    let path = shared()?.join("corpus").join(name);
    let dataset = load(std::slice::from_ref(&path), &|_| {});
    Some((path, dataset))
}

/// Steps as ATIF counts them: one for everything said, none for what was observed.
fn atif_steps(t: &Trajectory) -> usize {
    t.steps.iter().filter(|s| s.role != Role::Tool).count()
}

#[test]
fn every_atif_file_is_read_and_continuations_are_one_trajectory() {
    let Some((path, data)) = corpus("atif") else { return };
    assert_eq!(data.trajectories.len(), 12, "14 files, two of which go on in another");
    assert!(data.files.iter().all(|f| matches!(f.format, Some("atif" | "atif-parts"))));
    let of = |file: &str| {
        let file = path.join(file);
        let fits = |t: &&std::sync::Arc<Trajectory>| {
            t.source.path == file || t.steps.iter().any(|s| s.raw.file.as_deref() == Some(file.as_path()))
        };
        data.trajectories.iter().find(fits).unwrap()
    };
    // The manifest's `steps`, for files that stand alone.
    let alone = [
        ("harbor-golden/openhands/hello-world.trajectory.json", 6),
        ("harbor-golden/openhands/hello-world.trajectory.no_function_calling.json", 4),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.json", 10),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-answers.json", 7),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-questions.json", 2),
        ("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-summary.json", 5),
        ("harbor-golden/terminus_2/hello-world-invalid-json.trajectory.json", 5),
        ("harbor-golden/terminus_2/hello-world-timeout.trajectory.json", 4),
        ("inspect_scout/openhands_hello-world.trajectory.json", 6),
        ("inspect_scout/openhands_hello-world.trajectory.no_function_calling.json", 4),
    ];
    for (file, steps) in alone {
        let t = of(file);
        assert_eq!(atif_steps(t), steps, "{file}");
        assert!(t.patch.is_none() && t.usage.cost.is_some(), "{file}");
        let acted = t.steps.iter().filter(|s| s.is_action() && s.action.is_some()).count();
        assert!(acted > 0 || t.agent.as_deref().is_some_and(|a| a.contains("summarization")), "{file}");
    }
    // 5 steps and 8, of which one copied step repeats the first file's.
    let name = "harbor-golden/terminus_2/hello-world-context-summarization-linear-history.trajectory";
    let joined = of(&format!("{name}.json"));
    assert_eq!((atif_steps(joined), joined.n_actions()), (12, 7));
    assert_eq!((joined.usage.tokens_in, joined.usage.tokens_out), (Some(7802), Some(1030)));
    assert_eq!(of(&format!("{name}.cont-1.json")).key(), joined.key());
    let answers =
        of("harbor-golden/terminus_2/hello-world-context-summarization.trajectory.summarization-1-answers.json");
    assert_eq!((answers.n_actions(), answers.parent.is_some()), (1, true));
    assert_eq!(answers.usage.tokens_in, Some(700));
}

#[test]
fn what_a_viewer_holds_is_not_called_atif() {
    let Some((_, data)) = corpus("other/atif-viewer-converted") else { return };
    let t = &data.trajectories[0];
    assert_eq!((t.format, t.steps.len(), t.n_actions()), ("atif-viewer", 5, 4));
}

#[test]
fn every_terminal_bench_file_is_named_and_labels_are_those_of_the_manifest() {
    let Some((path, data)) = corpus("terminal-bench") else { return };
    for file in &data.files {
        assert!(file.format.is_some(), "{}: {}", file.path.display(), file.reason);
    }
    let below =
        |name: &str| data.files.iter().filter(|f| f.path.starts_with(path.join(name)) && f.path.is_file()).count();
    assert_eq!(below(""), 66);
    // Four trials with a recording of the agent's terminal; in all of them the agent acts elsewhere.
    assert_eq!(data.trajectories.len(), 4);
    for t in &data.trajectories {
        assert_eq!((t.format, t.n_actions()), ("terminal-bench", 0));
        assert!(t.diagnostics.iter().any(|d| d.code == "cast.only-recording"));
        assert!(t.task.is_some() && t.attempt.is_some() && t.patch.is_none());
    }
    let labels: Vec<Option<bool>> = data.trajectories.iter().map(|t| t.outcome.as_bool()).collect();
    assert_eq!(labels, [Some(true), None, Some(true), Some(true)]);
    // 21 trials without one, and the run.
    let single: Vec<_> = data.reports.iter().filter(|r| r.per_instance).collect();
    let told = |resolved: bool| {
        single.iter().flat_map(|r| r.outcomes.values()).filter(|o| o.as_bool() == Some(resolved)).count()
    };
    assert_eq!((single.len(), told(true), told(false)), (21, 5, 16));
    assert!(single.iter().all(|r| r.attempt.is_some()));
    let run = data.reports.iter().find(|r| !r.per_instance).unwrap();
    let count = |resolved: bool| run.outcomes.values().filter(|o| o.as_bool() == Some(resolved)).count();
    assert_eq!((count(true), count(false)), (45, 27), "8 trials of the run could not be evaluated");
}

#[test]
fn a_harbor_result_without_logs_is_a_label() {
    let Some((_, data)) = corpus("harbor-trial") else { return };
    let report = &data.reports[0];
    assert_eq!((report.attempt.as_deref(), report.outcomes["3d-scan-calc"].as_bool()), (Some("F8Fc7fn"), Some(true)));
    assert_eq!(data.files[0].format, Some("harbor-result"));
}

#[test]
fn every_sample_of_every_inspect_log_is_an_attempt() {
    let Some((path, data)) = corpus("inspect") else { return };
    let samples = |file: &str| data.trajectories.iter().filter(|t| t.source.path == path.join(file)).count();
    // The manifest's `steps`: samples.
    let logs = [
        ("docent/log.eval", 15),
        ("inspect_ai/_helpers/fixtures/legacy/retry-2-then-success.eval", 1),
        ("inspect_ai/analysis/test_logs/2025-05-12T20-27-36-04-00_browser.json", 1),
        ("inspect_ai/analysis/test_logs/2025-05-12T20-28-13-04-00_no-samples.json", 0),
        ("inspect_ai/analysis/test_logs/2025-05-12T20-28-26-04-00_security-guide.json", 3),
        ("inspect_ai/analysis/test_logs_choices/mmlu-summary-choices.eval", 1),
        ("inspect_ai/log/test_eval_log/log_formats.eval", 1),
        ("inspect_ai/log/test_eval_log/log_formats.json", 1),
        ("inspect_ai/log/test_eval_log/log_images.json", 1),
        ("inspect_ai/log/test_eval_log/log_images_tc.json", 1),
        ("inspect_ai/log/test_eval_log/log_read_sample.eval", 1),
        ("inspect_ai/log/test_eval_log/log_read_sample.json", 1),
        ("inspect_ai/log/test_eval_log/log_streaming.eval", 4),
        ("inspect_ai/log/test_eval_log/log_tool_call_error.json", 1),
        ("inspect_ai/log/test_list_logs/2024-11-05T13-32-37-05-00_input-task_hxs4q9azL3ySGkjJirypKZ.eval", 1),
        ("inspect_ai/log/test_list_logs/custom.eval", 1),
        ("inspect_ai/scorer/logs/2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval", 10),
        ("inspect_ai/scorer/logs/2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval", 10),
        ("inspect_scout/2025-09-23T08-09-58-04-00_popularity_DN2wbX2ZvACsBpjwptzBRo.eval", 100),
        ("inspect_scout/2025-09-23T08-09-58-04-00_security-guide_LuxZJVwvymC3S3SyoJczxB.eval", 16),
        ("inspect_scout/2025-09-23T08-09-58-04-00_theory-of-mind_bbB4eRCx2rFJLyPH42Cj9r.eval", 100),
        ("inspect_scout/2025-11-07T10-59-47-05-00_websearch-addition-problem_LqPDntDnkk4h2fSqQ8i6CE.eval", 1),
        ("vivaria/small.eval", 6),
    ];
    for (file, count) in logs {
        assert_eq!(samples(file), count, "{file}");
    }
    let refused: Vec<_> = data.files.iter().filter(|f| f.format.is_none()).collect();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].path.ends_with("long_log.eval") && refused[0].reason.starts_with("a Git-LFS pointer"));
    for t in &data.trajectories {
        assert!(t.patch.is_none() && t.instance_id.is_some() && t.attempt.is_some(), "{}", t.source.path.display());
        assert!(t.steps.iter().all(|s| !s.text.contains("attachment://")));
    }
    // Six epochs of one sample: six attempts at one issue.
    let vivaria: Vec<_> = data.trajectories.iter().filter(|t| t.source.path.ends_with("small.eval")).collect();
    let mut actions: Vec<usize> = vivaria.iter().map(|t| t.n_actions()).collect();
    actions.sort_unstable();
    assert_eq!(actions, [12, 12, 12, 13, 13, 14]);
    assert!(vivaria.iter().all(|t| t.instance_id.as_deref() == Some("oxdna_simple/default")));
    assert!(vivaria.iter().all(|t| t.outcome.as_bool() == Some(true) && t.usage.tokens_in.is_some()));
    assert!(vivaria.iter().flat_map(|t| &t.steps).any(|s| s.reasoning.is_some() && s.timestamp.is_some()));
    let failed =
        data.trajectories.iter().flat_map(|t| &t.steps).filter(|s| s.role == Role::Tool && s.is_error == Some(true));
    assert!(failed.count() >= 16, "tool errors of docent's log and of the test's");
}
