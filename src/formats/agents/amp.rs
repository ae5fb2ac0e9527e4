//! Amp: one thread a file.

use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, session};
use super::{call, certain, of_file};
use crate::trajectory::{RawPlace, Role, Step, Tokens};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let id = root.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with("T-"));
    let versioned = root.contains_key("v") && root.contains_key("created");
    certain((id || versioned) && root.get("messages").is_some_and(Value::is_array), "`messages` with `v` and `created`")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut tally = session::Tally::default();
    let mut trajectories = Vec::new();
    let mut diagnostics = input.document.rows(|row| {
        let mut steps = Vec::new();
        let mut model = None;
        for (i, message) in field::list(row.value, "messages").iter().enumerate() {
            model = field::str_at(message, &["usage", "model"]).map(str::to_owned).or(model.take());
            let from = steps.len();
            read(message, &mut steps, &mut tally);
            for step in steps.iter_mut().skip(from) {
                step.raw = RawPlace::element("/messages", i);
            }
        }
        let mut out = of_file(input, "Amp", steps);
        out.session = field::text(row.value, "id");
        out.model = model;
        trajectories.push(out);
    });
    diagnostics.extend(tally.finish());
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

fn read(message: &Value, steps: &mut Vec<Step>, tally: &mut session::Tally) {
    let content = field::get(message, "content").unwrap_or(&Value::Null);
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let text = session::text_of(content);
    match field::str(message, "role").unwrap_or("(none)") {
        "user" => {
            let results = parts.iter().filter(|p| field::str(p, "type") == Some("tool_result"));
            let before = steps.len();
            steps.extend(results.map(result));
            if !text.is_empty() || steps.len() == before {
                steps.push(Step::new(Role::User, text));
            }
        }
        "assistant" => {
            let thoughts: Vec<&str> = parts.iter().filter_map(|p| field::str(p, "thinking")).collect();
            let calls = parts.iter().filter(|p| field::str(p, "type") == Some("tool_use"));
            let calls = calls.map(|p| call(p, "id", "name", "input")).collect();
            let mut step = session::answer(text, Some(thoughts.join("\n")), calls);
            step.tokens = field::get(message, "usage").and_then(tokens);
            steps.push(step);
        }
        kind => {
            tally.unknown(kind);
            steps.push(session::raw_step(kind, message));
        }
    }
}

fn result(part: &Value) -> Step {
    let run = field::get(part, "run").unwrap_or(part);
    let status = field::str(run, "status");
    let body = ["result", "error", "content"].iter().find_map(|k| field::get(run, k));
    let output = body.map(|b| field::get(b, "output").or_else(|| field::get(b, "message")).unwrap_or(b));
    let text = match output {
        Some(Value::Object(members)) => Value::Object(members.clone()).to_string(),
        Some(other) => session::text_of(other),
        None => status.unwrap_or_default().to_owned(),
    };
    let id = field::text(part, "toolUseID").or_else(|| field::text(part, "tool_use_id"));
    let code = body.and_then(|b| field::get(b, "exitCode")).and_then(field::integer);
    let failed = status.map(|s| s != "done" || code.is_some_and(|c| c != 0));
    Step { exit_code: code, ..session::result(id, text, failed) }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let count = |key| field::get(usage, key).and_then(field::count);
    let cached = count("cacheReadInputTokens");
    let input = count("inputTokens")?.saturating_add(cached.unwrap_or(0));
    let input = input.saturating_add(count("cacheCreationInputTokens").unwrap_or(0));
    Some(Tokens { input, cached, output: count("outputTokens").unwrap_or(0) })
}
