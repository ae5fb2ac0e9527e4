use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;

const SESSION: &str =
    include_str!("../../../tests/fixtures/formats/gemini-cli/chats/session-2026-04-01T09-00-g1.jsonl");
const QWEN: &str = include_str!("../../../tests/fixtures/formats/qwen-code/q-1.jsonl");

fn load(path: &str, text: &str) -> LoadedFile {
    load_bytes(Path::new(path), text.as_bytes().to_vec())
}

fn roles(t: &Trajectory) -> String {
    t.steps.iter().map(|s| format!("{:?}", s.role).chars().next().unwrap()).collect()
}

#[test]
fn later_records_replace_and_take_back_earlier_ones() {
    let file = load("s.jsonl", SESSION);
    assert_eq!(file.report.format, Some("gemini-cli"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "UATTTTMMM");
    assert_eq!(t.steps[0].text, "Sum the rows.\n[data image/png]");
    let action = &t.steps[1];
    assert_eq!((action.text.as_str(), action.reasoning.as_deref()), ("I read and run.", Some("Plan: read first")));
    assert_eq!(action.calls.len(), 4);
    assert_eq!(action.tokens, Some(Tokens { input: 50, cached: Some(20), output: 10 }));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].is_error), ("return 0", Some(false)));
    assert_eq!((t.steps[3].text.as_str(), t.steps[3].is_error), ("no pytest", Some(true)));
    assert_eq!(t.steps[4].text, "-return 0\n+return sum(rows)");
    assert_eq!((t.steps[5].text.as_str(), t.steps[5].is_error), ("cancelled", Some(true)));
    assert_eq!((t.steps[6].text.as_str(), t.steps[6].is_error), ("error: quota", Some(true)));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_out, t.usage.api_calls), (Some(50), Some(10), Some(1)));
    assert_eq!((t.session.as_deref(), t.model.as_deref()), (Some("g-1"), Some("gemini-demo")));
    let remarks: Vec<&str> = file.report.diagnostics.iter().map(|d| d.message.as_str()).collect();
    for right in [
        "1 record of unknown type `horoscope` is shown raw",
        "3 messages were taken back and are left out",
        "1 records replace an earlier one of the same message",
    ] {
        assert!(remarks.contains(&right), "{remarks:?}");
    }
}

#[test]
fn the_older_form_is_one_object() {
    let root = json!({"sessionId": "s", "projectHash": "h", "startTime": "t", "messages": [
        {"id": "a", "type": "user", "content": "go"},
        {"id": "b", "type": "gemini", "content": "", "toolCalls": [{"name": "glob", "args": {}, "status": "success"}]}]});
    let file = load("chats/session.json", &root.to_string());
    assert_eq!(file.report.format, Some("gemini-cli"));
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), &*t.steps[1].raw.pointer), ("UA", "/messages/1"));
    assert_eq!((t.usage, t.parent.as_deref()), (crate::trajectory::Usage::default(), None));
}

#[test]
fn a_sub_agent_lies_in_a_folder_named_after_its_session() {
    let text = "{\"sessionId\":\"sub\",\"projectHash\":\"h\",\"kind\":\"subagent\"}\n{\"id\":\"a\",\"type\":\"gemini\",\"content\":\"x\"}\n";
    let file = load("chats/parent-session/sub.jsonl", text);
    assert_eq!(file.trajectories[0].parent.as_deref(), Some("parent-session"));
}

#[test]
fn qwen_code_keeps_messages_of_the_api_in_a_tree() {
    let file = load("q.jsonl", QWEN);
    assert_eq!(file.report.format, Some("qwen-code"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "UATUMAM");
    assert_eq!((t.steps[1].text.as_str(), t.steps[1].reasoning.as_deref()), ("I look.", Some("hm")));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].is_error), ("0", Some(false)));
    assert_eq!(t.steps[3].text, "Go on.");
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached, t.usage.tokens_out), (Some(30), Some(10), Some(6)));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("Qwen Code 0.9.0"), Some("qwen-demo")));
    assert!(file.report.diagnostics.iter().any(|d| d.code == "qwen.abandoned"));
}

#[test]
fn a_whole_list_may_be_set_anew() {
    let lines = [
        json!({"sessionId": "s", "projectHash": "h"}),
        json!({"id": "a", "type": "user", "content": "go"}),
        json!({"$set": {"messages": [{"id": "a", "type": "user", "content": "go on"}, {"id": "b", "type": "gemini", "content": "x"}]}}),
    ];
    let file = load("s.jsonl", &lines.map(|l| l.to_string()).join("\n"));
    let t = &file.trajectories[0];
    let texts: Vec<&str> = t.steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts, ["go on", "x"]);
    assert!(t.steps[1].raw.span.len > 0);
}

#[test]
fn results_are_shown_from_wherever_they_stand() {
    let of = |call: Value| returned(&call).map(|step| (step.text, step.is_error));
    let display = json!({"status": "success", "resultDisplay": "seen"});
    assert_eq!(of(display), Some(("seen".to_owned(), Some(false))));
    assert_eq!(of(json!({"status": "success", "result": []})), None, "nothing came back");
    assert_eq!(of(json!({"status": "error"})), Some(("error".to_owned(), Some(true))));
    let odd = json!({"result": [{"functionResponse": {"response": {"rows": 3}}}]});
    assert_eq!(of(odd), Some(("{\"rows\":3}".to_owned(), None)));
    let both = json!({"status": "success", "result": [{"functionResponse": {"response": {"output": "a"}}},
        {"functionResponse": {"response": {"output": "b"}}}]});
    assert_eq!(of(both), Some(("a\nb".to_owned(), Some(false))));
}

#[test]
fn prompts_alone_are_a_companion() {
    let file = load("logs.json", r#"[{"sessionId":"s","messageId":0,"type":"user","message":"hi","timestamp":"t"}]"#);
    assert_eq!((file.report.format, file.trajectories.len()), (Some("gemini-logs"), 0));
}
