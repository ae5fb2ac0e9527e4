//! Traces of the OpenAI Agents SDK.

use super::super::document::Row;
use super::super::json::Value;
use super::super::{chat, field};
use super::messages;
use super::span::{self, Kind, Span};
use crate::trajectory::{Role, Step, Tokens, ToolCall};

/// Every span of a row: of whole traces, of an export, or one a line.
pub fn spans(row: Row<'_>, give: &mut dyn FnMut(Span)) {
    let root = row.value;
    for key in ["traces", "data"] {
        for (i, trace) in field::list(root, key).iter().enumerate() {
            of_trace(row, trace, &format!("/{key}/{i}"), give);
        }
    }
    of_trace(row, root, "", give);
}

fn of_trace(row: Row<'_>, trace: &Value, pointer: &str, give: &mut dyn FnMut(Span)) {
    for (k, value) in field::list(trace, "spans").iter().enumerate() {
        let mut span = read(value);
        if span.trace.is_empty() {
            span.trace = field::text(trace, "id").unwrap_or_default();
        }
        give(Span { raw: span::place(row, format!("{pointer}/spans/{k}")), ..span });
    }
    match field::str(trace, "object") {
        Some("trace.span") => give(Span { raw: span::place(row, pointer.to_owned()), ..read(trace) }),
        Some("trace") => {
            let id = field::text(trace, "id").unwrap_or_default();
            let name = field::text(trace, "workflow_name").unwrap_or_default();
            give(Span {
                trace: id.clone(),
                id,
                kind: Kind::Agent,
                session: field::text(trace, "group_id"),
                instance: field::at(trace, &["metadata", "instance_id"]).and_then(field::scalar_text),
                output: vec![Step::new(Role::Meta, format!("trace {name}"))],
                raw: span::place(row, pointer.to_owned()),
                ..Span::default()
            });
        }
        _ => {}
    }
}

fn read(value: &Value) -> Span {
    let data = field::get(value, "span_data").unwrap_or(&Value::Null);
    let kind = field::str(data, "type").unwrap_or_default();
    let error = field::get(value, "error").filter(|e| e.is_object() || e.is_string());
    let mut span = Span {
        trace: field::text(value, "trace_id").unwrap_or_default(),
        id: field::text(value, "id").unwrap_or_default(),
        parent: field::text(value, "parent_id"),
        start: span::order(field::get(value, "started_at")),
        error: error.map(|e| field::text(e, "message").unwrap_or_else(|| field::json_text(e))),
        name: field::text(data, "name").unwrap_or_else(|| kind.to_owned()),
        ..Span::default()
    };
    match kind {
        "response" | "generation" => model(data, &mut span),
        "function" | "mcp_tools" => {
            span.kind = Kind::Tool;
            let name = field::text(data, "name");
            let arguments = field::get(data, "input").map(field::json_text).unwrap_or_default();
            let call = ToolCall { id: String::new(), name: name.clone().unwrap_or_default(), arguments };
            let said = field::get(data, "output").or_else(|| field::get(data, "result"));
            span.output.push(messages::result(name, Some(call), said));
        }
        "agent" => {
            span.kind = Kind::Agent;
            span.agent = field::text(data, "name");
            span.output.push(Step::new(Role::Meta, format!("agent {}", span.name)));
        }
        "handoff" => {
            let to = |key| field::text(data, key).unwrap_or_else(|| "?".to_owned());
            span.output.push(Step::new(Role::Meta, format!("handoff from {} to {}", to("from_agent"), to("to_agent"))));
        }
        _ => {
            let text = field::clipped(&data.to_string(), 2000);
            span.output.push(Step::new(Role::Meta, format!("span {}: {text}", span.name)));
        }
    }
    span
}

fn model(data: &Value, span: &mut Span) {
    span.kind = Kind::Model;
    let response = field::get(data, "response").unwrap_or(&Value::Null);
    span.model = field::text(data, "model").or_else(|| field::text(response, "model"));
    let usage = field::get(data, "usage").or_else(|| field::get(response, "usage"));
    span.tokens = usage.and_then(tokens);
    if let Some(system) = field::text(response, "instructions") {
        span.input.push(Step::new(Role::System, system));
    }
    if let Some(input) = field::get(data, "input") {
        span.input.extend(match input {
            Value::Array(items) => chat::steps_at(items, "", |_, _| {}),
            other => messages::of_list(other, "user"),
        });
    }
    if let Some(output) = field::get(data, "output").or_else(|| field::get(response, "output")) {
        span.output = match output {
            Value::Array(items) => chat::steps_at(items, "", |_, _| {}),
            other => messages::of_list(other, "assistant"),
        };
    } else if let Some(printed) = response.as_str() {
        span.output.push(Step::new(Role::Assistant, texts_in(printed).unwrap_or_else(|| printed.to_owned())));
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |keys: [&str; 2]| keys.iter().find_map(|k| field::get(usage, k).and_then(field::count));
    let input = count(["input_tokens", "prompt_tokens"])?;
    let cached = field::at(usage, &["input_tokens_details", "cached_tokens"]).and_then(field::count);
    Some(Tokens { input, cached, output: count(["output_tokens", "completion_tokens"]).unwrap_or(0) })
}

/// The texts inside a response that was printed by Python: `…ResponseOutputText(annotations=[], text='…', …`.
fn texts_in(printed: &str) -> Option<String> {
    let mut texts = Vec::new();
    for (at, mark) in printed.match_indices(" text=") {
        let rest = printed.get(at + mark.len()..)?;
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        texts.extend(unquoted(rest.get(1..)?, quote));
    }
    if texts.is_empty() { None } else { Some(texts.join("\n")) }
}

/// A Python string up to its closing quote.
fn unquoted(text: &str, quote: char) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                other => out.push(other),
            },
            c if c == quote => return Some(out),
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_what_python_printed() {
        let printed = r#"Response(id='r', output=[ResponseOutputMessage(content=[ResponseOutputText(annotations=[], text='it\'s\nso', type='output_text'), ResponseOutputText(annotations=[], text="b", type='x')])])"#;
        assert_eq!(texts_in(printed).as_deref(), Some("it's\nso\nb"));
        assert_eq!(texts_in("Response()"), None);
        assert_eq!(texts_in("x text='open"), None);
    }
}
