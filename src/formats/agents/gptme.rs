//! gptme: chat messages with what the program knows about each.

use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{chat, field, session};
use super::{certain, of_file};
use crate::trajectory::{RawPlace, Role, Step, Tokens};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let own = ["pinned", "hide", "files"].iter().any(|k| sniff.has(k))
        || sniff.rows.iter().any(|r| field::at(r, &["metadata", "usage"]).is_some());
    let messages = sniff.rows.iter().all(|r| r.get("role").is_some() && r.get("content").is_some());
    certain(
        own && messages && sniff.has("timestamp") && sniff.rows.len() > 1,
        "messages with `pinned` or `metadata.usage`",
    )
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut steps: Vec<Step> = Vec::new();
    let mut model = None;
    let mut answered = false;
    let diagnostics = input.document.rows(|row| {
        let text = field::get(row.value, "content").map(session::text_of).unwrap_or_default();
        // What a tool returns is a system message behind the answer, in most versions.
        let role = match chat::role_of(row.value) {
            Role::System if answered => Role::Tool,
            role => role,
        };
        answered |= role == Role::Assistant;
        let mut step = Step::new(role, text);
        step.raw = RawPlace::record(row.span);
        step.timestamp = field::text(row.value, "timestamp");
        if let Some(metadata) = field::get(row.value, "metadata").filter(|_| role == Role::Assistant) {
            model = field::text(metadata, "model").or(model.take());
            step.cost = field::get(metadata, "cost").and_then(field::number).filter(|c| *c > 0.0);
            let count = |key| field::at(metadata, &["usage", key]).and_then(field::count);
            step.tokens = count("input_tokens").map(|fresh| {
                let cached = count("cache_read_tokens");
                let made = count("cache_creation_tokens").unwrap_or(0);
                let input = fresh.saturating_add(cached.unwrap_or(0)).saturating_add(made);
                Tokens { input, cached, output: count("output_tokens").unwrap_or(0) }
            });
        }
        steps.push(step);
    });
    let mut out = of_file(input, "gptme", steps);
    out.model = model;
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}
