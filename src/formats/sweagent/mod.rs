//! SWE-agent trajectories, 0.x and 1.x, and the forks that write the same files.
//!
//! `history` is what the model saw at the end (with old observations elided); `trajectory` is what happened. The
//! prompt comes from `history`, the actions and their full observations from `trajectory`.

mod dars;
mod review;

use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{action, chat, field};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Source, Step, ToolCall, Trajectory, Usage};

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
    Format {
        id: "dars",
        name: "DARS search tree",
        writer: "DARS-Agent, a fork of SWE-agent",
        recognised: "a `root` of nested nodes with `role`, `children` and `_depth`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: dars::sniff, decode: dars::decode },
    },
    Format {
        id: "dars-evaluation",
        name: "DARS evaluations",
        writer: "DARS-Agent",
        recognised: "rows with `run_id`, `status`, a patch in `content` and the harness's `output`",
        kind: Kind::Companion,
        reader: Reader::File { sniff: dars::sniff_evaluation, decode: dars::decode_evaluation },
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
    // The first attempt has just begun, or none has.
    let begun = |a: &Value| a.get("trajectory").is_some_and(Value::is_array) && a.get("history").is_some();
    let just = root.get("attempts").is_some_and(Value::is_array) && attempts.iter().all(begun);
    if just && (!attempts.is_empty() || sniff.object().is_some_and(|o| o.len() == 1)) {
        return Match::some(Confidence::Likely, "a list `attempts` without a step yet (RetryAgent)");
    }
    if list_of_steps(root.get("trajectory")).is_some() {
        let seen = "a list `trajectory` with `replay_config`, or the model's input per step";
        return if is_v1(root) { Match::some(Confidence::Certain, seen) } else { None };
    }
    let history = root.get("history").and_then(Value::as_array)?;
    let typed = history.iter().any(|m| m.get("message_type").is_some() && m.get("role").is_some());
    if typed { Match::some(Confidence::Likely, "only a `history` of messages with `message_type`") } else { None }
}

fn root<'a>(sniff: &Sniff<'a>) -> Option<&'a Value<'a>> {
    sniff.rows.first().copied().filter(|_| sniff.form == Form::Object)
}

fn list_of_steps<'a>(value: Option<&'a Value<'a>>) -> Option<&'a Vec<Value<'a>>> {
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
        if attempts.is_empty() && row.value.as_object().is_some_and(|o| o.len() == 1 && o.contains_key("attempts")) {
            return;
        }
        let source = Source { record: row.record, span: row.span, ..Source::default() };
        if attempts.is_empty() {
            trajectories.push(Trajectory { source, format: input.format, ..trajectory(row.value, "") });
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
    let running = root.get("trajectory").is_none();
    let read = attempts.iter().enumerate().map(|(i, attempt)| {
        let mut trajectory = trajectory(attempt, &format!("/attempts/{i}"));
        trajectory.source = Source { record: i, ..source.clone() };
        trajectory.format = format;
        trajectory.attempt = Some(format!("attempt {}", i + 1));
        if best == Some(i as u64) {
            let text = "this attempt was chosen by the run itself (best_attempt_idx)";
            trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "sweagent.chosen", text));
        }
        if running {
            let text = "the run had not chosen among its attempts when this file was written";
            trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "sweagent.running", text));
        }
        trajectory
    });
    read.collect()
}

/// Reads the object at pointer `at` of the record.
fn trajectory(root: &Value, at: &str) -> Trajectory {
    let mut out = Trajectory { agent: Some("SWE-agent".to_owned()), ..Trajectory::default() };
    let history = field::list(root, "history");
    let entries = field::list(root, "trajectory");
    if entries.is_empty() {
        out.steps = chat::steps_at(history, &format!("{at}/history"), |step, message| {
            step.action = field::text(message, "action").or(step.action.take());
            step.thought = field::text(message, "thought");
        });
    } else {
        let (own, told) = (format!("{at}/trajectory"), format!("{at}/history"));
        out.steps = prompt(history, &told);
        let mut replies = Replies { history, told: &told, at: 0 };
        for (i, entry) in entries.iter().enumerate() {
            replies.steps_of(entry, &RawPlace::element(&own, i), &mut out.steps);
        }
    }
    configuration(root, &mut out);
    info(root, &mut out);
    review::add(root, at, &mut out);
    out
}

/// What the model was told before its first own answer.
fn prompt(history: &[Value], pointer: &str) -> Vec<Step> {
    let own = |m: &Value| chat::role_of(m) == Role::Assistant && !is_demo(m);
    let told = history.iter().position(own).unwrap_or(history.len());
    chat::steps_at(history.get(..told).unwrap_or_default(), pointer, |step, message| step.is_demo = is_demo(message))
}

fn is_demo(message: &Value) -> bool {
    field::get(message, "is_demo").and_then(field::truth).unwrap_or(false)
        || field::str(message, "message_type") == Some("demonstration")
}

/// The assistant messages of the history, walked along with the trajectory: they alone hold the native calls.
struct Replies<'a> {
    history: &'a [Value<'a>],
    /// Pointer of the history.
    told: &'a str,
    at: usize,
}

impl<'a> Replies<'a> {
    /// The history's message for this entry of the trajectory. Retries after a format error are in `trajectory` only.
    fn matching(&mut self, entry: &Value) -> Option<&'a Value<'a>> {
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
                for (k, message) in std::iter::once(message).chain(task).enumerate() {
                    let raw = RawPlace::element(self.told, self.at + i + k);
                    steps
                        .extend(chat::message_steps(message).into_iter().map(|step| Step { raw: raw.clone(), ..step }));
                }
            }
        }
        steps
    }

    fn steps_of(&mut self, entry: &Value, raw: &RawPlace, steps: &mut Vec<Step>) {
        let before = self.at;
        let message = self.matching(entry);
        let prompts = Self { at: before, ..*self }.prompts_ahead(self.at.saturating_sub(1));
        steps.extend(prompts);
        let calls: Vec<ToolCall> =
            message.map(|m| field::list(m, "tool_calls").iter().map(chat::tool_call).collect()).unwrap_or_default();
        // Usually texts; some models answer in parts.
        let said = |key| field::get(entry, key).map(chat::content_text).filter(|t| !t.is_empty());
        let thought = said("thought");
        let text = said("response").or_else(|| thought.clone()).unwrap_or_default();
        let mut step = Step { raw: raw.clone(), ..Step::new(Role::Assistant, text) };
        step.action = field::text(entry, "action").or_else(|| action::of_calls(&calls));
        step.thought = thought;
        step.reasoning = message.and_then(chat::reasoning_of);
        step.calls = calls;
        let first = step.calls.first().map(|c| (c.id.clone(), c.name.clone()));
        steps.push(step);
        if let Some(observation) = field::get(entry, "observation") {
            let mut answer = Step { raw: raw.clone(), ..Step::new(Role::Tool, chat::content_text(observation)) };
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
        Some(Value::String(patch)) => Some(patch.to_string()),
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
mod tests;
