use std::fs;
use std::path::{Path, PathBuf};

use super::super::json::{Value, json};
use super::super::load::{load, load_bytes};
use crate::trajectory::{Dataset, Outcome, Role, join};

fn sample(name: &str) -> Dataset {
    load(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/formats").join(name)], &|_| {})
}

/// A job of trials, each a list of files.
fn job(trials: &[(&str, &[(&str, String)])]) -> (tempfile::TempDir, Dataset) {
    let dir = tempfile::tempdir().unwrap();
    for (trial, files) in trials {
        for (name, content) in *files {
            let path = dir.path().join("job").join(trial).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    let data = load(&[dir.path().to_path_buf()], &|_| {});
    (dir, data)
}

fn result(trial: &str, rewards: &Value) -> String {
    let task = trial.split_once("__").unwrap().0;
    json!({"task_name": task, "trial_name": trial, "verifier_result": {"rewards": rewards}}).to_string()
}

fn mini(text: &str) -> String {
    json!({"trajectory_format": "mini-swe-agent-1", "info": {"exit_status": "Submitted", "submission": "diff --git a/m b/m\n"},
           "messages": [{"role": "user", "content": "TASK"}, {"role": "assistant", "content": text}]})
    .to_string()
}

#[test]
fn a_trial_is_its_log_with_verdict_patch_and_exception() {
    let data = sample("harbor-trial");
    assert_eq!((data.trajectories.len(), data.reports.len()), (1, 0), "the same run is not read twice");
    let t = &data.trajectories[0];
    assert_eq!((t.instance_id.as_deref(), t.attempt.as_deref()), (Some("fix-it"), Some("AbC1234")));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("claude-code 2.1"), Some("anthropic/m")));
    assert_eq!((t.outcome, t.n_actions()), (Outcome::Resolved, 2), "a timeout may be resolved all the same");
    assert_eq!(t.error.as_deref(), Some("AgentTimeoutError: after 900 s"));
    assert_eq!(t.exit_status.as_deref(), Some("AgentTimeoutError"));
    assert!(t.patch.as_deref().unwrap().starts_with("diff --git a/x b/x"));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.cost), (Some(300), Some(12), None));
    let last: Vec<(Role, &str)> = t.steps.iter().rev().take(2).map(|s| (s.role, s.text.as_str())).collect();
    assert_eq!(last[0], (Role::Meta, "verifier: reward 1\ntests: 2 passed, 1 failed\nfailed: t::b"));
    assert_eq!(last[1], (Role::Meta, "Traceback: after 900 s"));
    assert!(t.steps.iter().all(|s| s.is_error.is_none()), "what ended the run is not what the last action did");
    assert!(t.steps[0].raw.file.as_ref().unwrap().ends_with("agent/trajectory.json"));
    assert_eq!(data.files.iter().filter(|f| f.format == Some("harbor-trial")).count(), 13, "the folder and 12 files");
}

#[test]
fn a_native_log_is_read_where_there_is_no_atif() {
    let files = [
        ("result.json", result("o__r-1__AAAAAAA", &json!({"reward": 0}))),
        ("agent/mini-swe-agent.trajectory.json", mini("```bash\nls\n```")),
        ("agent/mini.txt", "plain text".to_owned()),
        ("verifier/reward.txt", String::new()),
    ];
    let (_dir, data) = job(&[("o__r-1__AAAAAAA", &files)]);
    let t = &data.trajectories[0];
    assert_eq!((t.format, t.outcome), ("harbor-trial", Outcome::Unresolved));
    assert_eq!(t.steps[1].action.as_deref(), Some("ls"));
    assert_eq!(t.patch.as_deref(), Some("diff --git a/m b/m\n"));
    let raw = &t.steps[1].raw;
    assert!(raw.file.as_ref().unwrap().ends_with("agent/mini-swe-agent.trajectory.json"));
    assert_eq!((raw.pointer.as_ref(), raw.span.start), ("/messages/1", 0));
}

