//! Messages of model calls in every convention, as steps.

use super::super::json::{Map, Value, json};
use super::super::{action, chat, field, json};
use crate::trajectory::{Role, Step, ToolCall};

/// JSON inside an attribute: a list or an object, or text that holds one.
pub fn structured<'a>(value: &'a Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::String(text) => json::parse(text.as_bytes()).ok().map(|p| p.value).filter(|v| !v.is_string()),
        Value::Array(_) | Value::Object(_) => Some(value.clone()),
        _ => None,
    }
}

/// Messages of `[{role, parts: […]}]` (GenAI conventions of today) or of plain chat messages.
pub fn of_list(value: &Value, default: &str) -> Vec<Step> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| of_message(item, default)).collect(),
        Value::Object(_) => of_message(value, default),
        Value::String(text) => chat::message_steps(&json!({"role": default, "content": text})),
        _ => Vec::new(),
    }
}

/// One message: with parts, or in any form of a chat.
pub fn of_message(message: &Value, default: &str) -> Vec<Step> {
    // LangChain hands over batches: a list of lists.
    if message.is_array() {
        return of_list(message, default);
    }
    if message.is_string() {
        return chat::message_steps(&json!({"role": default, "content": message}));
    }
    let parts = field::list(message, "parts");
    if !parts.is_empty() {
        return of_parts(message, parts, default);
    }
    // Instructions of the system are a list of parts without roles.
    if message.get("role").is_none() && field::str(message, "type") == Some("text") && message.get("content").is_some()
    {
        return chat::message_steps(&json!({"role": default, "content": message.get("content")}));
    }
    let mut steps = chat::message_steps(&plain(message, default));
    for step in &mut steps {
        let call = ["id", "tool_call_id"].iter().find_map(|k| field::text(message, k));
        if step.role == Role::Tool && step.call_id.is_none() {
            step.call_id = call;
        }
    }
    steps
}

/// A message with a role, its calls where a chat has them.
fn plain<'a>(message: &'a Value<'a>, default: &'a str) -> Value<'a> {
    let Value::Object(given) = message else { return message.clone() };
    let mut members = given.clone();
    if ["role", "from", "type", "object"].iter().all(|k| !members.contains_key(k)) {
        members.insert("role", Value::from(default));
    }
    // `tool_calls` may be JSON in text, and OpenInference wraps each.
    if let Some(Value::Array(calls)) = given.get("tool_calls").and_then(structured) {
        let unwrapped = calls.into_iter().map(|call| call.get("tool_call").cloned().unwrap_or(call));
        members.insert("tool_calls", Value::Array(unwrapped.collect()));
    }
    // OpenInference: `contents.N.message_content.text`.
    if let (Some(Value::Array(contents)), None) = (given.get("contents"), given.get("content")) {
        let texts: Vec<String> = contents
            .iter()
            .filter_map(|c| field::text(field::get(c, "message_content").unwrap_or(c), "text"))
            .collect();
        members.insert("content", Value::from(texts.join("\n")));
    }
    Value::Object(members)
}

/// Parts of one message: texts and calls make one step, every response of a tool one of its own.
fn of_parts(message: &Value, parts: &[Value], default: &str) -> Vec<Step> {
    let role = chat::role_of(&json!({"role": field::str(message, "role").unwrap_or(default)}));
    let mut steps = Vec::new();
    let mut own = Step::new(role, "");
    let mut texts: Vec<String> = Vec::new();
    for part in parts {
        let content = field::get(part, "content").or_else(|| field::get(part, "text"));
        match field::str(part, "type").unwrap_or("text") {
            "tool_call" => own.calls.push(chat::tool_call(part)),
            "tool_call_response" => {
                let said = ["response", "result", "content"].iter().find_map(|k| field::get(part, k));
                let mut step = Step::new(Role::Tool, said.map(field::json_text).unwrap_or_default());
                step.call_id = field::text(part, "id");
                steps.push(step);
            }
            "reasoning" | "thinking" => own.reasoning = content.map(chat::content_text),
            _ => texts.push(content.map_or_else(|| part.to_string(), chat::content_text)),
        }
    }
    own.text = texts.join("\n");
    if !own.text.is_empty() || !own.calls.is_empty() || own.reasoning.is_some() {
        own.action =
            action::of_calls(&own.calls).or_else(|| action::in_text(&own.text).filter(|_| role == Role::Assistant));
        steps.insert(0, own);
    }
    steps
}

/// The list behind attributes like `gen_ai.prompt.0.role`: their indexes and names unfolded.
pub fn unfolded<'a>(attributes: &'a Map<'a>, prefix: &str) -> Option<Value<'a>> {
    let mut root = Value::Null;
    for (key, value) in attributes {
        let Some(rest) = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) else { continue };
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            put(&mut root, rest, value.clone());
        }
    }
    if root.is_null() { None } else { Some(listed(root, 0)) }
}

/// Puts a value at a dotted path; indexes are names for now, because they may come in any order.
fn put<'a>(at: &mut Value<'a>, path: &str, value: Value<'a>) {
    let mut at = at;
    for part in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(members) = at else { return };
        let Some(member) = members.get_or_insert(part, Value::Null) else { return };
        at = member;
    }
    *at = value;
}

/// Objects whose names are all numbers as lists.
fn listed(value: Value<'_>, depth: usize) -> Value<'_> {
    let Value::Object(members) = value else { return value };
    if depth > 32 {
        return Value::Object(members);
    }
    let numbers = !members.is_empty() && members.keys().all(|k| k.bytes().all(|b| b.is_ascii_digit()));
    if !numbers {
        return Value::Object(members.into_iter().map(|(k, v)| (k, listed(v, depth + 1))).collect());
    }
    let mut items: Vec<(u64, Value<'_>)> =
        members.into_iter().map(|(k, v)| (k.parse().unwrap_or(u64::MAX), listed(v, depth + 1))).collect();
    items.sort_by_key(|(i, _)| *i);
    Value::Array(items.into_iter().map(|(_, v)| v).collect())
}

/// OpenInference wraps every message once more.
pub fn unwrapped(list: Value<'_>) -> Value<'_> {
    match list {
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|m| m.get("message").cloned().unwrap_or(m)).collect())
        }
        other => other,
    }
}

/// The step of a tool's result.
pub fn result(name: Option<String>, call: Option<ToolCall>, said: Option<&Value>) -> Step {
    let text = said.map(|v| structured(v).map_or_else(|| field::json_text(v), |v| chat_text(&v))).unwrap_or_default();
    let mut step = Step::new(Role::Tool, text);
    step.call_id = call.as_ref().map(|c| c.id.clone()).filter(|id| !id.is_empty());
    step.tool_name = name;
    step.calls = call.into_iter().collect();
    step
}

/// The text of a result that is structured: its content, or all of it.
fn chat_text(value: &Value) -> String {
    match ["output", "content", "result"].iter().find_map(|k| field::get(value, k)) {
        Some(inner) if value.is_object() => chat::content_text(inner),
        _ => field::json_text(value),
    }
}
