//! Rows of training sets made by hand.

use std::path::Path;

use super::super::json::{Value, json};
use super::super::load::{LoadedFile, load_bytes};
use crate::trajectory::{Outcome, Role, Trajectory};

fn load(value: &Value) -> LoadedFile {
    load_bytes(Path::new("x/rows.json"), value.to_string().into_bytes())
}

fn one(value: &Value, format: &str) -> Trajectory {
    let file = load(value);
    assert_eq!(file.report.format, Some(format), "{}", file.report.reason);
    assert_eq!(file.trajectories.len(), 1);
    file.trajectories[0].as_ref().clone()
}

fn roles(trajectory: &Trajectory) -> Vec<Role> {
    trajectory.steps.iter().map(|s| s.role).collect()
}

fn rollout<'a>(extra: &Value<'a>) -> Value<'a> {
    let mut row = json!({
        "trajectory_steps": [
            {"step_idx": 0, "thought": "I look.", "action": "<function=execute_bash>\n<parameter=command>ls</parameter>\n</function>", "observation": "a.py", "done": false, "token_usage_prompt": 10, "token_usage_completion": 2},
            {"step_idx": 1, "thought": "", "action": "<function=finish>\n</function>", "observation": "", "done": true, "token_usage_prompt": 20, "token_usage_completion": 3}
        ],
        "problem_statement": "BROKEN", "exp_name": "exp-1", "exit_reason": "agent", "output_patch": "diff --git a/a b/a\n",
        "reward": 1.0, "ds": {"patch": "GOLD"}, "agent_args": {"llm_name": "m"}
    });
    row.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    row
}

#[test]
fn r2e_rollouts_are_read() {
    let t = one(&json!([rollout(&json!({"docker_image": "someone/pandas_final:0123456789abcdef"}))]), "r2e-gym");
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::Tool]);
    assert_eq!((t.steps[1].action.as_deref(), t.steps[1].thought.as_deref()), (Some("ls"), Some("I look.")));
    assert!(t.steps[1].text.starts_with("I look.\n\n<function=execute_bash>"));
    assert_eq!(t.steps[3].action.as_deref(), Some("finish"));
    assert_eq!((t.instance_id.as_deref(), t.attempt.as_deref()), (Some("pandas__0123456789ab"), Some("exp-1")));
    assert_eq!((t.outcome, t.patch.as_deref()), (Outcome::Resolved, Some("diff --git a/a b/a\n")));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.api_calls), (Some(30), Some(5), Some(2)));
    assert_eq!((t.usage.cost, t.exit_status.as_deref(), t.model.as_deref()), (None, Some("agent"), Some("m")));
    assert_eq!(t.steps[3].raw.pointer.as_ref(), "/trajectory_steps/1");
    let named = one(&rollout(&json!({"ds": {"instance_id": "o__r-1"}, "reward": 0})), "r2e-gym");
    assert_eq!((named.instance_id.as_deref(), named.outcome), (Some("o__r-1"), Outcome::Unresolved));
    let swebench =
        one(&rollout(&json!({"docker_image": "x/swebench:sweb.eval.x86_64.o__r-7", "reward": null})), "r2e-gym");
    assert_eq!((swebench.instance_id.as_deref(), swebench.outcome), (Some("o__r-7"), Outcome::Unknown));
}

#[test]
fn adp_rows_are_read_with_their_text_details() {
    let t = one(
        &json!([{"id": "o__r-5_3", "content": [
            {"class_": "text_observation", "content": "fix it", "source": "user"},
            {"class_": "api_action", "function": "editor", "kwargs": {"command": "view", "path": "/a"}, "description": "I look."},
            {"class_": "text_observation", "content": "1 x", "name": "editor", "source": "environment"},
            {"class_": "code_action", "language": "bash", "content": "make", "description": null},
            {"class_": "text_observation", "content": "ok", "source": "environment"},
            {"class_": "message_action", "content": "done"},
            {"class_": "someday_action", "content": "?"}
        ], "details": {"resolved": "False", "run_id": "run_1", "tools": "[{\"function\": {\"name\": \"editor\"}}]",
            "test_result": "{\"git_patch\": \"diff --git a/a b/a\\n\"}"}}]),
        "adp",
    );
    let expected = [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::Tool, Role::Assistant, Role::Meta];
    assert_eq!(roles(&t), expected);
    assert_eq!((t.steps[1].action.as_deref(), t.steps[1].text.as_str()), (Some("view /a"), "I look."));
    assert_eq!((t.steps[3].action.as_deref(), t.steps[3].calls[0].name.as_str()), (Some("make"), "bash"));
    assert_eq!((t.instance_id.as_deref(), t.attempt.as_deref()), (Some("o__r-5"), Some("run_1")));
    assert_eq!((t.outcome, t.patch.as_deref()), (Outcome::Unresolved, Some("diff --git a/a b/a\n")));
    assert_eq!((t.tools[0].name.as_str(), t.steps[1].raw.pointer.as_ref()), ("editor", "/content/1"));
    assert_eq!(t.diagnostics[0].message, "1 parts of unknown class are shown raw");
}

