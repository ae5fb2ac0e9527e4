use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;
use crate::trajectory::{Dataset, join};

fn load(path: &str, value: &Value) -> LoadedFile {
    load_bytes(Path::new(path), value.to_string().into_bytes())
}

#[test]
fn the_state_machine_is_what_was_asked_and_answered() {
    let file = load(
        "o__r-1/trajectory.json",
        &json!({"name": "x", "transition_rules": {}, "initial_message": "TASK", "current_transition_id": 4,
        "transitions": [
            {"id": 0, "name": "Pending"},
            {"id": 1, "name": "SearchCode", "previous_state_id": 0, "properties": {"model": "m"}, "actions": [
                {"request": {"scratch_pad": "look", "query": "half"}, "response": {"trigger": "did_search", "output": {"ranked_spans": [1]}}}]},
            {"id": 2, "name": "EditCode", "previous_state_id": 1, "properties": {}, "actions": [
                {"request": {"content": "<replace>x</replace>"}, "response": {"trigger": "retry", "retry_message": "again"},
                 "completion": {"response": {"usage": {"prompt_tokens": 10, "completion_tokens": 2}}}},
                {"request": {"content": "y"}, "response": {"trigger": "finish", "output": {"message": "Applied.", "diff": "--- a"}},
                 "completion": {"response": {"usage": {"prompt_tokens": 5, "completion_tokens": 1}}}}]},
            {"id": 3, "name": "PlanToCode", "previous_state_id": 1, "properties": {}}],
        "info": {"instance_id": "o__r-1", "status": "finished", "total_cost": 0.25, "submission": "diff --git a/x b/x\n", "resolved": true}}),
    );
    assert_eq!(file.report.format, Some("moatless-0"));
    let t = &file.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    let expected = [
        Role::User,
        Role::Meta,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::Tool,
        Role::Meta,
        Role::Meta,
    ];
    assert_eq!(roles, expected);
    assert_eq!(t.steps[2].action.as_deref(), Some("SearchCode {\"query\":\"half\"}"));
    assert_eq!(
        (t.steps[2].text.as_str(), t.steps[2].thought.as_deref()),
        ("look\n\n{\"query\":\"half\"}", Some("look"))
    );
    assert_eq!((t.steps[5].text.as_str(), t.steps[5].is_error), ("retry: again", Some(true)));
    assert_eq!((t.steps[7].text.as_str(), t.steps[7].is_error), ("finish: Applied.\n--- a", Some(false)));
    assert_eq!(t.steps[8].text, "goes on from state 1");
    assert_eq!(&*t.steps[7].raw.pointer, "/transitions/2/actions/1/response");
    assert_eq!((t.usage.cost, t.usage.tokens_in, t.usage.tokens_out), (Some(0.25), Some(15), Some(3)));
    assert_eq!((t.outcome, t.model.as_deref()), (Outcome::Resolved, Some("m")));
    assert!(t.patch.is_some());
}

fn leaf(id: u32, name: &str, patch: &str) -> Value<'static> {
    json!({"node_id": id, "action": {"thoughts": "done", "action_args_class": format!("moatless.actions.{name}Args")},
        "observation": {"message": "ok", "terminal": name == "Finish"}, "reward": {"value": 80, "explanation": "good"},
        "file_context": {"files": [{"file_path": "x.py", "patch": patch}, {"file_path": "y.py", "patch": null}]},
        "completions": {"build_action": {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "completion_cost": 0.5}}},
        "children": []})
}

fn tree() -> Value<'static> {
    let looked = json!({"node_id": 1, "action": {"thoughts": "look", "query": "half", "action_args_class": "a.FindFunctionArgs"},
        "observation": {"message": "found", "expect_correction": true}, "feedback": "try else", "completions": {},
        "children": [leaf(2, "Finish", "diff --git a/p b/p\n"), leaf(3, "Finish", ""), leaf(4, "FindClass", "z")]});
    json!({"metadata": {"instance_id": "o__r-1"}, "max_expansions": 3, "selector": {},
        "agent": {"system_prompt": "S", "completion": {"model": "m"}},
        "root": {"node_id": 0, "message": "TASK", "action": null, "children": [looked]}})
}

#[test]
fn every_finished_leaf_is_an_attempt_with_its_own_label() {
    let file = load("o__r-1/trajectory.json", &tree());
    assert_eq!(file.report.format, Some("moatless-tree"));
    assert_eq!(file.report.diagnostics[0].code, "moatless.unfinished");
    let eval = json!({"node_results": {"2": {"resolved": true}, "3": {"resolved": false}}});
    let eval = load("o__r-1/eval_result.json", &eval);
    assert_eq!(eval.report.format, Some("moatless-eval"));
    let t = &file.trajectories[0];
    let texts: Vec<(Role, &str)> = t.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
    let expected = [
        (Role::System, "S"),
        (Role::User, "TASK"),
        (Role::Assistant, "look"),
        (Role::Tool, "found"),
        (Role::Meta, "feedback: try else"),
        (Role::Assistant, "done"),
        (Role::Tool, "ok"),
        (Role::Meta, "reward 80: good"),
    ];
    assert_eq!(texts, expected);
    assert_eq!(t.steps[2].action.as_deref(), Some("FindFunction {\"query\":\"half\"}"));
    assert_eq!(&*t.steps[5].raw.pointer, "/root/children/0/children/0/action");
    assert_eq!((t.usage.cost, t.usage.tokens_in, t.usage.api_calls), (Some(0.5), Some(7), Some(1)));
    let dataset = Dataset { trajectories: file.trajectories, reports: eval.reports, ..Dataset::default() };
    let issue = join(&dataset).remove(0);
    let found: Vec<_> =
        issue.attempts.iter().map(|a| (a.name.as_str(), a.patch(), a.label.outcome.as_bool())).collect();
    assert_eq!(found, [("node 2", Some("diff --git a/p b/p\n"), Some(true)), ("node 3", Some(""), Some(false))]);
}

#[test]
fn trees_written_as_lists_and_unfinished_ones() {
    let flow = json!({"nodes": [
        {"node_id": 0, "parent_id": null, "user_message": "TASK"},
        {"node_id": 1, "parent_id": 0, "assistant_message": "I look",
         "action_steps": [{"action": {"query": "x", "action_args_class": "a.GrepToolArgs"}, "observation": {"message": "hit"}},
                          {"action": {"action_args_class": "a.ViewArgs"}}]},
        {"node_id": 2, "parent_id": 99}]});
    let file = load("o__r-2/flow.json", &flow);
    assert_eq!(file.report.format, Some("moatless-tree"));
    let t = &file.trajectories[0];
    assert_eq!(t.n_actions(), 2);
    assert_eq!((t.instance_id.as_deref(), t.patch.as_deref(), t.attempt.as_deref()), (Some("o__r-2"), None, None));
    assert_eq!(
        (t.steps[1].text.as_str(), t.steps[1].action.as_deref()),
        ("I look", Some("GrepTool {\"query\":\"x\"}"))
    );
    assert_eq!(&*t.steps[2].raw.pointer, "/nodes/1/action_steps/0/observation");
}
