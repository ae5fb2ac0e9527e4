use std::path::Path;

use super::super::json::{Value, json};
use super::super::load::{LoadedFile, load_bytes};
use crate::trajectory::Trajectory;

const EVENTS: &str = include_str!("../../../tests/fixtures/formats/copilot-cli/session-state/cp-1/events.jsonl");
const CHAT: &str = include_str!("../../../tests/fixtures/formats/vscode-chat/chatSessions/vs-1.jsonl");

fn load(text: &str) -> LoadedFile {
    load_bytes(Path::new("x/s.jsonl"), text.as_bytes().to_vec())
}

fn roles(t: &Trajectory) -> String {
    t.steps.iter().map(|s| format!("{:?}", s.role).chars().next().unwrap()).collect()
}

#[test]
fn events_of_the_cli() {
    let file = load(EVENTS);
    assert_eq!(file.report.format, Some("copilot-cli"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "MUATTAAMMMM");
    assert_eq!((t.steps[2].reasoning.as_deref(), t.steps[2].calls.len()), (Some("read first"), 2));
    assert_eq!((t.steps[3].tool_name.as_deref(), t.steps[3].is_error), (Some("bash"), Some(true)));
    assert_eq!((t.steps[4].text.as_str(), t.steps[4].is_error), ("return 0", Some(false)));
    assert_eq!(t.steps[5].calls[0].name, "task", "a call no answer announced");
    assert_eq!(t.steps[6].reasoning.as_deref(), Some("finish"));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached), (Some(100), Some(40)));
    assert_eq!((t.usage.tokens_out, t.usage.api_calls, t.usage.cost), (Some(9), Some(2), None));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("cp-1"), Some("model-c")));
    assert_eq!((t.error.as_deref(), t.exit_status.as_deref()), (Some("limit"), Some("routine")));
    assert!(file.report.diagnostics.iter().any(|d| d.message.contains("`moon.phase`")));
}

#[test]
fn a_log_of_changes_is_applied() {
    let file = load(CHAT);
    assert_eq!(file.report.format, Some("vscode-chat"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "UATAMAUATAM");
    let first = &t.steps[1];
    assert_eq!((first.text.as_str(), first.reasoning.as_deref()), ("I look at it.", Some("hm")));
    assert_eq!((first.action.as_deref(), t.steps[2].exit_code), (Some("pytest"), Some(1)));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].is_error), ("Ran it", Some(true)));
    assert_eq!((t.steps[3].calls[0].name.as_str(), t.steps[3].action.as_deref()), ("edit", Some("edit /w/ledger.py")));
    assert_eq!(t.steps[5].text, "All done.");
    assert_eq!((t.steps[7].text.as_str(), t.steps[7].reasoning.as_deref()), ("I read.", Some("t")));
    assert_eq!((t.steps[8].text.as_str(), t.steps[8].tool_name.as_deref()), ("return 0\nab", Some("read_file")));
    assert_eq!((t.steps[10].text.as_str(), t.error.as_deref()), ("error: stopped", Some("stopped")));
    let remarks: Vec<&str> = file.report.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert!(remarks.contains(&"1 changes could not be applied"), "{remarks:?}");
    assert!(remarks.contains(&"1 record of unknown type `crystal` is shown raw"), "{remarks:?}");
}

#[test]
fn a_chat_session_is_one_object_too() {
    let session = json!({"version": 3, "sessionId": "s", "requests": [
        {"requestId": "r", "message": {"text": "go"}, "response": [{"value": "gone"}]}]});
    let file = load(&session.to_string());
    let t = &file.trajectories[0];
    assert_eq!((t.format, roles(t).as_str()), ("vscode-chat", "UA"));
    assert_eq!(&*t.steps[1].raw.pointer, "/requests/0");
    let empty: Value = json!({"version": 3, "sessionId": "s", "requests": []});
    assert_eq!(load(&empty.to_string()).trajectories[0].steps.len(), 0);
}

fn event(kind: &str, data: &Value) -> String {
    json!({"type": kind, "data": data, "id": "e", "timestamp": "t", "parentId": null}).to_string()
}

#[test]
fn a_session_that_goes_on_keeps_its_id_and_its_latest_model() {
    let lines = [
        event("session.start", &json!({"sessionId": "a", "selectedModel": "m1"})),
        event("assistant.message", &json!({"content": "x"})),
        event("session.resume", &json!({"resumeTime": "t"})),
        event("session.model_change", &json!({"newModel": "m2"})),
        event(
            "tool.execution_complete",
            &json!({"toolCallId": "nobody", "success": true, "result": {"content": [{"type": "text", "text": "r"}]}}),
        ),
        event("abort", &json!({"reason": "user"})),
    ];
    let file = load(&lines.join("\n"));
    let t = &file.trajectories[0];
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("a"), Some("m2")));
    assert_eq!((roles(t).as_str(), t.steps[2].text.as_str(), t.steps[2].tool_name.as_deref()), ("AMTM", "r", None));
    assert_eq!(t.usage, crate::trajectory::Usage::default(), "no shutdown, no totals");
}

#[test]
fn several_models_are_summed() {
    let usage = |input: u64| json!({"usage": {"inputTokens": input, "outputTokens": 1}, "requests": {"count": 2}});
    let lines = [
        event("assistant.message", &json!({"content": "x"})),
        event("session.shutdown", &json!({"shutdownType": "error", "modelMetrics": {"a": usage(3), "b": usage(4)}})),
    ];
    let t = load(&lines.join("\n")).trajectories[0].clone();
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached, t.usage.api_calls), (Some(7), None, Some(4)));
    assert_eq!((t.model.as_deref(), t.exit_status.as_deref()), (Some("a"), Some("error")));
}
