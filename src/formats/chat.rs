//! Chat messages in all the shapes people store them: OpenAI chat and Responses items, Anthropic blocks, ShareGPT.

use std::borrow::Cow;

use serde_json::Value;

use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{action, field};
use crate::trajectory::{Diagnostic, Role, Severity, Source, Step, ToolCall, ToolSpec, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "chat",
    name: "Chat messages",
    writer: "OpenAI-style exports and training sets",
    recognised: "`messages` (or a bare list) of role and content",
    kind: Kind::Trajectory,
    reader: Reader::File { sniff, decode },
}];

/// Text of a content member: a string, parts joined by line ends, or the JSON text of anything else.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().filter_map(part_text).collect();
            texts.join("\n")
        }
        Value::Object(_) => part_text(content).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// Text of one part; `None` for parts that are no text (calls, results, thinking).
fn part_text(part: &Value) -> Option<String> {
    if let Value::String(text) = part {
        return Some(text.clone());
    }
    let kind = field::str(part, "type").or_else(|| field::str(part, "content_type")).unwrap_or("text");
    match kind {
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "reasoning" => None,
        "image" | "image_url" | "input_image" => Some("[image]".to_owned()),
        "refusal" => field::text(part, "refusal"),
        _ => match field::get(part, "text").or_else(|| field::get(part, "content")) {
            Some(inner) => Some(content_text(inner)),
            None if field::get(part, "type").is_some() => Some(part.to_string()),
            None => Some(part.to_string()),
        },
    }
}

/// Steps of a list of messages, with the names of the tools filled in where only ids are written.
pub fn steps(messages: &[Value]) -> Vec<Step> {
    steps_with(messages, |_, _| {})
}

/// The same for a writer that puts more beside its messages: `refine` sees each step with its message.
pub fn steps_with(messages: &[Value], refine: impl Fn(&mut Step, &Value)) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // Items of the Responses API that belong to one answer of the model follow one another.
    let mut open_answer = false;
    for message in messages {
        let item = answer_item(message);
        for mut step in message_steps(message) {
            refine(&mut step, message);
            match steps.last_mut() {
                Some(last) if open_answer && item && last.role == Role::Assistant => merge(last, step),
                _ => steps.push(step),
            }
        }
        open_answer = item;
    }
    name_tools(&mut steps);
    steps
}

/// Is this one of the items of which a Responses answer consists?
fn answer_item(message: &Value) -> bool {
    match field::str(message, "type") {
        Some("function_call" | "reasoning" | "custom_tool_call" | "local_shell_call") => true,
        Some("message") => field::str(message, "role") == Some("assistant"),
        _ => false,
    }
}

fn merge(last: &mut Step, more: Step) {
    if !more.text.is_empty() {
        if !last.text.is_empty() {
            last.text.push('\n');
        }
        last.text.push_str(&more.text);
    }
    last.reasoning = match (last.reasoning.take(), more.reasoning) {
        (Some(a), Some(b)) => Some(format!("{a}\n{b}")),
        (a, b) => a.or(b),
    };
    last.calls.extend(more.calls);
    last.cost = match (last.cost, more.cost) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    last.action = action::of_calls(&last.calls).or_else(|| action::in_text(&last.text));
}

/// Fills `tool_name` of answers from the call with the same id, or, without ids, from the only call before.
pub fn name_tools(steps: &mut [Step]) {
    let mut recent: Vec<(String, String)> = Vec::new();
    for step in steps {
        match step.role {
            Role::Assistant => recent = step.calls.iter().map(|c| (c.id.clone(), c.name.clone())).collect(),
            Role::Tool if step.tool_name.is_none() => {
                let by_id = recent.iter().find(|(id, _)| step.call_id.as_ref() == Some(id));
                let only = if step.call_id.is_none() && recent.len() == 1 { recent.first() } else { None };
                step.tool_name = by_id.or(only).map(|(_, name)| name.clone());
            }
            _ => {}
        }
    }
}

/// Steps of one message: usually one; a user message with tool results gives one for each.
pub fn message_steps(message: &Value) -> Vec<Step> {
    if !message.is_object() {
        let text = content_text(message);
        return if text.is_empty() { Vec::new() } else { vec![Step::new(Role::Meta, text)] };
    }
    if field::str(message, "object") == Some("response") {
        let items = field::list(message, "output");
        let mut answer = steps(items);
        return if answer.is_empty() { vec![Step::new(Role::Assistant, "")] } else { std::mem::take(&mut answer) };
    }
    if let Some(step) = responses_item(message) {
        return vec![dressed(step, message)];
    }
    let content = content_of(message);
    let mut found = Vec::new();
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let results = parts.iter().filter(|p| field::str(p, "type") == Some("tool_result"));
    found.extend(results.map(tool_result));
    let role = role_of(message);
    let text = content_text(content);
    if found.is_empty() || !text.is_empty() {
        let mut step = Step::new(role, text);
        if role == Role::Assistant {
            assistant(&mut step, message, parts);
        } else if role == Role::Tool {
            step.call_id = call_id(message);
            step.tool_name = field::text(message, "name").or_else(|| field::text(message, "tool_name"));
            step.is_error = field::get(message, "is_error").and_then(field::truth);
        }
        found.push(dressed(step, message));
    }
    found
}

