use std::path::Path;

use serde_json::{Value, json};

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
