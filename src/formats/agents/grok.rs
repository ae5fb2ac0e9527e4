//! Grok Build: the messages, beside a summary and counters.

use std::path::Path;
use std::sync::Arc;

use super::super::document::Document;
use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{chat, field, session};
use super::{certain, finish, of_file};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, ToolCall, Trajectory};

const HISTORY: &str = "chat_history.jsonl";

pub(super) fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let (history, _) = folder.find(HISTORY)?;
    let (summary, _) = folder.find("summary.json")?;
    let beside = ["signals.json", "updates.jsonl", "events.jsonl", "plan.json"];
    let mut members: Vec<usize> = beside.iter().filter_map(|name| folder.find(name)).map(|(i, _)| i).collect();
    members.extend([history, summary]);
    Some(Claim { members, reason: "chat_history.jsonl beside summary.json".into() })
}

pub(super) fn decode_folder(input: &FolderInput<'_>) -> Decoded {
    let mut out = Trajectory { format: input.format, ..Trajectory::default() };
    let mut tally = session::Tally::default();
    let summary = input.find("summary.json").and_then(Entry::value).unwrap_or(Value::Null);
    out.session = field::str_at(&summary, &["info", "id"]).map(str::to_owned);
    out.agent = Some("Grok Build".to_owned());
    out.model = field::text(&summary, "current_model_id");
    let mut diagnostics = Vec::new();
    if let Some(parent) = field::text(&summary, "parent_session_id") {
        let text = format!("forked from session {parent}");
        diagnostics.push(Diagnostic::new(Severity::Info, "grok.forked", text));
    }
    for entry in input.members.iter().filter(|e| e.name() != HISTORY) {
        tally.skip(&entry.name());
    }
    if let Some(entry) = input.find(HISTORY) {
        diagnostics.extend(lines(entry, |value, raw| read(&mut out, &mut tally, value, raw)));
    }
    diagnostics.extend(tally.finish());
    finish(&mut out);
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

/// A copy of the messages by itself.
pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let kinds = ["system", "user", "assistant", "tool_result", "reasoning", "backend_tool_call"];
    let fits = |r: &&&Value| {
        let known = field::str(r, "type").is_some_and(|k| kinds.contains(&k));
        known && r.get("message").is_none() && r.get("uuid").is_none()
    };
    let own = ["prompt_index", "model_id", "synthetic_reason"].iter().any(|k| sniff.has(k));
    let n = sniff.rows.iter().filter(fits).count();
    certain(own && n * 2 > sniff.rows.len(), "records of `type` and `content` with `prompt_index` or `model_id`")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut out = of_file(input, "Grok Build", Vec::new());
    let mut tally = session::Tally::default();
    let mut diagnostics = input.document.rows(|row| read(&mut out, &mut tally, row.value, RawPlace::record(row.span)));
    diagnostics.extend(tally.finish());
    finish(&mut out);
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

/// Calls `each` with the records of a member, and where each stands.
pub(super) fn lines(entry: &Entry, mut each: impl FnMut(&Value, RawPlace)) -> Vec<Diagnostic> {
    let content = match entry.read() {
        Ok(content) => content,
        Err(reason) => {
            let text = format!("{}: {reason}", entry.name());
            return vec![Diagnostic::new(Severity::Error, "folder.unreadable-member", text)];
        }
    };
    let file: Arc<Path> = Arc::from(entry.path.as_path());
    let document = Document::read(&content.bytes);
    let mut remarks = content.diagnostics.clone();
    remarks.extend(
        document.rows(|row| each(row.value, RawPlace { file: Some(file.clone()), ..RawPlace::record(row.span) })),
    );
    remarks
}

fn read(out: &mut Trajectory, tally: &mut session::Tally, value: &Value, raw: RawPlace) {
    let text = field::get(value, "content").map(session::text_of).unwrap_or_default();
    let kind = field::str(value, "type").or_else(|| field::str(value, "role")).unwrap_or("(none)");
    let open = out.steps.last().is_some_and(|s| s.role == Role::Assistant && s.text.is_empty());
    let part = match kind {
        "system" => Step::new(Role::System, text),
        // What the program says in a person's name.
        "user" if field::str(value, "synthetic_reason").is_some_and(|r| r != "interjection") => {
            Step::new(Role::Meta, text)
        }
        "user" => Step::new(Role::User, text),
        "reasoning" => {
            let thought = field::get(value, "summary").map(session::text_of);
            session::answer(String::new(), thought, Vec::new())
        }
        "backend_tool_call" => {
            let inner = field::get(value, "kind").unwrap_or(&Value::Null);
            let call = ToolCall {
                id: field::text(inner, "id").unwrap_or_default(),
                name: field::text(inner, "tool_type").unwrap_or_default(),
                arguments: field::get(inner, "action").map(field::json_text).unwrap_or_default(),
            };
            session::answer(String::new(), None, vec![call])
        }
        "assistant" => {
            out.model = field::text(value, "model_id").or(out.model.take());
            let calls = field::list(value, "tool_calls").iter().map(chat::tool_call).collect();
            session::answer(text, chat::reasoning_of(value), calls)
        }
        "tool_result" | "tool" => session::result(field::text(value, "tool_call_id"), text, None),
        _ => {
            tally.unknown(kind);
            session::raw_step(kind, value)
        }
    };
    let part = Step { raw, ..part };
    match out.steps.last_mut() {
        Some(last) if open && part.role == Role::Assistant => session::add_part(last, part),
        _ => out.steps.push(part),
    }
}