/// What every message may carry.
fn dressed(mut step: Step, message: &Value) -> Step {
    step.is_demo = field::get(message, "is_demo").and_then(field::truth).unwrap_or(false);
    let time = field::get(message, "timestamp").or_else(|| field::get(message, "create_time"));
    step.timestamp = time.and_then(field::scalar_text);
    step
}

fn content_of(message: &Value) -> &Value {
    let keys = ["content", "value", "text", "system_prompt"];
    keys.iter().find_map(|k| field::get(message, k)).unwrap_or(&Value::Null)
}

fn call_id(message: &Value) -> Option<String> {
    let one = field::text(message, "tool_call_id");
    one.or_else(|| field::list(message, "tool_call_ids").first()?.as_str().map(str::to_owned))
}

/// The role a message names, in any dialect. Unknown names are environment or harness: never an action.
pub fn role_of(message: &Value) -> Role {
    let name = field::str(message, "role").or_else(|| field::str(message, "from")).unwrap_or_default();
    match name {
        "system" | "developer" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "model" | "gpt" | "agent" | "function_call" => Role::Assistant,
        "tool" | "function" | "observation" | "environment" | "ipython" => Role::Tool,
        _ => Role::Meta,
    }
}

fn assistant(step: &mut Step, message: &Value, parts: &[Value]) {
    step.calls = field::list(message, "tool_calls").iter().map(tool_call).collect();
    if let Some(call) = field::object(message, "function_call") {
        step.calls.push(tool_call(&Value::Object(call.clone())));
    }
    let uses = parts.iter().filter(|p| field::str(p, "type") == Some("tool_use"));
    step.calls.extend(uses.map(tool_call));
    step.reasoning = reasoning(message, parts);
    step.action = action::of_calls(&step.calls).or_else(|| action::in_text(&step.text));
}

/// Reasoning kept beside a message.
pub fn reasoning_of(message: &Value) -> Option<String> {
    reasoning(message, content_of(message).as_array().map_or(&[][..], Vec::as_slice))
}

fn reasoning(message: &Value, parts: &[Value]) -> Option<String> {
    let plain = ["reasoning_content", "reasoning", "thinking"].iter().find_map(|k| field::text(message, k));
    if plain.is_some() {
        return plain;
    }
    let blocks = field::list(message, "thinking_blocks").iter().chain(parts);
    let texts: Vec<&str> = blocks.filter_map(|b| field::str(b, "thinking")).collect();
    if texts.is_empty() { None } else { Some(texts.join("\n")) }
}

/// A call in any dialect: `function` object, flat, or Anthropic's `input`.
pub fn tool_call(call: &Value) -> ToolCall {
    let inner = field::get(call, "function").filter(|f| f.is_object()).unwrap_or(call);
    let arguments = ["arguments", "input", "parameters"].iter().find_map(|k| field::get(inner, k));
    ToolCall {
        id: field::text(call, "id").or_else(|| field::text(call, "call_id")).unwrap_or_default(),
        name: field::text(inner, "name").unwrap_or_default(),
        arguments: arguments.map(field::json_text).unwrap_or_default(),
    }
}

fn tool_result(part: &Value) -> Step {
    let mut step = Step::new(Role::Tool, field::get(part, "content").map(content_text).unwrap_or_default());
    step.call_id = field::text(part, "tool_use_id");
    step.is_error = field::get(part, "is_error").and_then(field::truth);
    step
}

/// An item of the Responses API that is not a plain message.
fn responses_item(item: &Value) -> Option<Step> {
    match field::str(item, "type")? {
        "function_call" | "custom_tool_call" => {
            let mut step = Step::new(Role::Assistant, "");
            let mut call = tool_call(item);
            // The answer names the call by `call_id`; `id` is the item's own.
            call.id = field::text(item, "call_id").unwrap_or(call.id);
            step.calls.push(call);
            step.action = action::of_calls(&step.calls);
            Some(step)
        }
        "function_call_output" | "custom_tool_call_output" => {
            let mut step = Step::new(Role::Tool, field::get(item, "output").map(content_text).unwrap_or_default());
            step.call_id = field::text(item, "call_id");
            Some(step)
        }
        "reasoning" => {
            let mut step = Step::new(Role::Assistant, "");
            let text = ["summary", "content"].map(|k| content_text(&Value::Array(field::list(item, k).to_vec())));
            step.reasoning = text.into_iter().find(|t| !t.is_empty());
            Some(step)
        }
        _ => None,
    }
}

