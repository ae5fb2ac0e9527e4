//! `events.jsonl` of the CLI.

use std::collections::HashSet;

use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, session};
use crate::trajectory::{ByteSpan, RawPlace, Role, Step, ToolCall, Trajectory, Usage};

/// First parts of the kinds that are known.
const FAMILIES: [&str; 6] = ["session.", "user.", "assistant.", "tool.", "subagent.", "hook."];

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let known = |r: &&&Value| {
        let kind = field::str(r, "type").unwrap_or_default();
        FAMILIES.iter().any(|f| kind.starts_with(f)) && r.get("data").is_some_and(Value::is_object)
    };
    let n = sniff.rows.iter().filter(known).count();
    let sure = n > 0 && n * 2 >= sniff.rows.len();
    if sure { Match::some(Confidence::Certain, "records of `type` with a dot, and `data`") } else { None }
}

#[derive(Default)]
struct Events {
    out: Trajectory,
    /// Reasoning that came before its answer.
    reasoning: Option<String>,
    calls: HashSet<String>,
    total: Usage,
    tally: session::Tally,
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut events = Events::default();
    let mut diagnostics = input.document.rows(|row| events.record(row.value, row.span));
    diagnostics.extend(events.tally.finish());
    let mut out = events.out;
    out.format = input.format;
    session::complete(&mut out);
    out.usage = events.total;
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

impl Events {
    fn record(&mut self, record: &Value, span: ByteSpan) {
        let kind = field::str(record, "type").unwrap_or("(none)");
        let data = field::get(record, "data").unwrap_or(&Value::Null);
        let text = ["content", "message", "reasoningText", "summary"].iter().find_map(|k| field::text(data, k));
        let text = text.unwrap_or_default();
        let step = match kind {
            "session.start" | "session.resume" => return self.start(data),
            "user.message" => Step::new(Role::User, text),
            "assistant.message" => self.answer(data),
            "assistant.reasoning" => {
                self.reasoning = Some(text).filter(|t| !t.is_empty());
                return;
            }
            "tool.execution_start" => match self.late_call(data) {
                Some(step) => step,
                None => return self.tally.skip(kind),
            },
            "tool.execution_complete" => result(data),
            "session.model_change" => {
                let model = field::text(data, "newModel").or_else(|| field::text(data, "model")).unwrap_or_default();
                self.out.model = Some(model.clone());
                session::note("model", &model)
            }
            "session.error" | "abort" => {
                self.out.error = Some(text.clone()).filter(|t| !t.is_empty());
                Step { is_error: Some(true), ..session::note(kind, &text) }
            }
            "session.shutdown" => {
                self.shutdown(data);
                return self.tally.skip(kind);
            }
            "assistant.turn_start"
            | "assistant.turn_end"
            | "assistant.usage"
            | "assistant.message_delta"
            | "assistant.reasoning_delta"
            | "session.idle"
            | "session.usage_info"
            | "tool.execution_partial_result"
            | "session.import_legacy" => return self.tally.skip(kind),
            _ if kind.starts_with("session.") || kind.starts_with("subagent.") || kind.starts_with("hook.") => {
                if text.is_empty() { session::raw_step(kind, data) } else { session::note(kind, &text) }
            }
            "system.message" => Step::new(Role::System, text),
            _ => {
                self.tally.unknown(kind);
                session::raw_step(kind, record)
            }
        };
        self.out.steps.push(Step {
            raw: RawPlace::record(span),
            id: field::text(record, "id").map(Into::into),
            timestamp: field::get(record, "timestamp").and_then(session::time_of),
            ..step
        });
    }

    fn start(&mut self, data: &Value) {
        self.out.session = field::text(data, "sessionId").or(self.out.session.take());
        let version = field::text(data, "copilotVersion");
        self.out.agent = Some(version.map_or("GitHub Copilot CLI".to_owned(), |v| format!("GitHub Copilot CLI {v}")));
        if let Some(model) = field::text(data, "selectedModel") {
            self.out.model = Some(model);
        }
        self.tally.skip("session.start");
    }

    fn answer(&mut self, data: &Value) -> Step {
        let calls: Vec<ToolCall> = field::list(data, "toolRequests").iter().map(call).collect();
        self.calls.extend(calls.iter().map(|c| c.id.clone()));
        let reasoning = field::text(data, "reasoningText").or(self.reasoning.take());
        self.reasoning = None;
        session::answer(field::text(data, "content").unwrap_or_default(), reasoning, calls)
    }

    /// A call that no answer announced.
    fn late_call(&mut self, data: &Value) -> Option<Step> {
        let call = call(data);
        if !self.calls.insert(call.id.clone()) {
            return None;
        }
        Some(session::answer(String::new(), self.reasoning.take(), vec![call]))
    }

    fn shutdown(&mut self, data: &Value) {
        self.out.exit_status = field::text(data, "shutdownType");
        let Some(models) = field::object(data, "modelMetrics") else { return };
        for (model, metrics) in models {
            let count = |path: &[&str]| field::at(metrics, path).and_then(field::count);
            let add = |to: &mut Option<u64>, n: Option<u64>| {
                *to = n.map(|n| n.saturating_add(to.unwrap_or(0))).or(*to);
            };
            add(&mut self.total.tokens_in, count(&["usage", "inputTokens"]));
            add(&mut self.total.tokens_cached, count(&["usage", "cacheReadTokens"]));
            add(&mut self.total.tokens_out, count(&["usage", "outputTokens"]));
            add(&mut self.total.api_calls, count(&["requests", "count"]));
            self.out.model = self.out.model.take().or_else(|| Some(model.to_owned()));
        }
    }
}

fn call(request: &Value) -> ToolCall {
    ToolCall {
        id: field::text(request, "toolCallId").unwrap_or_default(),
        name: field::text(request, "name").or_else(|| field::text(request, "toolName")).unwrap_or_default(),
        arguments: field::get(request, "arguments").map(field::json_text).unwrap_or_default(),
    }
}

fn result(data: &Value) -> Step {
    let places = [&["result", "content"][..], &["error", "message"], &["result"], &["error"]];
    let text = places.iter().find_map(|p| field::at(data, p)).map(session::text_of).unwrap_or_default();
    let failed = field::get(data, "success").and_then(field::truth).map(|s| !s);
    let mut step = session::result(field::text(data, "toolCallId"), text, failed);
    step.tool_name = field::text(data, "toolName");
    step.exit_code = field::at(data, &["result", "exitCode"]).and_then(field::integer);
    step
}
