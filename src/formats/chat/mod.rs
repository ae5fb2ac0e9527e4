//! Chat messages in all the shapes people store them: OpenAI chat and Responses items, Anthropic blocks, ShareGPT.

mod fold;
mod message;
mod steps;

use std::borrow::Cow;

use super::json::Value;

pub use self::fold::Fold;
pub use self::message::{content_str, content_text, message_steps, reasoning_of, role_of, tool_call, tool_specs};
pub use self::steps::{Collector, Piece, name_tools, steps_at};
use super::document::Row;
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{field, rows};
use crate::trajectory::{Diagnostic, RawPlace, Role, Severity, Source, Step, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[Format {
    id: "chat",
    name: "Chat messages",
    writer: "OpenAI-style exports and training sets",
    recognised: "`messages` (or a bare list) of role and content",
    kind: Kind::Trajectory,
    reader: Reader::File { sniff, decode },
}];

/// Names of a row's list of messages.
const LISTS: [&str; 4] = ["messages", "conversations", "trajectory", "traj"];

/// The list of messages of a row with the name it has, also when it is JSON inside a string.
pub fn messages_of<'a>(row: &'a Value<'a>) -> Option<(&'static str, Cow<'a, [Value<'a>]>)> {
    for key in LISTS {
        let items = match field::embedded(row, key) {
            Some(Cow::Borrowed(Value::Array(items))) => Cow::Borrowed(items.as_slice()),
            Some(Cow::Owned(Value::Array(items))) => Cow::Owned(items),
            _ => continue,
        };
        if items.is_empty() || items.iter().any(is_message) {
            return Some((key, items));
        }
    }
    None
}

fn is_message(value: &Value) -> bool {
    let named = ["role", "from"].iter().any(|k| value.get(k).is_some_and(Value::is_string));
    let role = named || field::str_at(value, &["author", "role"]).is_some();
    let item = matches!(value.get("type").and_then(Value::as_str), Some("message" | "function_call" | "reasoning"));
    let response = value.get("object").and_then(Value::as_str) == Some("response");
    role && ["content", "value", "text", "tool_calls"].iter().any(|k| value.get(k).is_some()) || item || response
}

/// Is this an item of a Responses answer that only means something among others?
fn is_item(value: &Value) -> bool {
    let kind = field::str(value, "type").unwrap_or_default();
    kind.ends_with("_call") || kind.ends_with("_call_output") || kind == "output_text"
}

/// Messages in an object, a list, rows of conversations, or one message a line.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let first = *sniff.rows.first()?;
    // Dumps of single model calls repeat the whole conversation in every file: not a trajectory each.
    if sniff.has("response") && (sniff.has("kwargs") || sniff.has("args")) {
        return None;
    }
    if sniff.form != Form::Object && is_message(first) {
        return Match::some(Confidence::Possible, "a list of messages with role and content");
    }
    let pairs = sniff.rows.iter().any(|row| {
        let chosen = field::list(row, "chosen");
        row.get("rejected").is_some() && chosen.iter().any(is_message)
    });
    if pairs && sniff.is_rows() {
        return Match::some(Confidence::Likely, "rows of a chosen and a rejected conversation");
    }
    let labelled = ["resolved", "target", "verified", "reward"].iter().any(|k| sniff.has(k));
    let found = sniff.rows.iter().any(|row| messages_of(row).is_some_and(|(_, m)| !m.is_empty()));
    if !found {
        return None;
    }
    match sniff.form {
        Form::Object => Match::some(Confidence::Likely, "an object with a list of messages"),
        _ if labelled => Match::some(Confidence::Likely, "rows of messages with a label"),
        _ => Match::some(Confidence::Likely, "rows of messages"),
    }
}

/// What a row of a chat file is.
enum Found {
    Conversation(Box<Trajectory>),
    Message(Piece),
    Neither,
}

