//! One message in any dialect: role, text, calls, reasoning.

use std::borrow::Cow;

use super::super::json::Value;
use super::super::{action, field};
use super::steps::steps;
use crate::trajectory::{Role, Step, ToolCall, ToolSpec};

/// Text of a content member: a string, parts joined by line ends, or the JSON text of anything else.
pub fn content_text(content: &Value) -> String {
    content_str(content).into_owned()
}

/// The same, without a copy where it is one string.
pub fn content_str<'a>(content: &'a Value<'a>) -> Cow<'a, str> {
    match content {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().filter_map(part_text).collect();
            Cow::Owned(texts.join("\n"))
        }
        Value::Object(_) => Cow::Owned(part_text(content).unwrap_or_default()),
        other => Cow::Owned(other.to_string()),
    }
}

/// Text of one part; `None` for parts that are no text (calls, results, thinking).
fn part_text(part: &Value) -> Option<String> {
    if let Value::String(text) = part {
        return Some(text.to_string());
    }
    let kind = field::str(part, "type").or_else(|| field::str(part, "content_type")).unwrap_or("text");
    match kind {
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "reasoning" => None,
        "image" | "image_url" | "input_image" => Some("[image]".to_owned()),
        "refusal" => field::text(part, "refusal"),
        _ => match ["text", "content", "parts", "instructions"].iter().find_map(|k| field::get(part, k)) {
            Some(inner) => Some(content_text(inner)),
            None => Some(part.to_string()),
        },
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
            let named = field::text(message, "name").or_else(|| field::text(message, "tool_name"));
            step.tool_name = named.or_else(|| field::str_at(message, &["author", "name"]).map(str::to_owned));
            step.is_error = field::get(message, "is_error").and_then(field::truth);
        }
        found.reserve_exact(1);
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

fn content_of<'a>(message: &'a Value<'a>) -> &'a Value<'a> {
    let keys = ["content", "value", "text", "system_prompt"];
    keys.iter().find_map(|k| field::get(message, k)).unwrap_or(&Value::Null)
}

fn call_id(message: &Value) -> Option<String> {
    let one = field::text(message, "tool_call_id");
    one.or_else(|| field::list(message, "tool_call_ids").first()?.as_str().map(str::to_owned))
}

/// The role a message names, in any dialect. Unknown names are environment or harness: never an action.
pub fn role_of(message: &Value) -> Role {
    let name = ["role", "from"].iter().find_map(|k| field::str(message, k));
    // Harmony names an author with a role.
    let name = name.or_else(|| field::str_at(message, &["author", "role"])).unwrap_or_default();
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
    harmony(step, message);
    step.action = action::of_calls(&step.calls).or_else(|| action::in_text(&step.text));
}

/// Harmony: what is written to the analysis channel is reasoning, and what has a tool as recipient is a call of it.
fn harmony(step: &mut Step, message: &Value) {
    let recipient = field::str(message, "recipient").filter(|r| !matches!(*r, "all" | "user" | "assistant"));
    if let Some(tool) = recipient {
        let name = tool.strip_prefix("functions.").unwrap_or(tool).to_owned();
        step.calls.push(ToolCall { id: String::new(), name, arguments: std::mem::take(&mut step.text) });
    } else if field::str(message, "channel") == Some("analysis") && step.reasoning.is_none() {
        step.reasoning = Some(std::mem::take(&mut step.text)).filter(|t| !t.is_empty());
    }
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
        // A shell of the provider, a search, a call of a server's tool: the item's type is the tool.
        kind if kind.ends_with("_call") => {
            let mut step = Step::new(Role::Assistant, "");
            let inner = ["action", "arguments", "queries", "code"].iter().find_map(|k| field::get(item, k));
            step.calls.push(ToolCall {
                id: field::text(item, "call_id").or_else(|| field::text(item, "id")).unwrap_or_default(),
                name: field::str(item, "name").unwrap_or(kind.trim_end_matches("_call")).to_owned(),
                arguments: inner.map(field::json_text).unwrap_or_default(),
            });
            step.action = action::of_calls(&step.calls);
            Some(step)
        }
        kind if kind.ends_with("_call_output") => {
            let mut step = Step::new(Role::Tool, field::get(item, "output").map(content_text).unwrap_or_default());
            step.call_id = field::text(item, "call_id");
            Some(step)
        }
        // A part of an answer that stands by itself.
        "output_text" | "summary_text" if field::get(item, "role").is_none() => {
            let mut step = Step::new(Role::Assistant, content_text(item));
            step.action = action::in_text(&step.text);
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
        Value::String(text) => super::super::json::parse(text.as_bytes()).ok().map(|p| Cow::Owned(p.value)),
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
