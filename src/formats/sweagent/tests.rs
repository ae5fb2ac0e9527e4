//! SWE-agent files of both generations, made by hand.

use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;

fn load(value: &Value) -> LoadedFile {
    load_bytes(Path::new("x/o__r-1.traj"), value.to_string().into_bytes())
}

fn v0() -> Value<'static> {
    json!({
        "environment": "swe_main",
        "trajectory": [
            {"action": "ls\n", "observation": "a.py\n", "response": "Look.\n```\nls\n```", "state": "{}", "thought": "Look.\n"},
            {"action": "submit", "observation": null, "response": "Done.\n```\nsubmit\n```", "state": "{}", "thought": "Done.\n"}
        ],
        "history": [
            {"role": "system", "content": "SETTING", "agent": "primary"},
            {"role": "user", "content": "demo", "agent": "primary", "is_demo": true},
            {"role": "user", "content": "ISSUE", "agent": "primary"},
            {"role": "assistant", "content": "Look.\n```\nls\n```", "thought": "Look.\n", "action": "ls\n", "agent": "primary"},
            {"role": "user", "content": "a.py\n", "agent": "primary"},
            {"role": "assistant", "content": "Done.", "thought": "Done.\n", "action": "submit", "agent": "primary"}
        ],
        "info": {"exit_status": "submitted", "submission": "\ndiff --git a/a b/a\n",
                 "model_stats": {"total_cost": 9.0, "instance_cost": 0.5, "tokens_sent": 10, "tokens_received": 2, "api_calls": 2}}
    })
}

#[test]
fn v0_is_prompt_then_actions_and_observations() {
    let file = load(&v0());
    assert_eq!(file.report.format, Some("sweagent-0"));
    let t = &file.trajectories[0];
    let roles: Vec<(Role, bool)> = t.steps.iter().map(|s| (s.role, s.is_demo)).collect();
    let expected = [
        (Role::System, false),
        (Role::User, true),
        (Role::User, false),
        (Role::Assistant, false),
        (Role::Tool, false),
        (Role::Assistant, false),
    ];
    assert_eq!(roles, expected);
    assert_eq!(t.steps[3].text, "Look.\n```\nls\n```");
    let places: Vec<&str> = t.steps.iter().map(|s| s.raw.pointer.as_ref()).collect();
    let (told, done) =
        (["/history/0", "/history/1", "/history/2"], ["/trajectory/0", "/trajectory/0", "/trajectory/1"]);
    assert_eq!(places, [told, done].concat());
    assert_eq!(t.steps[3].action.as_deref(), Some("ls\n"));
    assert_eq!(t.steps[3].thought.as_deref(), Some("Look.\n"));
    assert_eq!(t.patch.as_deref(), Some("\ndiff --git a/a b/a\n"));
    assert_eq!(t.instance_id.as_deref(), Some("o__r-1"));
    assert_eq!(
        t.usage,
        Usage { cost: Some(0.5), tokens_in: Some(10), tokens_out: Some(2), api_calls: Some(2), ..Usage::default() }
    );
}

