//! One record of a session to steps.

use serde_json::Value;

use super::super::{field, session};
use crate::trajectory::{Role, Step, Tokens, ToolCall};

/// Records that hold copies of files, progress and the like.
const BOOKKEEPING: [&str; 7] = [
    "file-history-snapshot",
    "file-history-delta",
    "progress",
    "last-prompt",
    "stream_event",
    "bridge_status",
    "control_response",
];
/// Records known to say something beside the conversation: kind and the member that says it.
const NOTES: [(&str, &str); 14] = [
    ("summary", "summary"),
    ("queue-operation", "operation"),
    ("custom-title", "customTitle"),
    ("ai-title", "aiTitle"),
    ("agent-name", "agentName"),
    ("agent-color", "agentColor"),
    ("pr-link", "prUrl"),
    ("mode", "mode"),
    ("permission-mode", "permissionMode"),
    ("tag", "tag"),
    ("attachment", "attachment"),
    ("away_summary", "summary"),
    ("rate_limit_event", "rate_limit_info"),
    ("worktree-state", "worktreeSession"),
];

/// What a record is.
pub enum Kind {
    /// A part of an answer of the model, with what tells the answer from others.
    Answer {
        /// Id of the message, where it has one.
        message: Option<String>,
        /// Id of the request.
        request: Option<String>,
    },
    /// A message of a person, or of the harness in a person's name.
    Prompt,
    /// Results of calls.
    Results,
    /// A note.
    Note,
    /// Counted only.
    Bookkeeping,
    /// Shown raw, and counted.
    Unknown,
}

/// A record read.
pub struct Read {
    /// What it is.
    pub kind: Kind,
    /// What it shows.
    pub steps: Vec<Step>,
}

/// Name of the kind of a record.
pub fn kind_name(record: &Value) -> &str {
    field::str(record, "type").unwrap_or(if record.is_object() { "(none)" } else { "(no object)" })
}

/// Reads one record.
pub fn read(record: &Value) -> Read {
    let message = field::get(record, "message").filter(|m| m.is_object());
    let mut read = match (kind_name(record), message) {
        ("user", Some(message)) => user(record, message),
        ("assistant", Some(message)) => assistant(record, message),
        // Older exports say who speaks in the message only.
        ("message", Some(message)) => match field::str(message, "role") {
            Some("assistant") => assistant(record, message),
            _ => user(record, message),
        },
        ("system", _) => system(record),
        (kind, _) if BOOKKEEPING.contains(&kind) => Read { kind: Kind::Bookkeeping, steps: Vec::new() },
        (kind, _) => match NOTES.iter().find(|(name, _)| *name == kind) {
            Some((_, member)) => {
                let step = match field::str(record, member) {
                    Some(text) => session::note(kind, text),
                    None => session::raw_step(kind, record),
                };
                Read { kind: Kind::Note, steps: vec![step] }
            }
            None => Read { kind: Kind::Unknown, steps: vec![session::raw_step(kind, record)] },
        },
    };
    let time = field::get(record, "timestamp").and_then(session::time_of);
    for step in &mut read.steps {
        step.timestamp = step.timestamp.take().or_else(|| time.clone());
    }
    read
}

fn system(record: &Value) -> Read {
    let kind = field::str(record, "subtype").unwrap_or("system");
    let content = field::get(record, "content").map(session::text_of).unwrap_or_default();
    let mut text = content;
    if let Some(before) = field::at(record, &["compactMetadata", "preTokens"]).and_then(field::count) {
        text = format!("{text} ({before} tokens before)").trim().to_owned();
    }
    if text.is_empty() {
        let places = [&["error", "message"][..], &["error"], &["cause", "code"]];
        text = places.iter().find_map(|path| field::str_at(record, path)).unwrap_or_default().to_owned();
    }
    Read { kind: Kind::Note, steps: vec![session::note(kind, &text)] }
}

