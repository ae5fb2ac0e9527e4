//! V1 events of the software-agent SDK, told apart by `kind`.

use std::collections::HashSet;

use super::super::json::{Map, Value};
use super::super::{action, chat, field};
use super::Read;
use crate::trajectory::{RawPlace, Role, Step, ToolCall};

/// Longest excerpt shown of a record this program does not know.
const EXCERPT: usize = 240;
/// Events that hold nothing for a reader: token ids, pieces of an answer that follows whole.
const UNSHOWN: [&str; 2] = ["TokenEvent", "StreamingDeltaEvent"];
/// Events the model never saw, known by name.
const BOOKKEEPING: [&str; 9] = [
    "Condensation",
    "CondensationRequest",
    "CondensationSummaryEvent",
    "PauseEvent",
    "InterruptEvent",
    "ConversationStateUpdateEvent",
    "ConversationErrorEvent",
    "LLMCompletionLogEvent",
    "HookExecutionEvent",
];

/// Is this the name of an event (and not of some other thing with a `kind`)?
pub fn is_event(kind: &str) -> bool {
    kind.ends_with("Event")
        || matches!(kind, "Condensation" | "CondensationRequest" | "UserRejectObservation" | "SystemPromptUpdate")
}

/// Reads events one after the other.
#[derive(Default)]
pub struct Reader {
    read: Read,
    /// The last answer of the model: its id and the index of its step. Parallel calls are one event each.
    answer: Option<(String, usize)>,
    seen: HashSet<String>,
}

impl Reader {
    /// The next event, which stands at `raw`.
    pub fn entry(&mut self, event: &Value, raw: RawPlace) {
        if event.is_null() {
            return;
        }
        let id = field::text(event, "id");
        if id.as_ref().is_some_and(|id| !self.seen.insert(id.clone())) {
            self.read.repeated += 1;
            return;
        }
        let kind = field::str(event, "kind").unwrap_or_default();
        if UNSHOWN.contains(&kind) {
            self.read.unshown += 1;
            return;
        }
        let Some(mut step) = self.step(kind, event) else {
            return;
        };
        step.timestamp = field::text(event, "timestamp");
        step.id = id.map(String::into_boxed_str);
        step.raw = raw;
        let (timestamp, raw) = (step.timestamp.clone(), step.raw.clone());
        self.read.steps.push(step);
        if let Some(text) = self.criticised(event) {
            self.read.steps.push(Step { timestamp, raw, ..Step::new(Role::Meta, text) });
        }
    }

    /// Everything that was read.
    pub fn finish(mut self) -> Read {
        chat::name_tools(&mut self.read.steps);
        self.read
    }

    /// The step an event stands for; `None` if it belongs to one that is there.
    fn step(&mut self, kind: &str, event: &Value) -> Option<Step> {
        Some(match kind {
            "SystemPromptEvent" | "SystemPromptUpdateEvent" => {
                let tools = chat::tool_specs(field::list(event, "tools"));
                if !tools.is_empty() {
                    self.read.tools = tools;
                }
                Step::new(Role::System, system(event))
            }
            "MessageEvent" => {
                let step = message(event);
                self.read.refinements +=
                    usize::from(step.role == Role::User && step.text.starts_with("The task appears incomplete ("));
                step
            }
            "ActionEvent" => return self.acted(event),
            "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation" => observed(kind, event),
            _ => {
                if !BOOKKEEPING.contains(&kind) {
                    *self.read.unknown.entry(if kind.is_empty() { "(none)" } else { kind }.to_owned()).or_default() +=
                        1;
                }
                Step::new(Role::Meta, meta(kind, event))
            }
        })
    }

    fn acted(&mut self, event: &Value) -> Option<Step> {
        let id = field::text(event, "llm_response_id");
        let call = call(event, &mut self.read.rebuilt);
        let open = self.answer.as_ref().filter(|(answer, _)| Some(answer) == id.as_ref()).map(|(_, at)| *at);
        if let Some(step) = open.and_then(|at| self.read.steps.get_mut(at)) {
            step.calls.push(call);
            step.action = action::of_calls(&step.calls);
            return None;
        }
        self.answer = id.map(|id| (id, self.read.steps.len()));
        Some(acted(event, call))
    }

    /// What the run's own critic said of the work so far.
    fn criticised(&mut self, event: &Value) -> Option<String> {
        let result = field::get(event, "critic_result")?;
        let score = field::get(result, "score").and_then(field::number);
        self.read.critic = score.or(self.read.critic);
        let said = score.map_or_else(|| "the critic gave no score".to_owned(), |s| format!("the critic said {s:.3}"));
        let message = field::text(result, "message").map(|m| format!("\n{m}")).unwrap_or_default();
        Some(format!("{said} (its prediction of success, not a test result){message}"))
    }
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

/// One line for what the model never saw.
fn meta(kind: &str, event: &Value) -> String {
    let kind = if kind.is_empty() { "event" } else { kind };
    let forgotten = field::list(event, "forgotten_event_ids").len();
    let detail = ["summary", "detail", "key", "filename"].iter().find_map(|k| field::text(event, k));
    let detail = match (kind, detail) {
        ("Condensation", summary) => {
            let summary = summary.map(|s| format!("\n{s}")).unwrap_or_default();
            Some(format!("{forgotten} events are no longer sent to the model{summary}"))
        }
        ("ConversationStateUpdateEvent", key) => {
            let value = field::get(event, "value")
                .map(field::json_text)
                .map(|v| field::clipped(&v, EXCERPT))
                .unwrap_or_default();
            Some(format!("{} = {value}", key.unwrap_or_default()))
        }
        ("ConversationErrorEvent", detail) => {
            let code = field::text(event, "code").unwrap_or_default();
            Some(format!("{code} {}", detail.unwrap_or_default()))
        }
        (_, detail) => detail.or_else(|| excerpt(event)),
    };
    detail.map_or_else(|| kind.to_owned(), |text| format!("{kind}: {text}"))
}

/// The members of a record this program does not know, cut short.
fn excerpt(event: &Value) -> Option<String> {
    let common = ["id", "kind", "timestamp", "source", "parent_id"];
    let own: Map<'_> = event
        .as_object()?
        .iter()
        .filter(|(key, value)| !common.contains(key) && !value.is_null())
        .map(|(key, value)| (key, value.clone()))
        .collect();
    if own.is_empty() { None } else { Some(field::clipped(&Value::Object(own).to_string(), EXCERPT)) }
}
