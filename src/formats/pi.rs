//! pi and its relatives: JSON lines behind a `session` header; from version 2 on a tree.

use super::branches::{Node, Tree};
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{field, session};
use crate::trajectory::{ByteSpan, Diagnostic, RawPlace, Role, Severity, Step, Tokens, ToolCall, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "pi",
    name: "pi session",
    writer: "pi, omp, prime-agent, OpenClaw",
    recognised: "a header of `type` session with `cwd`, then records of `type` message",
    kind: Kind::Trajectory,
    reader: Reader::File { sniff, decode },
}];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let head = sniff
        .rows
        .iter()
        .any(|r| field::str(r, "type") == Some("session") && r.get("id").is_some() && r.get("timestamp").is_some());
    let spoken =
        |r: &&&Value| field::str(r, "type") == Some("message") && field::str_at(r, &["message", "role"]).is_some();
    let message = sniff.rows.iter().find(spoken);
    match (head, message) {
        (true, _) if sniff.has("cwd") => Match::some(Confidence::Certain, "a `session` header with `cwd`"),
        (true, Some(_)) => Match::some(Confidence::Certain, "a `session` header, then messages"),
        // The header may be cut off. Claude Code names its records by `uuid`.
        (false, Some(m)) if m.get("uuid").is_none() && m.get("parentId").is_some() => {
            Match::some(Confidence::Likely, "records of `type` message with `parentId`")
        }
        _ => None,
    }
}

#[derive(Default)]
struct Session {
    out: Trajectory,
    tree: Tree,
    entries: Vec<(Option<usize>, Step)>,
    tally: session::Tally,
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut session = Session::default();
    let mut diagnostics = input.document.rows(|row| session.record(row.value, row.span));
    let (live, abandoned) = session.tree.live();
    if abandoned > 0 {
        let left = live.iter().filter(|l| !**l).count();
        let s = if abandoned == 1 { "" } else { "es" };
        let text = format!("{abandoned} abandoned branch{s} with {left} records left out");
        diagnostics.push(Diagnostic::new(Severity::Info, "pi.abandoned", text));
    }
    diagnostics.extend(session.tally.finish());
    let mut out = session.out;
    let kept = session.entries.into_iter().filter(|(at, _)| at.is_none_or(|n| live.get(n) != Some(&false)));
    out.steps = kept.map(|(_, step)| step).collect();
    out.format = input.format;
    out.agent = Some("pi".to_owned());
    session::complete(&mut out);
    out.usage = session::totals(&out.steps);
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

impl Session {
    fn record(&mut self, record: &Value, span: ByteSpan) {
        let kind = field::str(record, "type").unwrap_or("(none)");
        let mut steps = match kind {
            "session" => return self.header(record, span),
            "message" => field::get(record, "message").map(|m| self.message(m)).unwrap_or_default(),
            "model_change" => vec![session::note("model", &field::text(record, "modelId").unwrap_or_default())],
            "thinking_level_change" => {
                vec![session::note("thinking", &field::text(record, "thinkingLevel").unwrap_or_default())]
            }
            "compaction" | "branch_summary" => {
                vec![session::note(kind, &field::text(record, "summary").unwrap_or_default())]
            }
            // What an extension tells the model.
            "custom_message" => {
                vec![Step::new(Role::User, field::get(record, "content").map(session::text_of).unwrap_or_default())]
            }
            "session_info" => vec![session::note(kind, &field::text(record, "name").unwrap_or_default())],
            "custom" | "label" => {
                self.tally.skip(kind);
                Vec::new()
            }
            _ => {
                self.tally.unknown(kind);
                vec![session::raw_step(kind, record)]
            }
        };
        let id = field::str(record, "id");
        let at = id.and_then(|id| self.tree.add(id, field::str(record, "parentId"), Node::Prompt));
        if id.is_some() && at.is_none() {
            return self.tally.skip("repeated");
        }
        for step in &mut steps {
            step.raw = RawPlace::record(span);
            step.timestamp = field::get(record, "timestamp").and_then(session::time_of);
            // Version 1 has no ids; the time of a message is copied with it.
            let stamp = || field::at(record, &["message", "timestamp"]).and_then(session::time_of);
            step.id = id.map(str::to_owned).or_else(stamp).map(Into::into);
        }
        self.entries.extend(steps.into_iter().map(|step| (at, step)));
    }

