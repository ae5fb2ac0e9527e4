use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;

const ROLLOUT: &str = include_str!(
    "../../../tests/fixtures/formats/codex-rollout/sessions/2026/03/02/rollout-2026-03-02T08-00-01-0d000000-0000-7000-8000-000000000001.jsonl"
);
const EXEC: &str = include_str!("../../../tests/fixtures/formats/codex-exec/run.jsonl");

fn load(text: &str) -> LoadedFile {
    load_bytes(Path::new("x/s.jsonl"), text.as_bytes().to_vec())
}

fn lines(records: &[Value]) -> LoadedFile {
    load(&records.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"))
}

fn roles(t: &Trajectory) -> String {
    t.steps.iter().map(|s| format!("{:?}", s.role).chars().next().unwrap()).collect()
}

#[test]
fn a_rollout_shows_its_items() {
    let file = load(ROLLOUT);
    assert_eq!(file.report.format, Some("codex-rollout"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "SMMSUATTATATAMMMUAMMM");
    let first = &t.steps[5];
    assert_eq!(first.reasoning.as_deref(), Some("Look first."));
    assert_eq!(first.action.as_deref(), Some("cat ledger.py\nls"));
    assert_eq!(first.tokens, Some(Tokens { input: 100, cached: Some(40), output: 7 }));
    assert_eq!((t.steps[6].tool_name.as_deref(), t.steps[6].exit_code), (Some("exec_command"), Some(2)));
    assert_eq!(t.steps[6].is_error, Some(true));
    assert_eq!(t.steps[7].text, "def total(rows): return 0\n");
    assert_eq!((t.steps[7].exit_code, t.steps[7].is_error), (Some(0), Some(false)));
    let edit = &t.steps[8];
    assert!(edit.action.as_deref().unwrap().starts_with("apply_patch *** Begin Patch\n*** Update File: ledger.py"));
    assert!(edit.calls[0].arguments.contains("+def total(rows): return sum(rows)"));
    assert_eq!(edit.tokens.map(|t| t.output), Some(20));
    assert_eq!(t.steps[10].action.as_deref(), Some("pytest -q"));
    assert_eq!((t.steps[11].text.as_str(), t.steps[11].is_error), ("1 passed", Some(false)));
    assert_eq!(t.steps[12].calls[0].name, "web_search");
    assert_eq!(t.steps[13].text, "compacted: So far: repaired.");
    assert_eq!((t.steps[14].text.as_str(), t.steps[15].text.as_str()), ("thread_rolled_back", "model: gpt-demo-mini"));
    assert_eq!(t.steps[17].text, "Done.");
    assert_eq!((t.steps[0].text.as_str(), t.steps[2].role), ("Be brief.", Role::Meta));
    assert_eq!(t.session.as_deref(), Some("0d000000-0000-7000-8000-000000000001"));
    assert_eq!(t.parent.as_deref(), Some("0d000000-0000-7000-8000-000000000000"));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("Codex CLI 0.99.0"), Some("gpt-demo")));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached), (Some(250), Some(140)));
    assert_eq!((t.usage.tokens_out, t.usage.api_calls, t.usage.cost), (Some(27), Some(2), None));
    assert_eq!((t.error.as_deref(), &t.patch), (Some("stream lost"), &None));
    let remarks: Vec<&str> = file.report.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert!(remarks.contains(&"1 record of unknown type `hologram` is shown raw"), "{remarks:?}");
    assert!(remarks.contains(&"1 record of unknown type `tomorrow` is shown raw"), "{remarks:?}");
    assert!(remarks.contains(&"2 steps were rolled back and are left out"), "{remarks:?}");
}

#[test]
fn events_are_shown_only_where_there_are_no_items() {
    let event = |kind: &str, text: &str| json!({"timestamp": "t", "type": "event_msg", "payload": {"type": kind, "message": text}});
    let file = lines(&[
        json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}}),
        event("user_message", "go"),
        event("agent_message", "gone"),
        json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "c", "stdout": "x", "exit_code": 3}}),
    ]);
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), t.steps[2].exit_code), ("UAT", Some(3)));
    assert!(file.report.diagnostics.iter().any(|d| d.code == "codex.events-only"));
    let with_item = lines(&[
        event("user_message", "go"),
        json!({"timestamp": "t", "type": "response_item", "payload": {"role": "user", "content": [{"text": "go", "type": "input_text"}]}}),
    ]);
    assert_eq!(roles(&with_item.trajectories[0]), "U");
}

#[test]
fn older_rollouts_have_no_envelope() {
    let header = json!({"id": "s", "timestamp": "t", "instructions": "Be brief.", "git": null});
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]});
    let called =
        json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\",\"-a\"]}", "call_id": "c"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "{\"output\":\"a\",\"metadata\":{\"exit_code\":0}}"});
    let file = lines(&[header.clone(), json!({"record_type": "state"}), said.clone(), called.clone(), output.clone()]);
    assert_eq!(file.report.format, Some("codex-rollout"), "{}", file.report.reason);
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), t.steps[2].action.as_deref()), ("SUAT", Some("ls -a")));
    let file = load(&json!({"session": header, "items": [said, called, output]}).to_string());
    assert_eq!(file.report.format, Some("codex-rollout"));
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), t.session.as_deref()), ("SUAT", Some("s")));
    assert_eq!(&*t.steps[3].raw.pointer, "/items/2");
}

