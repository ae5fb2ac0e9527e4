use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;
use crate::trajectory::{Dataset, join};

fn load(path: &str, value: &Value) -> LoadedFile {
    load_bytes(Path::new(path), value.to_string().into_bytes())
}

fn response(text: &str) -> Value<'static> {
    json!({"content": text, "model": "m", "finish_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 40},
        "tool_calls": [{"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}}]})
}

fn called(n: usize) -> Value<'static> {
    let told: Vec<Value> = (0..n)
        .map(|i| {
            let role = ["system", "user", "assistant", "user"][i];
            json!({"role": role, "content": format!("message {i}")})
        })
        .collect();
    json!({"timestamp": "t", "provider": "p", "model": "m", "input_messages": told, "response": response("look"), "tools_available": ["bash"]})
}

#[test]
fn steps_are_read_once_and_repeated_messages_never() {
    let file = load(
        "runs/o__r-1/trajectory_20250101_000000.json",
        &json!({"task": "TASK", "start_time": "a", "end_time": "b", "provider": "p", "model": "m", "max_steps": 9,
        "llm_interactions": [called(2), called(4)],
        "agent_steps": [
            {"step_number": 1, "timestamp": "t1", "state": "completed", "llm_messages": [{"role": "user", "content": "huge"}],
             "llm_response": response("look"), "tool_calls": [{"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}}],
             "tool_results": [{"call_id": "c1", "success": false, "result": "", "error": "no such file"}], "reflection": "hm", "error": null},
            {"step_number": 2, "timestamp": "t2", "llm_response": {"content": "done"}, "tool_calls": null, "tool_results": null, "error": "boom"}],
        "success": true, "final_result": "done", "execution_time": 3.5}),
    );
    assert_eq!(file.report.format, Some("trae"));
    let t = &file.trajectories[0];
    let found: Vec<(Role, &str)> = t.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
    let expected = [
        (Role::System, "message 0"),
        (Role::User, "message 1"),
        (Role::Assistant, "look"),
        (Role::Tool, "no such file"),
        (Role::Meta, "reflection: hm"),
        (Role::Assistant, "done"),
        (Role::Meta, "error: boom"),
    ];
    assert_eq!(found, expected);
    assert_eq!((t.steps[2].calls[0].id.as_str(), t.steps[2].action.as_deref()), ("c1", Some("ls")));
    assert_eq!((t.steps[3].is_error, t.steps[3].tool_name.as_deref()), (Some(true), Some("bash")));
    assert_eq!(&*t.steps[3].raw.pointer, "/agent_steps/0/tool_results/0");
    assert_eq!(&*t.steps[1].raw.pointer, "/llm_interactions/0/input_messages/1");
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.api_calls), (Some(100), Some(10), Some(2)));
    assert_eq!((t.instance_id.as_deref(), t.exit_status.as_deref()), (Some("o__r-1"), Some("success")));
    assert_eq!(t.patch, None);
}

#[test]
fn the_rust_program_nests_its_steps() {
    let mut with_steps = called(2);
    with_steps["steps"] = json!([{"llm_response": response("look"), "tool_results": [{"call_id": "c1", "success": true, "result": "a.py"}]}]);
    let file = load(
        "o__r-1.json",
        &json!({"task": "T", "start_time": "1700000000", "max_step": 9, "llm_interaction": [with_steps, called(3)], "success": false}),
    );
    assert_eq!(file.report.format, Some("trae"));
    let t = &file.trajectories[0];
    assert_eq!((t.n_actions(), t.exit_status.as_deref()), (2, Some("failed")));
    assert_eq!(t.steps[3].text, "a.py");
    assert_eq!(t.diagnostics[0].code, "trae.no-steps");
}

#[test]
fn candidates_of_the_selector_keep_their_labels() {
    let rows = json!({"instance_id": "o__r-1", "issue": "I", "patches": ["", "P", null], "success_id": [0, 1]});
    let file = load("x.jsonl", &rows);
    assert_eq!(file.report.format, Some("trae-candidates"));
    let issue = join(&Dataset { predictions: file.predictions, ..Dataset::default() }).remove(0);
    let found: Vec<_> =
        issue.attempts.iter().map(|a| (a.name.as_str(), a.patch(), a.label.outcome.as_bool())).collect();
    assert_eq!(
        found,
        [
            ("candidate 1", Some(""), Some(false)),
            ("candidate 2", Some("P"), Some(true)),
            ("candidate 3", Some(""), None),
        ]
    );
}
