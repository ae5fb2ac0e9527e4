//! The short export of OpenHands-CLI: who said what, without tools.

use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, rows};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Source, Step, Trajectory};

/// An object with a conversation's id and what was said.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let events = root.get("events")?.as_array()?;
    let named = events.iter().all(|e| e.get("event_file").is_some() || e.get("text").is_some());
    if root.contains_key("conversation_id") && named {
        Match::some(Confidence::Certain, "`conversation_id` and `events` with `event_file` and `text`")
    } else {
        None
    }
}

/// Reads it.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut trajectories = Vec::new();
    let diagnostics = input.document.rows(|row| {
        let events = field::list(row.value, "events");
        let at = rows::pointer(row, "events");
        let steps: Vec<Step> = events.iter().enumerate().map(|(i, e)| step(i, e, &at)).collect();
        let silent = steps.iter().skip(1).filter(|s| s.role == Role::Meta).count();
        let mut trajectory = Trajectory {
            source: Source { record: row.record, span: row.span, ..Source::default() },
            format: input.format,
            session: field::text(row.value, "conversation_id"),
            agent: Some("OpenHands".to_owned()),
            steps,
            ..Trajectory::default()
        };
        if silent > 0 {
            let text = format!(
                "{silent} events without text: this export leaves tool calls out, open the conversation's folder instead"
            );
            trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "openhands.short-export", text));
        }
        trajectories.push(trajectory);
    });
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

/// What was said, as the trajectory visualizer's own samples hold it.
pub fn sniff_entries(sniff: &Sniff<'_>) -> Option<Match> {
    let entries = sniff.object()?.get("entries")?.as_array()?;
    let fits = entries.iter().any(|e| e.get("actorType").is_some() && e.get("type").is_some());
    if fits { Match::some(Confidence::Certain, "`entries` with `actorType` and `type`") } else { None }
}

/// Reads it.
pub fn decode_entries(input: &Input<'_>) -> Decoded {
    let mut trajectories = Vec::new();
    let diagnostics = input.document.rows(|row| {
        let at = rows::pointer(row, "entries");
        let entries = field::list(row.value, "entries").iter().enumerate();
        trajectories.push(Trajectory {
            source: Source { record: row.record, span: row.span, ..Source::default() },
            format: input.format,
            steps: entries.map(|(i, e)| entry(e, RawPlace::element(&at, i))).collect(),
            ..Trajectory::default()
        });
    });
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

fn entry(entry: &Value, raw: RawPlace) -> Step {
    let role = match field::str(entry, "actorType") {
        Some("User") => Role::User,
        Some("Assistant") => Role::Assistant,
        Some("Environment" | "Tool") => Role::Tool,
        _ => Role::Meta,
    };
    let mut step = Step::new(role, field::text(entry, "content").unwrap_or_default());
    step.action = field::text(entry, "command").filter(|_| role == Role::Assistant);
    step.timestamp = field::text(entry, "timestamp");
    step.raw = raw;
    step
}

fn step(index: usize, event: &Value, at: &str) -> Step {
    let text = field::text(event, "text");
    let role = match (field::str(event, "source"), &text) {
        (Some("user"), _) => Role::User,
        (Some("agent"), Some(_)) => Role::Assistant,
        (Some("environment"), Some(_)) => Role::Tool,
        _ => Role::Meta,
    };
    let file = || field::str(event, "event_file").unwrap_or_default().to_owned();
    let what = if index == 0 { "the system prompt, not exported" } else { "an event without text" };
    let mut step = Step::new(role, text.unwrap_or_else(|| format!("{what} ({})", file())));
    step.timestamp = field::text(event, "timestamp");
    step.raw = RawPlace::element(at, index);
    step
}