fn user(record: &Value, message: &Value) -> Read {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let results = parts.iter().filter(|p| field::str(p, "type") == Some("tool_result"));
    let mut steps: Vec<Step> = results.map(|part| result(record, part)).collect();
    let answered = !steps.is_empty();
    let text = session::text_of(content);
    if !answered || !text.is_empty() {
        let yes = |key| field::get(record, key).and_then(field::truth) == Some(true);
        let noise = ["Caveat: The messages below", "<local-command-stdout>", "<local-command-stderr>"];
        let unseen = noise.iter().any(|start| text.trim_start().starts_with(start))
            || (yes("isVisibleInTranscriptOnly") && !yes("isCompactSummary"));
        let role = if unseen { Role::Meta } else { Role::User };
        let step = if content.is_null() { session::raw_step("user", record) } else { Step::new(role, text) };
        steps.push(step);
    }
    let note = steps.iter().all(|s| s.role == Role::Meta);
    let kind = match (answered, note || field::get(record, "isMeta").and_then(field::truth) == Some(true)) {
        (true, _) => Kind::Results,
        (false, true) => Kind::Note,
        (false, false) => Kind::Prompt,
    };
    let id = field::text(record, "uuid");
    for step in &mut steps {
        step.id = step.call_id.clone().map(|id| format!("result {id}")).or_else(|| id.clone()).map(Into::into);
    }
    Read { kind, steps }
}

fn result(record: &Value, part: &Value) -> Step {
    let text = field::get(part, "content").map(session::text_of).unwrap_or_default();
    let is_error = field::get(part, "is_error").and_then(field::truth);
    let mut step = session::result(field::text(part, "tool_use_id"), text, is_error);
    let given = field::at(record, &["toolUseResult", "exitCode"]).and_then(field::integer);
    step.exit_code = given.or_else(|| if is_error == Some(true) { session::exit_code_in(&step.text) } else { None });
    step
}

fn assistant(record: &Value, message: &Value) -> Read {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let text = session::text_of(content);
    // Messages the program wrote in the model's name: errors of the API, a turn that was not asked for.
    let synthetic = field::str(message, "model") == Some("<synthetic>");
    let failed = field::get(record, "isApiErrorMessage").and_then(field::truth) == Some(true);
    if synthetic || failed {
        let mut step = session::note(if failed { "API error" } else { "synthetic" }, &text);
        step.is_error = Some(true).filter(|_| failed);
        step.id = field::text(record, "uuid").map(Into::into);
        return Read { kind: Kind::Note, steps: vec![step] };
    }
    let reasoning: Vec<&str> = parts.iter().filter_map(|p| field::str(p, "thinking")).collect();
    let calls = parts.iter().filter(|p| matches!(field::str(p, "type"), Some("tool_use" | "server_tool_use")));
    let mut step = session::answer(text, Some(reasoning.join("\n")), calls.map(call).collect());
    step.tokens = field::get(message, "usage").and_then(tokens);
    let id = field::text(message, "id");
    step.id = id.clone().or_else(|| field::text(record, "uuid")).map(Into::into);
    Read { kind: Kind::Answer { message: id, request: field::text(record, "requestId") }, steps: vec![step] }
}

fn call(part: &Value) -> ToolCall {
    ToolCall {
        id: field::text(part, "id").unwrap_or_default(),
        name: field::text(part, "name").unwrap_or_default(),
        arguments: field::get(part, "input").map(field::json_text).unwrap_or_default(),
    }
}

/// Tokens of a message, as Anthropic counts them: what went through the cache is not part of `input_tokens`.
pub fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key| field::get(usage, key).and_then(field::count);
    let cached = count("cache_read_input_tokens");
    let input = count("input_tokens")?.saturating_add(cached.unwrap_or(0));
    let input = input.saturating_add(count("cache_creation_input_tokens").unwrap_or(0));
    Some(Tokens { input, cached, output: count("output_tokens").unwrap_or(0) })
}

/// The larger of two counts for the same message: every part of an answer repeats the count, and it may grow.
pub fn larger(a: Option<Tokens>, b: Option<Tokens>) -> Option<Tokens> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    Some(Tokens { input: a.input.max(b.input), cached: a.cached.max(b.cached), output: a.output.max(b.output) })
}