#[test]
fn episodes_of_a_trial_are_one_trajectory() {
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let typed = |keys: &str| {
        message("assistant", &json!({"analysis": "a", "plan": "p", "commands": [{"keystrokes": keys}]}).to_string())
    };
    let row = |n: u32, result: Value, conversations: Vec<Value>| {
        json!({"conversations": conversations, "agent": "terminus-2", "model": "m", "task": "t-1", "episode": format!("episode-{n}"),
               "run_id": "r", "trial_name": "t__x", "result": result})
    };
    let (task, out) = (message("user", "TASK"), message("user", "New Terminal Output:\na"));
    let again = message("user", "SUMMARY");
    let rows = json!([
        row(0, Value::Null, vec![task.clone(), typed("ls\n")]),
        row(1, Value::Null, vec![task.clone(), typed("ls\n"), out.clone(), typed("pwd\n")]),
        row(2, json!(1.0), vec![task.clone(), again.clone(), typed("make\n")]),
        row(0, json!("AgentTimeoutError"), vec![message("user", "Summarise"), message("assistant", "S")])
    ]);
    let file = load(&rows);
    assert_eq!(file.report.format, Some("harbor-traces"), "{}", file.report.reason);
    let [trial, helper] = file.trajectories.as_slice() else { panic!("{}", file.trajectories.len()) };
    let shown: Vec<&str> = trial.steps.iter().map(|s| s.action.as_deref().unwrap_or(&s.text)).collect();
    let note = "the conversation was condensed: 2 earlier messages are no longer sent to the model";
    assert_eq!(shown, ["TASK", "ls", "New Terminal Output:\na", "pwd", note, "SUMMARY", "make"]);
    assert_eq!(trial.steps[2].role, Role::Tool);
    assert_eq!((trial.instance_id.as_deref(), trial.attempt.as_deref()), (Some("t-1"), Some("t__x")));
    assert_eq!((trial.outcome, trial.error.as_deref()), (Outcome::Resolved, None));
    assert_eq!(trial.steps[6].raw.pointer.as_ref(), "/conversations/2");
    assert_eq!((helper.outcome, helper.error.as_deref()), (Outcome::Unknown, Some("AgentTimeoutError")));
}

#[test]
fn pydantic_messages_are_read() {
    let t = one(
        &json!([
            {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "S"}, {"part_kind": "user-prompt", "content": ["fix", {"kind": "image-url", "url": "u"}], "timestamp": "T"}]},
            {"kind": "response", "model_name": "m", "timestamp": "T1", "usage": {"request_tokens": 5, "response_tokens": 2}, "parts": [
                {"part_kind": "thinking", "content": "hm"}, {"part_kind": "text", "content": "I look."},
                {"part_kind": "tool-call", "tool_name": "bash", "args": "{\"command\": \"ls\"}", "tool_call_id": "c1"}]},
            {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "bash", "content": {"out": 1}, "tool_call_id": "c1"},
                {"part_kind": "retry-prompt", "tool_name": "bash", "content": "bad", "tool_call_id": "c2"}, {"part_kind": "someday", "content": "x"}]},
            {"kind": "response", "parts": [{"part_kind": "text", "content": "done"}], "usage": {"input_tokens": 7, "output_tokens": 1}}
        ]),
        "pydantic-ai",
    );
    let expected = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Meta, Role::Assistant];
    assert_eq!(roles(&t), expected);
    let action = &t.steps[2];
    assert_eq!(
        (action.text.as_str(), action.reasoning.as_deref(), action.action.as_deref()),
        ("I look.", Some("hm"), Some("ls"))
    );
    assert_eq!((t.steps[3].call_id.as_deref(), t.steps[4].is_error), (Some("c1"), Some(true)));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.api_calls), (Some(12), Some(3), Some(2)));
    assert_eq!(t.model.as_deref(), Some("m"));
    assert!(t.steps[2].raw.span.start > t.steps[1].raw.span.start && t.steps[2].raw.span.len > 0);
}
