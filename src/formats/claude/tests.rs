use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;

const SESSION: &str = include_str!(
    "../../../tests/fixtures/formats/claude-code/projects/-w-demo/5f0c2f4e-0000-4000-8000-000000000001.jsonl"
);
const AGENT: &str = include_str!(
    "../../../tests/fixtures/formats/claude-code/projects/-w-demo/5f0c2f4e-0000-4000-8000-000000000001/subagents/agent-a1b2c3.jsonl"
);
const STREAM: &str = include_str!("../../../tests/fixtures/formats/claude-stream/run.jsonl");

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
fn a_session_is_its_live_branch_with_each_answer_once() {
    let file = load(SESSION);
    assert_eq!(file.report.format, Some("claude-code"));
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "MUATTUATMUMAMM");
    let first = &t.steps[2];
    assert_eq!(first.text, "I look at both files.");
    assert_eq!(first.reasoning.as_deref(), Some("Where are the totals made?"));
    assert_eq!(first.action.as_deref(), Some("Read /w/demo/ledger.py\npython -m pytest -q"));
    assert_eq!(first.tokens, Some(crate::trajectory::Tokens { input: 100, cached: Some(85), output: 60 }));
    assert_eq!(first.id.as_deref(), Some("msg_demo_0000000000000001"));
    assert_eq!(t.steps[3].tool_name.as_deref(), Some("Read"));
    assert_eq!((t.steps[4].is_error, t.steps[4].exit_code), (Some(true), Some(1)));
    assert_eq!(t.steps[5].text, "No rounding, sum the rows.");
    assert_eq!(t.steps[7].text, "edited\n[image image/png]");
    assert_eq!(t.steps[8].text, "compact_boundary: Conversation compacted (4000 tokens before)");
    assert_eq!(t.steps[10].text, "API error: API Error: overloaded");
    assert!(t.steps[13].text.starts_with("brand-new-kind: {"));
    assert_eq!(t.instance_id.as_deref(), Some("acme__ledger-12"));
    assert_eq!(t.session.as_deref(), Some("5f0c2f4e-0000-4000-8000-000000000001"));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("Claude Code 2.1.3"), Some("claude-demo-1")));
    assert_eq!((t.usage.tokens_in, t.usage.tokens_cached), (Some(300), Some(255)));
    assert_eq!((t.usage.tokens_out, t.usage.api_calls, t.usage.cost), (Some(92), Some(3), None));
    assert_eq!((&t.patch, t.parent.as_deref()), (&None, None));
    let remarks: Vec<&str> = file.report.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        remarks,
        [
            "1 record of unknown type `brand-new-kind` is shown raw",
            "1 bookkeeping records are counted, not shown: file-history-snapshot 1",
            "1 abandoned branch (gone back, or asked again) with 2 records left out",
        ]
    );
    let raw = &SESSION[t.steps[2].raw.span.start as usize..][..t.steps[2].raw.span.len as usize];
    assert!(raw.starts_with('{') && raw.ends_with('}') && raw.contains("Where are the totals made?"));
}

#[test]
fn a_sub_agent_has_its_session_as_parent() {
    let file = load_bytes(Path::new("acme__ledger-12/agent-a1b2c3.jsonl"), AGENT.as_bytes().to_vec());
    let t = &file.trajectories[0];
    assert_eq!(t.instance_id, None, "it is no attempt at the issue");
    assert_eq!(roles(t), "UATA");
    assert_eq!(t.session.as_deref(), Some("a1b2c3"));
    assert_eq!(t.parent.as_deref(), Some("5f0c2f4e-0000-4000-8000-000000000001"));
}

