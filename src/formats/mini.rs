//! mini-swe-agent trajectories of both generations, its critic fork, and Live-SWE-agent.

use serde_json::Value;

use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{action, chat, field};
use crate::trajectory::{Role, Source, Step, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "mini-swe-agent-1",
        name: "mini-swe-agent v1 trajectory",
        writer: "mini-swe-agent 1.x, July 2025 to 2026, and its critic fork",
        recognised: "`trajectory_format` mini-swe-agent-1, or `messages` beside `info`, or a bare list with return codes",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v1, decode },
    },
    Format {
        id: "mini-swe-agent-2",
        name: "mini-swe-agent v2 trajectory",
        writer: "mini-swe-agent 2.x since 2026, Live-SWE-agent",
        recognised: "`trajectory_format` mini-swe-agent-1.1 and above",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v2, decode },
    },
];

fn tag<'a>(sniff: &Sniff<'a>) -> Option<&'a str> {
    sniff.first("trajectory_format")?.as_str().filter(|t| t.starts_with("mini-swe-agent"))
}

/// Text actions: the tag, or what was written before there was one.
pub fn sniff_v1(sniff: &Sniff<'_>) -> Option<Match> {
    if let Some(tag) = tag(sniff) {
        let v1 = tag == "mini-swe-agent-1";
        return if v1 { Match::some(Confidence::Certain, "`trajectory_format` is mini-swe-agent-1") } else { None };
    }
    if let Some(root) = sniff.object() {
        let info = root.get("info").filter(|i| i.get("exit_status").is_some() || i.get("submission").is_some())?;
        let fits = root.get("messages").is_some_and(Value::is_array) && info.is_object();
        return if fits {
            Match::some(Confidence::Certain, "`messages` beside `info` with an exit status")
        } else {
            None
        };
    }
    // The oldest files are a bare list of messages; return codes give them away.
    let list = sniff.form == Form::List && sniff.rows.iter().all(|m| m.get("role").is_some());
    let observed = sniff
        .rows
        .iter()
        .filter(|m| chat::role_of(m) == Role::User)
        .any(|m| m.get("content").is_some_and(|c| chat::content_text(c).contains("<returncode>")));
    if list && observed { Match::some(Confidence::Likely, "a list of messages with return codes") } else { None }
}

/// Native calls.
pub fn sniff_v2(sniff: &Sniff<'_>) -> Option<Match> {
    let tag = tag(sniff).filter(|t| *t != "mini-swe-agent-1")?;
    Match::some(Confidence::Certain, format!("`trajectory_format` is {}", tag.get(..32).unwrap_or(tag)))
}

/// Reads one file.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut trajectories = Vec::new();
    if let Some(bare) = input.document.list() {
        trajectories.push(Trajectory { steps: steps(bare), ..Trajectory::default() });
    } else {
        decoded.diagnostics = input.document.rows(|row| {
            if !row.value.is_object() {
                return;
            }
            let mut read = trajectory(row.value);
            read.source = Source { record: row.record, span: row.span, ..Source::default() };
            trajectories.push(read);
        });
    }
    for trajectory in &mut trajectories {
        trajectory.format = input.format;
        trajectory.agent = trajectory.agent.take().or_else(|| Some("mini-swe-agent".to_owned()));
    }
    decoded.trajectories = trajectories;
    decoded
}

fn trajectory(root: &Value) -> Trajectory {
    let info = field::get(root, "info").unwrap_or(&Value::Null);
    let version = field::text(info, "mini_version");
    let mut out = Trajectory {
        instance_id: field::text(root, "instance_id"),
        agent: version.map(|v| format!("mini-swe-agent {v}")),
        model: field::str_at(info, &["config", "model", "model_name"]).map(str::to_owned),
        steps: steps(field::list(root, "messages")),
        exit_status: field::text(info, "exit_status"),
        error: field::text(info, "traceback"),
        ..Trajectory::default()
    };
    submission(info, &mut out);
    let stats = field::get(info, "model_stats").unwrap_or(&Value::Null);
    let cost = field::get(stats, "instance_cost").and_then(field::number);
    out.usage = Usage {
        cost: field::honest_cost(cost, out.steps.iter().any(Step::is_action)),
        api_calls: field::get(stats, "api_calls").and_then(field::count),
        ..Usage::default()
    };
    out
}

/// The patch is `info.submission`; after an exception that may hold the exception's text instead.
fn submission(info: &Value, out: &mut Trajectory) {
    let Some(text) = field::str(info, "submission") else {
        return;
    };
    let submitted = out.exit_status.as_deref() == Some("Submitted");
    if submitted || text.is_empty() || text.trim_start().starts_with("diff --git") {
        out.patch = Some(text.to_owned());
    } else if out.error.is_none() {
        out.error = Some(text.to_owned());
    }
    // The submission is written once more as the last message, which the model never saw.
    let repeated = |s: &&mut Step| s.role == Role::User && !text.trim().is_empty() && s.text.trim() == text.trim();
    if let Some(last) = out.steps.last_mut().filter(repeated) {
        last.role = Role::Meta;
    }
}

fn steps(messages: &[Value]) -> Vec<Step> {
    chat::steps_with(messages, refine)
}

/// What mini writes beside a message.
fn refine(step: &mut Step, message: &Value) {
    let extra = field::get(message, "extra").unwrap_or(&Value::Null);
    step.timestamp = step.timestamp.take().or_else(|| field::get(extra, "timestamp").and_then(field::scalar_text));
    match step.role {
        Role::Assistant => {
            step.cost = field::get(extra, "cost").and_then(field::number).filter(|c| *c > 0.0);
            let commands: Vec<&str> = field::list(extra, "actions")
                .iter()
                .filter_map(|a| a.as_str().or_else(|| field::str(a, "command")))
                .collect();
            if !commands.is_empty() {
                step.action = Some(commands.join("\n"));
            }
            if step.action.is_none() {
                step.action = action::in_text(&step.text);
            }
        }
        // Feedback of the critic fork's supervisor, kept for the record.
        Role::User if field::get(message, "_supervisor").and_then(field::truth) == Some(true) => step.role = Role::Meta,
        Role::User if is_observation(&step.text) => {
            step.role = Role::Tool;
            observed(step, extra);
        }
        Role::Tool => observed(step, extra),
        _ => {}
    }
}

/// v1 writes observations and timeouts as user messages.
fn is_observation(text: &str) -> bool {
    text.contains("<returncode>") || text.trim_start().starts_with("The last command <command>")
}

fn observed(step: &mut Step, extra: &Value) {
    let written = || {
        let (_, rest) = step.text.split_once("<returncode>")?;
        rest.split_once("</returncode>")?.0.trim().parse().ok()
    };
    step.exit_code = field::get(extra, "returncode").and_then(field::integer).or_else(written);
    let exception = field::text(extra, "exception_info").is_some();
    let timed_out = step.exit_code.is_none() && step.text.contains("timed out");
    step.is_error = match step.exit_code {
        Some(code) => Some(code != 0 || exception),
        None if exception || timed_out => Some(true),
        None => None,
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

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
}