#[test]
fn a_log_in_a_folder_of_its_own_is_read_together() {
    let step = |text: &str| json!({"source": "agent", "message": text});
    let root = |text: &str, next: Value| {
        json!({"schema_version": "ATIF-v1.6", "session_id": "s", "steps": [step(text)], "continued_trajectory_ref": next}).to_string()
    };
    let files = [
        ("result.json", result("a__AAAAAAA", &json!({"reward": 1}))),
        ("agent/logs/run/x.json", root("one", json!("x.cont-1.json"))),
        ("agent/logs/run/x.cont-1.json", root("two", json!(null))),
    ];
    let (_dir, data) = job(&[("a__AAAAAAA", &files)]);
    assert_eq!(data.trajectories.len(), 1);
    let texts: Vec<&str> = data.trajectories[0].steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts[..2], ["one", "two"]);
    assert!(data.trajectories[0].steps[1].raw.file.as_ref().unwrap().ends_with("run/x.cont-1.json"));
}

#[test]
fn sub_agents_of_a_trial_are_no_attempts() {
    let step = json!({"source": "agent", "message": "x"});
    let sub = json!({"trajectory_id": "sub", "steps": [step]});
    let root = json!({"schema_version": "ATIF-v1.7", "session_id": "s", "steps": [step, step], "subagent_trajectories": [sub]});
    let files =
        [("result.json", result("a__AAAAAAA", &json!({"reward": 1}))), ("agent/trajectory.json", root.to_string())];
    let (_dir, data) = job(&[("a__AAAAAAA", &files)]);
    let seen: Vec<_> =
        data.trajectories.iter().map(|t| (t.instance_id.as_deref(), t.parent.as_deref(), t.outcome)).collect();
    assert_eq!(seen, [(Some("a"), None, Outcome::Resolved), (None, Some("s"), Outcome::Unknown)]);
}

#[test]
fn sessions_of_one_trial_are_one_attempt() {
    let chat = |n: usize| {
        let answer = json!({"role": "assistant", "content": "x"}).to_string();
        std::iter::repeat_n(answer, n).collect::<Vec<_>>().join("\n")
    };
    let files = [
        ("result.json", result("a__AAAAAAA", &json!({"quality": 0.7}))),
        ("agent/sessions/a/1.jsonl", chat(1)),
        ("agent/sessions/a/2.jsonl", chat(3)),
    ];
    let (_dir, data) = job(&[("a__AAAAAAA", &files)]);
    assert_eq!(data.trajectories.len(), 1, "two logs without a session: the longer one");
    let t = &data.trajectories[0];
    assert_eq!((t.n_actions(), t.outcome), (3, Outcome::Unknown), "a reward of another name is no verdict");
    assert!(t.diagnostics.iter().any(|d| d.message.ends_with("quality 0.7")));
}