#[test]
fn the_stream_of_exec_has_items_that_end() {
    let file = load(EXEC);
    assert_eq!(file.report.format, Some("codex-exec"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "ATATATAMMAM");
    assert_eq!(t.steps[0].reasoning.as_deref(), Some("Plan."));
    assert_eq!(t.steps[0].action.as_deref(), Some("bash -lc 'pytest -q'"));
    assert_eq!((t.steps[1].exit_code, t.steps[1].is_error), (Some(1), Some(true)));
    assert_eq!(t.steps[1].text, "1 failed\n");
    assert_eq!(t.steps[2].calls[0].name, "apply_patch");
    assert_eq!(t.steps[4].calls.len(), 2);
    assert!(t.steps[4].calls[0].arguments.contains("true"), "the last state of the list");
    assert_eq!((t.steps[4].calls[1].name.as_str(), t.steps[5].text.as_str()), ("docs.find", "found"));
    assert_eq!(t.session.as_deref(), Some("0d000000-0000-7000-8000-000000000009"));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached, t.usage.tokens_out), (Some(15), Some(5), Some(3)));
    assert_eq!(t.exit_status.as_deref(), Some("turn.completed"));
    let failed =
        lines(&[json!({"type": "turn.started"}), json!({"type": "turn.failed", "error": {"message": "quota"}})]);
    let t = &failed.trajectories[0];
    assert_eq!((t.error.as_deref(), t.exit_status.as_deref()), (Some("quota"), Some("turn.failed")));
    assert_eq!(t.usage, crate::trajectory::Usage::default());
}

#[test]
fn calls_are_shown_by_what_they_do() {
    let shown = |name: &str, arguments: &str| {
        items::shown(&crate::trajectory::ToolCall { id: String::new(), name: name.into(), arguments: arguments.into() })
    };
    assert_eq!(shown("shell", r#"{"command":["zsh","-c","a | b"]}"#), "a | b");
    assert_eq!(shown("shell", r#"{"command":["git","-c","x"]}"#), "git -c x");
    assert_eq!(
        shown("apply_patch", r#"{"patch":"*** Begin Patch\n*** End Patch"}"#),
        "apply_patch *** Begin Patch\n*** End Patch"
    );
    assert_eq!(shown("exec_command", r#"{"cmd":"ls"}"#), "ls");
    assert!(items::is_context("  <environment_context>") && !items::is_context("please"));
}

#[test]
fn a_count_belongs_to_the_answer_it_came_with() {
    let count = |input: u64, last: u64| {
        json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": input, "output_tokens": 1}, "last_token_usage": {"input_tokens": last, "output_tokens": 1}}}})
    };
    let call = |id: &str| json!({"timestamp": "t", "type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id}});
    let output = |id: &str| json!({"timestamp": "t", "type": "response_item", "payload": {"type": "function_call_output", "call_id": id, "output": "x"}});
    let meta = json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}});
    let tokens = |records: &[Value]| {
        let file = lines(records);
        let steps = file.trajectories[0].steps.clone();
        steps.iter().filter_map(|s| s.tokens.map(|t| t.input)).collect::<Vec<_>>()
    };
    let before = [meta.clone(), count(5, 5), call("a"), output("a"), count(5, 5), count(12, 7), call("b"), output("b")];
    assert_eq!(tokens(&before), [5, 7]);
    let behind = [meta.clone(), call("a"), count(5, 5), output("a"), call("b"), count(12, 7), output("b")];
    assert_eq!(tokens(&behind), [5, 7]);
    let huge = json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": u64::MAX}}}});
    let file = lines(&[meta, call("a"), huge]);
    assert_eq!(file.trajectories[0].usage.tokens_in, Some(u64::MAX));
}

#[test]
fn a_fork_tells_where_it_came_from_and_is_no_sub_agent() {
    let meta = |id: &str| json!({"timestamp": "t", "type": "session_meta", "payload": {"id": id, "forked_from_id": "old", "originator": "TraeX"}});
    let file = lines(&[meta("new"), meta("old")]);
    let t = &file.trajectories[0];
    assert_eq!((t.session.as_deref(), t.parent.as_deref()), (Some("new"), None));
    assert_eq!((t.steps[0].text.as_str(), t.agent.as_deref()), ("forked from session: old", Some("TraeX")));
}

#[test]
fn rolling_back_more_turns_than_there_are_takes_nothing() {
    let user = json!({"timestamp": "t", "type": "response_item", "payload": {"role": "user", "content": "go"}});
    let back = |n: u64| json!({"timestamp": "t", "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": n}});
    for (n, left) in [(0, "UM"), (1, "M"), (9, "UM")] {
        let file = lines(&[user.clone(), back(n)]);
        assert_eq!(roles(&file.trajectories[0]), left, "{n}");
    }
}
