//! SWE-agent trajectories, 0.x and 1.x, and the forks that write the same files.
//!
//! `history` is what the model saw at the end (with old observations elided); `trajectory` is what happened. The
//! prompt comes from `history`, the actions and their full observations from `trajectory`.

use serde_json::Value;

use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{action, chat, field};
use crate::trajectory::{Diagnostic, Role, Severity, Source, Step, ToolCall, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "sweagent-0",
        name: "SWE-agent 0.x trajectory",
        writer: "SWE-agent, March to December 2024",
        recognised: "an object with a list `trajectory` of actions and observations, without the model's input per step",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v0, decode },
    },
    Format {
        id: "sweagent-1",
        name: "SWE-agent 1.x trajectory",
        writer: "SWE-agent since 2025, SWE-smith",
        recognised: "as 0.x, with `replay_config`, or `query` or `messages` in the steps; or a list `attempts`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v1, decode },
    },
];

/// A `trajectory` of actions and observations, as 0.x writes it.
pub fn sniff_v0(sniff: &Sniff<'_>) -> Option<Match> {
    let root = root(sniff)?;
    let steps = list_of_steps(root.get("trajectory"));
    if steps.is_some() && !is_v1(root) {
        let sure = if sniff.has("info") || sniff.has("history") { Confidence::Certain } else { Confidence::Likely };
        return Match::some(sure, "a list `trajectory` of actions and observations, without the model's input");
    }
    // A demonstration exported without its trajectory.
    let history = root.get("history").and_then(Value::as_array)?;
    let chat = history.iter().any(|m| m.get("role").is_some() && m.get("agent").is_some());
    let calls = history.iter().any(|m| m.get("message_type").is_some() || m.get("tool_calls").is_some());
    if steps.is_none() && chat && !calls {
        Match::some(Confidence::Likely, "only a `history` of messages")
    } else {
        None
    }
}

/// The same as 1.x writes it, and the attempts of a RetryAgent.
pub fn sniff_v1(sniff: &Sniff<'_>) -> Option<Match> {
    let root = root(sniff)?;
    let attempts = field::list(root, "attempts");
    if attempts.iter().any(|a| list_of_steps(a.get("trajectory")).is_some()) {
        return Match::some(Confidence::Certain, "a list `attempts` of trajectories (RetryAgent)");
    }
    if list_of_steps(root.get("trajectory")).is_some() {
        let seen = "a list `trajectory` with `replay_config`, or the model's input per step";
        return if is_v1(root) { Match::some(Confidence::Certain, seen) } else { None };
    }
    let history = root.get("history").and_then(Value::as_array)?;
    let typed = history.iter().any(|m| m.get("message_type").is_some() && m.get("role").is_some());
    if typed { Match::some(Confidence::Likely, "only a `history` of messages with `message_type`") } else { None }
}

fn root<'a>(sniff: &Sniff<'a>) -> Option<&'a Value> {
    sniff.rows.first().copied().filter(|_| sniff.form == Form::Object)
}

fn list_of_steps(value: Option<&Value>) -> Option<&Vec<Value>> {
    let steps = value?.as_array()?;
    let fits =
        steps.iter().any(|s| s.get("action").is_some() && (s.get("response").is_some() || s.get("thought").is_some()));
    if fits { Some(steps) } else { None }
}

fn is_v1(root: &Value) -> bool {
    let input = |s: &Value| s.get("query").is_some() || s.get("messages").is_some();
    field::get(root, "replay_config").is_some()
        || field::list(root, "trajectory").iter().any(input)
        || field::at(root, &["info", "swe_agent_version"]).is_some()
}

/// Reads one file: one trajectory, or one an attempt of a RetryAgent.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut trajectories = Vec::new();
    decoded.diagnostics = input.document.rows(|row| {
        let attempts = field::list(row.value, "attempts");
        let source = Source { record: row.record, span: row.span, ..Source::default() };
        if attempts.is_empty() {
            trajectories.push(Trajectory { source, format: input.format, ..trajectory(row.value) });
        } else {
            trajectories.extend(retries(row.value, attempts, &source, input.format));
        }
    });
    decoded.trajectories = trajectories;
    decoded
}

