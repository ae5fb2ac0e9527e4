//! Gemini CLI and its relatives: one JSON object rewritten whole, or JSON lines in which later records replace or
//! take back earlier ones; Qwen Code's records of API messages.

use std::collections::HashMap;

use super::branches::{Node, Tree};
use super::json::Value;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{field, session};
use crate::trajectory::{ByteSpan, Diagnostic, RawPlace, Role, Severity, Step, Tokens, ToolCall, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "gemini-cli",
        name: "Gemini CLI session",
        writer: "Gemini CLI and its relatives",
        recognised: "`sessionId` and `messages` of `type` user and gemini; JSON lines with `$set` and `$rewindTo`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "gemini-logs",
        name: "Gemini CLI prompt log",
        writer: "Gemini CLI (logs.json)",
        recognised: "a list of `sessionId`, `messageId`, `type`, `message`: prompts only",
        kind: Kind::Companion,
        reader: Reader::File { sniff: sniff_logs, decode: |_| Decoded::default() },
    },
    Format {
        id: "qwen-code",
        name: "Qwen Code session",
        writer: "Qwen Code",
        recognised: "records with `uuid`, `sessionId` and a `message` of `parts`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_qwen, decode: decode_qwen },
    },
];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let said = |m: &Value| {
        let kind = field::str(m, "type");
        kind.is_some_and(|k| ["user", "gemini", "qwen", "info", "error", "warning"].contains(&k))
            && m.get("content").is_some()
    };
    if let Some(root) = sniff.object().filter(|o| o.contains_key("sessionId")) {
        let messages = root.get("messages").and_then(Value::as_array)?;
        let hashed = root.contains_key("projectHash");
        return match (hashed, messages.iter().take(60).any(said)) {
            (true, _) => Match::some(Confidence::Certain, "`sessionId`, `projectHash` and `messages`"),
            (false, true) => Match::some(Confidence::Likely, "`sessionId` and `messages` of `type` user and gemini"),
            _ => None,
        };
    }
    if sniff.form != Form::Lines && sniff.form != Form::Object {
        return None;
    }
    let head = sniff.rows.iter().any(|r| r.get("projectHash").is_some() && r.get("sessionId").is_some());
    let changes = sniff.rows.iter().any(|r| r.get("$set").is_some() || r.get("$rewindTo").is_some());
    let messages = sniff.rows.iter().any(|r| said(r) && r.get("id").is_some());
    if head && (messages || changes || sniff.rows.len() == 1) || changes && messages {
        return Match::some(Confidence::Certain, "a header with `projectHash`, then messages");
    }
    None
}

fn sniff_logs(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.form == Form::List && sniff.has_all(&["sessionId", "messageId", "type", "message"]);
    if fits { Match::some(Confidence::Certain, "a list with `sessionId` and `messageId`") } else { None }
}

#[derive(Default)]
struct Session {
    out: Trajectory,
    /// The messages in order: their id, and what they show.
    messages: Vec<(String, Vec<Step>)>,
    by_id: HashMap<String, usize>,
    replaced: usize,
    rewound: usize,
    subagent: bool,
    tally: session::Tally,
}

fn decode(input: &Input<'_>) -> Decoded {
    let mut session = Session::default();
    let mut diagnostics = input.document.rows(|row| session.record(row.value, row.span));
    diagnostics.extend(std::mem::take(&mut session.tally).finish());
    if session.rewound > 0 {
        let text = format!("{} messages were taken back and are left out", session.rewound);
        diagnostics.push(Diagnostic::new(Severity::Info, "gemini.rewound", text));
    }
    if session.replaced > 0 {
        let text = format!("{} records replace an earlier one of the same message", session.replaced);
        diagnostics.push(Diagnostic::new(Severity::Info, "gemini.replaced", text));
    }
    let mut out = session.out;
    out.steps = session.messages.into_iter().flat_map(|(_, steps)| steps).collect();
    out.agent = Some("Gemini CLI".to_owned());
    if session.subagent {
        // A sub-agent's file lies in a folder that bears the name of the session that started it.
        let folder = input.path.parent().and_then(|p| p.file_name()).and_then(|n| n.to_str());
        out.parent = folder.filter(|name| *name != "chats").map(str::to_owned);
    }
    Decoded { trajectories: vec![finished(out, input)], diagnostics, ..Decoded::default() }
}

fn finished(mut out: Trajectory, input: &Input<'_>) -> Trajectory {
    out.format = input.format;
    session::complete(&mut out);
    out.usage = session::totals(&out.steps);
    out
}

