//! Conversations in the shapes people store them, made by hand.

use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;
use crate::trajectory::{Outcome, Role};

fn load(text: &str) -> LoadedFile {
    load_bytes(Path::new("x/chat.json"), text.as_bytes().to_vec())
}

fn one(value: &Value) -> Trajectory {
    let file = load(&value.to_string());
    assert_eq!(file.report.format, Some("chat"), "{}", file.report.reason);
    assert_eq!(file.trajectories.len(), 1);
    file.trajectories[0].as_ref().clone()
}

fn roles(trajectory: &Trajectory) -> Vec<Role> {
    trajectory.steps.iter().map(|s| s.role).collect()
}

#[test]
fn object_list_rows_and_message_lines_are_the_same_conversation() {
    let messages = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "there"}]);
    let object = one(&json!({"messages": messages, "instance_id": "o__r-1"}));
    let list = one(&messages);
    let rows = load(&format!("{}\n{}\n", json!({"messages": messages}), json!({"messages": messages})));
    let encoded = one(&json!([{"messages": messages.to_string(), "id": 1}]));
    let lines = load("{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"there\"}\n");
    assert_eq!(object.instance_id.as_deref(), Some("o__r-1"));
    let texts = |t: &Trajectory| t.steps.iter().map(|s| (s.role, s.text.clone())).collect::<Vec<_>>();
    assert_eq!(texts(&object), texts(&list));
    assert_eq!(texts(&object), texts(&encoded));
    assert_eq!(rows.trajectories.len(), 2);
    assert_eq!(rows.trajectories[1].source.record, 1);
    assert_eq!(lines.trajectories.len(), 1);
    assert_eq!(texts(&lines.trajectories[0]), texts(&object));
    let places = |t: &Trajectory| {
        let raw = t.steps.iter().map(|s| (s.raw.pointer.to_string(), s.raw.span.start, s.raw.span.len));
        raw.collect::<Vec<_>>()
    };
    assert_eq!(places(&object), [("/messages/0".into(), 0, 0), ("/messages/1".into(), 0, 0)]);
    assert_eq!(places(&list), [(String::new(), 1, 30), (String::new(), 32, 38)], "elements of a list by their bytes");
    assert_eq!(places(&encoded), [("/messages/0".into(), 0, 0), ("/messages/1".into(), 0, 0)], "through a string");
    assert_eq!(places(&rows.trajectories[1])[1].0, "/messages/1");
    assert_eq!(places(&lines.trajectories[0]), [(String::new(), 0, 30), (String::new(), 31, 38)]);
}

#[test]
fn harmony_channels_and_recipients_become_reasoning_and_calls() {
    let t = one(&json!({"id": "h", "messages": [
        {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hi", "there"]}},
        {"role": "assistant", "channel": "analysis", "content": [{"type": "text", "text": "let me look"}]},
        {"role": "assistant", "channel": "commentary", "recipient": "functions.shell", "content": [{"content_type": "code", "text": "{\"command\": \"ls\"}"}]},
        {"role": "tool", "name": "functions.shell", "content": [{"type": "text", "text": "a.py"}]},
        {"role": "assistant", "channel": "analysis", "content": "all seen"},
        {"role": "assistant", "channel": "final", "content": "done"}
    ]}));
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(t.steps[0].text, "hi\nthere");
    let call = &t.steps[1];
    assert_eq!((call.text.as_str(), call.reasoning.as_deref()), ("", Some("let me look")));
    assert_eq!((call.calls[0].name.as_str(), call.action.as_deref()), ("shell", Some("ls")));
    assert_eq!(call.raw.pointer.as_ref(), "/messages/1", "where the answer begins");
    assert_eq!((t.steps[3].text.as_str(), t.steps[3].reasoning.as_deref()), ("done", Some("all seen")));
}

#[test]
fn calls_and_results_are_read_in_every_dialect() {
    let t = one(&json!([
        {"role": "developer", "content": "S"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{not json"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "out"},
        {"role": "assistant", "content": "", "function_call": {"name": "edit", "arguments": {"path": "/a"}}, "reasoning_content": "hm"},
        {"role": "function", "name": "edit", "content": "ok"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "deep"}, {"type": "text", "text": "I look"}, {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "/b"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "bad"}], "is_error": true}, {"type": "text", "text": "go on"}]},
        {"role": "gpt", "value": "<function=submit>\n</function>"},
        {"role": "nobody", "content": "x"}
    ]));
    let expected = [
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::Tool,
        Role::User,
        Role::Assistant,
        Role::Meta,
    ];
    assert_eq!(roles(&t), expected);
    assert_eq!(t.steps[1].text, "a\n[image]");
    assert_eq!(t.steps[2].calls[0].arguments, "{not json", "as the model wrote it");
    assert_eq!((t.steps[3].call_id.as_deref(), t.steps[3].tool_name.as_deref()), (Some("1"), Some("bash")));
    assert_eq!(
        (t.steps[4].calls[0].arguments.as_str(), t.steps[4].reasoning.as_deref()),
        (r#"{"path":"/a"}"#, Some("hm"))
    );
    assert_eq!(t.steps[5].tool_name.as_deref(), Some("edit"));
    assert_eq!((t.steps[6].text.as_str(), t.steps[6].reasoning.as_deref()), ("I look", Some("deep")));
    assert_eq!((t.steps[7].text.as_str(), t.steps[7].is_error), ("bad", Some(true)));
    assert_eq!(t.steps[7].tool_name.as_deref(), Some("read"));
    assert_eq!(t.steps[8].text, "go on");
    assert_eq!(t.steps[9].action.as_deref(), Some("submit"));
}

