use std::fs;
use std::path::Path;

use super::super::json::{Value, json};
use super::super::load::{load, load_bytes};
use crate::trajectory::{Dataset, Outcome, Role, join};

fn sample(name: &str) -> Dataset {
    load(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats").join(name)], &|_| {})
}

fn trial(files: &[(&str, String)]) -> Dataset {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join("run/t").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    load(&[dir.path().to_path_buf()], &|_| {})
}

fn result(resolved: &Value) -> String {
    json!({"trial_name": "t.2-of-3", "task_id": "t", "is_resolved": resolved, "failure_mode": "unset", "instruction": "DO",
           "parser_results": null, "total_input_tokens": 100, "total_output_tokens": 5})
    .to_string()
}

#[test]
fn a_trial_is_its_recording_with_the_verdict() {
    let data = sample("terminal-bench");
    assert_eq!(data.trajectories.len(), 1);
    let t = &data.trajectories[0];
    assert_eq!((t.instance_id.as_deref(), t.attempt.as_deref()), (Some("hello.world"), Some("1-of-2.run-7")));
    assert_eq!((t.outcome, t.exit_status.as_deref()), (Outcome::Resolved, Some("agent_timeout")));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("terminus"), Some("m")), "from the run's metadata");
    assert_eq!(t.task.as_deref(), Some("Create hello.txt."));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out), (None, None), "0 is unknown");
    assert_eq!(t.n_actions(), 1);
    let action = t.steps.iter().find(|s| s.is_action()).unwrap();
    assert_eq!(action.action.as_deref(), Some("echo hi > hello.txt"));
    assert!(action.raw.file.as_ref().unwrap().ends_with("sessions/agent.cast"));
    let meta: Vec<&str> = t.steps.iter().filter(|s| s.role == Role::Meta).map(|s| s.text.as_str()).collect();
    let tests = "tests: 1 passed, 1 failed\nfailed: test_b";
    let screen = "the screen after the tests:\n1 passed, 1 failed\n";
    assert_eq!(meta, ["typed by the harness: clear", "typed by the harness: C-d", tests, screen]);
    assert!(data.files.iter().all(|f| f.format.is_some()), "every file is named");
}

#[test]
fn the_agents_own_log_is_better_than_a_recording() {
    let episode = r#"{"state_analysis": "S", "explanation": "E", "commands": [{"keystrokes": "ls\n"}], "is_task_complete": false}"#;
    let data = trial(&[
        ("results.json", result(&Value::Null)),
        ("sessions/agent.cast", "{\"version\": 2, \"width\": 1, \"height\": 1}\n[1, \"i\", \"pwd\\r\"]\n".to_owned()),
        ("agent-logs/episode-0/prompt.txt", "DO".to_owned()),
        ("agent-logs/episode-0/response.json", episode.to_owned()),
    ]);
    let t = &data.trajectories[0];
    let action = t.steps.iter().find(|s| s.is_action()).unwrap();
    assert_eq!((action.action.as_deref(), action.thought.as_deref()), (Some("ls"), Some("S\nE")));
    assert_eq!((t.attempt.as_deref(), t.outcome), (Some("2-of-3"), Outcome::Unknown), "null is unknown");
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out), (Some(100), Some(5)));
}

#[test]
fn a_trial_without_a_recording_is_an_outcome() {
    let data = trial(&[("results.json", result(&json!(false))), ("panes/post-test.txt", "x".into())]);
    assert!(data.trajectories.is_empty());
    let report = &data.reports[0];
    assert_eq!((report.attempt.as_deref(), report.outcomes["t"]), (Some("2-of-3"), Outcome::Unresolved));
    assert!(report.path.ends_with("run/t/results.json"));
    assert!(data.files.iter().flat_map(|f| &f.diagnostics).any(|d| d.code == "terminal-bench.no-log"));
}

#[test]
fn a_killed_trial_has_no_result_yet() {
    let data = trial(&[
        ("commands.txt", "x".into()),
        ("panes/pre-agent.txt", "x".into()),
        (
            "sessions/agent.cast",
            "{\"version\": 2, \"width\": 1, \"height\": 1}\n[1, \"i\", \"pwd\\r\"]\n[2, \"o\", \"/".into(),
        ),
    ]);
    let t = &data.trajectories[0];
    assert_eq!((t.format, t.n_actions(), t.outcome), ("terminal-bench", 1, Outcome::Unknown));
}

#[test]
fn a_run_says_what_its_trials_agree_on() {
    let report = &sample("terminal-bench-run").reports[0];
    let outcomes: Vec<(&str, Outcome)> = report.outcomes.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    assert_eq!(outcomes, [("a", Outcome::Resolved), ("b", Outcome::Unresolved)], "null is not unresolved");
    assert_eq!(report.reasons["c"], "1 of 2 trials resolved");
    assert_eq!((report.reasons["b"].as_str(), report.reasons["d"].as_str()), ("agent_timeout", "parse_error"));
    let names = json!({"results": [], "resolved_ids": ["a"], "unresolved_ids": ["b"], "pass_at_k": {}}).to_string();
    let file = load_bytes(Path::new("r.json"), names.into_bytes());
    assert_eq!((file.report.format, file.reports[0].outcomes.len()), (Some("terminal-bench-run"), 2));
}

#[test]
fn a_result_alone_speaks_of_its_own_attempt_only() {
    let data = sample("terminal-bench-result");
    let report = &data.reports[0];
    assert!(report.outcomes.is_empty() && report.per_instance);
    assert_eq!(report.reasons["hello.world"], "parse_error");
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("t/x")).unwrap();
    fs::write(dir.path().join("t/x/results.json"), result(&json!(true))).unwrap();
    let chat = json!({"instance_id": "t", "messages": [{"role": "assistant", "content": "x"}]}).to_string();
    fs::write(dir.path().join("t/run.json"), chat).unwrap();
    let issues = join(&load(&[dir.path().to_path_buf()], &|_| {}));
    assert_eq!(issues[0].attempts[0].label.outcome, Outcome::Unknown, "another attempt's result");
}
