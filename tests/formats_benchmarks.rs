//! ATIF, Harbor, Terminal-Bench and Inspect: the real files, where they lie beside the project.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test; clippy knows only the test functions")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use trajscope::formats::load;
use trajscope::testing::shared;
use trajscope::trajectory::{Dataset, Role, Trajectory, join};

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

fn write(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A zip of files as they are.
fn zipped(files: &[(&str, String)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in files {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn atif(session: &str, texts: &[&str], next: Option<&str>) -> String {
    let steps: Vec<Value> = texts.iter().map(|text| json!({"source": "agent", "message": text})).collect();
    json!({"schema_version": "ATIF-v1.6", "session_id": session, "steps": steps, "continued_trajectory_ref": next})
        .to_string()
}

#[test]
fn a_job_of_several_trials_comes_together() {
    let dir = tempfile::tempdir().unwrap();
    let trials = [("fix-a__AAAAAAA", "fix-a", 1.0), ("fix-a__BBBBBBB", "fix-a", 0.0), ("fix-b__CCCCCCC", "fix-b", 1.0)];
    for (trial, task, reward) in trials {
        let result =
            json!({"task_name": task, "trial_name": trial, "verifier_result": {"rewards": {"reward": reward}}});
        write(dir.path(), &format!("job/{trial}/result.json"), &result.to_string());
        write(dir.path(), &format!("job/{trial}/agent/trajectory.json"), &atif(trial, &["x"], None));
    }
    let stats = json!({"1.0": ["fix-a__AAAAAAA", "fix-b__CCCCCCC"], "0.0": ["fix-a__BBBBBBB"]});
    let job = json!({"n_total_trials": 3, "stats": {"evals": {"e": {"reward_stats": {"reward": stats}}}}});
    write(dir.path(), "job/result.json", &job.to_string());
    let data = load(&[dir.path().to_path_buf()], &|_| {});
    let issues = join(&data);
    let labels =
        |i: usize| -> Vec<Option<bool>> { issues[i].attempts.iter().map(|a| a.label.outcome.as_bool()).collect() };
    let names: Vec<String> = issues.iter().map(trajscope::trajectory::Issue::name).collect();
    assert_eq!(names, ["fix-a", "fix-b"]);
    assert_eq!((labels(0), labels(1)), (vec![Some(true), Some(false)], vec![Some(true)]));
    assert_ne!(issues[0].attempts[0].name, issues[0].attempts[1].name, "two trials, two names");
    let labels = issues.iter().flat_map(|i| &i.attempts).map(|a| &a.label);
    assert!(labels.into_iter().all(|l| l.contradicted_by.is_empty()), "the job says the same");
    assert!(data.files.iter().all(|f| f.format.is_some()));
}

#[test]
fn epochs_and_logs_of_one_task_are_attempts_at_one_issue() {
    let dir = tempfile::tempdir().unwrap();
    let header = json!({"version": 2, "status": "success", "eval": {"task": "pack/fix"}}).to_string();
    let sample = |epoch: u32, score: &str, uuid: &str| {
        json!({"id": 7, "epoch": epoch, "input": "TASK", "messages": [{"role": "assistant", "content": "x"}],
               "scores": {"m": {"value": score}}, "model_usage": {}, "uuid": uuid})
        .to_string()
    };
    let first = [
        ("header.json", header.clone()),
        ("samples/7_epoch_1.json", sample(1, "C", "u1")),
        ("samples/7_epoch_2.json", sample(2, "I", "u2")),
    ];
    fs::write(dir.path().join("first.eval"), zipped(&first)).unwrap();
    let second = [("header.json", header), ("samples/7_epoch_1.json", sample(1, "C", "u3"))];
    fs::write(dir.path().join("second.eval"), zipped(&second)).unwrap();
    // A log that was tried again takes over the samples that were done: the same sample, not another attempt.
    let retried = [("header.json", first[0].1.clone()), ("samples/7_epoch_1.json", sample(1, "C", "u1"))];
    fs::write(dir.path().join("third.eval"), zipped(&retried)).unwrap();
    let issues = join(&load(&[dir.path().to_path_buf()], &|_| {}));
    assert_eq!((issues.len(), issues[0].name().as_str()), (1, "fix/7"));
    let labels: Vec<Option<bool>> = issues[0].attempts.iter().map(|a| a.label.outcome.as_bool()).collect();
    assert_eq!(labels, [Some(true), Some(false), Some(true)]);
    let mut names: Vec<&str> = issues[0].attempts.iter().map(|a| a.name.as_str()).collect();
    names.dedup();
    assert_eq!(names.len(), 3);
    // A path that leads into the archive opens that sample alone.
    let inside = dir.path().join("first.eval/samples/7_epoch_2.json");
    let data = load(std::slice::from_ref(&inside), &|_| {});
    let only: Vec<_> = data.trajectories.iter().map(|t| (t.format, t.outcome.as_bool())).collect();
    assert_eq!(only, [("inspect-sample", Some(false))]);
}

#[test]
fn an_archive_of_trajectories_is_read_like_its_folder() {
    let files = [
        ("run/trajectory.json", atif("s", &["one"], Some("trajectory.cont-1.json"))),
        ("run/trajectory.cont-1.json", atif("s", &["two"], None)),
        ("run/other.json", atif("o", &["alone"], None)),
    ];
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    for (name, content) in &files {
        write(&folder, name, content);
    }
    fs::write(dir.path().join("packed.zip"), zipped(&files)).unwrap();
    let texts = |path: PathBuf| -> Vec<Vec<String>> {
        let data = load(&[path], &|_| {});
        let said = |t: &std::sync::Arc<Trajectory>| t.steps.iter().map(|s| s.text.clone()).collect();
        data.trajectories.iter().map(said).collect()
    };
    let expected = [vec!["one".to_owned(), "two".to_owned()], vec!["alone".to_owned()]];
    assert_eq!(texts(folder), expected);
    assert_eq!(texts(dir.path().join("packed.zip")), expected);
}

#[test]
fn a_recording_grows_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.cast");
    let whole = "{\"version\": 2, \"width\": 80, \"height\": 24}\n[1, \"i\", \"ls\\r\"]\n[2, \"o\", \"x.py\"]\n[3, \"i\", \"pwd\\r\"]\n";
    let mut actions = Vec::new();
    for len in (50..=whole.len()).step_by(5).chain([whole.len()]) {
        fs::write(&path, &whole[..len]).unwrap();
        let data = load(std::slice::from_ref(&path), &|_| {});
        actions.push(data.trajectories.first().map_or(0, |t| t.n_actions()));
    }
    assert!(actions.is_sorted(), "what was read stays: {actions:?}");
    assert_eq!(actions.last(), Some(&2));
}