    fn header(&mut self, record: &Value, span: ByteSpan) {
        let first = self.out.session.is_none();
        if first {
            self.out.session = field::text(record, "id");
            self.out.model = field::text(record, "modelId");
        } else {
            self.tally.skip("session");
        }
        let from = field::text(record, "parentSession").or_else(|| field::text(record, "branchedFrom"));
        if let Some(from) = from.filter(|_| first) {
            let step = Step { raw: RawPlace::record(span), ..session::note("branched from", &from) };
            self.entries.push((None, step));
        }
    }

    fn message(&mut self, message: &Value) -> Vec<Step> {
        let text = field::get(message, "content").map(session::text_of).unwrap_or_default();
        match field::str(message, "role").unwrap_or("(none)") {
            "user" | "custom" => vec![Step::new(Role::User, text)],
            "assistant" => self.assistant(message, text),
            "toolResult" => {
                let is_error = field::get(message, "isError").and_then(field::truth);
                let mut step = session::result(field::text(message, "toolCallId"), text, is_error);
                step.tool_name = field::text(message, "toolName");
                step.exit_code = field::at(message, &["details", "exitCode"]).and_then(field::integer);
                vec![step]
            }
            // A command the person ran by hand: the model sees it.
            "bashExecution" => {
                let part = |key| field::text(message, key).unwrap_or_default();
                let mut step = Step::new(Role::User, format!("$ {}\n{}", part("command"), part("output")));
                step.exit_code = field::get(message, "exitCode").and_then(field::integer);
                vec![step]
            }
            kind @ ("branchSummary" | "compactionSummary") => {
                let summary = field::text(message, "summary").unwrap_or(text);
                vec![session::note(kind, &summary)]
            }
            kind => {
                self.tally.unknown(kind);
                vec![session::raw_step(kind, message)]
            }
        }
    }

    fn assistant(&mut self, message: &Value, text: String) -> Vec<Step> {
        let parts = field::list(message, "content");
        let thoughts: Vec<&str> = parts.iter().filter_map(|p| field::str(p, "thinking")).collect();
        let calls = parts.iter().filter(|p| field::str(p, "type") == Some("toolCall")).map(|c| ToolCall {
            id: field::text(c, "id").unwrap_or_default(),
            name: field::text(c, "name").unwrap_or_default(),
            arguments: field::get(c, "arguments").map(field::json_text).unwrap_or_default(),
        });
        let mut step = session::answer(text, Some(thoughts.join("\n")), calls.collect());
        let stop = field::str(message, "stopReason").unwrap_or_default();
        let failed = matches!(stop, "error" | "aborted");
        let said = !step.text.is_empty() || !step.calls.is_empty() || step.reasoning.is_some();
        let why = field::text(message, "errorMessage").unwrap_or_default();
        let failure = || Step { is_error: Some(true), ..session::note(stop, &why) };
        if failed && !said {
            return vec![failure()];
        }
        if let Some(usage) = field::get(message, "usage") {
            let count = |key| field::get(usage, key).and_then(field::count).unwrap_or(0);
            let input = count("input").saturating_add(count("cacheRead")).saturating_add(count("cacheWrite"));
            let tokens = Tokens { input, cached: Some(count("cacheRead")), output: count("output") };
            step.tokens = Some(tokens).filter(|t| t.input > 0 || t.output > 0);
            let cost = field::at(usage, &["cost", "total"]).and_then(field::number);
            step.cost = cost.filter(|c| *c > 0.0);
        }
        self.out.model = field::text(message, "model").or(self.out.model.take());
        if failed { vec![step, failure()] } else { vec![step] }
    }
}

#[cfg(test)]
mod tests;
