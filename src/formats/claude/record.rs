//! One record of a session to steps.

use super::super::json::Value;
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
pub fn kind_name<'a>(record: &'a Value<'a>) -> &'a str {
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

#[cfg(test)]
mod tests {
    use super::super::super::json::json;

    use super::*;

    fn only(record: &Value) -> Step {
        let mut read = read(record);
        assert_eq!(read.steps.len(), 1, "{record}");
        read.steps.remove(0)
    }

    fn user<'a>(content: &Value, more: &[(&str, Value<'a>)]) -> Value<'a> {
        let mut record = json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": content}});
        for (key, value) in more {
            record[*key] = value.clone();
        }
        record
    }

    #[test]
    fn what_the_program_says_in_a_persons_name_was_not_asked_by_anyone() {
        for text in [
            "Caveat: The messages below were generated by the user while running local commands.",
            "<local-command-stdout>ok</local-command-stdout>",
            " <local-command-stderr>no</local-command-stderr>",
        ] {
            assert_eq!(only(&user(&json!(text), &[])).role, Role::Meta, "{text}");
        }
        for text in ["hi", "<command-name>/fix</command-name>", "Caveat: mind the gap"] {
            assert_eq!(only(&user(&json!(text), &[])).role, Role::User, "{text}");
        }
        let shown_only = [("isVisibleInTranscriptOnly", json!(true))];
        assert_eq!(only(&user(&json!("x"), &shown_only)).role, Role::Meta);
        let summary = [("isVisibleInTranscriptOnly", json!(true)), ("isCompactSummary", json!(true))];
        assert_eq!(only(&user(&json!("x"), &summary)).role, Role::User, "the model is given the summary");
    }

    #[test]
    fn prompts_results_and_notes_have_their_place_in_the_tree() {
        let kind = |record: &Value| match read(record).kind {
            Kind::Answer { .. } => "answer",
            Kind::Prompt => "prompt",
            Kind::Results => "results",
            Kind::Note => "note",
            Kind::Bookkeeping => "bookkeeping",
            Kind::Unknown => "unknown",
        };
        let result = json!([{"type": "tool_result", "tool_use_id": "c", "content": "x"}]);
        assert_eq!(kind(&user(&json!("hi"), &[])), "prompt");
        assert_eq!(kind(&user(&json!("skill"), &[("isMeta", json!(true))])), "note");
        assert_eq!(kind(&user(&result, &[])), "results");
        assert_eq!(kind(&json!({"type": "message", "message": {"role": "assistant", "content": "x"}})), "answer");
        assert_eq!(kind(&json!({"type": "system", "subtype": "api_error"})), "note");
        assert_eq!(kind(&json!({"type": "progress", "data": {}})), "bookkeeping");
        assert_eq!(kind(&json!({"type": "user"})), "unknown", "it says nothing");
        assert_eq!(kind(&json!({"type": "user", "message": "text"})), "unknown");
        assert_eq!(kind(&json!(7)), "unknown");
        assert_eq!(kind(&json!({"type": "mode", "mode": "plan"})), "note");
    }

    #[test]
    fn notes_say_what_they_can() {
        let said = |record: &Value| only(record).text;
        assert_eq!(said(&json!({"type": "summary", "summary": "Sums", "leafUuid": "x"})), "summary: Sums");
        assert_eq!(said(&json!({"type": "pr-link", "prUrl": "https://x.invalid/1"})), "pr-link: https://x.invalid/1");
        assert_eq!(
            said(&json!({"type": "system", "subtype": "local_command", "content": "out"})),
            "local_command: out"
        );
        let error = json!({"type": "system", "subtype": "api_error", "error": {"message": "overloaded"}});
        assert_eq!(said(&error), "api_error: overloaded");
        assert_eq!(said(&json!({"type": "system"})), "system");
        assert!(said(&json!({"type": "attachment", "attachment": {"type": "todo"}})).starts_with("attachment: {"));
    }

    #[test]
    fn a_message_with_results_and_text_is_both() {
        let content = json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "A"}]},
            {"type": "text", "text": "[Request interrupted by user]"},
            {"type": "tool_result", "tool_use_id": "b", "content": "Exit code 127\nnot found", "is_error": true}
        ]);
        let read = read(&user(&content, &[]));
        let steps: Vec<(Role, &str)> = read.steps.iter().map(|s| (s.role, s.text.as_str())).collect();
        let right = [
            (Role::Tool, "A"),
            (Role::Tool, "Exit code 127\nnot found"),
            (Role::User, "[Request interrupted by user]"),
        ];
        assert_eq!(steps, right);
        assert_eq!((read.steps[0].exit_code, read.steps[1].exit_code), (None, Some(127)));
        let ids: Vec<Option<&str>> = read.steps.iter().map(|s| s.id.as_deref()).collect();
        assert_eq!(ids, [Some("result a"), Some("result b"), Some("u")]);
    }

    #[test]
    fn an_exit_code_may_stand_beside_the_result() {
        let content = json!([{"type": "tool_result", "tool_use_id": "a", "content": "x"}]);
        assert_eq!(only(&user(&content, &[("toolUseResult", json!({"exitCode": 3}))])).exit_code, Some(3));
        assert_eq!(only(&user(&content, &[("toolUseResult", json!("Error"))])).exit_code, None);
    }

    #[test]
    fn what_the_program_writes_for_the_model_is_no_action() {
        let synthetic = json!({"type": "assistant", "uuid": "a", "message": {"model": "<synthetic>", "role": "assistant",
            "content": [{"type": "text", "text": "No response requested."}]}});
        let step = only(&synthetic);
        assert_eq!(
            (step.role, step.text.as_str(), step.is_error),
            (Role::Meta, "synthetic: No response requested.", None)
        );
        let mut failed = synthetic;
        failed["isApiErrorMessage"] = json!(true);
        assert_eq!(only(&failed).is_error, Some(true));
    }

    #[test]
    fn blocks_of_an_answer_are_told_apart() {
        let answer = json!({"type": "assistant", "requestId": "r", "message": {"id": "m", "role": "assistant", "content": [
            {"type": "thinking", "thinking": "a"}, {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "text", "text": "b"}, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}});
        let Read { kind: Kind::Answer { message, request }, steps } = read(&answer) else { unreachable!() };
        assert_eq!((message.as_deref(), request.as_deref()), (Some("m"), Some("r")));
        let step = &steps[0];
        assert_eq!((step.reasoning.as_deref(), step.text.as_str()), (Some("a"), "b"));
        let names: Vec<&str> = step.calls.iter().map(|c| c.name.as_str()).collect();
        assert_eq!((names, step.tokens), (vec!["web_search", "Bash"], None));
    }

    #[test]
    fn the_cache_is_part_of_the_prompt_and_the_larger_count_is_right() {
        let usage = json!({"input_tokens": 4, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 2, "output_tokens": 1});
        let small = tokens(&usage);
        assert_eq!(small, Some(Tokens { input: 16, cached: Some(10), output: 1 }));
        assert_eq!(tokens(&json!({"output_tokens": 3})), None);
        assert_eq!(tokens(&json!({"input_tokens": 3})), Some(Tokens { input: 3, cached: None, output: 0 }));
        let large = Some(Tokens { input: 3, cached: None, output: 9 });
        assert_eq!(larger(small, large), Some(Tokens { input: 16, cached: Some(10), output: 9 }));
        assert_eq!((larger(None, large), larger(large, None), larger(None, None)), (large, large, None));
        let huge = json!({"input_tokens": u64::MAX, "cache_read_input_tokens": 5});
        assert_eq!(tokens(&huge).map(|t| t.input), Some(u64::MAX));
    }
}
