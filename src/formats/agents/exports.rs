//! `conversations.json` of ChatGPT (a tree of messages) and of Claude.ai.

use super::super::json::{Map, Value};
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{chat, field, session};
use super::{call, certain, finish};
use crate::trajectory::{RawPlace, Role, Source, Step, Trajectory};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let tree =
        sniff.rows.iter().any(|r| r.get("mapping").is_some_and(Value::is_object) && r.get("current_node").is_some());
    let list = sniff.rows.iter().any(|r| r.get("chat_messages").is_some_and(Value::is_array));
    certain(tree || list, "`mapping` with `current_node`, or `chat_messages`")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let is_list = input.document.list().is_some();
    let (rows, diagnostics) = input.document.map_rows(|row| {
        let mut out = Trajectory { format: input.format, ..Trajectory::default() };
        if let Some(mapping) = field::object(row.value, "mapping") {
            out.agent = Some("ChatGPT".to_owned());
            out.session = field::text(row.value, "conversation_id").or_else(|| field::text(row.value, "id"));
            out.steps = path(mapping, field::str(row.value, "current_node"));
            out.model = field::text(row.value, "default_model_slug");
        } else if row.value.get("chat_messages").is_some() {
            out.agent = Some("Claude.ai".to_owned());
            out.session = field::text(row.value, "uuid");
            let messages = field::list(row.value, "chat_messages");
            out.steps = messages.iter().enumerate().flat_map(|(i, m)| claude(m, i)).collect();
        } else {
            return None;
        }
        // Where nobody can tell the place of the element itself, its steps are found from the list.
        if is_list && row.span.len == 0 {
            for step in &mut out.steps {
                step.raw.pointer = format!("/{}{}", row.record, step.raw.pointer).into();
            }
        }
        out.source = Source { span: row.span, ..Source::default() };
        finish(&mut out);
        Some(out)
    });
    Decoded { trajectories: super::super::table::numbered(rows), diagnostics, ..Decoded::default() }
}

/// The messages from the root to the one that is shown.
fn path(mapping: &Map<'_>, current: Option<&str>) -> Vec<Step> {
    let mut found = Vec::new();
    let mut at = current;
    // A broken file may hold a circle: there are no more steps than nodes.
    for _node in 0..mapping.len() {
        let Some((id, node)) = at.and_then(|id| Some((id, mapping.get(id)?))) else { break };
        if let Some(message) = field::get(node, "message") {
            found.extend(gpt(message).map(|mut step| {
                let escaped = id.replace('~', "~0").replace('/', "~1");
                step.raw = RawPlace { pointer: format!("/mapping/{escaped}").into(), ..RawPlace::default() };
                step.id = Some(id.into());
                step
            }));
        }
        at = field::str(node, "parent");
    }
    found.reverse();
    found
}

fn gpt(message: &Value) -> Option<Step> {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = field::get(content, "parts").or_else(|| field::get(content, "text")).map(session::text_of);
    let text = parts.or_else(|| field::text(content, "result")).unwrap_or_default();
    let author = field::get(message, "author").unwrap_or(&Value::Null);
    let role = chat::role_of(author);
    if text.is_empty() && role != Role::Assistant {
        return None;
    }
    let thoughts = field::list(content, "thoughts").iter().filter_map(|t| field::str(t, "content"));
    let thoughts: Vec<&str> = thoughts.collect();
    // A message to a tool is a call of it.
    let to = field::str(message, "recipient").filter(|r| *r != "all" && role == Role::Assistant);
    let mut step = match (role, to) {
        (Role::Assistant, Some(tool)) => {
            let arguments = serde_json::json!({ "code": text }).to_string();
            let call = crate::trajectory::ToolCall { id: String::new(), name: tool.to_owned(), arguments };
            session::answer(String::new(), None, vec![call])
        }
        (Role::Assistant, None) => session::answer(text, Some(thoughts.join("\n")), Vec::new()),
        (role, _) => Step::new(role, text),
    };
    if role == Role::Tool {
        step.tool_name = field::text(author, "name");
    }
    step.timestamp = field::get(message, "create_time").and_then(session::time_of);
    Some(step)
}

fn claude(message: &Value, index: usize) -> Vec<Step> {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let text = session::text_of(content);
    let text = if text.is_empty() { field::text(message, "text").unwrap_or_default() } else { text };
    let human = matches!(field::str(message, "sender"), Some("human" | "user"));
    let mut steps = if human {
        vec![Step::new(Role::User, text)]
    } else {
        let calls = parts.iter().filter(|p| field::str(p, "type") == Some("tool_use"));
        let thoughts: Vec<&str> = parts.iter().filter_map(|p| field::str(p, "thinking")).collect();
        let calls = calls.map(|p| call(p, "id", "name", "input")).collect();
        vec![session::answer(text, Some(thoughts.join("\n")), calls)]
    };
    let results = parts.iter().filter(|p| field::str(p, "type") == Some("tool_result"));
    steps.extend(results.map(|p| {
        let text = field::get(p, "content").map(session::text_of).unwrap_or_default();
        session::result(field::text(p, "tool_use_id"), text, field::get(p, "is_error").and_then(field::truth))
    }));
    for step in &mut steps {
        step.raw = RawPlace::element("/chat_messages", index);
        step.timestamp = field::text(message, "created_at");
        step.id = field::text(message, "uuid").map(Into::into);
    }
    steps
}
