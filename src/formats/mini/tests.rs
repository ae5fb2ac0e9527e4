//! mini-swe-agent files of both generations, made by hand.

use std::path::Path;

use super::super::json::json;
use super::super::load::{LoadedFile, load_bytes};
use super::*;

fn load(value: &Value) -> LoadedFile {
    load_bytes(Path::new("runs/o__r-1.traj.json"), value.to_string().into_bytes())
}

const OBSERVED: &str = "<returncode>1</returncode>\n<output>\nno such file\n</output>";

#[test]
fn v1_has_text_actions_and_observations_as_user_messages() {
    let file = load(&json!({
        "info": {"exit_status": "Submitted", "submission": "diff --git a/a b/a\n", "mini_version": "1.15.0",
                 "model_stats": {"instance_cost": 0.25, "api_calls": 2}, "config": {"model": {"model_name": "m"}}},
        "messages": [
            {"role": "system", "content": "S"}, {"role": "user", "content": "TASK"},
            {"role": "assistant", "content": "THOUGHT: look\n\n```bash\ncat x\n```", "extra": {"response": {}}},
            {"role": "user", "content": OBSERVED},
            {"role": "user", "content": "critique", "_supervisor": true, "_prm_after_step": 1},
            {"role": "assistant", "content": "```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
            {"role": "user", "content": "diff --git a/a b/a\n"}
        ],
        "trajectory_format": "mini-swe-agent-1", "instance_id": "o__r-7"
    }));
    assert_eq!(file.report.format, Some("mini-swe-agent-1"));
    let t = &file.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    let expected = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Meta, Role::Assistant, Role::Meta];
    assert_eq!(roles, expected);
    assert_eq!(t.steps[2].action.as_deref(), Some("cat x"));
    assert_eq!((t.steps[3].exit_code, t.steps[3].is_error), (Some(1), Some(true)));
    let places: Vec<&str> = t.steps.iter().map(|s| s.raw.pointer.as_ref()).collect();
    assert_eq!(places[..3], ["/messages/0", "/messages/1", "/messages/2"]);
    assert_eq!(t.instance_id.as_deref(), Some("o__r-7"));
    assert_eq!((t.agent.as_deref(), t.model.as_deref()), (Some("mini-swe-agent 1.15.0"), Some("m")));
    assert_eq!(t.usage.cost, Some(0.25));
    assert_eq!(t.patch.as_deref(), Some("diff --git a/a b/a\n"));
}

#[test]
fn v2_has_native_calls_and_an_exit_message() {
    let call = |id: &str, command: &str| {
        json!({"index": 0, "id": id, "type": "function",
        "function": {"name": "bash", "arguments": json!({"command": command}).to_string()}})
    };
    let file = load(&json!({
        "info": {"exit_status": "Submitted", "submission": "", "model_stats": {"instance_cost": 0.0, "api_calls": 9}},
        "messages": [
            {"role": "system", "content": "S"}, {"role": "user", "content": "TASK"},
            {"role": "assistant", "content": null, "tool_calls": [call("a", "ls"), call("b", "pwd")], "function_call": null,
             "reasoning_content": "hm", "extra": {"actions": [{"command": "ls", "tool_call_id": "a"}, {"command": "pwd", "tool_call_id": "b"}], "cost": 0.01, "timestamp": 5.5}},
            {"role": "tool", "tool_call_id": "a", "content": "<returncode>0</returncode>", "extra": {"returncode": 0, "raw_output": ""}},
            {"role": "tool", "tool_call_id": "b", "content": "gone", "extra": {"returncode": -1, "exception_info": "timeout"}},
            {"role": "user", "content": "format error", "extra": {"interrupt_type": "FormatError"}},
            {"role": "exit", "content": "", "extra": {"exit_status": "Submitted", "submission": ""}}
        ],
        "trajectory_format": "mini-swe-agent-1.1", "instance_id": "o__r-1"
    }));
    assert_eq!(file.report.format, Some("mini-swe-agent-2"));
    let t = &file.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    let expected = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User, Role::Meta];
    assert_eq!(roles, expected);
    let action = &t.steps[2];
    assert_eq!((action.text.as_str(), action.reasoning.as_deref()), ("", Some("hm")));
    assert_eq!(action.action.as_deref(), Some("ls\npwd"));
    assert_eq!((action.cost, action.timestamp.as_deref()), (Some(0.01), Some("5.5")));
    assert_eq!(action.calls[1].arguments, r#"{"command":"pwd"}"#);
    assert_eq!((t.steps[3].exit_code, t.steps[3].is_error), (Some(0), Some(false)));
    assert_eq!((t.steps[4].exit_code, t.steps[4].is_error), (Some(-1), Some(true)));
    assert_eq!(t.steps[4].tool_name.as_deref(), Some("bash"));
    assert_eq!(t.patch.as_deref(), Some(""));
    assert_eq!((t.usage.cost, t.usage.api_calls), (None, Some(9)));
}

