use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;
use crate::trajectory::{Dataset, Issue, join};

fn load(text: String) -> LoadedFile {
    load_bytes(Path::new("results.jsonl"), text.into_bytes())
}

fn issues(file: LoadedFile) -> Vec<Issue> {
    join(&Dataset { trajectories: file.trajectories, ..Dataset::default() })
}

fn names(issue: &Issue) -> Vec<(&str, Option<bool>)> {
    issue.attempts.iter().map(|a| (a.name.as_str(), a.label.outcome.as_bool())).collect()
}

#[test]
fn trials_of_tau_bench_are_attempts() {
    let row = |trial: u32, reward: f64| {
        json!({"task_id": 3, "reward": reward, "trial": trial, "info": {"task": {"instruction": "I"}, "user_cost": 0.4},
            "traj": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "function": {"name": "book", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "a", "name": "book", "content": "ok"}]})
    };
    let file = load(json!([row(0, 0.0), row(1, 1.0), row(2, 0.5)]).to_string());
    assert_eq!(file.report.format, Some("tau-bench"));
    let t = &file.trajectories[1];
    assert_eq!((t.steps.len(), t.n_actions(), t.task.as_deref(), t.usage.cost), (4, 1, Some("I"), None));
    assert_eq!(&*t.steps[3].raw.pointer, "/traj/3");
    let issues = issues(file);
    assert_eq!(issues.len(), 1);
    assert_eq!(names(&issues[0]), [("trial 0", Some(false)), ("trial 1", Some(true)), ("trial 2", None)]);
    assert_eq!(issues[0].name(), "task 3");
}

#[test]
fn a_repeated_example_is_several_rollouts() {
    let row = |reward: u32, completion: Value| {
        json!({"example_id": 7, "prompt": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "like this"}],
            "completion": completion, "answer": "4", "reward": reward, "task": "math", "info": {}})
    };
    let lines = [row(1, json!([{"role": "assistant", "content": "4"}])), row(0, json!("5"))];
    let file = load(lines.map(|l| l.to_string()).join("\n"));
    assert_eq!(file.report.format, Some("verifiers"));
    assert_eq!(file.trajectories[0].n_actions(), 1, "an answer in the prompt is an example");
    assert_eq!(file.trajectories[1].steps[2].text, "5");
    let issues = issues(file);
    assert_eq!(names(&issues[0]), [("#1", Some(true)), ("#2", Some(false))]);
}

#[test]
fn transcripts_of_docent() {
    let run = json!({"id": "r", "metadata": {"sample_id": "s", "model": "m", "scores": {"correct": true}},
        "transcripts": {"main": {"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]},
                        "help/er": {"messages": [{"role": "assistant", "content": "B"}]}}});
    let file = load(run.to_string());
    assert_eq!((file.report.format, file.trajectories.len()), (Some("docent"), 2));
    let t = &file.trajectories[0];
    assert_eq!((t.instance_id.as_deref(), t.outcome, t.parent.as_deref()), (Some("s"), Outcome::Resolved, None));
    assert_eq!(&*file.trajectories[1].steps[0].raw.pointer, "/transcripts/help~1er/messages/0");
    assert_eq!(file.trajectories[1].parent.as_deref(), Some("r"));
}
