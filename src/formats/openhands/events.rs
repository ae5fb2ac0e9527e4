//! V0 events to steps: what the model was told and wrote, rebuilt from what the runtime logged.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;

use super::super::json::Value;
use super::super::{action, chat, field};
use super::rows::Totals;
use super::{Read, tools};
use crate::trajectory::{RawPlace, Role, Step, ToolCall};

/// Actions that the model neither wrote nor saw.
const HOUSEKEEPING: [&str; 13] = [
    "null",
    "start",
    "pause",
    "resume",
    "stop",
    "change_agent_state",
    "push",
    "send_pr",
    "recall",
    "condensation",
    "condensation_request",
    "loop_recovery",
    "summarize",
];
/// Observations that the model did not see.
const UNSEEN: [&str; 7] =
    ["null", "agent_state_changed", "recall", "condense", "loop_detection", "success", "download"];

/// One side of a pair that stands for nothing.
fn is_filler(event: &Value) -> bool {
    let null = |key| field::str(event, key) == Some("null");
    event.is_null() || null("action") || null("observation")
}

/// Reads events one after the other, flat or in pairs of action and observation.
#[derive(Default)]
pub struct Reader {
    read: Read,
    /// Id of the model's answer whose calls were read last: the events of parallel calls repeat it.
    answer: String,
    /// Where the event at hand stands.
    raw: RawPlace,
    /// Id, kind and time of the events read, as one number each.
    seen: HashSet<u64, FixedState>,
}

impl Reader {
    /// Makes room for so many entries.
    pub fn expect(&mut self, entries: usize) {
        self.read.steps.reserve_exact(entries);
        self.seen.reserve(entries);
    }

    /// The next entry of a history, which stands at `raw`.
    pub fn entry(&mut self, entry: &Value, raw: RawPlace) {
        self.raw = raw;
        let Some(pair) = entry.as_array() else {
            return self.event(entry);
        };
        let place = self.raw.clone();
        for (i, event) in pair.iter().enumerate().filter(|(_, e)| !is_filler(e)) {
            self.raw = RawPlace { pointer: format!("{}/{i}", place.pointer).into(), ..place.clone() };
            self.event(event);
        }
        self.answer.clear();
    }

    /// Everything that was read.
    pub fn finish(mut self) -> Read {
        chat::name_tools(&mut self.read.steps);
        self.read
    }

    /// Was this event read before (from a cache, or because the writer was started again)?
    fn repeated(&mut self, event: &Value) -> bool {
        let Some(id) = field::get(event, "id").and_then(field::integer) else {
            return false;
        };
        let member = |key| field::str(event, key).filter(|text| !text.is_empty());
        let event = (id, member("action").or_else(|| member("observation")), member("timestamp"));
        let new = self.seen.insert(FixedState::default().hash_one(event));
        self.read.repeated += usize::from(!new);
        !new
    }

    fn event(&mut self, event: &Value) {
        if event.is_null() || self.repeated(event) {
            return;
        }
        if let Some(metrics) = field::get(event, "llm_metrics") {
            self.read.totals = Some(Totals::of(metrics));
        }
        if let Some(kind) = field::str(event, "observation") {
            return self.observation(kind, event);
        }
        let source = field::str(event, "source").unwrap_or("agent");
        match field::str(event, "action") {
            Some("system") => {
                self.read.tools = chat::tool_specs(field::list(field::get(event, "args").unwrap_or(event), "tools"));
                self.push(Role::System, said(event), event);
            }
            Some("message") if source == "agent" => self.answer(event, None),
            Some("message") => self.push(Role::User, said(event), event),
            Some(kind) if HOUSEKEEPING.contains(&kind) => self.push(Role::Meta, meta(kind, event), event),
            // What a person ran by hand, and events of the environment.
            Some(kind) if source != "agent" && field::get(event, "tool_call_metadata").is_none() => {
                let role =
                    if source == "user" && tools::call_of(kind, event).is_none() { Role::User } else { Role::Meta };
                self.push(role, meta(kind, event), event);
            }
            Some(kind) => self.answer(event, Some(kind)),
            None if source == "agent" && field::get(event, "source").is_some() => self.answer(event, None),
            None if source == "user" => self.push(Role::User, said(event), event),
            None => self.push(Role::Meta, said(event), event),
        }
    }

