//! Kiro (and Amazon Q) keep conversations as JSON in a database: this is one such payload.

use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, session};
use super::{call, certain, of_file};
use crate::trajectory::{RawPlace, Role, Step};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let turn = |t: &Value| t.get("user").is_some_and(Value::is_object) && t.get("assistant").is_some();
    let found = sniff
        .rows
        .iter()
        .any(|r| r.get("conversation_id").is_some() && field::list(r, "history").first().is_some_and(turn));
    certain(found, "`conversation_id` and a `history` of `user` and `assistant`")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut tally = session::Tally::default();
    let mut trajectories = Vec::new();
    let mut diagnostics = input.document.rows(|row| {
        let mut steps = Vec::new();
        for (i, turn) in field::list(row.value, "history").iter().enumerate() {
            let from = steps.len();
            read(turn, &mut steps, &mut tally);
            let time = field::at(turn, &["user", "timestamp"]).and_then(session::time_of);
            for step in steps.iter_mut().skip(from) {
                step.raw = RawPlace::element("/history", i);
                step.timestamp = time.clone();
            }
        }
        let mut out = of_file(input, "Kiro", steps);
        out.session = field::text(row.value, "conversation_id");
        out.source.record = trajectories.len();
        out.source.span = row.span;
        trajectories.push(out);
    });
    diagnostics.extend(tally.finish());
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

fn read(turn: &Value, steps: &mut Vec<Step>, tally: &mut session::Tally) {
    let content = field::at(turn, &["user", "content"]).unwrap_or(&Value::Null);
    if let Some(text) = field::str_at(content, &["Prompt", "prompt"]) {
        steps.push(Step::new(Role::User, text));
    }
    let results = ["ToolUseResults", "CancelledToolUses"].iter().find_map(|k| field::get(content, k));
    for result in results.map(|r| field::list(r, "tool_use_results")).unwrap_or_default() {
        let texts: Vec<String> = field::list(result, "content").iter().map(text_of).collect();
        let failed = field::str(result, "status").map(|s| s != "Success");
        steps.push(session::result(field::text(result, "tool_use_id"), texts.join("\n"), failed));
    }
    let Some(members) = field::object(turn, "assistant") else { return };
    for (kind, answer) in members {
        if kind != "Response" && kind != "ToolUse" {
            tally.unknown(kind);
            steps.push(session::raw_step(kind, answer));
            continue;
        }
        let calls = field::list(answer, "tool_uses").iter().map(|c| call(c, "id", "name", "args")).collect();
        let mut step = session::answer(field::text(answer, "content").unwrap_or_default(), None, calls);
        step.id = field::text(answer, "message_id").map(Into::into);
        steps.push(step);
    }
}

/// `{"Text": …}` or `{"Json": …}`.
fn text_of(block: &Value) -> String {
    let member = field::get(block, "Text").or_else(|| field::get(block, "Json")).unwrap_or(block);
    match member {
        Value::Object(json) => field::text(member, "stdout").unwrap_or_else(|| Value::Object(json.clone()).to_string()),
        other => session::text_of(other),
    }
}