impl Session {
    fn record(&mut self, record: &Value, span: ByteSpan) {
        if let Some(id) = field::str(record, "$rewindTo") {
            match self.by_id.get(id).copied() {
                Some(at) => {
                    self.rewound += self.messages.len().saturating_sub(at + 1);
                    self.messages.truncate(at + 1);
                    self.by_id.retain(|_, i| *i <= at);
                }
                None => self.tally.unknown("$rewindTo of a message that is not there"),
            }
            return;
        }
        let meta = field::get(record, "$set").unwrap_or(record);
        let head = record.get("$set").is_some() || record.get("sessionId").is_some();
        if !head {
            return self.message(record, &RawPlace::record(span));
        }
        if let Some(id) = field::text(meta, "sessionId") {
            self.out.session = Some(id);
        }
        self.subagent |= field::str(meta, "kind") == Some("subagent");
        if let Some(text) = field::text(meta, "summary") {
            self.messages.push((String::new(), vec![session::note("summary", &text)]));
        }
        for (i, message) in field::list(meta, "messages").iter().enumerate() {
            let raw =
                if record.get("$set").is_some() { RawPlace::record(span) } else { RawPlace::element("/messages", i) };
            self.message(message, &raw);
        }
    }

    fn message(&mut self, message: &Value, raw: &RawPlace) {
        let mut steps = self.steps(message);
        let id = field::text(message, "id").unwrap_or_default();
        for (i, step) in steps.iter_mut().enumerate() {
            step.raw = raw.clone();
            step.timestamp =
                step.timestamp.take().or_else(|| field::get(message, "timestamp").and_then(session::time_of));
            if !id.is_empty() {
                step.id = Some(if i == 0 { id.as_str().into() } else { format!("{id} {i}").into() });
            }
        }
        let known = self.by_id.get(&id).and_then(|at| self.messages.get_mut(*at)).filter(|_| !id.is_empty());
        if let Some(known) = known {
            known.1 = steps;
            self.replaced += 1;
        } else {
            self.by_id.insert(id.clone(), self.messages.len());
            self.messages.push((id, steps));
        }
    }

    fn steps(&mut self, message: &Value) -> Vec<Step> {
        let text = field::get(message, "content").map(session::text_of).unwrap_or_default();
        match field::str(message, "type").unwrap_or("(none)") {
            "user" => vec![Step::new(Role::User, text)],
            "gemini" | "qwen" | "model" | "assistant" => {
                if self.out.model.is_none() {
                    self.out.model = field::text(message, "model");
                }
                answered(message, text)
            }
            kind @ ("info" | "warning") => vec![session::note(kind, &text)],
            kind @ "error" => vec![Step { is_error: Some(true), ..session::note(kind, &text) }],
            kind => {
                self.tally.unknown(kind);
                vec![session::raw_step(kind, message)]
            }
        }
    }
}

/// An answer with its calls, and what they returned.
fn answered(message: &Value, text: String) -> Vec<Step> {
    let thoughts = field::list(message, "thoughts").iter().map(|t| {
        let part = |key| field::str(t, key).unwrap_or_default();
        format!("{}: {}", part("subject"), part("description"))
    });
    let thoughts: Vec<String> = thoughts.collect();
    let calls = field::list(message, "toolCalls");
    let made = calls.iter().map(|c| ToolCall {
        id: field::text(c, "id").unwrap_or_default(),
        name: field::text(c, "name").unwrap_or_default(),
        arguments: field::get(c, "args").map(field::json_text).unwrap_or_default(),
    });
    let mut step = session::answer(text, Some(thoughts.join("\n")), made.collect());
    step.tokens = field::get(message, "tokens").and_then(tokens);
    let mut steps = vec![step];
    steps.extend(calls.iter().filter_map(returned));
    steps
}

fn tokens(tokens: &Value) -> Option<Tokens> {
    let count = |key| field::get(tokens, key).and_then(field::count);
    let output = count("output").unwrap_or(0).saturating_add(count("thoughts").unwrap_or(0));
    Some(Tokens { input: count("input")?, cached: count("cached"), output })
}

/// What a call returned; `None` if it has not (yet).
fn returned(call: &Value) -> Option<Step> {
    let status = field::str(call, "status").unwrap_or_default();
    let parts = field::list(call, "result").iter().filter_map(|p| field::at(p, &["functionResponse", "response"]));
    let texts: Vec<String> = parts.map(response_text).collect();
    let shown = || match field::get(call, "resultDisplay") {
        Some(Value::Object(diff)) => diff.get("fileDiff").map(field::json_text),
        Some(other) => Some(field::json_text(other)),
        None => None,
    };
    let text = Some(texts.join("\n")).filter(|t| !t.is_empty()).or_else(shown);
    if text.is_none() && !matches!(status, "error" | "cancelled") {
        return None;
    }
    let failed = matches!(status, "error" | "cancelled");
    let is_error = if status.is_empty() { None } else { Some(failed) };
    let mut step = session::result(field::text(call, "id"), text.unwrap_or_else(|| status.to_owned()), is_error);
    step.tool_name = field::text(call, "name");
    step.timestamp = field::text(call, "timestamp");
    Some(step)
}