#[test]
fn side_chains_in_the_session_are_trajectories_of_their_own() {
    let line = |id: &str, parent: Option<&str>, side: bool, kind: &str| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "isSidechain": side, "sessionId": "s", "timestamp": "t",
               "message": {"role": kind, "content": id}})
    };
    let file = lines(&[
        line("u", None, false, "user"),
        line("a", Some("u"), false, "assistant"),
        line("x1", None, true, "user"),
        line("y1", None, true, "user"),
        line("x2", Some("x1"), true, "assistant"),
        line("y2", Some("y1"), true, "assistant"),
        line("b", Some("a"), false, "assistant"),
    ]);
    let texts: Vec<Vec<&str>> =
        file.trajectories.iter().map(|t| t.steps.iter().map(|s| s.text.as_str()).collect()).collect();
    assert_eq!(texts, [vec!["u", "a", "b"], vec!["x1", "x2"], vec!["y1", "y2"]]);
    let parents: Vec<Option<&str>> = file.trajectories.iter().map(|t| t.parent.as_deref()).collect();
    assert_eq!(parents, [None, Some("s"), Some("s")]);
    let records: Vec<usize> = file.trajectories.iter().map(|t| t.source.record).collect();
    assert_eq!(records, [0, 2, 3]);
}

#[test]
fn the_stream_ends_with_what_it_cost() {
    let file = load(STREAM);
    assert_eq!(file.report.format, Some("claude-stream"));
    assert_eq!(file.trajectories.len(), 2);
    let t = &file.trajectories[0];
    assert_eq!(roles(t), "ATM");
    assert_eq!((t.exit_status.as_deref(), t.error.as_deref()), (Some("error_max_turns"), Some("too many turns")));
    let right = Usage {
        cost: Some(0.25),
        tokens_in: Some(10),
        tokens_cached: Some(7),
        tokens_out: Some(10),
        api_calls: Some(1),
    };
    assert_eq!(t.usage, right);
    assert_eq!(t.tools.len(), 2);
    assert_eq!(roles(&file.trajectories[1]), "UA");
    assert_eq!(file.trajectories[1].parent.as_deref(), t.session.as_deref());
}

#[test]
fn a_single_result_is_a_stream_of_one() {
    let file = load(
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"Done.","total_cost_usd":0}"#,
    );
    assert_eq!(file.report.format, Some("claude-stream"));
    let t = &file.trajectories[0];
    assert_eq!((t.n_actions(), t.steps[0].text.as_str(), t.usage.cost), (1, "Done.", None));
}

#[test]
fn an_export_of_the_web_has_fewer_keys() {
    let export = json!({"loglines": [
        {"type": "user", "timestamp": "t", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "timestamp": "t", "message": {"role": "assistant", "content": [
            {"type": "text", "text": "I run it."}, {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "ls"}}]}},
        {"type": "user", "timestamp": "t", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c", "content": "a.py"}]}}
    ]});
    let file = load(&export.to_string());
    let t = &file.trajectories[0];
    assert_eq!((roles(t).as_str(), t.steps[1].action.as_deref()), ("UAT", Some("ls")));
    assert_eq!(&*t.steps[2].raw.pointer, "/loglines/2");
    assert_eq!(t.usage, Usage::default());
}

#[test]
fn records_written_twice_count_once_unless_they_differ() {
    let line = |id: &str, text: &str| json!({"type": "user", "uuid": id, "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": text}});
    let file = lines(&[line("a", "one"), line("a", "one"), line("a", "two")]);
    let texts: Vec<&str> = file.trajectories[0].steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
    assert!(file.report.diagnostics.iter().any(|d| d.message == "1 records are written twice: counted once"));
}

#[test]
fn siblings_of_iflow_are_one_answer_with_each_call_once() {
    let answer = |id: &str, calls: &[&str]| {
        let uses: Vec<Value> =
            calls.iter().map(|c| json!({"type": "tool_use", "id": c, "name": "read", "input": {"path": c}})).collect();
        json!({"type": "assistant", "uuid": id, "parentUuid": "u", "sessionId": "session-1", "isSidechain": false,
               "message": {"id": id, "role": "assistant", "content": uses}})
    };
    let file = lines(&[
        json!({"type": "user", "uuid": "u", "parentUuid": null, "sessionId": "session-1", "message": {"role": "user", "content": "go"}}),
        answer("a", &["1"]),
        answer("b", &["1", "2"]),
    ]);
    let t = &file.trajectories[0];
    assert_eq!((t.n_actions(), t.steps[1].calls.len()), (1, 2));
    assert_eq!(t.agent.as_deref(), Some("iFlow CLI"));
}