#[test]
fn rows_carry_identity_label_and_patch_under_many_names() {
    let messages = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]);
    let gym = one(&json!([{"instance_id": "o__r-1", "run_id": "run_1", "resolved": true, "messages": messages,
        "tools": [{"type": "function", "function": {"name": "bash", "description": "d", "parameters": {}}}],
        "test_result": {"git_patch": "diff --git a/a b/a\r\n"}}]));
    assert_eq!((gym.attempt.as_deref(), gym.outcome), (Some("run_1"), Outcome::Resolved));
    assert_eq!((gym.patch.as_deref(), gym.tools[0].name.as_str()), (Some("diff --git a/a b/a\r\n"), "bash"));
    let smith = one(
        &json!([{"instance_id": "o__r.1", "traj_id": "o__r.1.x", "resolved": true, "patch": "", "model": "m", "messages": messages.to_string()}]),
    );
    assert_eq!((smith.patch.as_deref(), smith.model.as_deref()), (None, Some("m")), "a resolved run did have a patch");
    let coder = one(&json!([{"id": "o__r.2", "verified": false, "patch": "P", "messages": messages}]));
    assert_eq!((coder.instance_id.as_deref(), coder.outcome), (Some("o__r.2"), Outcome::Unresolved));
    let gold = one(&json!([{"instance_id": "o__r-3", "patch": "GOLD", "test_patch": "T", "messages": messages}]));
    assert_eq!((gold.patch, gold.outcome), (None, Outcome::Unknown));
    let nemotron = one(&json!([{"instance_id": "o__r-4", "resolved": -1, "messages": messages}]));
    assert_eq!(nemotron.outcome, Outcome::Unknown);
}