    fn push(&mut self, role: Role, text: String, event: &Value) {
        let mut step = Step::new(role, text);
        step.timestamp = field::text(event, "timestamp");
        self.add(step);
    }

    fn add(&mut self, mut step: Step) {
        // An event makes one step.
        step.raw = std::mem::take(&mut self.raw);
        self.read.steps.push(step);
    }

    /// An action of the agent: the model's answer where the file holds it, else rebuilt from the event.
    fn answer(&mut self, event: &Value, kind: Option<&str>) {
        let response = field::at(event, &["tool_call_metadata", "model_response"]);
        let id = response.and_then(|r| field::str(r, "id")).unwrap_or_default();
        if !id.is_empty() && id == self.answer {
            return;
        }
        id.clone_into(&mut self.answer);
        let message = response.and_then(|r| field::list(r, "choices").first()?.get("message"));
        let from_model = message.and_then(|m| chat::message_steps(m).into_iter().find(|s| s.role == Role::Assistant));
        let mut step = match from_model {
            Some(step) if !step.calls.is_empty() => step,
            other => {
                let mut step = self.rebuilt(event, kind, other);
                step.action = action::of_calls(&step.calls).or(step.action);
                step
            }
        };
        step.timestamp = field::text(event, "timestamp");
        step.thought = field::str_at(event, &["args", "thought"]).filter(|t| !t.is_empty()).map(str::to_owned);
        if self.read.model.is_none() {
            self.read.model = response.and_then(|r| field::text(r, "model"));
        }
        self.add(step);
    }

    fn rebuilt(&mut self, event: &Value, kind: Option<&str>, written: Option<Step>) -> Step {
        let args = field::get(event, "args").filter(|a| a.is_object()).unwrap_or(event);
        let Some(kind) = kind else {
            let text = written.map(|s| s.text).filter(|t| !t.is_empty()).unwrap_or_else(|| said(event));
            return Step::new(Role::Assistant, text);
        };
        // A thought is the call's own argument for `think`, and what was written around it for the others.
        let thought = if kind == "think" { None } else { field::text(args, "thought") };
        let text = written.map(|s| s.text).filter(|t| !t.is_empty()).or(thought).unwrap_or_default();
        let mut call = tools::call_of(kind, event).unwrap_or_else(|| tools::unknown_call(kind, event));
        let given = field::get(event, "tool_call_metadata").unwrap_or(&Value::Null);
        call.id = field::text(given, "tool_call_id").unwrap_or_default();
        call.name = field::text(given, "function_name").unwrap_or(call.name);
        self.read.rebuilt += 1;
        Step { calls: vec![call], ..Step::new(Role::Assistant, text) }
    }

    fn observation(&mut self, kind: &str, event: &Value) {
        if UNSEEN.contains(&kind) {
            return self.push(Role::Meta, meta(kind, event), event);
        }
        if kind == "message" || kind == "chat" {
            return self.push(Role::User, said(event), event);
        }
        let given = field::get(event, "tool_call_metadata").unwrap_or(&Value::Null);
        let mut step = Step::new(Role::Tool, seen(kind, event));
        step.timestamp = field::text(event, "timestamp");
        step.call_id = field::text(given, "tool_call_id");
        step.tool_name = field::text(given, "function_name").or_else(|| self.last_call().map(|c| c.name.clone()));
        step.exit_code = exit_code(event);
        let failed = kind == "error" || kind == "user_rejected";
        let success = field::get(event, "success").and_then(field::truth);
        step.is_error = match step.exit_code {
            _ if failed => Some(true),
            Some(code) => Some(code != 0),
            None => success.map(|s| !s),
        };
        self.add(step);
    }

    /// The call of the last answer, if it had one only.
    fn last_call(&self) -> Option<&ToolCall> {
        let last = self.read.steps.iter().rev().find(|s| s.role == Role::Assistant)?;
        if let [only] = last.calls.as_slice() { Some(only) } else { None }
    }
}