#[test]
fn v1_takes_native_calls_from_the_history() {
    let call = |id: &str| json!([{"function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}, "id": id, "type": "function"}]);
    let file = load(&json!({
        "trajectory": [
            {"action": "", "observation": "Your output was not formatted correctly", "response": "bad", "thought": "bad", "query": []},
            {"action": "ls", "observation": "a.py", "response": "", "thought": "", "state": {}, "query": []}
        ],
        "history": [
            {"role": "system", "content": [{"type": "text", "text": "SYSTEM"}], "agent": "main", "message_type": "system_prompt"},
            {"role": "assistant", "content": "d", "thought": "", "action": "ls", "agent": "main", "is_demo": true, "tool_calls": call("demo")},
            {"role": "user", "content": [{"type": "text", "text": "ISSUE"}], "agent": "main", "message_type": "observation"},
            {"role": "assistant", "content": "", "thought": "", "action": "ls", "agent": "main", "message_type": "action", "tool_calls": call("c1")},
            {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "agent": "main", "tool_call_ids": ["c1"]}
        ],
        "info": {"exit_status": "exit_cost", "submission": null, "model_stats": {"instance_cost": null, "api_calls": 3}},
        "replay_config": "{\"agent\": {\"model\": {\"name\": \"gpt-x\"}}, \"problem_statement\": {\"text\": \"ISSUE\", \"id\": \"o__r-9\"}}",
        "environment": "main"
    }));
    assert_eq!(file.report.format, Some("sweagent-1"));
    let t = &file.trajectories[0];
    assert_eq!(t.n_actions(), 2);
    assert_eq!(t.steps[0].text, "SYSTEM");
    assert_eq!(t.steps[2].text, "ISSUE");
    let last = &t.steps[5];
    assert_eq!((last.calls[0].id.as_str(), last.calls[0].name.as_str()), ("c1", "bash"));
    assert_eq!(last.action.as_deref(), Some("ls"));
    assert_eq!(t.steps[6].call_id.as_deref(), Some("c1"));
    assert_eq!(t.steps[6].tool_name.as_deref(), Some("bash"));
    assert_eq!((t.model.as_deref(), t.task.as_deref()), (Some("gpt-x"), Some("ISSUE")));
    assert_eq!(t.instance_id.as_deref(), Some("o__r-9"));
    assert_eq!(t.patch.as_deref(), Some(""));
    assert_eq!((t.usage.cost, t.usage.api_calls), (None, Some(3)));
}

#[test]
fn submitted_without_a_submission_has_no_patch() {
    let mut value = v0();
    value["info"].as_object_mut().unwrap().remove("submission");
    let t = &load(&value).trajectories[0];
    assert_eq!(t.patch, None);
    assert_eq!(t.diagnostics[0].code, "sweagent.no-submission");
}

#[test]
fn a_cost_of_zero_is_unknown() {
    let mut value = v0();
    value["info"]["model_stats"]["instance_cost"] = json!(0.0);
    assert_eq!(load(&value).trajectories[0].usage.cost, None);
}

#[test]
fn retry_attempts_are_attempts() {
    let mut attempt = v0();
    attempt["replay_config"] = json!("{}");
    let running = load(&json!({"attempts": [attempt]}));
    assert_eq!((running.report.format, running.trajectories.len()), (Some("sweagent-1"), 1));
    assert!(running.trajectories[0].diagnostics.iter().any(|d| d.code == "sweagent.running"));
    let begun = load(&json!({"attempts": [{"trajectory": [], "history": [], "info": {}}]}));
    assert_eq!((begun.report.format, begun.trajectories.len()), (Some("sweagent-1"), 1));
    let none = load(&json!({"attempts": []}));
    assert_eq!((none.report.format, none.trajectories.len()), (Some("sweagent-1"), 0));
    attempt["info"]["review"] = json!({"accept": 0.75, "outputs": [{"message": "looks right"}], "messages": []});
    let mut root = attempt.clone();
    root["info"]["best_attempt_idx"] = json!(1);
    root["attempts"] = json!([attempt.clone(), attempt]);
    let file = load(&root);
    assert_eq!(file.report.format, Some("sweagent-1"));
    let names: Vec<_> = file.trajectories.iter().map(|t| t.attempt.clone().unwrap()).collect();
    assert_eq!(names, ["attempt 1", "attempt 2"]);
    assert_eq!(file.trajectories[1].steps[3].raw.pointer.as_ref(), "/attempts/1/trajectory/0");
    assert_eq!(file.trajectories[1].diagnostics[0].code, "sweagent.chosen");
    let last = file.trajectories[1].steps.last().unwrap();
    let said = "the reviewer said 0.75 (an opinion on the attempt, not a test result)\nlooks right";
    assert_eq!((last.role, last.text.as_str()), (Role::Meta, said));
    assert_eq!(last.raw.pointer.as_ref(), "/attempts/1/info/review");
}

#[test]
fn a_cut_file_keeps_its_complete_steps() {
    let text = v0().to_string();
    let cut = text.find("Done.\\n```").unwrap();
    let file = load_bytes(Path::new("o__r-1.traj"), text.as_bytes()[..cut].to_vec());
    assert_eq!(file.report.format, Some("sweagent-0"));
    assert!(file.trajectories[0].n_actions() >= 1);
    assert!(file.report.diagnostics.iter().any(|d| d.code == "json.cut"));
}

#[test]
fn a_history_alone_is_read_as_messages() {
    let value = v0();
    let value = json!({"history": value["history"]});
    let file = load(&value);
    assert_eq!(file.report.format, Some("sweagent-0"));
    assert_eq!(file.trajectories[0].n_actions(), 2);
    assert_eq!(file.trajectories[0].steps[3].action.as_deref(), Some("ls\n"));
}

fn node(role: &str, content: &str, id: Option<u32>, children: &Value) -> Value<'static> {
    let action = if role == "assistant" { json!("ls\n") } else { Value::Null };
    json!({"role": role, "content": content, "thought": null, "action": action, "agent": "primary", "is_demo": false,
           "is_terminal": false, "_depth": 0, "node_id": id, "critic_response": null, "children": children})
}

#[test]
fn every_way_through_a_search_tree_is_an_attempt() {
    let mut submitted = node("user", "diff --git a/a b/a\n", Some(7), &json!([]));
    submitted["is_terminal"] = json!(true);
    let mut asked = node("assistant", "Look again.", None, &json!([node("user", "b.py", Some(9), &json!([]))]));
    asked["critic_response"] = json!("the second is better");
    let first = node("assistant", "Look.", None, &json!([submitted]));
    let root = node("system", "S", None, &json!([node("user", "ISSUE", Some(0), &json!([first, asked]))]));
    let tree = json!({"root": root, "iterations": 2, "node_count": 6});
    let file = load_bytes(Path::new("x/o__r-1.prev.root"), tree.to_string().into_bytes());
    assert_eq!(file.report.format, Some("dars"), "{}", file.report.reason);
    let [first, second] = file.trajectories.as_slice() else { panic!("{}", file.trajectories.len()) };
    assert_eq!((first.instance_id.as_deref(), first.attempt.as_deref()), (Some("o__r-1"), Some("leaf 7")));
    assert_eq!((first.patch.as_deref(), second.patch.as_deref()), (Some("diff --git a/a b/a\n"), None));
    let roles: Vec<Role> = second.steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Meta, Role::Tool]);
    assert_eq!(second.steps[3].text, "the search's critic answered:\nthe second is better");
    assert_eq!(second.steps[2].action.as_deref(), Some("ls\n"));
    assert_eq!(second.steps[4].raw.pointer.as_ref(), "/root/children/0/children/1/children/0");
    assert_eq!(file.trajectories[1].source.record, 1);
}

#[test]
fn a_tree_of_four_hundred_levels_is_read() {
    let mut tree = node("user", "end", Some(1), &json!([]));
    for depth in 0..400 {
        tree = node(if depth % 2 == 0 { "assistant" } else { "user" }, "x", None, &Value::Array(vec![tree]));
    }
    let text = format!("{{\"root\": {tree}}}");
    let file = load_bytes(Path::new("x/deep.root"), text.into_bytes());
    assert_eq!(file.trajectories[0].n_actions(), 200);
}

#[test]
fn evaluations_of_a_tree_are_counted() {
    let row = |n: u32| json!({"run_id": "eval_0", "status": "success", "content": "diff", "output": format!("…\nInstances resolved: {n}\n")});
    let file = load(&json!([row(0), row(1)]));
    assert_eq!(file.report.format, Some("dars-evaluation"));
    assert!(file.report.diagnostics[0].message.starts_with("1 of 2 evaluated patches resolved"));
}
