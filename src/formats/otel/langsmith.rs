//! Runs exported from LangSmith.

use super::super::document::Row;
use super::super::field;
use super::super::json::{Value, json};
use super::messages;
use super::span::{self, Kind, Span};
use crate::trajectory::{Role, Step, Tokens, ToolCall};

/// Every run of a row.
pub fn spans(row: Row<'_>, give: &mut dyn FnMut(Span)) {
    for (i, run) in field::list(row.value, "runs").iter().enumerate() {
        give(Span { raw: span::place(row, format!("/runs/{i}")), ..read(run) });
    }
    if row.value.get("run_type").is_some() {
        give(Span { raw: span::place(row, String::new()), ..read(row.value) });
    }
}

fn read(run: &Value) -> Span {
    let kind = field::str(run, "run_type").unwrap_or_default();
    let (inputs, outputs) = (field::embedded(run, "inputs"), field::embedded(run, "outputs"));
    let (inputs, outputs) = (inputs.as_deref().unwrap_or(&Value::Null), outputs.as_deref().unwrap_or(&Value::Null));
    let metadata = |key: &str| field::at(run, &["extra", "metadata", key]).and_then(field::scalar_text);
    let id = field::text(run, "id").unwrap_or_default();
    let start = field::text(run, "dotted_order").or_else(|| field::text(run, "start_time"));
    let mut span = Span {
        trace: field::text(run, "trace_id").unwrap_or_else(|| id.clone()),
        parent: field::text(run, "parent_run_id"),
        start: start.unwrap_or_default(),
        name: field::text(run, "name").unwrap_or_default(),
        session: metadata("session_id").or_else(|| metadata("thread_id")),
        instance: metadata("instance_id"),
        error: field::text(run, "error"),
        id,
        ..Span::default()
    };
    match kind {
        "llm" => {
            span.kind = Kind::Model;
            span.model = metadata("ls_model_name");
            span.input = said(inputs, &["messages", "prompts", "prompt", "input"], "user");
            span.output = said(outputs, &["generations", "choices", "messages", "output", "content"], "assistant");
            let counted = |key: &str| field::get(run, key).and_then(field::count).filter(|n| *n > 0);
            if let (Some(input), Some(output)) = (counted("prompt_tokens"), counted("completion_tokens")) {
                span.tokens = Some(Tokens { input, cached: None, output });
            }
            span.cost = field::get(run, "total_cost").and_then(field::number).filter(|c| *c > 0.0);
        }
        "tool" => {
            span.kind = Kind::Tool;
            let arguments = field::json_text(only(inputs));
            let call = ToolCall { id: String::new(), name: span.name.clone(), arguments };
            let said = message(only(outputs));
            span.output.push(messages::result(Some(span.name.clone()), Some(call), Some(&said)));
        }
        _ => {
            span.kind = Kind::Agent;
            span.output.push(Step::new(Role::Meta, format!("{kind} {}", span.name)));
        }
    }
    span
}

/// Messages under the first of these members that has some.
fn said(value: &Value, keys: &[&str], default: &str) -> Vec<Step> {
    keys.iter()
        .filter_map(|k| field::get(value, k))
        .map(|v| list(v, default))
        .find(|s| !s.is_empty())
        .unwrap_or_default()
}

/// Lists, also within lists.
fn list(value: &Value, default: &str) -> Vec<Step> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| list(item, default)).collect(),
        Value::Object(_) => messages::of_list(&message(value), default),
        other => messages::of_list(other, default),
    }
}

/// The one member of an object that has no other, else all of it.
fn only<'a>(value: &'a Value<'a>) -> &'a Value<'a> {
    let one = value.as_object().filter(|members| members.len() == 1);
    one.and_then(|members| members.values().next()).unwrap_or(value)
}

/// A message as LangChain serialises it (`{lc, id: […, "HumanMessage"], kwargs}`), inside a generation or a choice.
fn message<'a>(value: &'a Value<'a>) -> Value<'a> {
    let inner = field::get(value, "message").filter(|m| m.is_object()).unwrap_or(value);
    let Some(kwargs) = field::get(inner, "kwargs") else {
        return match (inner.get("content"), field::str(value, "text")) {
            // A generation without a message has its text only.
            (None, Some(text)) => json!({"content": text}),
            _ => inner.clone(),
        };
    };
    let class = field::list(inner, "id").last().and_then(Value::as_str).unwrap_or_default();
    let role = match class {
        "HumanMessage" | "HumanMessageChunk" => "user",
        "SystemMessage" => "system",
        "ToolMessage" | "FunctionMessage" => "tool",
        _ => "assistant",
    };
    let mut message = kwargs.clone();
    if let Value::Object(members) = &mut message {
        members.insert("role", Value::from(role));
        // LangChain's own calls have `args`.
        let calls = field::list(kwargs, "tool_calls").iter().map(|call| {
            let arguments = ["args", "arguments"].iter().find_map(|k| field::get(call, k)).map(field::json_text);
            let name = field::text(call, "name");
            match (name, arguments) {
                (Some(name), Some(arguments)) => json!({"id": call.get("id"), "name": name, "arguments": arguments}),
                _ => call.clone(),
            }
        });
        let calls: Vec<Value> = calls.collect();
        if !calls.is_empty() {
            members.insert("tool_calls", Value::Array(calls));
        }
        members.remove("type");
    }
    message
}
