//! Posit Assistant: the messages of the model, and a tree of which of them are in use.

use std::collections::BTreeSet;

use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{chat, field, session};
use super::{call, certain, finish, grok};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Step, Tokens, Trajectory};

const MESSAGES: &str = "lm-messages.jsonl";

pub(super) fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let (messages, _) = folder.find(MESSAGES)?;
    let mut members = vec![messages];
    members.extend(folder.find("conversation.json").map(|(i, _)| i));
    Some(Claim { members, reason: MESSAGES.into() })
}

/// What lies beside the conversations.
pub(super) fn sniff_index(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let index = root.contains_key("conversations") && root.contains_key("schemaVersion");
    let workspace = root.len() == 2 && root.contains_key("path") && root.contains_key("createdAt");
    certain(index || workspace, "`conversations` and `schemaVersion`, or `path` and `createdAt`")
}

pub(super) fn decode_folder(input: &FolderInput<'_>) -> Decoded {
    let mut out = Trajectory { format: input.format, ..Trajectory::default() };
    out.agent = Some("Posit Assistant".to_owned());
    out.session = input.path.file_name().map(|n| n.to_string_lossy().into_owned());
    let above = input.path.parent();
    if above.and_then(|p| p.file_name()).is_some_and(|n| n == "subagents") {
        let session = above.and_then(|p| p.parent()).and_then(|p| p.file_name());
        out.parent = session.map(|n| n.to_string_lossy().into_owned());
    }
    let conversation = input.find("conversation.json").and_then(Entry::value).unwrap_or(Value::Null);
    let inactive = field::list(&conversation, "messages")
        .iter()
        .filter(|m| field::get(m, "isActive").and_then(field::truth) == Some(false))
        .flat_map(|m| field::list(m, "lmMessageIds"));
    let inactive: BTreeSet<u64> = inactive.filter_map(field::count).collect();
    let (mut left_out, mut tally, mut diagnostics) = (0, session::Tally::default(), Vec::new());
    if let Some(entry) = input.find(MESSAGES) {
        diagnostics.extend(grok::lines(entry, |value, raw| {
            if field::get(value, "id").and_then(field::count).is_some_and(|id| inactive.contains(&id)) {
                left_out += 1;
                return;
            }
            read(&mut out, field::get(value, "message").unwrap_or(value), &raw, &mut tally);
        }));
    }
    if left_out > 0 {
        let text = format!("{left_out} messages of abandoned branches are left out");
        diagnostics.push(Diagnostic::new(Severity::Info, "posit.abandoned", text));
    }
    diagnostics.extend(tally.finish());
    finish(&mut out);
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

fn read(out: &mut Trajectory, message: &Value, raw: &RawPlace, tally: &mut session::Tally) {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let of = |kind: &'static str| parts.iter().filter(move |p| field::str(p, "type") == Some(kind));
    let text = session::text_of(content);
    let from = out.steps.len();
    match chat::role_of(message) {
        Role::Assistant => {
            let thoughts: Vec<&str> = of("reasoning").filter_map(|p| field::str(p, "text")).collect();
            let calls = of("tool-call").map(|p| call(p, "toolCallId", "toolName", "input")).collect();
            out.steps.push(session::answer(text, Some(thoughts.join("\n")), calls));
        }
        Role::Tool => out.steps.extend(of("tool-result").map(|p| {
            let output = field::get(p, "output").unwrap_or(&Value::Null);
            let body = field::get(output, "value").unwrap_or(output);
            let failed = field::str(output, "type").map(|t| t.starts_with("error"));
            let mut step = session::result(field::text(p, "toolCallId"), session::text_of(body), failed);
            step.tool_name = field::text(p, "toolName");
            step
        })),
        Role::Meta => {
            tally.unknown(field::str(message, "role").unwrap_or("(none)"));
            out.steps.push(session::raw_step("message", message));
        }
        role => out.steps.push(Step::new(role, text)),
    }
    let provider = field::at(message, &["providerOptions", "providerMetadata"]).and_then(Value::as_object);
    let known = provider.and_then(|p| p.values().next()).unwrap_or(&Value::Null);
    out.model = field::text(known, "modelId").or(out.model.take());
    for step in out.steps.iter_mut().skip(from) {
        step.raw = raw.clone();
        step.timestamp = field::get(known, "timestamp").and_then(session::time_of);
        if step.role == Role::Assistant {
            step.tokens = field::get(known, "usage").and_then(|u| {
                let count = |key| field::get(u, key).and_then(field::count);
                let cached = count("cacheReadTokens");
                let input = count("inputTokens")?.saturating_add(cached.unwrap_or(0));
                let input = input.saturating_add(count("cacheWriteTokens").unwrap_or(0));
                Some(Tokens { input, cached, output: count("outputTokens").unwrap_or(0) })
            });
        }
    }
}