fn response_text(response: &Value) -> String {
    let member = ["output", "error", "content"].iter().find_map(|k| field::get(response, k));
    member.map_or_else(|| field::json_text(response), field::json_text)
}

fn sniff_qwen(sniff: &Sniff<'_>) -> Option<Match> {
    let parts = sniff.rows.iter().any(|r| field::at(r, &["message", "parts"]).is_some_and(Value::is_array));
    let fits = parts && sniff.has_all(&["uuid", "sessionId", "type"]);
    if fits { Match::some(Confidence::Certain, "`uuid`, `sessionId` and a `message` of `parts`") } else { None }
}

fn decode_qwen(input: &Input<'_>) -> Decoded {
    let (mut tree, mut tally) = (Tree::default(), session::Tally::default());
    let mut entries: Vec<(Option<usize>, Step)> = Vec::new();
    let mut out = Trajectory::default();
    let mut version = None;
    let mut diagnostics = input.document.rows(|row| {
        let record = row.value;
        out.session = field::text(record, "sessionId").or(out.session.take());
        version = version.take().or_else(|| field::text(record, "version"));
        out.model = out.model.take().or_else(|| field::text(record, "model"));
        let kind = field::str(record, "type").unwrap_or("(none)");
        let steps = qwen_steps(kind, record, &mut tally);
        let id = field::str(record, "uuid");
        let node = if kind == "user" || kind == "assistant" { Node::Prompt } else { Node::Beside };
        let at = id.and_then(|id| tree.add(id, field::str(record, "parentUuid"), node));
        if id.is_some() && at.is_none() {
            return tally.skip("repeated");
        }
        for mut step in steps {
            step.raw = RawPlace::record(row.span);
            step.timestamp = field::get(record, "timestamp").and_then(session::time_of);
            step.id = step.call_id.as_ref().map(|c| format!("result {c}").into()).or_else(|| id.map(Into::into));
            entries.push((at, step));
        }
    });
    let (live, abandoned) = tree.live();
    if abandoned > 0 {
        let text = format!("{abandoned} abandoned branches are left out");
        diagnostics.push(Diagnostic::new(Severity::Info, "qwen.abandoned", text));
    }
    diagnostics.extend(tally.finish());
    let kept = entries.into_iter().filter(|(at, _)| at.is_none_or(|n| live.get(n) != Some(&false)));
    out.steps = kept.map(|(_, step)| step).collect();
    out.agent = Some(version.map_or("Qwen Code".to_owned(), |v| format!("Qwen Code {v}")));
    Decoded { trajectories: vec![finished(out, input)], diagnostics, ..Decoded::default() }
}

fn qwen_steps(kind: &str, record: &Value, tally: &mut session::Tally) -> Vec<Step> {
    let parts = field::at(record, &["message", "parts"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let thought = |p: &&Value| field::get(p, "thought").and_then(field::truth) == Some(true);
    let texts = |thoughts: bool| {
        let of = parts.iter().filter(|p| thought(p) == thoughts && p.get("functionCall").is_none());
        let of = of.filter(|p| p.get("functionResponse").is_none()).map(session::text_of);
        of.filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n")
    };
    match kind {
        "user" => vec![Step::new(Role::User, texts(false))],
        "assistant" => {
            let calls = parts.iter().filter_map(|p| field::get(p, "functionCall")).map(|c| ToolCall {
                id: field::text(c, "id").unwrap_or_default(),
                name: field::text(c, "name").unwrap_or_default(),
                arguments: field::get(c, "args").map(field::json_text).unwrap_or_default(),
            });
            let mut step = session::answer(texts(false), Some(texts(true)), calls.collect());
            step.tokens = field::get(record, "usageMetadata").and_then(|u| {
                let count = |key| field::get(u, key).and_then(field::count);
                let output = count("candidatesTokenCount").unwrap_or(0);
                let output = output.saturating_add(count("thoughtsTokenCount").unwrap_or(0));
                Some(Tokens { input: count("promptTokenCount")?, cached: count("cachedContentTokenCount"), output })
            });
            vec![step]
        }
        "tool_result" => {
            let status = field::str_at(record, &["toolCallResult", "status"]);
            let is_error = status.map(|s| s == "error" || s == "cancelled");
            let responses = parts.iter().filter_map(|p| field::get(p, "functionResponse"));
            let steps = responses.map(|r| {
                let text = field::get(r, "response").map(response_text).unwrap_or_default();
                let mut step = session::result(field::text(r, "id"), text, is_error);
                step.tool_name = field::text(r, "name");
                step
            });
            steps.collect()
        }
        "system" => vec![session::note(field::str(record, "subtype").unwrap_or("system"), &texts(false))],
        _ => {
            tally.unknown(kind);
            vec![session::raw_step(kind, record)]
        }
    }
}

#[cfg(test)]
mod tests;