/// A RetryAgent's attempts; the chosen one is copied to the root, so the root is not read again.
fn retries(root: &Value, attempts: &[Value], source: &Source, format: &'static str) -> Vec<Trajectory> {
    let best = field::at(root, &["info", "best_attempt_idx"]).and_then(field::count);
    let read = attempts.iter().enumerate().map(|(i, attempt)| {
        let mut trajectory = trajectory(attempt);
        trajectory.source = Source { record: i, ..source.clone() };
        trajectory.format = format;
        trajectory.attempt = Some(format!("attempt {}", i + 1));
        if best == Some(i as u64) {
            let text = "this attempt was chosen by the run itself (best_attempt_idx)";
            trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "sweagent.chosen", text));
        }
        trajectory
    });
    read.collect()
}

fn trajectory(root: &Value) -> Trajectory {
    let mut out = Trajectory { agent: Some("SWE-agent".to_owned()), ..Trajectory::default() };
    let history = field::list(root, "history");
    let entries = field::list(root, "trajectory");
    if entries.is_empty() {
        out.steps = chat::steps_with(history, |step, message| {
            step.action = field::text(message, "action").or(step.action.take());
            step.thought = field::text(message, "thought");
        });
    } else {
        out.steps = prompt(history);
        let mut replies = Replies::new(history);
        for entry in entries {
            replies.steps_of(entry, &mut out.steps);
        }
    }
    configuration(root, &mut out);
    info(root, &mut out);
    out
}

/// What the model was told before its first own answer.
fn prompt(history: &[Value]) -> Vec<Step> {
    let own = |m: &Value| chat::role_of(m) == Role::Assistant && !is_demo(m);
    let told = history.iter().position(own).unwrap_or(history.len());
    chat::steps_with(history.get(..told).unwrap_or_default(), |step, message| step.is_demo = is_demo(message))
}

fn is_demo(message: &Value) -> bool {
    field::get(message, "is_demo").and_then(field::truth).unwrap_or(false)
        || field::str(message, "message_type") == Some("demonstration")
}

/// The assistant messages of the history, walked along with the trajectory: they alone hold the native calls.
struct Replies<'a> {
    history: &'a [Value],
    at: usize,
}

impl<'a> Replies<'a> {
    fn new(history: &'a [Value]) -> Self {
        Self { history, at: 0 }
    }

    /// The history's message for this entry of the trajectory. Retries after a format error are in `trajectory` only.
    fn matching(&mut self, entry: &Value) -> Option<&'a Value> {
        let same =
            |m: &Value, key| field::str(m, key).unwrap_or_default() == field::str(entry, key).unwrap_or_default();
        let fits =
            |m: &Value| chat::role_of(m) == Role::Assistant && !is_demo(m) && same(m, "action") && same(m, "thought");
        let ahead = self.history.get(self.at..)?;
        let found = ahead.iter().position(fits)?;
        self.at += found + 1;
        ahead.get(found)
    }

    /// Prompts of a further agent (CodeR's roles), which stand between two entries.
    fn prompts_ahead(&self, upto: usize) -> Vec<Step> {
        let between = self.history.get(self.at..upto).unwrap_or_default();
        let mut steps = Vec::new();
        for (i, message) in between.iter().enumerate() {
            if self.at > 0 && chat::role_of(message) == Role::System {
                let task = between.get(i + 1).filter(|m| chat::role_of(m) == Role::User);
                steps.extend(std::iter::once(message).chain(task).flat_map(chat::message_steps));
            }
        }
        steps
    }

    fn steps_of(&mut self, entry: &Value, steps: &mut Vec<Step>) {
        let before = self.at;
        let message = self.matching(entry);
        let prompts = Self { history: self.history, at: before }.prompts_ahead(self.at.saturating_sub(1));
        steps.extend(prompts);
        let calls: Vec<ToolCall> =
            message.map(|m| field::list(m, "tool_calls").iter().map(chat::tool_call).collect()).unwrap_or_default();
        let thought = field::text(entry, "thought");
        let text = field::text(entry, "response").or_else(|| thought.clone()).unwrap_or_default();
        let mut step = Step::new(Role::Assistant, text);
        step.action = field::text(entry, "action").or_else(|| action::of_calls(&calls));
        step.thought = thought;
        step.reasoning = message.and_then(chat::reasoning_of);
        step.calls = calls;
        let first = step.calls.first().map(|c| (c.id.clone(), c.name.clone()));
        steps.push(step);
        if let Some(observation) = field::get(entry, "observation") {
            let mut answer = Step::new(Role::Tool, chat::content_text(observation));
            (answer.call_id, answer.tool_name) = first.unzip();
            answer.call_id = answer.call_id.filter(|id| !id.is_empty());
            steps.push(answer);
        }
    }
}

