//! V1 events of the software-agent SDK, told apart by `kind`.

use serde_json::Value;

use super::super::{action, chat, field};
use super::Read;
use crate::trajectory::{Role, Step, ToolCall};

/// Is this the name of an event (and not of some other thing with a `kind`)?
pub fn is_event(kind: &str) -> bool {
    kind.ends_with("Event")
        || matches!(kind, "Condensation" | "CondensationRequest" | "UserRejectObservation" | "SystemPromptUpdate")
}

/// Reads a history.
pub fn read(history: &[Value]) -> Read {
    let mut read = Read::default();
    let mut answer: Option<String> = None;
    for event in history {
        let kind = field::str(event, "kind").unwrap_or_default();
        let mut step = match kind {
            "SystemPromptEvent" | "SystemPromptUpdateEvent" => {
                let tools = chat::tool_specs(field::list(event, "tools"));
                if !tools.is_empty() {
                    read.tools = tools;
                }
                Step::new(Role::System, system(event))
            }
            "MessageEvent" => message(event),
            "ActionEvent" => {
                let id = field::text(event, "llm_response_id");
                let call = call(event, &mut read.rebuilt);
                // Parallel calls are one event each, of one answer.
                let same = id.is_some() && id == answer;
                if let Some(last) = read.steps.last_mut().filter(|s| same && s.role == Role::Assistant) {
                    last.calls.push(call);
                    last.action = action::of_calls(&last.calls);
                    continue;
                }
                answer = id;
                acted(event, call)
            }
            "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation" => observed(kind, event),
            _ => Step::new(Role::Meta, meta(kind, event)),
        };
        step.timestamp = field::text(event, "timestamp");
        read.steps.push(step);
    }
    chat::name_tools(&mut read.steps);
    read
}

fn system(event: &Value) -> String {
    let part = |key| field::get(event, key).map(chat::content_text).filter(|t| !t.is_empty());
    let parts: Vec<String> = ["system_prompt", "dynamic_context"].into_iter().filter_map(part).collect();
    parts.join("\n\n")
}

fn message(event: &Value) -> Step {
    let Some(message) = field::get(event, "llm_message") else {
        return Step::new(Role::Meta, meta("MessageEvent", event));
    };
    let mut step = chat::message_steps(message).pop().unwrap_or_else(|| Step::new(Role::Meta, ""));
    // What hooks and skills add to a user's message is part of what the model saw.
    let more = field::list(event, "extended_content");
    for text in more.iter().map(chat::content_text).filter(|t| !t.is_empty()) {
        step.text.push('\n');
        step.text.push_str(&text);
    }
    step
}

fn call(event: &Value, rebuilt: &mut usize) -> ToolCall {
    if let Some(call) = field::get(event, "tool_call").filter(|c| c.is_object()) {
        let mut call = chat::tool_call(call);
        if call.id.is_empty() {
            call.id = field::text(event, "tool_call_id").unwrap_or_default();
        }
        return call;
    }
    *rebuilt += 1;
    let mut arguments = field::object(event, "action").cloned().unwrap_or_default();
    arguments.shift_remove("kind");
    ToolCall {
        id: field::text(event, "tool_call_id").unwrap_or_default(),
        name: field::text(event, "tool_name").unwrap_or_default(),
        arguments: Value::Object(arguments).to_string(),
    }
}

fn acted(event: &Value, call: ToolCall) -> Step {
    let thought = chat::content_text(&Value::Array(field::list(event, "thought").to_vec()));
    let mut step = Step::new(Role::Assistant, thought);
    let blocks = field::list(event, "thinking_blocks").iter().filter_map(|b| field::text(b, "thinking"));
    let thinking: Vec<String> = blocks.collect();
    let thinking = if thinking.is_empty() { None } else { Some(thinking.join("\n")) };
    step.reasoning = field::text(event, "reasoning_content").or(thinking);
    step.calls = vec![call];
    step.action = action::of_calls(&step.calls);
    step
}

fn observed(kind: &str, event: &Value) -> Step {
    let inner = field::get(event, "observation").unwrap_or(&Value::Null);
    let text = match kind {
        "AgentErrorEvent" => field::text(event, "error").unwrap_or_default(),
        "UserRejectObservation" => field::text(event, "rejection_reason").unwrap_or_default(),
        _ => ["content", "output", "text"]
            .iter()
            .find_map(|k| field::get(inner, k))
            .map(chat::content_text)
            .unwrap_or_default(),
    };
    let mut step = Step::new(Role::Tool, text);
    step.call_id = field::text(event, "tool_call_id");
    step.tool_name = field::text(event, "tool_name");
    let code = field::get(inner, "exit_code").or_else(|| field::at(inner, &["metadata", "exit_code"]));
    step.exit_code = code.and_then(field::integer).filter(|c| *c != -1);
    let failed = field::get(inner, "is_error").and_then(field::truth);
    step.is_error = if kind == "ObservationEvent" { failed.or(step.exit_code.map(|c| c != 0)) } else { Some(true) };
    step
}

fn meta(kind: &str, event: &Value) -> String {
    let kind = if kind.is_empty() { "event" } else { kind };
    let detail = ["summary", "detail", "value", "key"].iter().find_map(|k| field::text(event, k));
    detail.map_or_else(|| kind.to_owned(), |text| format!("{kind}: {text}"))
}
