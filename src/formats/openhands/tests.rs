//! OpenHands rows and exports made by hand.

use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;
use crate::trajectory::{Outcome, Role};

fn load(text: &str) -> LoadedFile {
    load_bytes(Path::new("x/output.jsonl"), text.as_bytes().to_vec())
}

fn one(value: &Value) -> Trajectory {
    let file = load(&value.to_string());
    assert_eq!(file.trajectories.len(), 1, "{}", file.report.reason);
    file.trajectories[0].as_ref().clone()
}

fn roles(trajectory: &Trajectory) -> Vec<Role> {
    trajectory.steps.iter().map(|s| s.role).collect()
}

fn response(id: &str, content: &Value, calls: &Value) -> Value<'static> {
    json!({"id": id, "model": "m-1", "choices": [{"message": {"role": "assistant", "content": content, "tool_calls": calls}}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value<'static> {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn flat_events_become_what_the_model_saw() {
    let answer = response(
        "r1",
        &json!("Look."),
        &json!([
            call("c1", "execute_bash", "{\"command\": \"ls\"}"),
            call("c2", "execute_bash", "{\"command\":\"pwd\"}")
        ]),
    );
    let metadata = |id: &str| json!({"function_name": "execute_bash", "tool_call_id": id, "model_response": answer, "total_calls_in_response": 2});
    let run = |code: i64| json!({"metadata": {"exit_code": code, "working_dir": "/w", "py_interpreter_path": "/p", "prefix": "", "suffix": "!"}});
    let t = one(&json!({
        "instance_id": "o__r-1", "instruction": "TASK", "attempt": 2,
        "test_result": {"git_patch": "diff --git a/a b/a\r\n", "report": {"resolved": true}},
        "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "gpt-x"}},
        "instance": {"patch": "GOLD", "problem_statement": "broken"},
        "metrics": {"accumulated_cost": 0.5, "costs": [{"cost": 0.2}, {"cost": 0.3}], "accumulated_token_usage": {"prompt_tokens": 10, "completion_tokens": 3}},
        "history": [
            {"id": 0, "source": "agent", "action": "system", "args": {"content": "SYS", "tools": [{"type": "function", "function": {"name": "execute_bash", "description": "d", "parameters": {"type": "object"}}}]}},
            {"id": 1, "source": "user", "action": "message", "args": {"content": "TASK"}},
            {"id": 2, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}},
            {"id": 3, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."}, "tool_call_metadata": metadata("c1"), "timestamp": "T"},
            {"id": 4, "source": "agent", "observation": "run", "content": "a.py", "extras": run(0), "cause": 3, "tool_call_metadata": metadata("c1")},
            {"id": 5, "source": "agent", "action": "run", "args": {"command": "pwd", "thought": ""}, "tool_call_metadata": metadata("c2")},
            {"id": 6, "source": "agent", "observation": "run", "content": "", "extras": run(-1), "cause": 5, "tool_call_metadata": metadata("c2")},
            {"id": 7, "source": "user", "action": "message", "args": {"content": "go on"}},
            {"id": 8, "source": "agent", "action": "finish", "args": {"final_thought": "done", "thought": "", "outputs": {}}}
        ]
    }));
    let expected =
        [Role::System, Role::User, Role::Meta, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::Assistant];
    assert_eq!(roles(&t), expected);
    assert_eq!(
        (t.format, t.model.as_deref(), t.agent.as_deref()),
        ("openhands-0", Some("gpt-x"), Some("CodeActAgent"))
    );
    assert_eq!((t.tools[0].name.as_str(), t.tools[0].parameters.as_str()), ("execute_bash", r#"{"type":"object"}"#));
    let action = &t.steps[3];
    assert_eq!((action.text.as_str(), action.thought.as_deref()), ("Look.", Some("Look.")));
    assert_eq!(action.calls[0].arguments, "{\"command\": \"ls\"}", "exactly as the model wrote it");
    assert_eq!(action.action.as_deref(), Some("ls\npwd"));
    assert_eq!(action.timestamp.as_deref(), Some("T"));
    let seen = "a.py!\n[Current working directory: /w]\n[Python interpreter: /p]\n[Command finished with exit code 0]";
    assert_eq!((t.steps[4].text.as_str(), t.steps[4].exit_code, t.steps[4].is_error), (seen, Some(0), Some(false)));
    assert_eq!(t.steps[4].call_id.as_deref(), Some("c1"));
    assert_eq!((t.steps[5].exit_code, t.steps[5].is_error), (None, None), "-1 is not an exit code");
    assert_eq!(t.steps[5].tool_name.as_deref(), Some("execute_bash"));
    assert_eq!(t.steps[7].calls[0].arguments, r#"{"message":"done"}"#);
    assert_eq!(t.patch.as_deref(), Some("diff --git a/a b/a\r\n"));
    assert_eq!(
        (t.task.as_deref(), t.outcome, t.attempt.as_deref()),
        (Some("broken"), Outcome::Resolved, Some("attempt 2"))
    );
    assert_eq!(
        t.usage,
        Usage { cost: Some(0.5), tokens_in: Some(10), tokens_out: Some(3), api_calls: Some(2), ..Usage::default() }
    );
    assert_eq!(t.diagnostics[0].code, "openhands.rebuilt-calls");
}

#[test]
fn calls_are_rebuilt_from_arguments() {
    let event = |action: &str, args: &Value| json!({"source": "agent", "action": action, "args": args});
    let events = json!([
        event("run", &json!({"command": "ls", "thought": "t", "is_input": false})),
        event("run", &json!({"command": "C-c", "is_input": true})),
        event("read", &json!({"path": "/a", "view_range": [1, 2], "start": 0, "end": -1})),
        event("edit", &json!({"path": "/a", "command": "str_replace", "old_str": "x", "new_str": "y", "content": ""})),
        event("edit", &json!({"path": "/a", "content": "z", "start": 1, "end": -1})),
        event("run_ipython", &json!({"code": "1", "thought": ""})),
        event("think", &json!({"thought": "hm"})),
        event("browse", &json!({"url": "u"})),
        event("call_tool_mcp", &json!({"name": "fetch", "arguments": {"url": "u"}})),
        event("dance", &json!({"style": "tango", "thought": "why not"})),
    ]);
    let t = one(&events);
    assert_eq!(t.format, "openhands-0-events");
    let calls: Vec<(&str, &str)> =
        t.steps.iter().flat_map(|s| &s.calls).map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
    let expected = [
        ("execute_bash", r#"{"command":"ls"}"#),
        ("execute_bash", r#"{"command":"C-c","is_input":"true"}"#),
        ("str_replace_editor", r#"{"command":"view","path":"/a","view_range":[1,2]}"#),
        ("str_replace_editor", r#"{"command":"str_replace","path":"/a","old_str":"x","new_str":"y"}"#),
        ("edit_file", r#"{"path":"/a","content":"z","start":1,"end":-1}"#),
        ("execute_ipython_cell", r#"{"code":"1"}"#),
        ("think", r#"{"thought":"hm"}"#),
        ("web_read", r#"{"url":"u"}"#),
        ("fetch", r#"{"url":"u"}"#),
        ("dance", r#"{"style":"tango"}"#),
    ];
    assert_eq!(calls, expected);
    assert_eq!(t.steps[0].text, "t");
    assert_eq!(t.steps[6].text, "");
    assert_eq!(t.steps[2].action.as_deref(), Some("view /a [1, 2]"));
}

#[test]
fn three_generations_of_history_in_one_file() {
    let flat = json!({"instance_id": "o__r-1", "history": [{"id": 0, "source": "user", "action": "message", "args": {"content": "flat"}}, {"id": 1, "source": "agent", "action": "run", "args": {"command": "true"}}], "test_result": {"git_patch": ""}});
    let pairs = json!({"instance_id": "o__r-2", "instruction": "TASK", "history": [[{"action": "run", "args": {"command": "true"}}, {"observation": "run", "content": "ok", "extras": {"exit_code": 1, "command_id": 3}}], [{"action": "null"}, {"observation": "null", "content": ""}]], "git_patch": null, "test_result": {}});
    let sdk = json!({"instance_id": "o__r-3", "history": [
        {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": {"type": "text", "text": "sys"}, "tools": []},
        {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}},
        {"kind": "ActionEvent", "source": "agent", "thought": [{"type": "text", "text": "go"}], "reasoning_content": "r", "tool_name": "terminal", "tool_call_id": "c1", "tool_call": {"id": "c1", "name": "terminal", "arguments": "{\"command\": \"true\"}"}, "llm_response_id": "a"},
        {"kind": "ActionEvent", "source": "agent", "thought": [], "tool_name": "terminal", "tool_call_id": "c2", "action": {"kind": "TerminalAction", "command": "false"}, "llm_response_id": "a"},
        {"kind": "ObservationEvent", "source": "environment", "tool_call_id": "c1", "observation": {"kind": "TerminalObservation", "content": [{"type": "text", "text": "ok"}], "exit_code": 0}},
        {"kind": "AgentErrorEvent", "tool_call_id": "c2", "tool_name": "terminal", "error": "boom"},
        {"kind": "NeverHeardOfEvent", "detail": "x"}
    ], "test_result": {"git_patch": "P"}, "metrics": null});
    let file = load(&format!("{flat}\n{pairs}\nnull\n{sdk}\n"));
    assert_eq!(file.report.diagnostics[0].code, "json.null-lines");
    let [flat, pairs, sdk] = file.trajectories.as_slice() else { panic!("{}", file.report.reason) };
    assert_eq!((flat.format, roles(flat)), ("openhands-0", vec![Role::User, Role::Assistant]));
    assert_eq!(flat.patch.as_deref(), Some(""));
    assert_eq!(roles(pairs), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!((pairs.steps[0].text.as_str(), pairs.patch.as_deref()), ("TASK", None));
    assert_eq!(pairs.steps[2].text, "ok\n[Command 3 finished with exit code 1]");
    assert_eq!(pairs.steps[2].is_error, Some(true));
    assert_eq!(
        (sdk.format, roles(sdk)),
        ("openhands-1", vec![Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Meta])
    );
    let places: Vec<&str> = pairs.steps.iter().map(|s| s.raw.pointer.as_ref()).collect();
    assert_eq!(places, ["/instruction", "/history/0/0", "/history/0/1"]);
    assert_eq!(sdk.steps[3].raw.pointer.as_ref(), "/history/4");
    assert!(sdk.diagnostics.iter().any(|d| d.message == "1 events of unknown kind `NeverHeardOfEvent` are shown raw"));
    assert_eq!(sdk.steps[5].text, "NeverHeardOfEvent: x");
    assert_eq!(sdk.steps[2].calls.len(), 2);
    assert_eq!((sdk.steps[2].text.as_str(), sdk.steps[2].reasoning.as_deref()), ("go", Some("r")));
    assert_eq!(sdk.steps[2].calls[1].arguments, r#"{"command":"false"}"#);
    assert_eq!((sdk.steps[4].text.as_str(), sdk.steps[4].is_error), ("boom", Some(true)));
}

#[test]
fn null_members_and_message_shapes_are_read() {
    let t = one(&json!([
        {"id": 0, "source": "user", "action": "message", "args": {"content": "one"}},
        {"id": 1, "source": "user", "action": "message", "message": "two", "args": {}},
        {"id": 2, "source": "user", "action": "message", "content": [{"type": "text", "text": "three"}]},
        {"id": 3, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": null},
        {"id": 4, "source": "agent", "action": "change_agent_state", "args": null},
        {"id": 5, "source": "agent", "action": "run", "args": {"command": "ls", "thought": null}},
        {"id": 6, "source": "agent", "observation": "error", "content": "bad", "extras": null, "cause": 5}
    ]));
    let texts: Vec<&str> = t.steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(texts[..3], ["one", "two", "three"]);
    assert_eq!(texts[3..5], ["agent_state_changed", "change_agent_state"]);
    assert_eq!(t.steps[6].is_error, Some(true));
    assert_eq!(t.steps[6].tool_name.as_deref(), Some("execute_bash"));
}

#[test]
fn zero_metrics_for_work_done_are_unknown() {
    let row = |history: Value| json!({"instance_id": "o__r-1", "history": history, "test_result": {"git_patch": "P"}, "metrics": {"accumulated_cost": 0, "accumulated_token_usage": {"prompt_tokens": 0, "completion_tokens": 0}, "costs": [], "token_usages": []}});
    let worked = one(&row(json!([{"source": "agent", "action": "finish", "args": {}}])));
    assert_eq!(worked.usage, Usage::default());
    assert_eq!(one(&row(json!([]))).usage.cost, Some(0.0));
}

#[test]
fn the_same_instance_twice_is_two_trajectories() {
    let text = concat!(
        r#"{"instance_id":"o__r-1","error":"RuntimeError: died","history":[],"test_result":{}}"#,
        "\n",
        r#"{"instance_id":"o__r-1","error":null,"history":[{"source":"agent","action":"finish","args":{}}],"test_result":{"git_patch":"P"}}"#
    );
    let file = load(text);
    let records: Vec<_> =
        file.trajectories.iter().map(|t| (t.source.record, t.error.is_some(), t.patch.is_some())).collect();
    assert_eq!(records, [(0, true, false), (1, false, true)]);
    let span = file.trajectories[1].source.span;
    assert!(text[span.start as usize..].starts_with(r#"{"instance_id":"o__r-1","error":null"#));
}

#[test]
fn resolver_rows_name_their_issue() {
    let t = one(
        &json!({"issue": {"owner": "o", "repo": "r", "number": 5, "title": "T", "body": "B"}, "instruction": "I", "git_patch": "diff --git a/a b/a", "success": true,
        "metrics": {"accumulated_cost": 0.07, "costs": [0.03, 0.04]},
        "history": [{"content": "I", "action": "message", "source": "user"}, {"command": "ls", "thought": "look", "action": "run"}, {"content": "x", "command_id": -1, "exit_code": 0, "observation": "run"}]}),
    );
    assert_eq!((t.instance_id.as_deref(), t.task.as_deref()), (Some("o__r-5"), Some("B")));
    assert_eq!(t.outcome, Outcome::Unknown);
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!((t.steps[1].text.as_str(), t.steps[1].calls[0].arguments.as_str()), ("look", r#"{"command":"ls"}"#));
    assert_eq!(t.steps[2].exit_code, Some(0));
    assert_eq!(t.usage.cost, Some(0.07));
}

#[test]
fn rows_of_results_alone_are_a_report() {
    let file = load("{\"instance_id\":\"o__r-1\",\"test_result\":{\"report\":{\"resolved\":true}}}\n");
    assert_eq!(file.report.format, Some("report-run"));
    let file = load(
        "{\"instance_id\":\"o__r-1\",\"test_result\":{},\"error\":\"died\",\"metadata\":null,\"metrics\":null,\"history\":null,\"instance\":{}}",
    );
    assert_eq!(file.report.format, Some("openhands-0"));
    assert_eq!(file.trajectories[0].error.as_deref(), Some("died"));
}

#[test]
fn events_that_stand_there_twice_are_read_once() {
    let events = json!([
        {"id": 0, "source": "user", "action": "message", "args": {"content": "one"}, "timestamp": "T0"},
        {"id": 0, "source": "user", "action": "message", "args": {"content": "one"}, "timestamp": "T0"},
        {"id": 1, "source": "agent", "action": "condensation", "args": {"forgotten_events_start_id": 2, "forgotten_events_end_id": 5, "summary": "S"}},
        {"id": 2, "source": "agent", "action": "finish", "args": {}}
    ]);
    let t = one(&events);
    assert_eq!(roles(&t), [Role::User, Role::Meta, Role::Assistant]);
    assert_eq!(t.steps[1].text, "condensation: 4 events are no longer sent to the model\nS");
    let at = t.steps[1].raw.span;
    let text = events.to_string();
    assert!(text[at.start as usize..].starts_with("{\"id\":1,"), "an element by its bytes");
    assert!(t.diagnostics.iter().any(|d| d.code == "openhands.repeated"));
    let single = one(&events[0]);
    assert_eq!((single.format, single.steps[0].text.as_str()), ("openhands-0-events", "one"));
}

#[test]
fn the_critics_word_is_a_prediction_and_no_label() {
    let said = |id: &str, role: &str, text: &str, critic: Value| json!({"id": id, "kind": "MessageEvent", "source": role, "llm_message": {"role": role, "content": [{"type": "text", "text": text}]}, "critic_result": critic});
    let t = one(&json!([
        said("a", "user", "fix it", Value::Null),
        said("b", "assistant", "done", json!({"score": 0.421, "message": "Success: 0.42"})),
        said("c", "user", "The task appears incomplete (iteration 1/3, predicted success likelihood: 42.1%).", Value::Null),
        {"id": "d", "kind": "TokenEvent", "source": "agent", "prompt_token_ids": [1, 2, 3]},
        {"id": "d2", "kind": "ConversationStateUpdateEvent", "source": "environment", "key": "agent_status", "value": "running"},
        said("e", "assistant", "really done", json!({"score": null}))
    ]));
    assert_eq!(t.format, "openhands-1-events");
    let expected = [Role::User, Role::Assistant, Role::Meta, Role::User, Role::Meta, Role::Assistant, Role::Meta];
    assert_eq!(roles(&t), expected);
    assert_eq!(t.steps[2].text, "the critic said 0.421 (its prediction of success, not a test result)\nSuccess: 0.42");
    assert_eq!(t.steps[4].text, "ConversationStateUpdateEvent: agent_status = running");
    assert!(t.steps[6].text.starts_with("the critic gave no score"));
    assert_eq!((t.outcome, t.n_actions()), (Outcome::Unknown, 2));
    let ids: Vec<Option<&str>> = t.steps.iter().map(|s| s.id.as_deref()).collect();
    assert_eq!(ids, [Some("a"), Some("b"), None, Some("c"), Some("d2"), Some("e"), None]);
    let codes: Vec<&str> = t.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["openhands.unshown", "openhands.refinement", "openhands.critic"]);
}

#[test]
fn an_answer_is_one_action_also_when_its_calls_are_answered_in_between() {
    let run = |id: &str, text: &str| json!({"id": id, "kind": "ActionEvent", "source": "agent", "thought": [{"type": "text", "text": text}], "tool_call": {"id": id, "name": "terminal", "arguments": "{\"command\": \"x\"}"}, "llm_response_id": "r1"});
    let out = |id: &str, call: &str| json!({"id": id, "kind": "ObservationEvent", "source": "environment", "tool_call_id": call, "observation": {"content": "o"}});
    let t = one(&json!([run("a", "go"), out("b", "a"), run("c", ""), out("d", "c")]));
    assert_eq!(roles(&t), [Role::Assistant, Role::Tool, Role::Tool]);
    assert_eq!((t.steps[0].text.as_str(), t.steps[0].calls.len()), ("go", 2));
    assert_eq!(t.steps[2].tool_name.as_deref(), Some("terminal"));
}

#[test]
fn the_file_name_counts_the_attempts() {
    let row = json!({"instance_id": "o__r-1", "history": [{"source": "agent", "action": "finish", "args": {}}], "test_result": {"git_patch": ""}});
    let file = load_bytes(Path::new("run/output.critic_attempt_2.jsonl"), row.to_string().into_bytes());
    assert_eq!(file.trajectories[0].attempt.as_deref(), Some("attempt 2"));
    let sent = json!({"instance_id": "o__r-1", "history": [], "test_result": {"git_patch": ""}, "raw_completions": {"messages": [], "tools": [{"function": {"name": "bash"}}]}});
    assert_eq!(one(&sent).tools[0].name, "bash");
}