/// Model, task and instance of 1.x's `replay_config`, which is JSON inside a string.
fn configuration(root: &Value, out: &mut Trajectory) {
    let environment = field::str(root, "environment").filter(|e| super::names::looks_like_instance(e));
    out.instance_id = environment.map(str::to_owned);
    let Some(config) = field::embedded(root, "replay_config") else {
        return;
    };
    let model = field::at(&config, &["agent", "model", "name"]).and_then(Value::as_str);
    out.model = model.filter(|m| !m.is_empty() && *m != "replay").map(str::to_owned);
    let statement = field::at(&config, &["problem_statement"]);
    out.task = statement.and_then(|s| field::text(s, "text").or_else(|| field::text(s, "problem_statement")));
    let id = statement.and_then(|s| field::text(s, "id")).filter(|id| super::names::looks_like_instance(id));
    out.instance_id = id.or(out.instance_id.take());
}

fn info(root: &Value, out: &mut Trajectory) {
    let Some(info) = field::get(root, "info") else {
        return;
    };
    out.exit_status = field::text(info, "exit_status");
    let submitted = out.exit_status.as_deref().is_some_and(|s| s.starts_with("submitted"));
    out.patch = match info.get("submission") {
        Some(Value::String(patch)) => Some(patch.clone()),
        // The run ended and says that it submitted nothing.
        Some(Value::Null) if out.exit_status.is_some() => Some(String::new()),
        _ => None,
    };
    if submitted && out.patch.is_none() {
        let text = "exit status says submitted, but there is no `submission`: take the patch from a predictions file";
        out.diagnostics.push(Diagnostic::new(Severity::Warning, "sweagent.no-submission", text));
    }
    let Some(stats) = field::get(info, "model_stats") else {
        return;
    };
    let count = |key| field::get(stats, key).and_then(field::count);
    let cost = field::get(stats, "instance_cost").and_then(field::number);
    out.usage = Usage {
        cost: field::honest_cost(cost, out.steps.iter().any(Step::is_action)),
        tokens_in: count("tokens_sent"),
        tokens_out: count("tokens_received"),
        api_calls: count("api_calls"),
        ..Usage::default()
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::load::{LoadedFile, load_bytes};
    use super::*;

    fn load(value: &Value) -> LoadedFile {
        load_bytes(Path::new("x/o__r-1.traj"), value.to_string().into_bytes())
    }

    fn v0() -> Value {
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
        let mut root = attempt.clone();
        root["info"]["best_attempt_idx"] = json!(1);
        root["attempts"] = json!([attempt.clone(), attempt]);
        let file = load(&root);
        assert_eq!(file.report.format, Some("sweagent-1"));
        let names: Vec<_> = file.trajectories.iter().map(|t| t.attempt.clone().unwrap()).collect();
        assert_eq!(names, ["attempt 1", "attempt 2"]);
        assert_eq!(file.trajectories[1].diagnostics[0].code, "sweagent.chosen");
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
        let mut value = v0();
        value.as_object_mut().unwrap().retain(|k, _| k == "history");
        let file = load(&value);
        assert_eq!(file.report.format, Some("sweagent-0"));
        assert_eq!(file.trajectories[0].n_actions(), 2);
        assert_eq!(file.trajectories[0].steps[3].action.as_deref(), Some("ls\n"));
    }
}
