//! Mistral Vibe: messages, and a file of what the session is.

use super::super::json::Value;
use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{chat, field};
use super::{finish, grok};
use crate::trajectory::{Diagnostic, Severity, Step, Trajectory};

const MESSAGES: &str = "messages.jsonl";
const META: &str = "meta.json";

pub(super) fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let (messages, _) = folder.find(MESSAGES)?;
    let (meta, entry) = folder.find(META)?;
    let value = entry.value()?;
    let own = value.get("session_id").is_some() && (value.get("stats").is_some() || value.get("environment").is_some());
    own.then(|| Claim {
        members: vec![messages, meta],
        reason: "messages.jsonl beside a meta.json with `session_id`".into(),
    })
}

pub(super) fn decode_folder(input: &FolderInput<'_>) -> Decoded {
    let meta = input.find(META).and_then(Entry::value).unwrap_or(Value::Null);
    let mut out = Trajectory {
        format: input.format,
        session: field::text(&meta, "session_id"),
        agent: Some("Mistral Vibe".to_owned()),
        model: field::text(&meta, "model"),
        ..Trajectory::default()
    };
    let mut diagnostics = Vec::new();
    if let Some(parent) = field::text(&meta, "parent_session_id") {
        let text = format!("continues session {parent}");
        diagnostics.push(Diagnostic::new(Severity::Info, "vibe.continues", text));
    }
    if let Some(entry) = input.find(MESSAGES) {
        diagnostics.extend(grok::lines(entry, |value, raw| {
            let id: Option<Box<str>> = field::text(value, "message_id").map(Into::into);
            let steps = chat::message_steps(value);
            out.steps.extend(steps.into_iter().map(|s| Step { raw: raw.clone(), id: id.clone(), ..s }));
        }));
    }
    finish(&mut out);
    let count = |key| field::at(&meta, &["stats", key]).and_then(field::count);
    out.usage.tokens_in = count("session_prompt_tokens");
    out.usage.tokens_out = count("session_completion_tokens");
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}
