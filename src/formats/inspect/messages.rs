//! Messages of a sample as steps, with the texts that are kept apart put back where they are shown.

use std::borrow::Cow;
use std::cell::Cell;

use super::super::json::Value;
use super::super::{action, field};
use crate::trajectory::{Role, Step, ToolCall};

/// How a text that is kept apart is referred to.
const REFERENCE: &str = "attachment://";

/// Texts kept apart by their hash.
pub struct Attachments<'a> {
    find: &'a dyn Fn(&str) -> Option<String>,
    missing: Cell<usize>,
}

impl<'a> Attachments<'a> {
    /// Looked up by `find`.
    pub fn new(find: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { find, missing: Cell::new(0) }
    }

    /// References that led nowhere.
    pub fn missing(&self) -> usize {
        self.missing.get()
    }

    /// A text with its references replaced.
    pub fn resolve<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains(REFERENCE) {
            return Cow::Borrowed(text);
        }
        let mut parts = text.split(REFERENCE);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
            let (hash, rest) = part.split_at_checked(end).unwrap_or((part, ""));
            if let Some(found) = (self.find)(hash) {
                out.push_str(&found);
            } else {
                self.missing.set(self.missing.get() + 1);
                out.push_str(REFERENCE);
                out.push_str(hash);
            }
            out.push_str(rest);
        }
        Cow::Owned(out)
    }

    /// A value with the references in all its texts replaced.
    fn resolve_value<'v>(&self, value: &'v Value<'v>) -> Value<'v> {
        match value {
            Value::String(text) => Value::String(self.resolve(text)),
            Value::Array(items) => items.iter().map(|v| self.resolve_value(v)).collect(),
            Value::Object(members) => Value::Object(members.iter().map(|(k, v)| (k, self.resolve_value(v))).collect()),
            other => other.clone(),
        }
    }
}

/// One message.
pub fn step(message: &Value, attachments: &Attachments<'_>) -> Step {
    let role = match field::str(message, "role").unwrap_or_default() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::Meta,
    };
    let (text, reasoning) = content(message.get("content").unwrap_or(&Value::Null), attachments);
    let mut step = Step::new(role, text);
    step.reasoning = Some(reasoning).filter(|r| !r.is_empty());
    step.id = field::str(message, "id").filter(|id| !id.is_empty()).map(Into::into);
    match role {
        Role::Assistant => {
            step.calls = field::list(message, "tool_calls").iter().map(|c| call(c, attachments)).collect();
            step.action = action::of_calls(&step.calls).or_else(|| action::in_text(&step.text));
        }
        Role::Tool => {
            step.call_id = field::text(message, "tool_call_id");
            step.tool_name = field::text(message, "function");
            if let Some(error) = field::get(message, "error") {
                failed(&mut step, error);
            }
        }
        Role::Meta => step.text = format!("message of unknown role: {}", step.text),
        _ => {}
    }
    step
}

fn failed(step: &mut Step, error: &Value) {
    step.is_error = Some(true);
    let message = field::str(error, "message").unwrap_or_default();
    if step.text.contains(message) && !step.text.is_empty() {
        return;
    }
    let kind = field::str(error, "type").unwrap_or("error");
    let between = if step.text.is_empty() { "" } else { "\n" };
    step.text.push_str(&format!("{between}{kind}: {message}"));
}

/// A call: here `function` is the name, and the arguments are an object.
fn call(value: &Value, attachments: &Attachments<'_>) -> ToolCall {
    let arguments = field::get(value, "arguments").map(|a| attachments.resolve_value(a));
    ToolCall {
        id: field::text(value, "id").unwrap_or_default(),
        name: field::text(value, "function").unwrap_or_default(),
        arguments: arguments.as_ref().map(field::json_text).unwrap_or_default(),
    }
}

/// Text and reasoning of a content.
pub fn content(content: &Value, attachments: &Attachments<'_>) -> (String, String) {
    let (mut text, mut reasoning): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let parts = match content {
        Value::Array(parts) => parts.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    for part in parts {
        match field::str(part, "type") {
            Some("reasoning") => reasoning.extend(thought(part, attachments)),
            Some("text") | None => {
                let plain = part.as_str().or_else(|| field::str(part, "text"));
                text.push(plain.map_or_else(|| part.to_string(), |t| attachments.resolve(t).into_owned()));
            }
            Some(kind @ ("image" | "audio" | "video")) => text.push(format!("[{kind}]")),
            Some("document") => {
                let name = field::str(part, "filename").map(|n| format!(": {n}")).unwrap_or_default();
                text.push(format!("[document{name}]"));
            }
            Some("tool_use") => text.push(served(part, attachments)),
            Some(kind) => {
                let data = part.get("data").unwrap_or(part);
                text.push(format!("[{kind}] {}", attachments.resolve_value(data)));
            }
        }
    }
    (text.join("\n"), reasoning.join("\n"))
}

/// Reasoning, or its summary where the text itself is not readable.
fn thought(part: &Value, attachments: &Attachments<'_>) -> Option<String> {
    let redacted = field::get(part, "redacted").and_then(field::truth) == Some(true);
    let summary = field::text(part, "summary");
    let plain = field::text(part, "reasoning").filter(|_| !redacted);
    let text = plain.or(summary).map(|t| attachments.resolve(&t).into_owned());
    text.or_else(|| redacted.then(|| "[redacted]".to_owned()))
}

/// A tool the model's provider ran by itself, inside the answer.
fn served(part: &Value, attachments: &Attachments<'_>) -> String {
    let show =
        |key: &str| field::get(part, key).map(|v| field::json_text(&attachments.resolve_value(v))).unwrap_or_default();
    format!("[{} {} → {}]", show("name"), show("arguments"), show("result"))
}