#[test]
fn responses_items_are_read_and_paired() {
    let file = load(&json!({
        "info": {"exit_status": "Submitted", "submission": ""},
        "messages": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "TASK"}]},
            {"object": "response", "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "c1", "id": "fc", "name": "bash", "arguments": "{\"command\": \"ls\"}"}
            ], "extra": {"cost": 0.5}},
            {"type": "function_call_output", "call_id": "c1", "output": "a.py", "extra": {"returncode": 0}}
        ],
        "trajectory_format": "mini-swe-agent-1.1"
    }));
    let t = &file.trajectories[0];
    assert_eq!(t.steps.len(), 3);
    let action = &t.steps[1];
    assert_eq!((action.role, action.text.as_str()), (Role::Assistant, "I look."));
    assert_eq!(action.reasoning.as_deref(), Some("think"));
    assert_eq!((action.calls[0].id.as_str(), action.action.as_deref()), ("c1", Some("ls")));
    assert_eq!(action.cost, Some(0.5));
    assert_eq!((t.steps[2].role, t.steps[2].text.as_str()), (Role::Tool, "a.py"));
    assert_eq!((t.steps[2].call_id.as_deref(), t.steps[2].tool_name.as_deref()), (Some("c1"), Some("bash")));
    assert_eq!(t.instance_id.as_deref(), Some("o__r-1"), "from the file name");
}

#[test]
fn responses_items_without_their_answer_are_one_action() {
    let file = load(&json!({
        "info": {"exit_status": "Submitted", "submission": ""},
        "messages": [
            {"role": "user", "content": "TASK"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]},
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{\"command\": \"ls\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "output_text", "text": "a.py"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
        ],
        "trajectory_format": "mini-swe-agent-1.1"
    }));
    let t = &file.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!((t.steps[1].reasoning.as_deref(), t.steps[1].action.as_deref()), (Some("think"), Some("ls")));
    assert_eq!((t.steps[2].text.as_str(), t.steps[2].tool_name.as_deref()), ("a.py", Some("bash")));
}

#[test]
fn the_oldest_files_are_bare_lists() {
    let file = load(&json!([
        {"role": "system", "content": "S"}, {"role": "user", "content": "T"},
        {"role": "assistant", "content": "```bash\nls\n```"}, {"role": "user", "content": OBSERVED}
    ]));
    assert_eq!(file.report.format, Some("mini-swe-agent-1"));
    assert_eq!(file.trajectories[0].n_actions(), 1);
    assert_eq!(file.trajectories[0].steps[3].role, Role::Tool);
    assert_eq!(file.trajectories[0].patch, None);
}

#[test]
fn an_exception_text_is_no_patch() {
    let file = load(&json!({
        "info": {"exit_status": "InternalServerError", "submission": "litellm.InternalServerError: overloaded"},
        "messages": [{"role": "user", "content": "T"}]
    }));
    let t = &file.trajectories[0];
    assert_eq!(t.patch, None);
    assert_eq!(t.error.as_deref(), Some("litellm.InternalServerError: overloaded"));
}

#[test]
fn a_supervisors_words_are_no_actions() {
    let file = load(&json!({
        "info": {"exit_status": "Submitted", "submission": "", "model_stats": {"instance_cost": 0.25, "api_calls": 2},
                 "config": {"prm_model": {"model_name": "critic-x"}},
                 "prm_stats": {"prm_cost": 0.5, "prm_invocations": 2, "prm_feedback_log": [
                     {"after_step": 1, "invocation": 1, "feedback": "look first", "original_feedback": null, "suppressed": false},
                     {"after_step": 1, "invocation": 2, "feedback": "", "original_feedback": "look first!", "suppressed": true, "dedup_similarity": 0.975}]}},
        "messages": [
            {"role": "user", "content": "TASK"},
            {"role": "assistant", "content": "```bash\nls\n```"},
            {"role": "user", "content": OBSERVED},
            {"role": "user", "content": "look first", "_supervisor": true, "_supervisor_active": true, "_prm_after_step": 1},
            {"role": "assistant", "content": "```bash\nmake\n```"}
        ],
        "trajectory_format": "mini-swe-agent-1"
    }));
    let t = &file.trajectories[0];
    let texts: Vec<&str> = t.steps.iter().filter(|s| s.role == Role::Meta).map(|s| s.text.as_str()).collect();
    let shown = "supervisor after step 1, the last one the agent was shown:\nlook first";
    assert_eq!(texts, [shown, "supervisor after step 1, kept back, 0.97 like the one before:\nlook first!"]);
    assert_eq!((t.n_actions(), t.steps[5].action.as_deref()), (2, Some("make")), "both stand before the second action");
    assert_eq!(t.steps[4].raw.pointer.as_ref(), "/info/prm_stats/prm_feedback_log/1");
    assert_eq!(t.usage.cost, Some(0.25), "the agent's alone");
    let said = "a supervisor critic-x spoke 2 times, 1 of them kept back; it cost $0.50, not part of the agent's";
    assert!(t.diagnostics.iter().any(|d| d.message == said), "{:?}", t.diagnostics);
}

#[test]
fn an_answer_refused_for_its_format_is_shown_and_no_action() {
    let refused = json!({"choices": [{"message": {"role": "assistant", "content": "no call here"}}]});
    let file = load(&json!({
        "info": {"exit_status": "Submitted", "submission": ""},
        "messages": [
            {"role": "user", "content": "TASK"},
            {"role": "user", "content": "No tool calls found", "extra": {"interrupt_type": "FormatError", "n_actions": 0, "model_response": refused}},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}]}
        ],
        "trajectory_format": "mini-swe-agent-1.1"
    }));
    let t = &file.trajectories[0];
    let roles: Vec<Role> = t.steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [Role::User, Role::Meta, Role::User, Role::Assistant]);
    assert_eq!(t.steps[1].text, "an answer that was refused (format error):\nno call here");
    assert_eq!(t.steps[1].raw, t.steps[2].raw);
}