#[test]
fn episodes_of_terminus_are_steps() {
    let files = [
        ("config.json", json!({"trial_name": "t__AAAAAAA", "task": {"path": "x/tasks/t/"}}).to_string()),
        ("agent/episode-0/prompt.txt", "TASK".to_owned()),
        ("agent/episode-0/response.txt", r#"{"analysis": "A", "commands": [{"keystrokes": "ls\n"}]}"#.to_owned()),
        ("agent/episode-0/debug.json", "{}".to_owned()),
        ("agent/episode-10/prompt.txt", "late".to_owned()),
        ("agent/episode-2/prompt.txt", "x.py".to_owned()),
        ("agent/episode-2/response.txt", "no json".to_owned()),
        ("verifier/reward.txt", "1.0\n".to_owned()),
    ];
    let (_dir, data) = job(&[("t__AAAAAAA", &files)]);
    let t = &data.trajectories[0];
    let steps: Vec<(Role, &str)> = t.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
    assert_eq!(steps[0], (Role::User, "TASK"));
    assert_eq!((steps[2], steps[3]), ((Role::Tool, "x.py"), (Role::Assistant, "no json")));
    assert_eq!(steps[4], (Role::Tool, "late"), "in order of the numbers");
    assert_eq!(t.steps[1].action.as_deref(), Some("ls"));
    assert_eq!((t.instance_id.as_deref(), t.outcome), (Some("t"), Outcome::Resolved));
}

#[test]
fn a_trial_without_a_log_labels_only_itself() {
    let without = [("result.json", result("a__BBBBBBB", &json!({"reward": 0.0}))), ("verifier/reward.txt", "0".into())];
    let with = [
        ("result.json", result("a__AAAAAAA", &json!({"reward": 1.0}))),
        ("agent/x.traj.json", mini("```bash\nls\n```")),
    ];
    let (dir, data) = job(&[("a__AAAAAAA", &with), ("a__BBBBBBB", &without)]);
    assert_eq!((data.trajectories.len(), data.reports.len()), (1, 1));
    let report = &data.reports[0];
    assert_eq!(report.path, dir.path().join("job/a__BBBBBBB/result.json"));
    assert_eq!((report.attempt.as_deref(), report.outcomes["a"]), (Some("BBBBBBB"), Outcome::Unresolved));
    let said = data.files.iter().flat_map(|f| &f.diagnostics).find(|d| d.code == "harbor.no-log").unwrap();
    assert!(said.message.contains("reward 0"));
    let issues = join(&data);
    let label = &issues[0].attempts[0].label;
    assert_eq!((issues[0].attempts.len(), label.outcome), (1, Outcome::Resolved));
    assert!(label.contradicted_by.is_empty(), "the other trial says nothing about this one");
}

#[test]
fn a_task_of_several_steps_has_a_trajectory_for_each() {
    let files = [
        ("result.json", result("a__AAAAAAA", &json!({"reward": 0.5}))),
        ("steps/one/agent/x.traj.json", mini("```bash\nls\n```")),
        ("steps/one/verifier/reward.txt", "1".to_owned()),
        ("steps/two/agent/x.traj.json", mini("```bash\npwd\n```")),
        ("steps/two/verifier/reward.json", json!({"reward": 0}).to_string()),
    ];
    let (_dir, data) = job(&[("a__AAAAAAA", &files)]);
    let seen: Vec<_> = data.trajectories.iter().map(|t| (t.attempt.as_deref().unwrap(), t.outcome)).collect();
    assert_eq!(seen, [("AAAAAAA/one", Outcome::Resolved), ("AAAAAAA/two", Outcome::Unresolved)]);
}

#[test]
fn a_result_alone_is_a_report_about_its_trial() {
    let data = sample("harbor-result");
    let report = &data.reports[0];
    assert_eq!((report.attempt.as_deref(), report.outcomes["fix-it"]), (Some("ZzZ0000"), Outcome::Unresolved));
    assert_eq!(report.reasons["fix-it"], "reward 0.5, style 1");
    let odd = load_bytes(&PathBuf::from("r.json"), result("a__B", &json!({"reward": 2})).into_bytes());
    assert!(odd.reports[0].outcomes.is_empty(), "more than 1 is not what a verdict looks like");
    assert_eq!(odd.reports[0].reasons["a"], "reward 2");
}

#[test]
fn a_job_says_what_the_trials_of_a_task_agree_on() {
    let report = &sample("harbor-job").reports[0];
    let outcomes: Vec<(&str, Outcome)> = report.outcomes.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    assert_eq!(outcomes, [("a", Outcome::Resolved), ("b", Outcome::Resolved), ("c", Outcome::Unresolved)]);
    assert_eq!(report.reasons["b"], "2 of 2 trials resolved");
    assert_eq!(report.reasons["c"], "AgentTimeoutError");
    assert_eq!(report.reasons["d"], "1 of 2 trials resolved");
    assert!(!report.closed && !report.per_instance);
}