#[test]
fn nebius_rows_have_their_own_keys() {
    let t = one(
        &json!([{"instance_id": "o__r-1", "model_name": "m", "target": false, "generated_patch": "P", "exit_status": "submitted",
        "trajectory": [{"role": "system", "system_prompt": "S", "text": null}, {"role": "user", "text": "ISSUE"}, {"role": "ai", "text": "Look.\n```\nls\n```"}, {"role": "user", "text": "a.py"}]}]),
    );
    assert_eq!(roles(&t), [Role::System, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!((t.steps[0].text.as_str(), t.steps[2].action.as_deref()), ("S", Some("ls")));
    assert_eq!(
        (t.outcome, t.patch.as_deref(), t.exit_status.as_deref()),
        (Outcome::Unresolved, Some("P"), Some("submitted"))
    );
}

#[test]
fn fences_without_a_language_are_commands_where_every_answer_ends_in_one() {
    let turn = |role: &str, text: &str| json!({"role": role, "content": text});
    let messages = json!([
        turn("user", "ISSUE"),
        turn("assistant", "Look.\n```\nls -F\n```"),
        turn("user", "a.py"),
        turn("assistant", "```\nsubmit\n```")
    ]);
    let t = one(&json!({"instance_id": "o__r.1d70d009.lm__abc1", "traj_id": "x", "messages": messages}));
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!((t.steps[1].action.as_deref(), t.steps[3].action.as_deref()), (Some("ls -F"), Some("submit")));
    let talk = one(&json!({"messages": messages}));
    assert_eq!((talk.steps[1].action.as_deref(), talk.steps[2].role), (None, Role::User), "no run at an instance");
}

#[test]
fn conversations_of_sharegpt_are_read() {
    let t = one(
        &json!([{"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}, {"from": "observation", "value": "o"}]}]),
    );
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Tool]);
}

#[test]
fn a_lone_surrogate_is_repaired_and_counted() {
    let file = load(r#"[{"role": "user", "content": "x \ud83d y"}]"#);
    assert_eq!(file.trajectories[0].steps[0].text, "x \u{fffd} y");
    assert_eq!(file.report.diagnostics[0].code, "json.repaired");
}

#[test]
fn preferences_go_on_with_the_answer_that_was_chosen() {
    let turn = |role: &str, text: &str| json!({"role": role, "content": text});
    let t = one(
        &json!([{"messages": [turn("user", "hi")], "chosen": turn("assistant", "good"), "rejected": turn("assistant", "bad")}]),
    );
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Meta]);
    assert_eq!((t.steps[1].text.as_str(), t.steps[1].raw.pointer.as_ref()), ("good", "/chosen"));
    assert_eq!(t.steps[2].text, "the answer that was rejected:\nbad");
    let whole = one(
        &json!([{"chosen": [turn("user", "hi"), turn("assistant", "good")], "rejected": [turn("user", "hi"), turn("assistant", "bad")]}]),
    );
    assert_eq!(roles(&whole), [Role::User, Role::Assistant, Role::Meta]);
    assert_eq!((whole.steps[0].text.as_str(), whole.n_actions()), ("hi", 1));
    let apart = one(
        &json!([{"prompt": [turn("user", "hi")], "chosen": [turn("assistant", "good")], "rejected": [turn("assistant", "bad")]}]),
    );
    assert_eq!(roles(&apart), [Role::User, Role::Assistant, Role::Meta]);
}

#[test]
fn items_of_the_responses_api_are_read_whatever_their_tool() {
    let t = one(&json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls", "-la"]}},
        {"type": "local_shell_call_output", "call_id": "c1", "output": "a.py"},
        {"type": "web_search_call", "id": "w1", "action": {"query": "x"}},
        {"type": "output_text", "text": "done"}
    ]));
    assert_eq!(roles(&t), [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!((t.steps[1].calls[0].name.as_str(), t.steps[1].action.as_deref()), ("local_shell", Some("ls -la")));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].tool_name.as_deref()), ("a.py", Some("local_shell")));
    assert_eq!((t.steps[3].calls[0].name.as_str(), t.steps[3].text.as_str()), ("web_search", "done"));
}

#[test]
fn rows_of_one_instance_are_attempts_also_where_the_id_was_made_unique() {
    let row = |id: &str| json!({"instance_id": id, "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}], "resolved": true});
    let file = load(&json!([row("o__r-9_0"), row("o__r-9_1"), row("o__r-9")]).to_string());
    let named: Vec<_> =
        file.trajectories.iter().map(|t| (t.instance_id.as_deref().unwrap(), t.attempt.as_deref())).collect();
    assert_eq!(named, [("o__r-9", Some("0")), ("o__r-9", Some("1")), ("o__r-9", None)]);
}

#[test]
fn results_in_user_messages_are_observations_in_text_runs_only() {
    let turn = |role: &str, text: &str| json!({"role": role, "content": text});
    let text = one(&json!([
        turn("user", "OBSERVATION: not yet"),
        turn("assistant", "<function=a>\n</function>"),
        turn("user", "OBSERVATION:\nx"),
        turn("user", "go on")
    ]));
    assert_eq!(roles(&text), [Role::User, Role::Assistant, Role::User, Role::User], "a bare list is left alone");
    let row = one(
        &json!({"messages": [turn("user", "OBSERVATION: not yet"), turn("assistant", "<function=a>\n</function>"), turn("user", "OBSERVATION:\nx"), turn("user", "go on")]}),
    );
    assert_eq!(roles(&row), [Role::User, Role::Assistant, Role::Tool, Role::User]);
    let called = json!({"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]});
    let native = one(&json!({"messages": [turn("user", "hi"), called, turn("user", "OBSERVATION:\nx")]}));
    assert_eq!(roles(&native), [Role::User, Role::Assistant, Role::User]);
}
