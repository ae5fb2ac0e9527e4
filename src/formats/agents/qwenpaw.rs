//! QwenPaw (AgentScope): the memory of the agent, pairs of a message and its marks.

use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{chat, field, session};
use super::{call, certain, of_file};
use crate::trajectory::{RawPlace, Role, Step};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let memory = |r: &&Value| field::at(r, &["agent", "memory", "content"]).is_some_and(Value::is_array);
    certain(sniff.rows.iter().any(memory), "`agent.memory.content`")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut trajectories = Vec::new();
    let diagnostics = input.document.rows(|row| {
        let content = field::at(row.value, &["agent", "memory", "content"]).and_then(Value::as_array);
        let mut steps = Vec::new();
        for (i, pair) in content.map_or(&[][..], Vec::as_slice).iter().enumerate() {
            let message = pair.as_array().and_then(|p| p.first()).unwrap_or(pair);
            let from = steps.len();
            read(message, &mut steps);
            for step in steps.iter_mut().skip(from) {
                step.raw = RawPlace::element("/agent/memory/content", i);
                step.timestamp = field::text(message, "timestamp");
                step.id = field::text(message, "id").map(Into::into);
            }
        }
        let mut out = of_file(input, "QwenPaw", steps);
        out.session = input.path.file_stem().map(|s| s.to_string_lossy().into_owned());
        out.source.record = trajectories.len();
        trajectories.push(out);
    });
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

fn read(message: &Value, steps: &mut Vec<Step>) {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let of = |kind: &'static str| parts.iter().filter(move |p| field::str(p, "type") == Some(kind));
    let results: Vec<Step> = of("tool_result")
        .map(|p| {
            let text = field::get(p, "output").map(session::text_of).unwrap_or_default();
            let mut step = session::result(field::text(p, "id"), text, None);
            step.tool_name = field::text(p, "name");
            step
        })
        .collect();
    let text = session::text_of(content);
    let answered = !results.is_empty();
    steps.extend(results);
    match chat::role_of(message) {
        Role::Assistant => {
            let thoughts: Vec<&str> = of("thinking").filter_map(|p| field::str(p, "thinking")).collect();
            let calls = of("tool_use").map(|p| call(p, "id", "name", "input")).collect();
            steps.push(session::answer(text, Some(thoughts.join("\n")), calls));
        }
        // Results come as messages of the system.
        _ if answered && text.is_empty() => {}
        role => steps.push(Step::new(role, text)),
    }
}
