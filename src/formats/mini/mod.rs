//! mini-swe-agent trajectories of both generations, its critic fork, and Live-SWE-agent.

mod feedback;

use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{action, chat, document::Row, field, rows};
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
        trajectories.push(Trajectory { steps: steps(bare, ""), ..Trajectory::default() });
    } else {
        decoded.diagnostics = input.document.rows(|row| {
            if !row.value.is_object() {
                return;
            }
            let mut read = trajectory(row);
            read.attempt = feedback::run_of(input.path);
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

fn trajectory(row: Row<'_>) -> Trajectory {
    let root = row.value;
    let info = field::get(root, "info").unwrap_or(&Value::Null);
    let version = field::text(info, "mini_version");
    let mut out = Trajectory {
        instance_id: field::text(root, "instance_id"),
        agent: version.map(|v| format!("mini-swe-agent {v}")),
        model: field::str_at(info, &["config", "model", "model_name"]).map(str::to_owned),
        steps: steps(field::list(root, "messages"), &rows::pointer(row, "messages")),
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
    feedback::add(info, &rows::pointer(row, "info"), &mut out);
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

fn steps(messages: &[Value], pointer: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for step in chat::steps_at(messages, pointer, refine) {
        let at = step.raw.pointer.rsplit('/').next().and_then(|i| i.parse::<usize>().ok());
        steps.extend(at.and_then(|i| refused(messages.get(i)?, &step)));
        steps.push(step);
    }
    steps
}

/// The answer that a format error speaks of: it is no message of its own, and the model never saw it again.
fn refused(message: &Value, step: &Step) -> Option<Step> {
    let extra = field::get(message, "extra").filter(|e| field::str(e, "interrupt_type") == Some("FormatError"))?;
    let answer = field::get(extra, "model_response").or_else(|| field::get(extra, "response"))?;
    let choice = field::list(answer, "choices").first().and_then(|c| field::get(c, "message"));
    let said = choice.or_else(|| field::get(answer, "content")).unwrap_or(answer);
    let text = match said {
        Value::String(text) => text.to_string(),
        message => chat::message_steps(message).into_iter().map(|s| s.text).collect::<Vec<_>>().join("\n"),
    };
    let text = format!("an answer that was refused (format error):\n{text}");
    Some(Step { raw: step.raw.clone(), ..Step::new(Role::Meta, text) })
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
        Role::User if feedback::is_supervisor(message) => {
            step.role = Role::Meta;
            step.text = feedback::said(message, &step.text);
        }
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
mod tests;
