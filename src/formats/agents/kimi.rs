//! Kimi CLI: what went over the wire between the agent and its screen, in two generations.

use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, session};
use super::{certain, of_file};
use crate::trajectory::{RawPlace, Role, Step, Tokens, ToolCall};

const OLDER: [&str; 8] =
    ["TurnBegin", "TurnEnd", "StepBegin", "ContentPart", "ToolCall", "ToolCallPart", "ToolResult", "StatusUpdate"];
const NEWER: [&str; 5] = ["turn.prompt", "turn.steer", "context.append_loop_event", "usage.record", "config.update"];

/// Kind and content of a record, without what is wrapped around it.
fn unwrapped<'a>(record: &'a Value<'a>) -> (&'a str, &'a Value<'a>) {
    let message = field::get(record, "message").filter(|m| m.get("payload").is_some()).unwrap_or(record);
    let kind = field::str(message, "type").unwrap_or("(none)");
    (kind, field::get(message, "payload").unwrap_or(message))
}

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let known = |r: &&&Value| {
        let (kind, _) = unwrapped(r);
        OLDER.contains(&kind) || NEWER.contains(&kind)
    };
    let n = sniff.rows.iter().filter(known).count();
    certain(n > 0 && n * 2 >= sniff.rows.len(), "records of TurnBegin, ContentPart, ToolCall or their successors")
}

#[derive(Default)]
struct Wire {
    steps: Vec<Step>,
    open: bool,
    model: Option<String>,
    tally: session::Tally,
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut wire = Wire::default();
    let mut diagnostics = input.document.rows(|row| {
        let time = field::get(row.value, "timestamp").or_else(|| field::get(row.value, "time"));
        wire.record(row.value, &RawPlace::record(row.span), time.and_then(session::time_of));
    });
    diagnostics.extend(wire.tally.finish());
    let mut out = of_file(input, "Kimi CLI", wire.steps);
    out.model = wire.model;
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

impl Wire {
    fn record(&mut self, record: &Value, raw: &RawPlace, time: Option<String>) {
        let (kind, payload) = unwrapped(record);
        let event = field::get(payload, "event").unwrap_or(payload);
        let inner = field::str(event, "type").unwrap_or_default();
        let step = match (kind, inner) {
            ("TurnBegin" | "turn.prompt" | "turn.steer" | "SteerInput", _) => {
                let keys = ["user_input", "input", "prompt", "content", "text"];
                let text = keys.iter().find_map(|k| field::get(payload, k)).map(session::text_of);
                self.open = false;
                Step::new(Role::User, text.unwrap_or_default())
            }
            ("ContentPart", _) | ("context.append_loop_event", "content.part") => {
                let part = field::get(event, "part").unwrap_or(event);
                match field::text(part, "think").or_else(|| field::text(part, "thinking")) {
                    Some(thought) => session::answer(String::new(), Some(thought), Vec::new()),
                    None => Step::new(Role::Assistant, session::text_of(part)),
                }
            }
            ("ToolCall", _) | ("context.append_loop_event", "tool.call") => {
                session::answer(String::new(), None, vec![call(event)])
            }
            // The arguments of the call before come in parts.
            ("ToolCallPart", _) => return self.more_arguments(payload),
            ("ToolResult", _) | ("context.append_loop_event", "tool.result") => result(event),
            ("StatusUpdate" | "usage.record", _) => {
                self.usage(payload);
                return self.tally.skip(kind);
            }
            ("config.update", _) => {
                self.model = field::text(payload, "model").or(self.model.take());
                return self.tally.skip(kind);
            }
            ("StepBegin", _) | ("context.append_loop_event", "step.begin" | "step.end") => {
                self.open = false;
                return self.tally.skip("step");
            }
            ("TurnEnd" | "metadata" | "CompactionBegin" | "CompactionEnd", _) => return self.tally.skip(kind),
            ("StepInterrupted", _) => session::note(kind, ""),
            _ => {
                self.tally.unknown(kind);
                session::raw_step(kind, record)
            }
        };
        let step = Step { raw: raw.clone(), timestamp: time, ..step };
        let answer = step.role == Role::Assistant;
        match self.steps.last_mut() {
            Some(last) if answer && self.open && last.role == Role::Assistant => join(last, step),
            _ => self.steps.push(step),
        }
        self.open = answer;
    }

    fn more_arguments(&mut self, payload: &Value) {
        let part = field::text(payload, "arguments_part").unwrap_or_default();
        let last = self.steps.last_mut().and_then(|s| s.calls.last_mut());
        if let Some(call) = last {
            call.arguments.push_str(&part);
        }
    }

    fn usage(&mut self, payload: &Value) {
        let usage = field::get(payload, "token_usage").or_else(|| field::get(payload, "usage")).unwrap_or(payload);
        let count = |keys: &[&str]| keys.iter().find_map(|k| field::get(usage, k).and_then(field::count));
        let cached = count(&["input_cache_read", "inputCacheRead"]);
        let Some(fresh) = count(&["input_other", "inputOther", "input_tokens", "input"]) else { return };
        let made = count(&["input_cache_creation", "inputCacheCreation"]).unwrap_or(0);
        let tokens = Tokens {
            input: fresh.saturating_add(cached.unwrap_or(0)).saturating_add(made),
            cached,
            output: count(&["output", "output_tokens"]).unwrap_or(0),
        };
        if let Some(step) = self.steps.iter_mut().rev().find(|s| s.role == Role::Assistant) {
            step.tokens = step.tokens.or(Some(tokens));
        }
    }
}

/// Text arrives in pieces of one message: nothing is put between them.
fn join(last: &mut Step, more: Step) {
    last.raw.add(&more.raw);
    last.text.push_str(&more.text);
    if let Some(thought) = more.reasoning {
        last.reasoning.get_or_insert_default().push_str(&thought);
    }
    last.calls.extend(more.calls);
}

fn call(event: &Value) -> ToolCall {
    let inner = field::get(event, "function").filter(|f| f.is_object()).unwrap_or(event);
    let id = ["id", "toolCallId", "tool_call_id"].iter().find_map(|k| field::text(event, k));
    let arguments = ["arguments", "args", "input"].iter().find_map(|k| field::get(inner, k));
    let name = field::text(inner, "name").or_else(|| field::text(inner, "toolName"));
    ToolCall {
        id: id.unwrap_or_default(),
        name: name.unwrap_or_default(),
        arguments: arguments.map(field::json_text).unwrap_or_default(),
    }
}

fn result(event: &Value) -> Step {
    let id = ["tool_call_id", "toolCallId", "id"].iter().find_map(|k| field::text(event, k));
    let value = ["return_value", "result"].iter().find_map(|k| field::get(event, k)).unwrap_or(event);
    let body = ["output", "content", "message"].iter().find_map(|k| field::get(value, k)).unwrap_or(value);
    let failed = ["is_error", "isError"].iter().find_map(|k| field::get(value, k).and_then(field::truth));
    session::result(id, session::text_of(body), failed)
}