/// Tool descriptions in OpenAI form (nested or flat), as objects or as JSON text.
pub fn tool_specs(tools: &[Value]) -> Vec<ToolSpec> {
    let parsed = tools.iter().filter_map(|tool| match tool {
        Value::String(text) => super::json::parse(text.as_bytes()).ok().map(|p| Cow::Owned(p.value)),
        other => Some(Cow::Borrowed(other)),
    });
    parsed
        .filter_map(|tool| {
            let inner = field::get(&tool, "function").filter(|f| f.is_object()).unwrap_or(&tool);
            let parameters = ["parameters", "input_schema"].iter().find_map(|k| field::get(inner, k));
            Some(ToolSpec {
                name: field::text(inner, "name").or_else(|| field::text(inner, "title"))?,
                description: field::text(inner, "description").unwrap_or_default(),
                parameters: parameters.map(field::json_text).unwrap_or_default(),
            })
        })
        .collect()
}

/// The list of messages of a row, under any of its names, also when it is JSON inside a string.
pub fn messages_of(row: &Value) -> Option<Cow<'_, [Value]>> {
    for key in ["messages", "conversations", "trajectory", "traj"] {
        let items = match field::embedded(row, key) {
            Some(Cow::Borrowed(Value::Array(items))) => Cow::Borrowed(items.as_slice()),
            Some(Cow::Owned(Value::Array(items))) => Cow::Owned(items),
            _ => continue,
        };
        if items.is_empty() || items.iter().any(is_message) {
            return Some(items);
        }
    }
    None
}

fn is_message(value: &Value) -> bool {
    let role = value.get("role").or_else(|| value.get("from")).is_some_and(Value::is_string);
    let item = matches!(value.get("type").and_then(Value::as_str), Some("message" | "function_call" | "reasoning"));
    let response = value.get("object").and_then(Value::as_str) == Some("response");
    role && ["content", "value", "text", "tool_calls"].iter().any(|k| value.get(k).is_some()) || item || response
}

/// Messages in an object, a list, rows of conversations, or one message a line.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let first = *sniff.rows.first()?;
    // Dumps of single model calls repeat the whole conversation in every file: not a trajectory each.
    if sniff.has("response") && (sniff.has("kwargs") || sniff.has("args")) {
        return None;
    }
    if sniff.form != Form::Object && is_message(first) {
        return Match::some(Confidence::Possible, "a list of messages with role and content");
    }
    let labelled = ["resolved", "target", "verified", "reward"].iter().any(|k| sniff.has(k));
    let found = sniff.rows.iter().find_map(|row| messages_of(row).filter(|m| !m.is_empty()));
    found?;
    match sniff.form {
        Form::Object => Match::some(Confidence::Likely, "an object with a list of messages"),
        _ if labelled => Match::some(Confidence::Likely, "rows of messages with a label"),
        _ => Match::some(Confidence::Likely, "rows of messages"),
    }
}

/// What a row of a chat file is.
enum Piece {
    Conversation(Box<Trajectory>),
    Message(Value),
    Neither,
}

/// Reads conversations.
pub fn decode(input: &Input<'_>) -> Decoded {
    let (rows, mut diagnostics) = input.document.map_rows(|row| match messages_of(row.value) {
        Some(messages) => {
            let mut trajectory = super::rows::trajectory(row.value, steps(&messages));
            trajectory.source = Source { span: row.span, ..Source::default() };
            Piece::Conversation(Box::new(trajectory))
        }
        None if is_message(row.value) => Piece::Message(row.value.clone()),
        None => Piece::Neither,
    });
    let (mut single, mut skipped, mut conversations) = (Vec::new(), 0, Vec::new());
    for row in rows {
        conversations.push(match row {
            Piece::Conversation(trajectory) => Some(*trajectory),
            Piece::Message(message) => {
                single.push(message);
                None
            }
            Piece::Neither => {
                skipped += 1;
                None
            }
        });
    }
    if !single.is_empty() {
        conversations.push(Some(Trajectory { steps: steps(&single), ..Trajectory::default() }));
    }
    if skipped > 0 {
        let text = format!("{skipped} rows without messages were skipped");
        diagnostics.push(Diagnostic::new(Severity::Warning, "chat.no-messages", text));
    }
    let mut trajectories = super::table::numbered(conversations);
    for trajectory in &mut trajectories {
        trajectory.format = input.format;
    }
    if let ([only], false) = (trajectories.as_mut_slice(), single.is_empty()) {
        only.source.record = 0;
    }
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

#[cfg(test)]
mod tests;
