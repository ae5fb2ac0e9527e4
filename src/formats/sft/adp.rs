//! Rows of the Agent Data Protocol in its standard form: actions and observations by class, everything about the run
//! as text in `details`.

use super::super::document::Row;
use super::super::json::{Value, json};
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input, numbered};
use super::super::{action, chat, field, names, rows};
use crate::trajectory::{Diagnostic, Outcome, RawPlace, Role, Severity, Source, Step, ToolCall, Trajectory};

/// Rows of parts with a class.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let parts = sniff.first("content")?.as_array()?;
    let classed = !parts.is_empty() && parts.iter().all(|p| field::str(p, "class_").is_some());
    if classed && sniff.is_rows() { Match::some(Confidence::Certain, "rows of parts with `class_`") } else { None }
}

/// Reads rows: one trajectory each.
pub fn decode(input: &Input<'_>) -> Decoded {
    let read = |row: Row<'_>| {
        let fits = row.value.get("content").is_some_and(Value::is_array);
        if fits { Some(trajectory(row, input.format)) } else { None }
    };
    let (rows, diagnostics) = input.document.map_rows(read);
    Decoded { trajectories: numbered(rows), diagnostics, ..Decoded::default() }
}

fn trajectory(row: Row<'_>, format: &'static str) -> Trajectory {
    let details = field::get(row.value, "details").unwrap_or(&Value::Null);
    // Values that were no text are JSON inside one.
    let inside = |key: &str| field::embedded(details, key);
    let at = rows::pointer(row, "content");
    let (mut steps, mut unknown, mut acted) = (Vec::new(), 0, false);
    for (i, part) in field::list(row.value, "content").iter().enumerate() {
        let mut step = step(part, acted, &mut unknown);
        acted |= step.role == Role::Assistant;
        step.raw = RawPlace::element(&at, i);
        steps.push(step);
    }
    let result = inside("test_result");
    let patch = ["git_patch", "model_patch"].iter().find_map(|k| field::text(result.as_deref()?, k));
    let resolved = ["resolved", "target", "verified", "reward"].iter().find_map(|k| {
        let value = field::get(details, k)?;
        field::truth(value)
    });
    let tools = inside("tools");
    let (instance, number) = names::numbered_instance(field::str(row.value, "id").unwrap_or_default());
    let own = field::text(details, "run_id").or_else(|| field::text(details, "traj_id"));
    let mut trajectory = Trajectory {
        source: Source { span: row.span, ..Source::default() },
        format,
        instance_id: field::text(details, "instance_id").or(instance),
        attempt: own.or(number),
        model: field::text(details, "model").or_else(|| field::text(details, "model_name")),
        tools: tools.as_deref().and_then(Value::as_array).map(|t| chat::tool_specs(t)).unwrap_or_default(),
        patch: patch.or_else(|| field::text(details, "generated_patch")),
        exit_status: field::text(details, "exit_status"),
        outcome: Outcome::from_bool(resolved),
        steps,
        ..Trajectory::default()
    };
    if unknown > 0 {
        let text = format!("{unknown} parts of unknown class are shown raw");
        trajectory.diagnostics.push(Diagnostic::new(Severity::Warning, "adp.unknown-class", text));
    }
    trajectory
}

fn step(part: &Value, acted: bool, unknown: &mut usize) -> Step {
    let said = || ["content", "description"].iter().find_map(|k| field::get(part, k)).map(chat::content_text);
    let calling = |name: &str, arguments: &Value| {
        let arguments = field::json_text(arguments);
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
        let mut step = Step::new(Role::Assistant, field::text(part, "description").unwrap_or_default());
        step.calls = vec![call];
        step.action = action::of_calls(&step.calls);
        step
    };
    match field::str(part, "class_").unwrap_or_default() {
        "text_observation" => {
            let role = match field::str(part, "source") {
                Some("user") => Role::User,
                Some("system") => Role::System,
                Some(_) => Role::Tool,
                None if acted => Role::Tool,
                None => Role::User,
            };
            Step { tool_name: field::text(part, "name"), ..Step::new(role, said().unwrap_or_default()) }
        }
        "web_observation" => {
            let seen = ["axtree", "html", "url"].iter().find_map(|k| field::text(part, k));
            Step::new(Role::Tool, seen.or_else(said).unwrap_or_default())
        }
        "message_action" => Step::new(Role::Assistant, said().unwrap_or_default()),
        "api_action" => {
            let name = field::str(part, "function").unwrap_or_default();
            calling(name, field::get(part, "kwargs").unwrap_or(&json!({})))
        }
        "code_action" => {
            let code = field::get(part, "content").map(chat::content_text).unwrap_or_default();
            match field::str(part, "language").unwrap_or_default() {
                shell @ ("bash" | "sh" | "shell") => calling(shell, &json!({"command": code})),
                language => calling(language, &json!({"code": code})),
            }
        }
        other => {
            *unknown += 1;
            Step::new(Role::Meta, format!("{other}: {}", field::clipped(&part.to_string(), 240)))
        }
    }
}