/// Text of a message, wherever the version at hand keeps it.
fn said(event: &Value) -> String {
    said_str(event).into_owned()
}

fn said_str<'a>(event: &'a Value<'a>) -> Cow<'a, str> {
    let places = [field::at(event, &["args", "content"]), field::get(event, "content"), field::get(event, "message")];
    let texts = places.into_iter().flatten().map(chat::content_str);
    texts.into_iter().find(|t| !t.is_empty()).unwrap_or_default()
}

/// One line for what only the runtime knows.
fn meta(kind: &str, event: &Value) -> String {
    let state =
        field::str_at(event, &["extras", "agent_state"]).or_else(|| field::str_at(event, &["args", "agent_state"]));
    let text = match (state, kind) {
        (Some(state), _) => state.to_owned(),
        (None, "condensation") => condensed(event),
        (None, "recall") => recalled(event),
        (None, _) => said(event),
    };
    if text.is_empty() { kind.to_owned() } else { format!("{kind}: {text}") }
}

/// What the model was no longer shown from here on.
fn condensed(event: &Value) -> String {
    let args = field::get(event, "args").unwrap_or(event);
    let number = |key| field::get(args, key).and_then(field::integer);
    let listed = field::list(args, "forgotten_event_ids").len() as i64;
    let range = number("forgotten_events_start_id").zip(number("forgotten_events_end_id")).map(|(a, b)| b - a + 1);
    let n = range.filter(|n| *n > 0).unwrap_or(listed);
    let summary = field::text(args, "summary").map(|s| format!("\n{s}")).unwrap_or_default();
    format!("{n} events are no longer sent to the model{summary}")
}

/// What was looked up for the model.
fn recalled(event: &Value) -> String {
    let query = field::str_at(event, &["args", "query"]).filter(|q| !q.is_empty());
    query.map_or_else(|| said(event), str::to_owned)
}

/// Metadata of a command, where any version keeps it.
fn extra<'a>(event: &'a Value<'a>, key: &str) -> Option<&'a Value<'a>> {
    field::at(event, &["extras", "metadata", key])
        .or_else(|| field::at(event, &["extras", key]))
        .or_else(|| field::get(event, key))
}

fn exit_code(event: &Value) -> Option<i64> {
    // -1 says that the command is still running, or that nobody knows.
    extra(event, "exit_code").and_then(field::integer).filter(|code| *code != -1)
}

/// Room for the words of the lines around an output.
const LINES: usize = 110;

/// An observation as the model was shown it: a command's output with the lines the runtime puts around it.
fn seen(kind: &str, event: &Value) -> String {
    let content = said_str(event);
    match kind {
        "run" if field::at(event, &["extras", "metadata"]).is_some() => {
            let text = |key| extra(event, key).and_then(Value::as_str).unwrap_or_default();
            let (folder, python) = (text("working_dir"), text("py_interpreter_path"));
            let (prefix, suffix) = (text("prefix"), text("suffix"));
            let room = prefix.len() + content.len() + suffix.len() + folder.len() + python.len() + LINES;
            let mut seen = String::with_capacity(room);
            for part in [prefix, &content, suffix] {
                seen.push_str(part);
            }
            let mut line = |label: &str, value: &str| {
                for part in ["\n[", label, value, "]"] {
                    seen.push_str(part);
                }
            };
            if !folder.is_empty() {
                line("Current working directory: ", folder);
            }
            if !python.is_empty() {
                line("Python interpreter: ", python);
            }
            if let Some(code) = exit_code(event) {
                line("Command finished with exit code ", &code.to_string());
            }
            seen
        }
        "run" => match (extra(event, "command_id").and_then(field::integer), exit_code(event)) {
            (Some(id), Some(code)) => format!("{content}\n[Command {id} finished with exit code {code}]"),
            _ => content.into_owned(),
        },
        "error" => format!("{content}\n[Error occurred in processing last action]"),
        "user_rejected" => format!("{content}\n[Last action has been rejected by the user]"),
        _ => content.into_owned(),
    }
}