/// Reads conversations.
pub fn decode(input: &Input<'_>) -> Decoded {
    let (rows, mut diagnostics) = input.document.map_rows(|row| match conversation(row) {
        Some(trajectory) => Found::Conversation(Box::new(trajectory)),
        None if is_message(row.value) || is_item(row.value) => {
            Found::Message(Piece::of(row.value, &rows::place(row), &|_, _| {}))
        }
        None => Found::Neither,
    });
    let (mut single, mut skipped, mut conversations) = (None, 0, Vec::new());
    for row in rows {
        conversations.push(match row {
            Found::Conversation(trajectory) => Some(*trajectory),
            Found::Message(message) => {
                single.get_or_insert_with(Collector::default).push(message);
                None
            }
            Found::Neither => {
                skipped += 1;
                None
            }
        });
    }
    let messages = single.is_some();
    conversations.extend(single.map(|s| Some(Trajectory { steps: s.finish(), ..Trajectory::default() })));
    if skipped > 0 {
        let text = format!("{skipped} rows without messages were skipped");
        diagnostics.push(Diagnostic::new(Severity::Warning, "chat.no-messages", text));
    }
    let mut trajectories = super::table::numbered(conversations);
    for trajectory in &mut trajectories {
        trajectory.format = input.format;
    }
    if let ([only], true) = (trajectories.as_mut_slice(), messages) {
        only.source.record = 0;
    }
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

/// The conversation of a row, if it holds one.
fn conversation(row: Row<'_>) -> Option<Trajectory> {
    let mut steps = match messages_of(row.value) {
        Some((key, messages)) => steps_at(&messages, &rows::pointer(row, key), |_, _| {}),
        None => preferred(row)?,
    };
    preference(row, &mut steps);
    // ShareGPT rows keep the system prompt beside the conversation.
    let system = field::text(row.value, "system").filter(|_| steps.iter().all(|s| s.role != Role::System));
    if let Some(system) = system {
        let raw = RawPlace { pointer: rows::pointer(row, "system").into(), ..RawPlace::default() };
        steps.insert(0, Step { raw, ..Step::new(Role::System, system) });
    }
    let mut trajectory = rows::trajectory(row.value, steps);
    trajectory.source = Source { span: row.span, ..Source::default() };
    Some(trajectory)
}

/// A pair of whole conversations: the one that was chosen.
fn preferred(row: Row<'_>) -> Option<Vec<Step>> {
    let chosen = field::get(row.value, "chosen")?.as_array().filter(|list| list.iter().any(is_message))?;
    row.value.get("rejected")?;
    // The prompt may stand apart.
    let prompt = field::get(row.value, "prompt");
    let mut steps = match prompt.and_then(Value::as_array) {
        Some(told) => steps_at(told, &rows::pointer(row, "prompt"), |_, _| {}),
        None => Vec::new(),
    };
    if let Some(text) = prompt.and_then(Value::as_str) {
        let raw = RawPlace { pointer: rows::pointer(row, "prompt").into(), ..RawPlace::default() };
        steps.push(Step { raw, ..Step::new(Role::User, text) });
    }
    // Most sets repeat the prompt in both conversations.
    let own = steps_at(chosen, &rows::pointer(row, "chosen"), |_, _| {});
    let repeated = own.first().is_some_and(|s| s.role != Role::Assistant);
    Some(if repeated { own } else { steps.into_iter().chain(own).collect() })
}

/// The end of a row of preferences: the answer that was chosen goes on with the conversation, the one that was rejected
/// is shown beside it.
fn preference(row: Row<'_>, steps: &mut Vec<Step>) {
    let read = |key: &str| {
        let answer = field::get(row.value, key)?;
        let raw = RawPlace { pointer: rows::pointer(row, key).into(), ..RawPlace::default() };
        let list = answer.as_array().map(Vec::as_slice).unwrap_or_default();
        let message = if answer.is_object() { Some(answer) } else { list.last() };
        let own = message.filter(|m| is_message(m)).map(message_steps).unwrap_or_default();
        Some(own.into_iter().map(|step| Step { raw: raw.clone(), ..step }).collect::<Vec<_>>())
    };
    let (Some(chosen), Some(rejected)) = (read("chosen"), read("rejected")) else {
        return;
    };
    // A chosen list was read whole.
    if row.value.get("chosen").is_some_and(Value::is_object) || messages_of(row.value).is_some() {
        steps.extend(chosen);
    }
    steps.extend(rejected.into_iter().map(|step| {
        let text = format!("the answer that was rejected:\n{}", step.text);
        Step { role: Role::Meta, text, calls: Vec::new(), action: None, ..step }
    }));
}

#[cfg(test)]
mod tests;
